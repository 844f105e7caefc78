"""The lines of a worker: to the console with a prefix, to a log file, through filters; the last ones are remembered."""

from __future__ import annotations

import collections
import os
import time
from typing import BinaryIO

#: How many of the last lines of a stream are kept for the report, and of how many bytes each.
KEPT_LINES, KEPT_BYTES = 400, 4096
TRACEBACK = b"Traceback (most recent call last):"


class LineRelay:
    """A reader of one output of a worker from a pipe, which passes whole lines on.

    ``console`` gets each line after ``prefix`` (None: nothing is shown), ``log`` gets the bytes unchanged, and
    ``filtered`` the lines that contain one of ``filters``.
    """

    def __init__(self, fd: int, console: BinaryIO | None, prefix: bytes, log: BinaryIO | None) -> None:
        os.set_blocking(fd, False)
        self.fd = fd
        self.prefix = prefix
        self.last = collections.deque(maxlen=KEPT_LINES)
        self.traceback_at: float | None = None  # the start of the last traceback, if only its own lines followed
        self.filters: list[bytes] = []
        self.filtered: BinaryIO | None = None
        self._console, self._log = console, log
        self._partial = b""

    def pump(self, everything: bool = False) -> bool:
        """Passes on what is there; returns False at the end of the stream. ``everything``: until nothing is left for
        now."""
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                data = b""
            if not data:
                return False
            if self._log:
                self._log.write(data)
                self._log.flush()
            *lines, self._partial = (self._partial + data).split(b"\n")
            self._pass_on(lines)
            if not everything and len(data) < 1 << 16:
                return True

    def close(self) -> None:
        """Passes on an unfinished last line, and closes the pipe and the files."""
        if self._partial:
            self._pass_on([self._partial])
            self._partial = b""
        os.close(self.fd)
        for file in (self._log, self.filtered):
            if file:
                file.close()

    def _pass_on(self, lines: list[bytes]) -> None:
        shown = []
        for line in lines:
            self._remember(line)
            mine = bool(self.prefix) and line.startswith(self.prefix.rstrip())  # the worker prints its rank itself
            shown.append((b"" if mine else self.prefix) + line + b"\n")
            if self.filtered and any(word in line for word in self.filters):
                self.filtered.write(line + b"\n")
                self.filtered.flush()
        if self._console and shown:
            self._console.write(b"".join(shown))
            self._console.flush()

    def _remember(self, line: bytes) -> None:
        bare = line[len(self.prefix) :] if self.prefix and line.startswith(self.prefix) else line
        if bare.startswith(TRACEBACK):
            self.traceback_at = time.time()
        self.last.append(bare[:KEPT_BYTES])

    def last_traceback(self) -> str:
        """Returns the lines from the start of the last traceback on, chained exceptions included; empty if there is
        none."""
        return last_traceback(list(self.last))


def last_traceback(lines: list[bytes]) -> str:
    """Finds the last traceback in the lines of a worker's standard error, chained exceptions included."""
    starts = [i for i, line in enumerate(lines) if line.startswith(TRACEBACK)]
    if not starts:
        return ""
    first = starts[-1]
    chain = (b"During handling of the above exception", b"The above exception was the direct cause")
    for start in reversed(starts[:-1]):
        if not any(line.startswith(chain) for line in lines[start:first]):
            break
        first = start
    return b"\n".join(lines[first:]).decode("utf-8", "replace").rstrip() + "\n"
