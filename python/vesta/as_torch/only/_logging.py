"""``torch._logging``: the logs of PyTorch's compilers, of which Vesta has none."""

from __future__ import annotations

from typing import Any

__all__ = ["set_logs"]


def set_logs(**kwargs: Any) -> None:
    """Does nothing: there is no compiler that would write a log."""


def warning_once(logger_obj: Any, *args: Any, **kwargs: Any) -> None:
    """Logs a warning."""
    logger_obj.warning(*args, **kwargs)
