"""What ``dir()`` of a module shows, and so what an editor offers: what is documented, not what the module imports; and
where functions of the library say that they are found."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import BuiltinFunctionType, ModuleType
from typing import Any


def listing(module: dict[str, Any], *later: str, hidden: str = "") -> Callable[[], list[str]]:
    """Makes the ``__dir__`` of a module, whose variables are given: the names of its ``__all__``, its submodules but
    for ``hidden`` ones (words of a text), those that are imported ``later``, and special ones.

    A module ends with ``__dir__ = listing(globals())``.
    """

    def names() -> list[str]:
        below = module["__name__"] + "."
        modules = (k for k, v in module.items() if isinstance(v, ModuleType) and v.__name__.startswith(below))
        special = (k for k in module if k.startswith("__"))
        return sorted({*module["__all__"], *modules, *later, *special} - {*hidden.split()})

    return names


def name_home(module: dict[str, Any]) -> None:
    """Sets ``__module__`` of the library's functions that only this module has, so that pickles find them.

    A module whose functions come from the library calls ``name_home(globals())``.
    """
    top = vars(sys.modules["vesta"])
    for name, value in module.items():
        ours = isinstance(value, BuiltinFunctionType) and value.__module__ in ("vesta", "torch")  # torch: as_torch
        if ours and value.__name__ == name and top.get(name) is not value:
            value.__module__ = module["__name__"]
