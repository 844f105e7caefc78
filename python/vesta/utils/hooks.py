"""The handle that a ``register_*hook`` call returns: it removes the hook again."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, MutableMapping
from typing import Any

from vesta._names import listing

__all__ = ["RemovableHandle"]

_next_id = itertools.count()


class RemovableHandle:
    """A handle that removes one hook from the table it was registered in; also a context manager that does so on exit.

    Args:
        hooks_dict: the table in which the hook is stored under ``handle.id``; held weakly, so a handle keeps no module
            alive.
        extra_dict: further tables that hold something under the same id (one, or a list of them).

    Example::

        >>> import vesta
        >>> layer = vesta.nn.Linear(2, 2)
        >>> handle = layer.register_forward_hook(lambda module, args, output: print("called"))
        >>> handle.remove()
    """

    def __init__(self, hooks_dict: MutableMapping[int, Any], *, extra_dict: Any = None) -> None:
        self.id: int = next(_next_id)
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        tables: Iterable[Any] = (
            () if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        )
        self.extra_dict_ref = tuple(weakref.ref(table) for table in tables)

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            table = ref()
            if table is not None and self.id in table:
                del table[self.id]

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.id, self.hooks_dict_ref(), tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        from collections import OrderedDict

        self.id, hooks, extra = state
        # a table that is gone becomes a reference to a new, empty one, so that remove() stays harmless
        self.hooks_dict_ref = weakref.ref(hooks if hooks is not None else OrderedDict())
        self.extra_dict_ref = tuple(weakref.ref(table) for table in extra if table is not None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


__dir__ = listing(globals())
