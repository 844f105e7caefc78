"""Apple's GPUs, which Vesta has no backend for; programs ask before they choose a device."""

from __future__ import annotations


def is_available() -> bool:
    """Always False."""
    return False


def is_built() -> bool:
    """Always False."""
    return False
