"""``record`` writes a worker's exception to a file that the launcher reads into a ``ProcessFailure``."""

from __future__ import annotations

import faulthandler
import functools
import json
import os
import re
import signal
import socket
import time
import traceback
import warnings
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Callable, TypeVar

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

R = TypeVar("R")
NOT_AVAILABLE = "<N/A>"
#: The last line of a traceback in which a rank reports that another one is gone.
CONSEQUENCE = re.compile(r"vesta\.distributed\.Dist\w+Error: .*(\) died\b|\) has left the group|was aborted by rank)")


class ErrorHandler:
    """A writer of exceptions, as JSON, to the file that ``TORCHELASTIC_ERROR_FILE`` names; without it, it does
    nothing."""

    def initialize(self) -> None:
        """Prepares for the recorded function: fatal signals then print the Python frames of every thread."""
        try:
            faulthandler.enable(all_threads=True)
        except (OSError, RuntimeError, ValueError, AttributeError) as error:  # for example, stderr has no descriptor
            warnings.warn(f"record: unable to enable the fault handler. {error}", stacklevel=2)

    def record_exception(self, e: BaseException) -> None:
        """Writes type, message, traceback and time of ``e``."""
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if not path:
            return
        now = time.time()
        extra = {
            "py_callstack": "".join(traceback.format_exception(type(e), e, e.__traceback__)),
            "timestamp": str(int(now)),
            "precise_timestamp": now,  # seconds are too coarse to tell which of two failures was first
        }
        self._write(path, {"message": {"message": f"{type(e).__name__}: {e}", "extraInfo": extra}})

    def record_success(self) -> None:
        """Does nothing; called after the recorded function returned."""

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copies a child's error file to this process's own, for a launcher that was itself launched."""
        path = os.environ.get("TORCHELASTIC_ERROR_FILE")
        if not path or not os.path.isfile(rootcause_error_file):
            return
        with open(rootcause_error_file, encoding="utf-8") as file:
            data = json.load(file)
        if error_code and isinstance(data.get("message"), dict):
            data["message"]["errorCode"] = error_code
        self._write(path, data)

    def _write(self, path: str, data: dict[str, Any]) -> None:
        partial = f"{path}.{os.getpid()}"
        try:
            with open(partial, "w", encoding="utf-8") as file:
                json.dump(data, file)
            os.replace(partial, path)  # a worker that is killed while it writes leaves no half-written file
        except OSError as error:
            warnings.warn(f"record: unable to write the error file. {error}", stacklevel=2)


def get_error_handler() -> ErrorHandler:
    """Returns the handler that ``record`` uses."""
    return ErrorHandler()


@dataclass
class ProcessFailure:
    """What is known about a failed worker: its exit, and what ``record`` wrote if it is used.

    ``exitcode`` is negative if a signal ended it. ``message`` is the traceback if there is one. ``timestamp`` is in
    seconds since the epoch.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: float = field(init=False)

    def __post_init__(self) -> None:
        self.error_file_data = {"message": "<NONE>"}
        self.message = ""
        self.timestamp = time.time()
        try:
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            info = self.error_file_data if isinstance(self.message, str) else self.message["extraInfo"]
            self.timestamp = float(info.get("precise_timestamp") or info.get("timestamp", 0))
        except (OSError, ValueError, KeyError, TypeError):  # none was written, or another program wrote it
            self.error_file = NOT_AVAILABLE
        if not self.message and self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"

    def signal_name(self) -> str:
        """Returns ``SIGKILL`` and the like, ``<N/A>`` for a worker that exited by itself."""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """Returns the time as YYYY-MM-DD_HH:MM:SS."""
        return datetime.fromtimestamp(int(self.timestamp)).isoformat(sep="_")

    def is_consequence(self) -> bool:
        """Returns whether the traceback ends with the loss of another rank: it died, left, or aborted the group."""
        lines = self.text().rstrip().split("\n")
        at = next((i for i in reversed(range(len(lines))) if CONSEQUENCE.match(lines[i])), None)
        return at is not None and not any(line.startswith("  File ") for line in lines[at:])

    def text(self) -> str:
        """Returns the traceback, or what else is known."""
        if isinstance(self.message, dict):
            return self.message.get("extraInfo", {}).get("py_callstack", self.message.get("message", NOT_AVAILABLE))
        return self.message or NOT_AVAILABLE


class ChildFailedError(Exception):
    """The error that workers failed: ``failures`` maps each failed rank to its ``ProcessFailure``."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise ValueError("ChildFailedError: expected at least one failure, got none (failures).")
        self.name = name
        self.failures = failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Returns the rank that failed first, and its failure, which most likely made the others fail.

        A rank that only noticed that another one was gone counts only if no rank has failed by itself.
        """
        rank = min(self.failures, key=lambda r: (self.failures[r].is_consequence(), self.failures[r].timestamp))
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """Returns the report: the other failures first, the root cause with its traceback last."""
        root, _ = self.get_first_failure()
        parts = {rank: self._format(i, rank) for i, rank in enumerate(self.failures)}
        title = f"{self.name} FAILED"
        width = min(60, max(len(line) for part in (title, *parts.values()) for line in part.split("\n")))
        others = [part for rank, part in parts.items() if rank != root] or ["  <NO_OTHER_FAILURES>"]
        section = section_delim * width
        border = boarder_delim * width
        head = [border, title, section, "Failures:", *others, section, "Root Cause (first observed failure):"]
        return "\n".join(["", *head, parts[root], border])

    def _format(self, index: int, rank: int) -> str:
        failure = self.failures[rank]
        name = failure.signal_name()
        ended = f"{failure.exitcode} (pid: {failure.pid})" + (f" ({name})" if name != NOT_AVAILABLE else "")
        rows = {
            "time": failure.timestamp_isoformat(),
            "host": socket.gethostname(),
            "rank": f"{rank} (local_rank: {failure.local_rank})",
            "exitcode": ended,
            "error_file": failure.error_file,
            "traceback": failure.text().rstrip("\n").replace("\n", "\n  "),
        }
        return "\n".join([f"[{index}]:", *(f"  {key:10}: {value}" for key, value in rows.items())])


def record(fn: Callable[..., R], error_handler: ErrorHandler | None = None) -> Callable[..., R | None]:
    """Wraps a program's main function: its exception is written to the launcher's error file and raised again.

        >>> @record
        ... def main():
        ...     ...

    Use it once per process, on the outermost function.
    """
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> R | None:
        handler.initialize()
        try:
            result = fn(*args, **kwargs)
        except SystemExit as stop:
            if stop.code in (0, None):
                return None
            raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise
        handler.record_success()
        return result

    return wrapper
