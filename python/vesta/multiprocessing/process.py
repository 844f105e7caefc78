"""``Process``: the standard one, tied to its parent, which releases the memory that was sent with it."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing import context, reduction
from typing import Any

from vesta._C import _shared

from . import reductions
from .connection import Connection, Pipe

__all__ = ["Life", "Process", "die_with"]


class Life:
    """A descriptor that becomes ready when the process that made this object is dead; pickled to new processes.

    Example::

        >>> from vesta.multiprocessing.process import Life
        >>> with Life() as life:
        ...     life.is_over()
        False
    """

    def __init__(self) -> None:
        self._fd = _shared.life_of_this_process()

    def fileno(self) -> int:
        """Returns the descriptor, for ``select`` and ``multiprocessing.connection.wait``."""
        return self._fd

    def is_over(self) -> bool:
        """Returns whether the process is dead; a stopped process is not."""
        return _shared.is_over(self._fd)

    def close(self) -> None:
        """Closes the descriptor."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Life:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _received_life, (reduction.DupFd(self._fd),)


def _received_life(duplicate: Any) -> Life:
    life = Life.__new__(Life)
    life._fd = duplicate.detach()
    return life


def die_with(life: Life, wake: Any = None) -> None:
    """Ends this process with SIGKILL as soon as the one that made ``life`` is dead, within milliseconds.

    The parent makes a ``Life`` and gives it to the child, through a fork or as an argument. A thread outside of Python
    watches it, so nothing that the process does can delay it.

    Args:
        life: the parent's.
        wake: a connection whose other end the parent has. The child of a fork server needs it to end even while it is
            stopped.
    """
    _shared.die_with(life.fileno(), -1 if wake is None else wake.fileno())


class Tied:
    """A mixin for process classes: the child does not outlive its parent, whatever ends the parent."""

    _life: Life | None = None
    _wake: Connection | None = None  # for the child of a fork server
    _hold: Connection | None = None  # its other end, open in the parent until the child has ended

    def start(self) -> None:
        """Starts the process; it ends no later than this one."""
        hold = None
        if (self._start_method or multiprocessing.get_start_method()) == "forkserver":
            hold, self._wake = Pipe()
        with Life() as self._life:
            try:
                super().start()  # type: ignore[misc]
            finally:
                reductions.end_lease_of_start(getattr(self, "_popen", None))
                self._life = None
                if self._wake is not None:
                    self._wake.close()
                    self._wake = None
        self._hold = hold

    def join(self, timeout: float | None = None) -> None:
        """Waits until the process has ended, or ``timeout`` seconds; memory that it held is released."""
        super().join(timeout)  # type: ignore[misc]
        if self._hold is not None and self.exitcode is not None:  # type: ignore[attr-defined]
            self._hold.close()
        _shared.collect()

    def _bootstrap(self, parent_sentinel: Any = None) -> int:
        life, self._life = self._life, None
        wake, self._wake = self._wake, None
        if life is not None:
            die_with(life, wake)
            life.close()
            if wake is not None:
                wake.close()
        return super()._bootstrap(parent_sentinel)  # type: ignore[misc]


class Process(Tied, context.Process):
    """A process of the default start method, as ``multiprocessing.Process``."""


class ForkProcess(Tied, context.ForkProcess):
    """A forked process."""


class SpawnProcess(Tied, context.SpawnProcess):
    """A process that starts a new interpreter."""


class ForkServerProcess(Tied, context.ForkServerProcess):
    """A process forked by a server that holds nothing of this one."""
