"""``torch.jit``: functions and modules run as they are written; to script or trace one returns it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import vesta

__all__ = [
    "Attribute",
    "Final",
    "Future",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "export",
    "fork",
    "freeze",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "optimize_for_inference",
    "optimized_execution",
    "script",
    "script_if_tracing",
    "script_method",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

T = TypeVar("T")
Future = vesta.futures.Future


class ScriptModule(vesta.nn.Module):
    """A module whose methods may carry ``script_method``; it runs as any other."""


RecursiveScriptModule = TracedModule = TopLevelTracedModule = ScriptModule


class ScriptFunction:
    """The class of what PyTorch's ``script`` makes of a function; nothing is an instance of it here."""


class TracerWarning(Warning):
    """The class of PyTorch's warnings about traced programs."""


class TracingCheckError(Exception):
    """The class of PyTorch's errors about traced programs."""


class Error(RuntimeError):
    """The class of PyTorch's errors of scripted programs."""


class ScriptWarning(Warning):
    """The class of PyTorch's warnings about scripted programs."""


def script(
    obj: T, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None, **_: Any
) -> T:
    """Returns ``obj`` itself: a function, a module or a class.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> import torch
        >>> @torch.jit.script
        ... def double(x):
        ...     return 2 * x
        >>> double(torch.ones(1))
        tensor([2.])
    """
    return obj


def trace(func: Callable[..., T], example_inputs: Any = None, *args: Any, **kwargs: Any) -> Callable[..., T]:
    """Returns ``func`` itself, a function or a module; it is not run with ``example_inputs``."""
    return func


def trace_module(mod: T, inputs: Any = None, *args: Any, **kwargs: Any) -> T:
    """Returns ``mod`` itself."""
    return mod


def _unchanged(fn: T) -> T:
    """Returns what it decorates."""
    return fn


script_method = export = script_if_tracing = _script_if_tracing = interface = unused = _overload = _overload_method = (
    _unchanged
)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Returns what it decorates, used as ``@ignore`` or ``@ignore(drop=True)``."""
    return drop if callable(drop) else _unchanged


def is_scripting() -> bool:
    """Returns False: nothing is scripted."""
    return False


def is_tracing() -> bool:
    """Returns False: nothing is traced."""
    return False


def annotate(the_type: Any, the_value: T) -> T:
    """Returns the value."""
    return the_value


class Attribute(tuple):
    """A pair of a value and its type, which assigns the value where a scripted module would."""

    def __new__(cls, value: Any, type: Any) -> Any:
        return value


def freeze(mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True) -> T:
    """Returns ``mod``, which has to be in evaluation mode.

    Raises:
        RuntimeError: ``mod`` is in training mode.
    """
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: T, other_methods: Any = None) -> T:
    """Returns ``mod``."""
    return mod


def run_frozen_optimizations(mod: Any, optimize_numerics: bool = True, preserved_methods: Any = None) -> None:
    """Does nothing."""


def set_fusion_strategy(strategy: Any) -> list[Any]:
    """Does nothing; returns that no strategy was set before."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Does nothing."""


def onednn_fusion_enabled() -> bool:
    """Returns False."""
    return False


@contextlib.contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """A context that changes nothing."""
    yield


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """A context that changes nothing."""
    yield


@contextlib.contextmanager
def strict_fusion() -> Iterator[None]:
    """A context that changes nothing."""
    yield


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs ``func`` now, and returns a future with its result."""
    future = vesta.futures.Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Any) -> Any:
    """Returns the result of a future."""
    return future.wait()


def isinstance(obj: Any, target_type: Any) -> bool:  # the name is PyTorch's
    """Returns whether an object is an instance of a class, or of the class that a generic type is made of."""
    import builtins
    import typing

    return builtins.isinstance(obj, typing.get_origin(target_type) or target_type)
