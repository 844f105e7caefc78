"""Settings of compilers that Vesta has not: any can be set and is read back."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

__all__ = ["Settings"]


class Settings(ModuleType):
    """A module of settings, registered under its name; one that was never set is another group of settings."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "Settings of a compiler: they are kept and change nothing.")
        sys.modules[name] = self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = Settings(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value

    def __bool__(self) -> bool:  # a switch that was never set is off
        return False

    @contextlib.contextmanager
    def patch(self, changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
        """Sets settings inside a ``with`` block or a decorated function."""
        new = {changes: value} if isinstance(changes, str) else dict(changes or {}, **more)
        before = dict(vars(self))
        vars(self).update(new)
        try:
            yield
        finally:
            vars(self).clear()
            vars(self).update(before)
