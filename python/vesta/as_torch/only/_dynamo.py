"""``torch._dynamo``: nothing is compiled; its settings can be set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vesta.as_torch.compiled import OptimizedModule, wrapped
from vesta.as_torch.only._settings import Settings
from vesta.as_torch.only.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)

__all__ = [
    "OptimizedModule",
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
]

config = Settings("torch._dynamo.config")


def optimize(backend: Any = "inductor", **kwargs: Any) -> Callable[[Any], Any]:
    """Returns a decorator that does what ``torch.compile`` does."""
    return wrapped


def run(fn: Any = None) -> Any:
    """Returns what it decorates."""
    return (lambda fn: fn) if fn is None else fn


def disallow_in_graph(fn: Any) -> Any:
    """Returns its argument."""
    return fn


def forbid_in_graph(fn: Any) -> Any:
    """Returns its argument."""
    return fn


def graph_break(msg: str = "") -> None:
    """Does nothing: there is no graph to break."""


def mark_dynamic(t: Any, index: Any, **kwargs: Any) -> None:
    """Does nothing: any size may change."""


def maybe_mark_dynamic(t: Any, index: Any) -> None:
    """Does nothing."""


def mark_static(t: Any, index: Any = None) -> None:
    """Does nothing."""


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Does nothing: there is no graph that could rely on it."""
