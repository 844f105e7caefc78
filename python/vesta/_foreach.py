"""``_foreach_add(tensors, 1)`` and its like: an op over a list of tensors, one after the other.

``_foreach_norm``, ``_foreach_mul_`` by one number and ``_foreach_zero_`` take the list at once where nothing is
recorded.

A name is ``_foreach_OP`` or ``_foreach_OP_`` (in place, returns nothing). What a call gives beside the first list goes
along: lists element by element, tensors and numbers to every element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from . import _C, _tensor_lists
from ._C import Tensor, _ops


def _expect_tensors(name: str, tensors: Any) -> list[Tensor]:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(f"{name}: expected a list of tensors, got {type(tensors).__name__} (self).")
    if not tensors:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    return list(tensors)


def _spread(name: str, value: Any, count: int) -> list[Any]:
    """Returns the argument of each element."""
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(f"{name}: Tensor lists must have the same number of tensors, got {count} and {len(value)}.")
    return list(value)


def _replaced(one: Callable[..., Any], tensor: Tensor, *args: Any, **options: Any) -> Tensor:
    """Does in place what has no method of its own for that."""
    return tensor.copy_(one(tensor, *args, **options))


def _with_value(one: Callable[..., Any], a: Tensor, b: Tensor, c: Tensor, value: Any = 1) -> Tensor:
    """Calls addcmul or addcdiv; a 0-d tensor as factor is its number."""
    return one(a, b, c, value=value.item() if isinstance(value, Tensor) else value)


def _maximum(tensor: Tensor, other: Any) -> Tensor:
    """Returns the larger of each two elements; a number is a bound of all."""
    return _ops.maximum(tensor, other) if isinstance(other, Tensor) else _ops.clamp_min(tensor, other)


def _minimum(tensor: Tensor, other: Any) -> Tensor:
    """Returns the smaller of each two elements; a number is a bound of all."""
    return _ops.minimum(tensor, other) if isinstance(other, Tensor) else _ops.clamp_max(tensor, other)


def _norm(tensor: Tensor, ord: Any = 2, dtype: Any = None) -> Tensor:
    """Returns the norm of all elements of one tensor."""
    return _C._linalg.vector_norm(tensor, ord, dtype=dtype)


def _norms(tensors: list[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...] | None:
    """Returns the norms of all tensors, which are views of one row; None where a norm each is wanted."""
    known = isinstance(ord, (int, float)) and ord in (1, 2, math.inf) and all(t.numel() for t in tensors)
    groups = _tensor_lists.by_device(tensors) if known and dtype is None else None
    if groups is None or len(groups) > 1 or any(t.dtype != tensors[0].dtype for t in tensors):
        return None
    return _C._list_norms(tensors, float(ord), False).to(tensors[0].dtype).unbind()


def _multiplied(tensors: list[Tensor], *args: Any, **options: Any) -> tuple[()] | None:
    """Multiplies all tensors by one number; returns None where that takes one after the other."""
    by = args[0] if len(args) == 1 and not options else None
    element = isinstance(by, Tensor)
    if element and (by.dim() != 0 or by.dtype not in (_C.float32, _C.float64) or by.is_sparse):
        return None
    if not element and (isinstance(by, bool) or not isinstance(by, (int, float))):
        return None
    groups = _tensor_lists.by_device(tensors)
    if groups is None or (element and list(groups) != [by.device]):
        return None
    for group in groups.values():
        _C._list_mul_(group, by if element else None, 1.0 if element else float(by), False)
    return ()


def _zeroed(tensors: list[Tensor], *args: Any, **options: Any) -> tuple[()] | None:
    """Sets all elements of all tensors to 0; returns None where arguments are too many."""
    if args or options:
        return None
    _tensor_lists.zero_(tensors)
    return ()


class _Op(NamedTuple):
    """What an op over lists has beside the op of its name that it calls with each element."""

    #: Is called with each element instead of the op of the name.
    one: Callable[..., Any] | None = None
    #: Takes that op and the arguments of an element.
    around: Callable[..., Any] | None = None
    #: Take the whole list: their results, or None where nothing was done.
    whole: Callable[..., Any] | None = None
    whole_in_place: Callable[..., Any] | None = None
    #: Which of its two forms there are.
    has_fresh: bool = True
    has_in_place: bool = True
    #: Whether a number may stand before the list.
    number_first: bool = False
    #: Its keywords, in the words of the op of an element.
    keywords: Mapping[str, str] = MappingProxyType({})


_WITH_VALUE = _Op(around=_with_value, keywords=MappingProxyType({"scalar": "value", "scalars": "value"}))
#: The ops that PyTorch has for lists.
_OPS = {
    **dict.fromkeys(
        (
            "abs acos add asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp expm1 floor frac lerp "
            "lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan "
            "tanh trunc"
        ).split(),
        _Op(),
    ),
    "addcdiv": _WITH_VALUE,
    "addcmul": _WITH_VALUE,
    "clone": _Op(has_in_place=False),
    "copy": _Op(has_fresh=False),
    "max": _Op(has_in_place=False),
    "maximum": _Op(one=_maximum),
    "minimum": _Op(one=_minimum),
    "mul": _Op(whole_in_place=_multiplied),
    "norm": _Op(one=_norm, whole=_norms, has_in_place=False),
    "pow": _Op(one=_ops.pow, number_first=True),  # the op: a number has no method
    "zero": _Op(whole_in_place=_zeroed, has_fresh=False),
}


def _of_element(op: str, row: _Op, in_place: bool) -> Callable[..., Any]:
    """Returns what is called with each element."""
    method = getattr(Tensor, f"{op}_", None) if in_place else None
    plain = row.one or getattr(_ops, op, None) or getattr(Tensor, op, None)
    one = method or (functools.partial(_replaced, plain) if in_place else plain)
    return functools.partial(row.around, one) if row.around else one


def __getattr__(attribute: str) -> Any:
    name = attribute
    op = attribute.removeprefix("_foreach_")
    in_place = op.endswith("_")
    op = op.removesuffix("_")
    row = _OPS.get(op)
    if op == attribute or row is None or not (row.has_in_place if in_place else row.has_fresh):
        raise AttributeError(f"module 'vesta._foreach' has no attribute {attribute!r}")
    one = _of_element(op, row, in_place)
    whole = row.whole_in_place if in_place else row.whole
    number_first = row.number_first and not in_place

    def foreach(self: Any, *args: Any, **kwargs: Any) -> tuple[Tensor, ...] | None:
        tensors = args[0] if number_first and not isinstance(self, (list, tuple)) else self
        count = len(_expect_tensors(name, tensors))
        if whole and not _tensor_lists.recorded([*self, *(value for value in args if isinstance(value, Tensor))]):
            made = whole(self, *args, **kwargs)
            if made is not None:
                return None if in_place else made
        columns = [_spread(name, value, count) for value in (self, *args)]
        named = {row.keywords.get(key, key): _spread(name, value, count) for key, value in kwargs.items()}
        results = []
        for i in range(count):
            options = {key: values[i] for key, values in named.items()}
            results.append(one(*(column[i] for column in columns), **options))
        return None if in_place else tuple(results)

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"Calls ``{op}{'_' if in_place else ''}`` with each tensor of a list; see ``vesta._foreach``."
    return foreach
