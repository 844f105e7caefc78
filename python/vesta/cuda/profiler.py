"""Start and stop of NVIDIA's profilers from inside a program; without CUDA they raise."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from typing import Any

__all__ = ["profile", "start", "stop"]


@functools.cache
def _runtime() -> Any:
    """Returns CUDA's runtime library. RuntimeError: it is not found."""
    for name in ("libcudart.so", "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"):
        with contextlib.suppress(OSError):
            return ctypes.CDLL(name)
    raise RuntimeError("cuda.profiler: expected CUDA's runtime library libcudart.so, found none.")


def _call(name: str) -> None:
    code = getattr(_runtime(), name)()
    if code != 0:
        raise RuntimeError(f"cuda.profiler: {name} failed with CUDA's error {code}.")


def start() -> None:
    """Begins what a profiler records that was told to wait for it (``nsys profile -c cudaProfilerApi``).

    Raises:
        RuntimeError: there is no CUDA.
    """
    _call("cudaProfilerStart")


def stop() -> None:
    """Ends what ``start`` began.

    Raises:
        RuntimeError: there is no CUDA.
    """
    _call("cudaProfilerStop")


@contextlib.contextmanager
def profile() -> Iterator[None]:
    """Records a block.

    Raises:
        RuntimeError: there is no CUDA.
    """
    start()
    try:
        yield
    finally:
        stop()
