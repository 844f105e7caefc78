"""Random numbers on CUDA devices: one default generator per device, which ``vesta.manual_seed`` also seeds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta._types import Device

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def _generator(device: Any) -> Any:
    """Returns the default generator of a device: its number, its name, or the device itself."""
    return _C._default_generator(vesta.device("cuda", device) if isinstance(device, int) else vesta.device(device))


def get_rng_state(device: Device = "cuda") -> Tensor:
    """Returns the state of a device's generator, a tensor of bytes on the CPU.

    Args:
        device: which device; without a number, the current one.
    """
    return _generator(device).get_state()


def get_rng_state_all() -> list[Tensor]:
    """Returns the states of all devices' generators."""
    return [get_rng_state(i) for i in range(vesta.cuda.device_count())]


def set_rng_state(new_state: Tensor, device: Device = "cuda") -> None:
    """Makes a device's generator continue from a state of :func:`get_rng_state`.

    Args:
        new_state: the state.
        device: which device; without a number, the current one.
    """
    _generator(device).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Tensor]) -> None:
    """Makes every device's generator continue from its state in a list of :func:`get_rng_state_all`."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)


def manual_seed(seed: int) -> None:
    """Seeds the current device's generator; does nothing without a device."""
    if vesta.cuda.is_available():
        _generator("cuda").manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seeds the generators of all devices."""
    for i in range(vesta.cuda.device_count()):
        _generator(i).manual_seed(seed)


def seed() -> None:
    """Seeds the current device's generator from the system."""
    if vesta.cuda.is_available():
        _generator("cuda").seed()


def seed_all() -> None:
    """Seeds the generators of all devices with one seed from the system."""
    if vesta.cuda.device_count():
        manual_seed_all(_generator(0).seed())


def initial_seed() -> int:
    """Returns the seed of the current device's generator."""
    return _generator("cuda").initial_seed()
