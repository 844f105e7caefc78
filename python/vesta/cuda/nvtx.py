"""Marks for NVIDIA's profilers, by the library ``libnvToolsExt`` where it is installed; without it they do nothing."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from typing import Any

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]


@functools.cache
def _library() -> Any:
    """Returns the library, None if it is not found."""
    for name in ("libnvToolsExt.so.1", "libnvToolsExt.so"):
        try:
            found = ctypes.CDLL(name)
        except OSError:
            continue
        found.nvtxRangeStartA.restype = ctypes.c_uint64
        return found
    return None


def range_push(msg: str) -> int:
    """Begins a part with a name, inside those that are open; returns how many were open, -1 without the library."""
    library = _library()
    return library.nvtxRangePushA(msg.encode()) if library else -1


def range_pop() -> int:
    """Ends the part that began last."""
    library = _library()
    return library.nvtxRangePop() if library else -1


def range_start(msg: str) -> int:
    """Begins a part that another thread may end; returns its number."""
    library = _library()
    return library.nvtxRangeStartA(msg.encode()) if library else 0


def range_end(range_id: int) -> None:
    """Ends the part with a number of ``range_start``."""
    library = _library()
    if library:
        library.nvtxRangeEnd(ctypes.c_uint64(range_id))


def mark(msg: str) -> None:
    """Marks a moment."""
    library = _library()
    if library:
        library.nvtxMarkA(msg.encode())


@contextlib.contextmanager
def range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """A context, or a decorator, that is a part; the name is formatted with the other arguments."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
