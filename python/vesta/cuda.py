"""CUDA devices: none in this build."""

from __future__ import annotations


def is_available() -> bool:
    """Whether there is a CUDA device that this build can use."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0
