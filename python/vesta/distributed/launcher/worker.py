"""One worker process: how it is started, its output, and how it is ended so that nothing of it is left."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Callable

from .output import LineRelay, last_traceback

PR_SET_PDEATHSIG = 1


@dataclass
class Streams:
    """Where one output of a worker goes: to ``console`` after ``prefix``, and to ``log`` (a path); either may be
    None."""

    console: BinaryIO | None
    prefix: bytes
    log: Path | None = None
    filters: list[bytes] = field(default_factory=list)
    filtered: Path | None = None

    @property
    def file_only(self) -> bool:
        """Whether the output goes to the file without passing through the launcher."""
        return self.log is not None and self.console is None and not self.filters


class Worker:
    """A running worker: rank, process, outputs, and how it ended."""

    def __init__(
        self,
        rank: int,
        local_rank: int,
        command: list[str],
        environment: dict[str, str],
        out: Streams,
        err: Streams,
    ) -> None:
        self.rank, self.local_rank = rank, local_rank
        self.error_file = environment.get("TORCHELASTIC_ERROR_FILE", "")
        self.err_log = err.log
        self.relays: list[LineRelay] = []
        self.exit_code: int | None = None
        self.ended_at = 0.0
        self.sent: signal.Signals | None = None  # the last signal of ours
        given: list[int] = []  # descriptors that now belong to the worker
        try:
            ends = [self._output(stream, given) for stream in (out, err)]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=ends[0],
                stderr=ends[1],
                env=environment,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        except BaseException:
            self.close_outputs()
            raise
        finally:
            for fd in given:
                os.close(fd)
        self.pid = self.process.pid
        self.pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None

    def _output(self, stream: Streams, given: list[int]) -> int:
        """Opens what the worker writes to; the other end of a pipe gets a relay."""
        if stream.file_only:
            assert stream.log is not None
            fd = os.open(stream.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        else:
            read, fd = os.pipe()
            log = open(stream.log, "ab") if stream.log else None  # noqa: SIM115  (the relay closes it)
            relay = LineRelay(read, stream.console, stream.prefix, log)
            if stream.filtered and stream.filters:
                relay.filters = stream.filters
                relay.filtered = open(stream.filtered, "ab")  # noqa: SIM115
            self.relays.append(relay)
        given.append(fd)
        return fd

    @property
    def alive(self) -> bool:
        """Whether the process is not known to have ended."""
        return self.exit_code is None

    def poll(self) -> bool:
        """Checks whether the process has ended; if so, reads its last output and kills what is left of its group."""
        if not self.alive:
            return True
        code = self.process.poll()
        if code is None:
            return False
        self.exit_code, self.ended_at = code, time.time()
        self._kill_group()
        deadline = time.monotonic() + 0.5  # a process that left the group may hold the pipe open
        for relay in self.relays:
            while relay.pump(everything=True) and self._group_lives() and time.monotonic() < deadline:
                time.sleep(0.01)
        return True

    def close(self) -> None:
        """Closes the outputs and the handle of a process that has ended."""
        self.close_outputs()
        if self.pidfd is not None:
            os.close(self.pidfd)
            self.pidfd = None

    def close_outputs(self) -> None:
        """Closes the launcher's ends of the pipes."""
        for relay in self.relays:
            relay.close()
        self.relays = []

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the worker itself, not to its child processes."""
        if self.alive:
            self.sent = number
            self.process.send_signal(number)

    def kill(self) -> None:
        """Kills the worker and all of its group, now."""
        if self.alive:
            self.sent = signal.SIGKILL
            self._kill_group()
            self.process.kill()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def traceback(self) -> str:
        """Returns the last traceback that the worker wrote to its standard error; empty if none."""
        if self.relays:
            found = self.relays[-1].last_traceback()
            if found:
                return found
        if self.err_log is None:
            return ""
        with contextlib.suppress(OSError), open(self.err_log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - (1 << 18)))
            return last_traceback(file.read().split(b"\n"))
        return ""

    def traceback_at(self) -> float | None:
        """Returns when the last traceback began; None if there is none or its output did not pass through the
        launcher."""
        times = [relay.traceback_at for relay in self.relays if relay.traceback_at is not None]
        return max(times) if times else None


def die_with_parent() -> Callable[[], None] | None:
    """Returns the function that a child calls before exec so that the kernel kills it when the launcher dies; None on
    other systems.

    The launcher has one thread and the call is a system call, so it is safe between fork and exec.
    """
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def ask() -> None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # the launcher died before the call
            os._exit(1)

    return ask
