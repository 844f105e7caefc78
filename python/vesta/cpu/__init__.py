"""The CPU as a device: ``torch.cpu``'s names, for programs that do not know their device."""

from __future__ import annotations

from vesta._names import listing
from vesta._types import Device

from . import amp as amp

__all__ = ["amp", "current_device", "device_count", "is_available", "is_initialized", "set_device", "synchronize"]


def is_available() -> bool:
    """Returns whether there is a CPU: always True."""
    return True


def device_count() -> int:
    """Returns the number of CPU devices: one, for any number of cores."""
    return 1


def current_device() -> str:
    """Returns the CPU's name as a device."""
    return "cpu"


def is_initialized() -> bool:
    """Returns True: the CPU needs no start."""
    return True


def set_device(device: Device | None) -> None:
    """Does nothing: there is one CPU."""


def synchronize(device: Device | None = None) -> None:
    """Does nothing: operations on the CPU are done when they return."""


__dir__ = listing(globals())
