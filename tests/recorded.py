"""Which ops a function calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vesta.autograd.recording import Recording


def recorded(function: Callable[[], Any], op: str) -> tuple[Any, int]:
    """Returns what a function returns, and how often it called an op: how many events have a name that ends so."""
    recording = Recording()
    recording.start()
    try:
        result = function()
    finally:
        recording.stop()
    return result, sum(e.name.endswith(op) for e in recording.events())
