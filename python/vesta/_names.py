"""What ``dir()`` of a module shows, and so what an editor offers: what is documented, not what the module imports."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
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
