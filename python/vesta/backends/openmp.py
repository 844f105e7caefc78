"""OpenMP, whose threads Vesta uses."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Returns True."""
    return True
