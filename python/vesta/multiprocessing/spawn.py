"""``spawn`` and ``start_processes``: n processes that run one function, and the first failure as an exception."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .connection import Connection, Pipe
from .context import get_context
from .exceptions import ProcessException, ProcessExitedException, ProcessRaisedException

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"  # accepted: children here start without waiting for one another
_LAST_PATIENCE = 30.0  # seconds that a process has to end after SIGTERM


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], report: Connection) -> None:
    """Runs the function in a child, and reports what it raised."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        _tell(report, traceback.format_exc())
        sys.exit(128 + signal.SIGINT)
    except Exception:
        _tell(report, traceback.format_exc())
        sys.exit(1)


def _tell(report: Connection, text: str) -> None:
    with contextlib.suppress(OSError):  # perhaps nobody reads the report any more
        report.send(text, timeout=10.0)


class ProcessContext:
    """Processes that were started together.

    Args:
        processes: the processes, started.
        reports: for each, the end of a pipe on which it reports what it raised.
    """

    def __init__(self, processes: list[Any], reports: list[Connection]) -> None:
        self.processes, self._reports = processes, reports
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Returns the process ids, in order."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for a process to end; if one failed, raises after ending the others.

        Args:
            timeout: seconds to wait; None waits until one has ended.
            grace_period: seconds that the others have to end by themselves after a failure, and once more after
                SIGTERM; without one they get SIGTERM at once and 30 s to follow it.

        Returns:
            True if all have ended, False if there are some to wait for.

        Raises:
            ProcessRaisedException: the function raised in a process.
            ProcessExitedException: a process ended otherwise, with a status or by a signal.
        """
        if not self.sentinels:
            return True
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                self._end_all(grace_period)
                self._raise(index, self._read_report(index))
        if not self.sentinels:
            self._close_reports()
        return not self.sentinels

    def _join_within(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _end_all(self, grace_period: float | None) -> None:
        """Ends every process: waits, then sends SIGTERM, then SIGKILL."""
        import logging

        log = logging.getLogger(__name__)
        if grace_period is not None:
            self._join_within(grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._join_within(_LAST_PATIENCE if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Process %s has not ended after SIGTERM: killing it", process.pid)
                process.kill()
            process.join()

    def _read_report(self, index: int) -> str | None:
        report = None
        try:
            if self._reports[index].poll(0):
                report = self._reports[index].recv(timeout=1.0)
        except (EOFError, OSError, RuntimeError):  # it died before the report was complete
            report = None
        self._close_reports()
        return report

    def _close_reports(self) -> None:
        for report in self._reports:
            report.close()

    def _raise(self, index: int, report: str | None) -> None:
        process = self.processes[index]
        if report is not None:
            message = f"\n\n-- Process {index:d} terminated with the following error:\n{report}"
            raise ProcessRaisedException(message, index, process.pid)
        if process.exitcode >= 0:
            message = f"process {index:d} terminated with exit code {process.exitcode:d}"
            raise ProcessExitedException(message, index, process.pid, process.exitcode)
        try:
            name = signal.Signals(-process.exitcode).name
        except ValueError:
            name = f"<Unknown signal {-process.exitcode}>"
        message = f"process {index:d} terminated with signal {name}"
        raise ProcessExitedException(message, index, process.pid, process.exitcode, name)


class SpawnContext(ProcessContext):
    """The old name of ProcessContext."""

    def __init__(self, processes: list[Any], reports: list[Connection]) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, reports)


def start_processes(
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in ``nprocs`` processes of the given start method; see ``spawn``."""
    context = get_context(start_method)
    processes: list[Any] = []
    reports: list[Connection] = []
    try:
        for index in range(nprocs):
            reader, writer = Pipe(duplex=False)
            reports.append(reader)
            with writer:
                process = context.Process(target=_run, args=(fn, index, tuple(args), writer), daemon=daemon)
                process.start()
            processes.append(process)
    except BaseException:  # one could not be started: end the others
        for process in processes:
            process.kill()
            process.join()
        for report in reports:
            report.close()
        raise
    running = ProcessContext(processes, reports)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in ``nprocs`` new processes, ``i`` being 0 to ``nprocs - 1``.

    If one fails, the others are ended and its exception is raised here with its traceback. No process outlives this
    one.

    Args:
        fn: a function at the top level of a module, so that it can be pickled.
        args: its arguments after the index; tensors in them are the same memory in all processes.
        nprocs: the number of processes.
        join: whether to wait for all of them.
        daemon: whether they are daemons: ended when this process ends, and not allowed to have children.
        start_method: "spawn"; for others there is ``start_processes``.

    Returns:
        None with ``join``, else the ProcessContext to wait with.

    Raises:
        ProcessRaisedException: ``fn`` raised in a process.
        ProcessExitedException: a process ended with another status than 0, or by a signal.
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method "
            "use:\n\t\t torch.multiprocessing.start_processes(...)".replace("torch", "vesta"),
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
