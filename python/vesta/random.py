"""Random numbers: seeds and states, with ``torch.random``'s names."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import vesta
from vesta._names import listing

from . import _C
from ._C import get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

#: The generator of functions that are given none, on the CPU.
default_generator = _C.default_generator


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """A context after which the generators are as they were before it.

    Args:
        devices: the CUDA devices whose generators are kept, by number; default: all. The CPU's always is.
        enabled: False: nothing is kept.
        device_type: "cuda", as without; or "cpu" for no devices.

    Example::

        >>> import vesta
        >>> _ = vesta.manual_seed(0)
        >>> with vesta.random.fork_rng():
        ...     first = vesta.rand(1)
        >>> bool(vesta.rand(1) == first)
        True
    """
    if not enabled:
        yield
        return
    device_type = "cuda" if device_type is None else device_type
    if device_type not in ("cuda", "cpu", "meta"):
        raise RuntimeError(f"torch has no module of `{device_type}`, you should register a module first.")
    if devices is None:
        count = vesta.cuda.device_count() if device_type == "cuda" else 0
        if count > 1:
            warnings.warn(f"{_caller}: keeps the generators of all {count} devices; give {_devices_kw}.", stacklevel=3)
        devices = range(count)
    states = {device: vesta.cuda.get_rng_state(device) for device in list(devices)}
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
        for device, kept in states.items():
            vesta.cuda.set_rng_state(kept, device)


__dir__ = listing(globals())
