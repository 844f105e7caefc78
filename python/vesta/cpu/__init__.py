"""The CPU as a device: ``torch.cpu``'s names, for programs that do not know their device."""

from __future__ import annotations

from . import amp as amp

__all__ = ["amp", "current_device", "device_count", "is_available", "synchronize"]


def is_available() -> bool:
    """Whether there is a CPU: yes."""
    return True


def device_count() -> int:
    """How many CPU devices there are: one, whatever its cores."""
    return 1


def current_device() -> str:
    """The CPU's name as a device."""
    return "cpu"


def synchronize(device: object = None) -> None:
    """Waits for nothing: operations on the CPU are done when they return."""
