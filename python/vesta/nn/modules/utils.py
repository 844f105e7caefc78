"""Numbers and tuples of them, as arguments of layers come: ``_pair(3)`` is ``(3, 3)``."""

from __future__ import annotations

import collections.abc
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Any:
    """Returns a function that repeats a number ``n`` times, and makes a tuple of an iterable."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Returns the entries in reverse order, each ``n`` times: padding as ``pad`` takes it.

    Example::

        >>> from vesta.nn.modules.utils import _reverse_repeat_tuple
        >>> _reverse_repeat_tuple((1, 2), 2)
        (2, 2, 1, 1)
    """
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """Returns sizes, with the last of ``defaults`` in place of each None; a number is returned as it is.

    Raises:
        ValueError: there are fewer defaults than sizes.
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [d if v is None else v for v, d in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Removes a prefix, such as ``"module."``, from the names of a state dict, in place; its metadata too.

    Example::

        >>> from vesta.nn.modules.utils import consume_prefix_in_state_dict_if_present
        >>> state = {"module.weight": 1}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if key and (key.startswith(prefix) or key == prefix.rstrip(".")):
            metadata[key[len(prefix) :]] = metadata.pop(key)
