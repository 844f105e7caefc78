"""Contexts, the results of ``get_context(method)``, with the processes and queues of this package."""

from __future__ import annotations

import multiprocessing
from multiprocessing import context
from typing import Any

from . import connection, process, start_methods

__all__ = ["DefaultContext", "get_context"]


class _Sharing:
    """The parts of a context that differ from the standard one."""

    def get_context(self, method: str | None = None) -> Any:
        """Returns the context of a start method; without one, this context."""
        return self if method is None else start_methods.context_of(method)

    def Pipe(self, duplex: bool = True) -> tuple[connection.Connection, connection.Connection]:
        """Returns two connected ends; with ``duplex=False`` the first only receives."""
        return connection.Pipe(duplex)

    def Queue(self, maxsize: int = 0) -> Any:
        """Returns a queue of at most ``maxsize`` objects (0: any number)."""
        from .queue import Queue

        return Queue(maxsize, ctx=self.get_context())

    def JoinableQueue(self, maxsize: int = 0) -> Any:
        """Returns a queue that knows when everything put into it is done."""
        from .queue import JoinableQueue

        return JoinableQueue(maxsize, ctx=self.get_context())

    def SimpleQueue(self) -> Any:
        """Returns a queue over a pipe whose messages are whole: it has no lock that a process could hold when it
        dies."""
        from .queue import SimpleQueue

        return SimpleQueue(ctx=self.get_context())

    def Pool(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
    ) -> Any:
        """Returns a pool of processes that run functions."""
        from .pool import Pool

        return Pool(processes, initializer, initargs, maxtasksperchild, context=self.get_context())


class ForkContext(_Sharing, context.ForkContext):
    """A context that starts processes by fork."""

    Process = process.ForkProcess


class SpawnContext(_Sharing, context.SpawnContext):
    """A context that starts processes as new interpreters."""

    Process = process.SpawnProcess


class ForkServerContext(_Sharing, context.ForkServerContext):
    """A context that starts processes by a server that forks."""

    Process = process.ForkServerProcess


class DefaultContext(_Sharing, context.BaseContext):
    """The context of the start method that is set, here or in ``multiprocessing``, which share one setting."""

    Process = process.Process

    def get_context(self, method: str | None = None) -> Any:
        """Returns the context of a start method; without one, of the method that is set."""
        return start_methods.context_of(method or None)

    def get_start_method(self, allow_none: bool = False) -> str | None:
        """Returns the start method that is set."""
        return multiprocessing.get_start_method(allow_none)

    def set_start_method(self, method: str | None, force: bool = False) -> None:
        """Sets the start method, once unless ``force``."""
        multiprocessing.set_start_method(method, force)

    def get_all_start_methods(self) -> list[str]:
        """Returns the start methods of this system, the default first."""
        return multiprocessing.get_all_start_methods()


for _context in (ForkContext(), SpawnContext(), ForkServerContext()):
    start_methods.enter(_context.get_start_method(), _context)
default = DefaultContext()
get_context = default.get_context
