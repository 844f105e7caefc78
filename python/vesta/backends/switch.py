"""Modules whose settings are attributes: a read queries the library, a write sets it, a misspelt name is refused."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from vesta import _C


class Switch:
    """One of the library's switches, as an attribute."""

    def __init__(self, number: int, doc: str) -> None:
        self.number, self.__doc__ = number, doc

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _C._product_switch(self.number)

    def __set__(self, instance: Any, value: bool) -> None:
        if not isinstance(value, bool):
            raise TypeError(f"expected a bool, got {type(value).__name__}. Pass True or False.")
        _C._product_switch(self.number, value)


def install(name: str, kind: type[ModuleType]) -> None:
    """Makes the module ``name`` an instance of ``kind``, so that the switches of that class are its attributes."""
    sys.modules[name].__class__ = kind
