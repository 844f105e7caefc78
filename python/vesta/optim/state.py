"""An optimizer's state: a dict of dicts that holds what a step derived from it until somebody writes into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["State", "as_state"]


class _Watched(dict):
    """A dict that tells ``_changed`` of every write, and pickles as a plain dict."""

    __slots__ = ()

    def _changed(self) -> None:
        raise NotImplementedError

    def __setitem__(self, key: Any, value: Any) -> None:
        if self.get(key, self) is not value:  # else nothing that was derived is out of date
            super().__setitem__(key, value)
            self._changed()

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        self._changed()

    def pop(self, key: Any, *default: Any) -> Any:
        """Removes and returns the entry, or the default."""
        self._changed()
        return super().pop(key, *default)

    def popitem(self) -> tuple[Any, Any]:
        """Removes and returns the last (key, value)."""
        self._changed()
        return super().popitem()

    def clear(self) -> None:
        """Removes every entry."""
        super().clear()
        self._changed()

    def update(self, *items: Any, **more: Any) -> None:
        """Sets every (key, value) of a mapping or an iterable of pairs."""
        for key, value in dict(*items, **more).items():
            self[key] = value

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Returns the entry, which is set to ``default`` if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def __ior__(self, items: Any) -> Any:  # type: ignore[override,misc]
        self.update(items)
        return self


class _Entry(_Watched):
    """The state of one parameter. It knows its State's plans, not the State: an optimizer that nobody holds any more
    frees its tensors at once, without waiting for the garbage collector."""

    __slots__ = ("_plans",)

    def __init__(self, plans: dict[int, Any], items: Any = ()) -> None:
        super().__init__(items)
        self._plans = plans

    def _changed(self) -> None:
        self._plans.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (), None, None, iter(dict(self).items())


class State(_Watched):
    """A map from parameters to dicts; a missing one is created on access, as in PyTorch's defaultdict.

    ``plans`` belongs to the optimizer's step. A write empties it, so that it neither misleads a step nor keeps tensors
    that were replaced.
    """

    __slots__ = ("plans",)

    def __init__(self, items: Any = ()) -> None:
        super().__init__()
        self.plans: dict[int, Any] = {}
        self.update(items)

    def _changed(self) -> None:
        self.plans.clear()

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, _Entry(self.plans, value) if isinstance(value, dict) else value)

    def __missing__(self, key: Any) -> Any:
        self[key] = {}
        return self[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (), None, None, iter(dict(self).items())


def as_state(given: Any, name: str) -> State:
    """Returns what was given for the state of the optimizer ``name``: itself, or a copy of another mapping."""
    if isinstance(given, State):
        return given
    if not isinstance(given, Mapping):
        raise TypeError(f"{name}: expected a dict of parameters and their state, got {type(given).__name__} (state).")
    return State(given)
