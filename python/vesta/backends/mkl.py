"""Intel's MKL, which Vesta does not use."""

from __future__ import annotations

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Returns False: MKL is not used."""
    return False


class verbose:
    """A context in which MKL would print what it does; nothing is printed."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *error: object) -> None:
        return None
