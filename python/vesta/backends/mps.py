"""Apple's GPUs, for which Vesta has no backend; programs check this before they choose a device."""

from __future__ import annotations


def is_available() -> bool:
    """Always False."""
    return False


def is_built() -> bool:
    """Always False."""
    return False
