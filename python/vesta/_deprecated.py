"""Functions that PyTorch has deprecated: they warn, and work."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable, TypeVar

__all__ = ["deprecated"]

F = TypeVar("F", bound=Callable[..., Any])


def deprecated(name: str, by: str) -> Callable[[F], F]:
    """Makes a function warn, at each call, that it is deprecated; its ``__deprecated__`` is the text of the warning.

    Args:
        name: how users call it.
        by: what to use instead.
    """
    text = f"{name} is deprecated: use {by}."

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            warnings.warn(text, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        call.__deprecated__ = text  # type: ignore[attr-defined]  # where typing_extensions.deprecated has it
        return call  # type: ignore[return-value]

    return decorate
