"""The contexts of this package by start method: they enter themselves here, and pools ask for the one that is set."""

from __future__ import annotations

import multiprocessing
from typing import Any

__all__ = ["context_of", "enter"]

_contexts: dict[str, Any] = {}


def enter(method: str, context: Any) -> None:
    """Makes ``context`` the one of a start method."""
    _contexts[method] = context


def context_of(method: str | None = None) -> Any:
    """Returns the context of a start method; without one, of the method that is set, here or in ``multiprocessing``."""
    if method is None:
        method = multiprocessing.get_start_method()
    if method not in _contexts:
        raise ValueError(f"cannot find context for {method!r}")
    return _contexts[method]
