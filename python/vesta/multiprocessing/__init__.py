"""The standard ``multiprocessing`` with tensors sent as handles to shared memory, under PyTorch's names.

Everything of ``multiprocessing`` is here under its own name. Tensors, parameters and modules that are put into a queue,
sent through a pipe, or given to a new process are the same memory at both ends. There are no named files: memory
belongs to the processes that hold it, and to the messages that carry it, and is freed with the last of them, whichever
process dies.

That holds for the queues, pipes and pools of this package. A tensor that goes through another transport, a
``multiprocessing.Queue`` or a manager of the standard library, is fetched from its sender when it is unpickled: its
sender has to live until then, and a tensor that is never fetched is kept until its sender ends.
"""

# ruff: noqa: F401  (what is imported here is what the package offers)

from __future__ import annotations

import multiprocessing as _standard
from multiprocessing import *  # noqa: F403

from vesta._names import listing

from . import reductions
from .connection import Connection, Pipe
from .context import default as _default
from .process import Process
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_standard.__all__,
    "Connection",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

for _name in _standard.__all__:  # functions of the default context: Queue, Pool, get_context and others
    if hasattr(_default, _name):
        globals()[_name] = getattr(_default, _name)
reductions.register()

_strategies = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """Returns the names that ``set_sharing_strategy`` takes."""
    return set(_strategies)


def get_sharing_strategy() -> str:
    """Returns the last name that was set."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepts one of PyTorch's names and changes nothing: there is only one way, without the drawbacks of either.

    Memory has no name in a file system ("file_system" may leave files behind, and needs room in /dev/shm), and a
    process needs one descriptor per process that it has memory of ("file_descriptor" needs one per tensor).

    Args:
        new_strategy: "file_descriptor" or "file_system".

    Raises:
        AssertionError: another name.
    """
    global _strategy
    if new_strategy not in _strategies:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_strategies}")
    _strategy = new_strategy


__dir__ = listing(globals(), hidden="connection context exceptions process start_methods")
