"""Sizes given once or for each dimension; the names are PyTorch's, from where programs import them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from vesta._arguments import python_number, python_numbers

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Returns a function that turns a value into a tuple of ``n`` of it, and an iterable into a tuple."""

    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple[Any, ...], n: int) -> tuple[Any, ...]:
    """Repeats each entry ``n`` times, last entry first: sizes in the order of ``pad``."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """Replaces None by the default at its place, counted from the end."""
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :])]


def sizes(op: str, name: str, value: Any, count: int, shared: bool = False) -> tuple[int, ...]:
    """Converts an integer, or one for each of ``count`` dimensions, to a tuple of ``count``.

    ``shared``: a sequence of one integer, which holds for all dimensions, stays as it is.
    """
    value = python_numbers(value)
    if not isinstance(value, (int, tuple, list)):
        raise TypeError(f"{op}: expected an integer or {count} of them, got {type(value).__name__} ({name}).")
    entries = (value,) * count if isinstance(value, int) else tuple(value)
    if len(entries) not in ((1, count) if shared else (count,)) or not all(isinstance(entry, int) for entry in entries):
        raise ValueError(f"{op}: expected an integer or {count} of them, got {value!r} ({name}).")
    return entries


def count(op: str, name: str, value: Any) -> int:
    """Checks a number of things that are made one by one."""
    value = python_number(value)
    if not isinstance(value, int):
        raise TypeError(f"{op}: expected int, got {type(value).__name__} ({name}).")
    if value >= 2**31:
        raise ValueError(f"{op}: expected a number below 2 ** 31, got {value} ({name}).")
    return value


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strips ``prefix`` from the names of ``state_dict`` in place, and from those of its metadata.

    Example::

        >>> import vesta
        >>> state = {"module.weight": vesta.zeros(1)}
        >>> vesta.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
        >>> list(state)
        ['weight']
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):  # "module.a" for a submodule, "module" for the whole
        if key == prefix.rstrip("."):
            metadata[""] = metadata.pop(key)
        elif key.startswith(prefix):
            metadata[key[len(prefix) :]] = metadata.pop(key)
