"""``torch.ops``: operators by namespace: Vesta's functions in ``aten``, in others what ``torch.library`` was given."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import vesta

__all__ = ["load_library"]

#: Operators that the program has defined, by ``namespace::name``.
_defined: dict[str, Any] = {}
_FUNCTIONS = ("aten", "prims", "prim")


class Operator:
    """A function under an operator's name; its overloads (``default``, ``Tensor``, ...) are the same function."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__, self._function = name, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"the operator {self.__name__} has no overload {name!r}")
        return self

    def overloads(self) -> list[str]:
        """Returns the names of the overloads: one, for all of them."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.__name__.replace('::', '.')}')>"


class _Namespace(ModuleType):
    """The operators of one namespace."""

    def __getattr__(self, name: str) -> Any:
        own = self.__name__.rpartition(".")[2]
        full = f"{own}::{name}"
        function = _defined.get(full)
        if function is None and own in _FUNCTIONS and not name.startswith("__"):
            function = getattr(vesta._C._ops, name, None) or getattr(vesta.Tensor, name, None) or _refusing(full)
        if function is None:
            raise AttributeError(f"'_OpNamespace' {own!r} object has no attribute {name!r}")
        made = function if isinstance(function, Operator) else Operator(full, function)
        setattr(self, name, made)
        return made


def _refusing(name: str) -> Callable[..., Any]:
    """Returns what stands for an operator of PyTorch that Vesta has not: libraries name many, and call few."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"torch.ops.{name.replace('::', '.')} is not available: Vesta does not have it yet.")

    return refuse


def define(name: str, function: Any) -> None:
    """Makes ``function`` the operator ``namespace::name``."""
    _defined[name] = function
    namespace, _, own = name.partition("::")
    vars(_namespace(namespace)).pop(own, None)


def _namespace(name: str) -> _Namespace:
    found = globals().get(name)
    if not isinstance(found, _Namespace):
        found = globals()[name] = _Namespace(f"torch.ops.{name}")
    return found


def load_library(path: Any) -> None:
    """Raises OSError: the library of an extension is compiled against PyTorch's own."""
    raise OSError(f"load_library: expected no extension of PyTorch, got {path}. Vesta cannot load it.")


def import_module(module: str) -> None:
    """Imports a module, which may define operators."""
    import importlib

    importlib.import_module(module)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'torch.ops' has no attribute {name!r}")
    return _namespace(name)
