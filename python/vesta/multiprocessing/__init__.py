"""The standard ``multiprocessing`` with tensors that travel as handles to shared memory, under PyTorch's names."""

from __future__ import annotations

from multiprocessing import *  # noqa: F403

from . import reductions
from .connection import Connection, Pipe

__all__ = ["Connection", "Pipe"]

reductions.register()
