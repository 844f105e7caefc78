"""What ``torch.compile`` gives: nothing is compiled, and a module is held by one that runs it as it is."""

from __future__ import annotations

import functools
from collections.abc import Sized
from typing import Any

import vesta

__all__ = ["OptimizedModule", "compile", "wrapped"]


class OptimizedModule(vesta.nn.Module):
    """What ``torch.compile`` makes of a module: a module that holds it as ``_orig_mod`` and runs it as it is.

    Its ``state_dict`` has the prefix ``_orig_mod.``; every other attribute is the module's.
    """

    def __init__(self, mod: vesta.nn.Module, dynamo_ctx: Any = None) -> None:
        super().__init__()
        self._orig_mod = mod
        self._run_as_it_is()

    def _run_as_it_is(self) -> None:
        vesta.nn.Module.__setattr__(self, "forward", self._orig_mod.__call__)

    def _held(self) -> vesta.nn.Module | None:
        """Returns the module; None while this one is being made."""
        return self.__dict__.get("_modules", {}).get("_orig_mod")

    def _is_own(self, name: str) -> bool:
        """Tells whether an attribute is set here; the others are set in the module."""
        return name in self.__dict__ or hasattr(type(self), name)

    @property
    def training(self) -> bool:  # type: ignore[override]
        mod = self._held()
        return mod is None or mod.training

    @training.setter
    def training(self, value: bool) -> None:
        mod = self._held()
        if mod is not None:
            mod.training = value

    def __getattr__(self, name: str) -> Any:
        mod = self._held()
        if mod is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return mod if name == "_orig_mod" else getattr(mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        mod = self._held()
        if mod is None or self._is_own(name):
            super().__setattr__(name, value)
        else:
            setattr(mod, name, value)

    def __delattr__(self, name: str) -> None:
        if self._is_own(name):
            super().__delattr__(name)
        else:
            delattr(self._orig_mod, name)

    def __len__(self) -> int:
        if isinstance(self._orig_mod, Sized):
            return len(self._orig_mod)
        raise TypeError(f"{type(self._orig_mod).__name__} does not support len()")

    def __bool__(self) -> bool:
        return True  # also of an empty list of modules

    def __reduce__(self) -> tuple[type[OptimizedModule], tuple[vesta.nn.Module]]:
        return (type(self), (self._orig_mod,))

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._orig_mod), *super().__dir__()})


def wrapped(model: Any) -> Any:
    """Returns an ``OptimizedModule`` of a module, and a function as it is."""
    if isinstance(model, OptimizedModule):
        model = model._orig_mod
    return OptimizedModule(model) if isinstance(model, vesta.nn.Module) else model


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """Returns a function itself, and of a module one that runs it as it is; without ``model``, a decorator.

    Example::

        >>> import vesta.as_torch
        >>> vesta.as_torch.install()
        >>> import torch
        >>> layer = torch.nn.Linear(2, 2)
        >>> torch.compile(layer)._orig_mod is layer
        True
    """
    if model is None:
        return functools.partial(compile, disable=disable)
    if disable:
        return model
    if not callable(model):
        raise TypeError(f"compile: expected a function or a module, got {type(model).__name__} (model).")
    return wrapped(model)
