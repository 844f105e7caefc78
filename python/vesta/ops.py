"""Operators by namespace: what ``vesta.library`` was given, and in ``aten`` the functions of Vesta itself.

>>> import vesta
>>> vesta.ops.aten.relu.default(vesta.tensor([-1.0, 2.0]))
tensor([0., 2.])
"""

from __future__ import annotations

import importlib
from typing import Any

from vesta.library.operators import OWN, Namespace, defined

__all__ = ["import_module", "load_library", "loaded_libraries"]

#: The libraries of operators that were loaded: none can be.
loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Raises OSError: the library of an extension is compiled against PyTorch's own."""
    raise OSError(f"load_library: expected no extension of PyTorch, got {path}. Vesta cannot load it.")


def import_module(module: str) -> None:
    """Imports a module, which may define operators."""
    importlib.import_module(module)


def __getattr__(name: str) -> Namespace:
    if name.startswith("_"):
        raise AttributeError(f"module 'vesta.ops' has no attribute {name!r}")
    found = globals()[name] = Namespace(name)
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *OWN, *(qualified.partition("::")[0] for qualified in defined)})
