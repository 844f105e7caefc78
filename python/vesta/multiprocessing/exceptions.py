"""The exceptions that a failed process raises in its parent: from ``spawn``, ``start_processes`` and pools."""

from __future__ import annotations

from typing import Any

__all__ = ["ProcessException", "ProcessExitedException", "ProcessRaisedException"]


class ProcessException(Exception):
    """The base of exceptions that a failed process raises in its parent.

    Args:
        msg: what happened.
        error_index: the number of the process.
        error_pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The error that the function raised; the message holds the traceback."""


class ProcessExitedException(ProcessException):
    """The error that a process ended by a signal (``signal_name``) or with a status that is not 0 (``exit_code``)."""

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)
