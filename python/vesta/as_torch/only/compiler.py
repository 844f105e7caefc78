"""``torch.compiler``: nothing is compiled, and decorators return what they decorate."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from vesta.as_torch.compiled import compile

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "nested_compile_region",
    "reset",
    "set_enable_guard_collectives",
    "set_stance",
    "substitute_in_graph",
    "wrap_numpy",
]


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Returns what it decorates, used as ``@disable`` or ``@disable()``."""
    return (lambda fn: fn) if fn is None else fn


def allow_in_graph(fn: Any) -> Any:
    """Returns its argument."""
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Returns its argument."""
    return fn


def nested_compile_region(fn: Any = None) -> Any:
    """Returns what it decorates."""
    return (lambda fn: fn) if fn is None else fn


def wrap_numpy(fn: Any) -> Any:
    """Returns a function of tensors that calls ``fn`` with arrays and gives tensors of its arrays."""
    import functools

    import vesta

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        def array(value: Any) -> Any:
            return value.numpy() if isinstance(value, vesta.Tensor) else value

        result = fn(*map(array, args), **{name: array(value) for name, value in kwargs.items()})
        return vesta.as_tensor(result) if type(result).__module__ == "numpy" else result

    return call


def substitute_in_graph(original_fn: Any, **kwargs: Any) -> Any:
    """Returns a decorator that returns what it decorates."""
    return lambda fn: fn


def is_compiling() -> bool:
    """Returns False."""
    return False


def is_dynamo_compiling() -> bool:
    """Returns False."""
    return False


def is_exporting() -> bool:
    """Returns False."""
    return False


def reset() -> None:
    """Does nothing."""


def cudagraph_mark_step_begin() -> None:
    """Does nothing."""


def set_enable_guard_collectives(enabled: bool) -> bool:
    """Does nothing; returns that it was off."""
    return False


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """Returns an empty list."""
    return []


@contextlib.contextmanager
def set_stance(stance: str = "default", **kwargs: Any) -> Iterator[None]:
    """A context that changes nothing."""
    yield
