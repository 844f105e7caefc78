"""``torch.utils._contextlib``: context managers that are decorators too."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from vesta.autograd.grad_mode import _in_context

__all__ = ["context_decorator"]


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that runs in a context; every step of a generator runs in it.

    Args:
        ctx: a context manager that can be entered more than once, or a function that makes one.
        func: the function.

    Raises:
        AssertionError: ``ctx`` is both.
        RuntimeError: ``func`` is a class.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(f"context_decorator: expected a context manager or a function that makes one, got {ctx}.")
    if inspect.isclass(func):
        raise RuntimeError("Cannot decorate classes; decorate the methods that shall run in the context.")
    return _in_context(ctx if callable(ctx) else lambda: ctx, func)


class _DecoratorContextManager:
    """A context manager that decorates functions as well; ``clone()`` makes one for each call."""

    def __call__(self, orig_func: Any) -> Any:
        return _in_context(self.clone, orig_func)

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """Returns a new one with the same arguments; a class whose ``__init__`` has some overrides this."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that decorates without parentheses, too."""

    def __new__(cls, orig_func: Any = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
