"""``_foreach_add(tensors, 1)`` and its like: an op over a list of tensors, one after the other.

``_foreach_norm``, ``_foreach_mul_`` by one number and ``_foreach_zero_`` take the list at once where nothing is
recorded.

A name is ``_foreach_OP`` or ``_foreach_OP_`` (in place, returns nothing). What a call gives beside the first list goes
along: lists element by element, tensors and numbers to every element.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from . import _C, _tensor_lists
from ._C import Tensor, _ops

#: The ops that PyTorch has for lists.
_KNOWN = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone copy cos cosh div erf erfc exp expm1 floor "
    "frac lerp lgamma log log10 log1p log2 max maximum minimum mul neg norm pow reciprocal round rsqrt sigmoid sign "
    "sin sinh sqrt sub tan tanh trunc zero"
).split()


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


def _function(op: str) -> Callable[..., Any]:
    """Returns what is done to one element."""
    if op == "norm":
        return lambda t, ord=2, dtype=None: _C._linalg.vector_norm(t, ord, dtype=dtype)
    if op == "pow":  # a number may be the base
        return lambda base, exponent: _ops.pow(base, exponent)
    return getattr(_ops, op) if hasattr(_ops, op) else getattr(Tensor, op)


def _replaced(one: Callable[..., Any], tensor: Tensor, *args: Any, **options: Any) -> Tensor:
    """Does in place what has no method of its own for that."""
    return tensor.copy_(one(tensor, *args, **options))


def _with_value(one: Callable[..., Any], a: Tensor, b: Tensor, c: Tensor, value: Any = 1) -> Tensor:
    """Calls addcmul or addcdiv; a 0-d tensor as factor is its number."""
    return one(a, b, c, value=value.item() if isinstance(value, Tensor) else value)


def _norms(tensors: list[Tensor], ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...] | None:
    """Returns the norms of all tensors, which are views of one row; None where a norm each is wanted."""
    known = isinstance(ord, (int, float)) and ord in (1, 2, math.inf) and all(t.numel() for t in tensors)
    groups = _tensor_lists.by_device(tensors) if known and dtype is None else None
    if groups is None or len(groups) > 1 or any(t.dtype != tensors[0].dtype for t in tensors):
        return None
    return _C._list_norms(tensors, float(ord), False).to(tensors[0].dtype).unbind()


def _multiplied(tensors: list[Tensor], by: Any) -> bool:
    """Multiplies all tensors by one number; returns False where that takes one after the other."""
    element = isinstance(by, Tensor)
    if element and (by.dim() != 0 or by.dtype not in (_C.float32, _C.float64) or by.is_sparse):
        return False
    if not element and (isinstance(by, bool) or not isinstance(by, (int, float))):
        return False
    groups = _tensor_lists.by_device(tensors)
    if groups is None or (element and list(groups) != [by.device]):
        return False
    for group in groups.values():
        _C._list_mul_(group, by if element else None, 1.0 if element else float(by), False)
    return True


def _at_once(name: str, tensors: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Calls the op that takes a whole list, if one does the same; returns None where nothing was done."""
    operands = [*tensors, *(value for value in args if isinstance(value, Tensor))]
    if _tensor_lists.recorded(operands):
        return None
    if name == "_foreach_norm" and set(options) <= {"ord", "dtype"} and len(args) + len(options) <= 2:
        return _norms(tensors, *args, **options)
    if name == "_foreach_mul_" and len(args) == 1 and not options and _multiplied(tensors, args[0]):
        return ()
    if name == "_foreach_zero_" and not args and not options:
        _tensor_lists.zero_(tensors)
        return ()
    return None


def __getattr__(attribute: str) -> Any:
    name = attribute
    op = attribute.removeprefix("_foreach_")
    in_place = op.endswith("_")
    op = op.removesuffix("_")
    if op == attribute or op not in _KNOWN or (in_place and op in ("clone", "max", "norm")):
        raise AttributeError(f"module 'vesta._foreach' has no attribute {attribute!r}")
    if op in ("copy", "zero") and not in_place:
        raise AttributeError(f"module 'vesta._foreach' has no attribute {attribute!r}")
    method = getattr(Tensor, f"{op}_", None) if in_place else None
    one = method or (functools.partial(_replaced, _function(op)) if in_place else _function(op))
    if op in ("addcmul", "addcdiv"):
        one = functools.partial(_with_value, one)

    def foreach(self: Any, *args: Any, **kwargs: Any) -> tuple[Tensor, ...] | None:
        scalar_base = op == "pow" and not in_place and not isinstance(self, (list, tuple))
        count = len(_expect_tensors(name, args[0] if scalar_base else self))
        if name in ("_foreach_norm", "_foreach_mul_", "_foreach_zero_"):
            made = _at_once(name, self, args, kwargs)
            if made is not None:
                return None if in_place else made
        columns = [_spread(name, value, count) for value in (self, *args)]
        named = {key: _spread(name, value, count) for key, value in kwargs.items()}
        keys = {"scalar": "value", "scalars": "value"} if op in ("addcmul", "addcdiv") else {}
        results = []
        for i in range(count):
            options = {keys.get(key, key): values[i] for key, values in named.items()}
            results.append(one(*(column[i] for column in columns), **options))
        return None if in_place else tuple(results)

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"Calls ``{op}{'_' if in_place else ''}`` with each tensor of a list; see ``vesta._foreach``."
    return foreach
