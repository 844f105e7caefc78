"""The modes of recording operations: ``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``.

Each is a context manager and a decorator, and belongs to the thread that enters it.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar

from vesta import _C

if TYPE_CHECKING:
    from typing import overload

    from typing_extensions import Self

__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
]

F = TypeVar("F", bound=Callable[..., Any])

is_grad_enabled = _C.is_grad_enabled
is_inference_mode_enabled = _C.is_inference_mode_enabled


def _makes_generators(fn: Any) -> bool:
    """Returns whether calls of ``fn`` return generators."""
    if isinstance(fn, types.FunctionType):
        return bool(fn.__code__.co_flags & 0x20)  # inspect.CO_GENERATOR
    import inspect  # for methods and partial functions

    return inspect.isgeneratorfunction(fn)


def _in_context(fresh: Callable[[], Any], fn: F) -> F:
    """Wraps ``fn`` so that it runs in the mode; every step of a generator runs in the mode, its caller does not."""
    if isinstance(fn, type):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
            "the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    if not _makes_generators(fn):

        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            with fresh():
                return fn(*args, **kwargs)

        return call  # type: ignore[return-value]

    @functools.wraps(fn)
    def generate(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        generator = fn(*args, **kwargs)
        resume: Callable[[], Any] = functools.partial(next, generator)
        try:
            while True:
                with fresh():
                    value = resume()
                try:
                    sent = yield value
                    resume = functools.partial(generator.send, sent)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)
        except StopIteration as stop:
            return stop.value
        finally:
            with fresh():
                generator.close()

    return generate  # type: ignore[return-value]


class _GradMode:
    """The common part of ``no_grad`` and ``enable_grad``; a bare ``@no_grad`` decorates as ``@no_grad()`` does."""

    __slots__ = ("_before",)
    _mode: bool

    if TYPE_CHECKING:

        @overload
        def __new__(cls, orig_func: None = None) -> Self: ...
        @overload
        def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]  # a bare @no_grad

    else:

        def __new__(cls, orig_func=None):
            mode = super().__new__(cls)
            return mode if orig_func is None else mode(orig_func)

    def __init__(self, orig_func: Callable[..., Any] | None = None) -> None:
        self._before: list[bool] = []  # a stack: one object may be entered again inside itself

    def __enter__(self) -> None:
        self._before.append(_C.is_grad_enabled())
        _C.set_grad_enabled(self._mode)

    def __exit__(self, *exc: object) -> None:
        _C.set_grad_enabled(self._before.pop())

    def __call__(self, fn: F) -> F:
        return _in_context(type(self), fn)


class no_grad(_GradMode):
    """A context in which nothing is recorded: results do not require grad. Also a decorator.

    Example::

        >>> import vesta
        >>> x = vesta.ones(1, requires_grad=True)
        >>> with vesta.no_grad():
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    __slots__ = ()
    _mode = False


class enable_grad(_GradMode):
    """A context in which operations are recorded again, inside ``no_grad``. Also a decorator.

    Example::

        >>> import vesta
        >>> x = vesta.ones(1, requires_grad=True)
        >>> with vesta.no_grad(), vesta.enable_grad():
        ...     y = x * 2
        >>> y.requires_grad
        True
    """

    __slots__ = ()
    _mode = True


class set_grad_enabled:
    """A switch of recording: from the call on, or as a context manager or decorator, for its extent only.

    Example::

        >>> import vesta
        >>> x = vesta.ones(1, requires_grad=True)
        >>> with vesta.set_grad_enabled(False):
        ...     y = x * 2
        >>> y.requires_grad
        False
    """

    __slots__ = ("_before", "mode")

    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"set_grad_enabled: expected a bool, got {type(mode).__name__} (mode).")
        self._before = _C.is_grad_enabled()
        self.mode = mode
        _C.set_grad_enabled(mode)

    def __enter__(self) -> None:
        _C.set_grad_enabled(self.mode)

    def __exit__(self, *exc: object) -> None:
        _C.set_grad_enabled(self._before)

    def __call__(self, fn: F) -> F:
        _C.set_grad_enabled(self._before)  # a decorator changes nothing until the function runs
        return _in_context(lambda: type(self)(self.mode), fn)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mode={self.mode})"


class inference_mode:
    """A context in which nothing is recorded and results can never take part in recording; faster than ``no_grad``.

    Args:
        mode: ``False`` leaves inference mode. A function instead of a bool is decorated.

    Example::

        >>> import vesta
        >>> with vesta.inference_mode():
        ...     y = vesta.ones(1)
        >>> y.is_inference()
        True
    """

    __slots__ = ("_before", "mode")

    if TYPE_CHECKING:

        @overload
        def __new__(cls, mode: bool = True) -> Self: ...
        @overload
        def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]  # a bare @inference_mode

    else:

        def __new__(cls, mode=True):
            if isinstance(mode, bool):
                return super().__new__(cls)
            return cls(True)(mode)

    def __init__(self, mode: bool | Callable[..., Any] = True) -> None:
        self.mode = mode
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((_C.is_inference_mode_enabled(), _C.is_grad_enabled()))
        _C._set_inference_mode(self.mode)
        _C.set_grad_enabled(not self.mode)

    def __exit__(self, *exc: object) -> None:
        inference, grad = self._before.pop()
        _C._set_inference_mode(inference)
        _C.set_grad_enabled(grad)

    def __call__(self, fn: F) -> F:
        return _in_context(lambda: type(self)(self.mode), fn)
