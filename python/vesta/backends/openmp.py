"""OpenMP, which Vesta does not use: its threads are its own."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Returns False."""
    return False
