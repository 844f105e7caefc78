"""Devices that Vesta does not compute on: questions about them are answered, and preparing them does nothing."""

from __future__ import annotations

from typing import Any

__all__ = [
    "current_allocated_memory",
    "device_count",
    "driver_allocated_memory",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "synchronize",
]


def is_available() -> bool:
    """Returns False."""
    return False


def is_initialized() -> bool:
    """Returns False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns False."""
    return False


def device_count() -> int:
    """Returns 0."""
    return 0


def memory_allocated(device: Any = None) -> int:
    """Returns 0."""
    return 0


max_memory_allocated = memory_allocated


def current_allocated_memory() -> int:
    """Returns 0."""
    return 0


driver_allocated_memory = current_allocated_memory


def empty_cache() -> None:
    """Does nothing."""


def reset_peak_memory_stats(device: Any = None) -> None:
    """Does nothing."""


def synchronize(device: Any = None) -> None:
    """Does nothing."""


def manual_seed(seed: int) -> None:
    """Does nothing."""


manual_seed_all = manual_seed


def seed() -> None:
    """Does nothing."""


seed_all = seed
