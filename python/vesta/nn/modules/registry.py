"""The tables in which a module keeps parameters, buffers and submodules.

Note [Registered tensors are plain attributes]
PyTorch keeps them in side tables only and finds ``self.weight`` through ``Module.__getattr__``, which costs more than a
small kernel. Here each table writes every change through to the module's ``__dict__``, so that ``self.weight`` is an
ordinary attribute. ``Module.__getattr__`` is there for subclasses whose own calls it; no class without one of its own
goes through it (``_look_up_plainly``), since that would slow every attribute.
Invariant: ``module.__dict__[name] is table[name]`` for every name in a table, unless code writes into ``__dict__``
directly; then that attribute wins, as it does in PyTorch. The table refers to its module weakly: a strong reference
would make every module a cycle, and a model's memory would wait for the garbage collector after ``del model``.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

_MISSING = object()


def _no_owner() -> None:
    """Stands for the reference of a table that no module has."""


class Registry(dict):
    """A dict that mirrors its entries as attributes of one module; pickles and copies as a plain dict."""

    __slots__ = ("__weakref__", "_owner")
    _seen_as = dict  #: what it is in a tree: the tables of PyTorch's modules are plain dicts

    def __init__(self, owner: Any, items: Any = ()) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)
        self.update(items)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        owner = self._owner()
        if owner is not None:
            owner.__dict__[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        owner = self._owner()
        if owner is not None:
            owner.__dict__.pop(name, None)

    def pop(self, name: str, default: Any = _MISSING) -> Any:
        """Removes and returns the entry; ``KeyError`` without one and without a default."""
        if name not in self:
            if default is _MISSING:
                raise KeyError(name)
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the last (name, value)."""
        name = next(reversed(self))
        return name, self.pop(name)

    def clear(self) -> None:
        """Removes every entry."""
        for name in list(self):
            del self[name]

    def update(self, items: Any = (), **more: Any) -> None:
        """Sets every (name, value) of a mapping or an iterable of pairs."""
        for name, value in dict(items, **more).items():
            self[name] = value

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Returns the entry, which is set to ``default`` if there was none."""
        if name not in self:
            self[name] = default
        return self[name]

    def __ior__(self, items: Any) -> Registry:  # type: ignore[override,misc]
        self.update(items)
        return self

    def copy(self) -> dict[str, Any]:
        """Returns the entries as a plain dict, which mirrors nothing."""
        return dict(self)

    def replace(self, items: Iterable[tuple[str, Any]]) -> None:
        """Makes ``items`` the whole content, in their order."""
        items = list(items)
        self.clear()
        self.update(items)

    def join(self, module: Any) -> None:
        """Becomes a table of ``module``, with an attribute for each entry."""
        self._owner = weakref.ref(module)
        module.__dict__.update(self)

    def leave(self, module: Any) -> None:
        """Removes the attributes that mirror the entries from ``module``, which has another table from now on."""
        for name, value in self.items():
            if module.__dict__.get(name) is value:
                del module.__dict__[name]
        if self._owner() is module:
            self._owner = _no_owner

    def __reduce__(self) -> tuple[Any, ...]:
        entries: Iterator[tuple[str, Any]] = iter(dict(self).items())
        return dict, (), None, None, entries


def own_table(module: Any, name: str) -> Any:
    """Returns a table of ``module``; one that came with another's ``__dict__``, or as a plain dict, is copied."""
    entries = module.__dict__[name]
    if type(entries) is not Registry or entries._owner() is not module:
        entries = module.__dict__[name] = Registry(module, entries)
    return entries


class Table:
    """The attribute of a class that makes a ``Registry`` of whatever is assigned as one of an object's tables.

    It has no ``__get__``: reading finds the object's own entry, as fast as any. Subclasses of Module whose
    ``__setattr__`` ends in ``object.__setattr__`` come here, too.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, module: Any, entries: Any) -> None:
        old = module.__dict__.get(self._name)
        if isinstance(old, Registry):  # what it holds stays: a program may put it back, or another module has it
            old.leave(module)
        if type(entries) is Registry and entries._owner() is None:
            entries.join(module)
        else:
            entries = Registry(module, entries)
        module.__dict__[self._name] = entries

    def __delete__(self, module: Any) -> None:
        try:
            del module.__dict__[self._name]
        except KeyError:
            raise AttributeError(self._name) from None
