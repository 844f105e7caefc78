"""Exceptions on their way from a worker to the caller, and errors about workers themselves."""

from __future__ import annotations

import importlib
import pickle
import traceback
from typing import Any

__all__ = ["RemoteTraceback", "WorkerError", "describe", "rebuild", "unreadable"]


class WorkerError(RuntimeError):
    """The error that a worker died, stopped or hung, or raised what cannot be raised here: which worker, why, and at
    which sample."""


class RemoteTraceback(Exception):
    """The traceback of a worker's exception, as the cause of that exception here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


def describe(error: BaseException) -> tuple[Any, ...]:
    """Splits an exception into parts that can be pickled: class, arguments, attributes and the traceback's text."""
    kind = type(error)
    text = "".join(traceback.format_exception(kind, error, error.__traceback__))
    arguments = tuple(map(_sendable, error.args))
    attributes = {name: _sendable(value) for name, value in vars(error).items()} if hasattr(error, "__dict__") else {}
    special = {}
    if isinstance(error, OSError):
        special = {name: getattr(error, name) for name in ("filename", "filename2") if getattr(error, name) is not None}
    message = _text_of(error)
    return kind.__module__, kind.__qualname__, arguments, attributes, special, message, text


def _sendable(value: Any) -> Any:
    """Returns the value, or its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        return _text_of(value, repr)
    return value


def _text_of(value: Any, how: Any = str) -> str:
    try:
        return how(value)
    except Exception:
        return f"<{type(value).__name__} without a text>"


def _class_of(module: str, name: str) -> type | None:
    """Finds an exception class by its name; None if there is none that may be raised from ``next()``."""
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception:
        return None
    usable = isinstance(found, type) and issubclass(found, Exception)
    return found if usable and not issubclass(found, (StopIteration, StopAsyncIteration)) else None


def _made(kind: type, initialised: bool, parts: tuple[Any, ...]) -> BaseException | None:
    """Makes an exception with the arguments and attributes of the one described; None unless its text is the same.

    Its ``__init__`` may need other arguments than ``args``, so it is not called at first; some built-in classes need
    it.
    """
    _, _, arguments, attributes, special, message, _ = parts
    try:
        error: Any = kind(*arguments) if initialised else kind.__new__(kind, *arguments)
        error.args = arguments
        for key, value in {**attributes, **special}.items():
            setattr(error, key, value)
    except Exception:
        return None
    return error if _text_of(error) == message else None


def unreadable(error: Exception, where: str) -> Exception:
    """Returns the error for a received batch that could not be unpickled: the original error, if it may be raised.

    Args:
        error: the error of rebuilding an object in this process.
        where: the worker and the batch.
    """
    if isinstance(error, (StopIteration, StopAsyncIteration)):  # it would end the pass as if it were complete
        text = f"DataLoader {where}: its batch cannot be unpickled ({type(error).__name__})."
        made: Exception = WorkerError(text)
        made.__cause__ = error
        return made
    if hasattr(error, "add_note"):
        error.add_note(f"When the batch of DataLoader {where} was unpickled.")
    return error


def rebuild(parts: tuple[Any, ...], where: str) -> BaseException:
    """Makes an exception of the same class and text; a WorkerError if that is impossible.

    Args:
        parts: the result of ``describe``.
        where: the worker, batch and sample, for the text of the cause.
    """
    module, name, arguments, attributes, special, message, text = parts
    kind = _class_of(module, name)
    error: BaseException | None = None
    if kind is not None:
        error = _made(kind, False, parts) or _made(kind, True, parts)
    if error is None:
        error = WorkerError(f"DataLoader {where} raised {module}.{name}: {message}")
    if hasattr(error, "add_note"):
        error.add_note(f"In DataLoader {where}.")
    error.__cause__ = RemoteTraceback(f"\nCaught {name} in DataLoader {where}.\nOriginal {text}")
    return error
