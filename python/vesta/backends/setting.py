"""Settings of libraries that Vesta does not use: they can be set, are read back, and change nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import ModuleType
from typing import Any

__all__ = ["Setting", "changed"]


class Setting:
    """A setting as an attribute of a module's class: it has a type, and remembers what it was set to."""

    def __init__(self, value: Any, doc: str) -> None:
        self.value, self.__doc__ = value, doc

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else self.value

    def __set__(self, instance: Any, value: Any) -> None:
        if not isinstance(value, type(self.value)):
            raise TypeError(f"expected a {type(self.value).__name__}, got {type(value).__name__}.")
        self.value = value


@contextlib.contextmanager
def changed(module: ModuleType, **values: Any) -> Iterator[None]:
    """Sets attributes of a module inside a ``with`` block."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)
