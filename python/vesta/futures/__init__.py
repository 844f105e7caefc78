"""Futures: values that come later, with PyTorch's names."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from types import GenericAlias
from typing import Any

from vesta._names import listing

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that comes later, or the exception that came instead.

    >>> f = Future()
    >>> g = f.then(lambda done: done.value() + 1)
    >>> f.set_result(1)
    >>> g.wait()
    2
    """

    __class_getitem__ = classmethod(GenericAlias)  # Future[Tensor], in annotations

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._exception: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []
        self._hasten: Callable[[], None] | None = None  # sets the value early, while a device still computes it

    def done(self) -> bool:
        """Returns whether the value or an exception is there."""
        return self._done

    def wait(self) -> Any:
        """Waits and returns the value, or raises the exception.

        If a device computes the value, the current stream waits for it, and the host does not.
        """
        self._hurry()
        with self._changed:
            while not self._done:
                self._changed.wait(0.5)  # in slices, so that Ctrl-C can end it
        return self.value()

    def value(self) -> Any:
        """Returns the value, which must be there, or raises the exception."""
        if not self._done:
            raise RuntimeError("Future.value: the value is not available yet. Call wait().")
        if self._exception is not None:
            raise self._exception
        return self._value

    def exception(self) -> BaseException | None:
        """Returns the exception, or None."""
        return self._exception

    def set_result(self, result: Any) -> None:
        """Sets the value. Call it once."""
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an exception instead. Call it once."""
        if not isinstance(result, BaseException):
            raise TypeError(f"{result!r} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _hurry(self) -> None:
        if not self._done and self._hasten is not None:
            self._hasten()

    def _finish(self, value: Any, exception: BaseException | None) -> None:
        if not self._settle(value, exception):
            raise RuntimeError("Future: the result is already set.")

    def _settle(self, value: Any, exception: BaseException | None) -> bool:
        """Sets the value or the exception; returns False if one was set already."""
        with self._changed:
            if self._done:
                return False
            self._value, self._exception, self._done = value, exception, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)
        return True

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Calls ``callback(self)`` when the value is there, or at once if it is there already."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Returns a future of ``callback(self)``; what it raises is that future's exception."""
        following = Future()
        following._hasten = self._hurry

        def run(done: Future) -> None:
            try:
                result = callback(done)
            except BaseException as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(run)
        return following


def collect_all(futures: Iterable[Future]) -> Future:
    """Returns a future of the list of the given futures, which is there when all of them are."""
    whole, parts = Future(), list(futures) if isinstance(futures, Iterable) else [futures]
    for part in parts:
        if not isinstance(part, Future):
            raise TypeError(f"collect_all: expected an iterable of Futures, got {type(part).__name__} (futures).")
    left, lock = len(parts), threading.Lock()
    if not parts:
        whole.set_result(parts)

    def hurry() -> None:
        for part in parts:
            part._hurry()

    def one_more(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            whole.set_result(parts)

    whole._hasten = hurry
    for part in parts:
        part.add_done_callback(one_more)
    return whole


def wait_all(futures: Iterable[Future]) -> list[Any]:
    """Waits for all and returns their values; raises the first exception."""
    return [part.wait() for part in collect_all(futures).wait()]


__dir__ = listing(globals())
