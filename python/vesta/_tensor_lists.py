"""Lists of tensors for the ops that take a whole list at once (``_list_norms``, ``_list_mul_``, ``_list_zero_``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _C
from ._C import Tensor

_FLOATS = frozenset((_C.float32, _C.bfloat16, _C.float16, _C.float64))


def by_device(tensors: Iterable[Tensor], floats: bool = True) -> dict[Any, list[Tensor]] | None:
    """Returns the tensors of each device, in order; None where an op over lists does not take one of them.

    It takes strided tensors, if ``floats`` of floating dtypes; subclasses have a say of their own in what is done.
    """
    from .nn.parameter import Parameter

    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        kind = type(tensor)
        if (kind is not Tensor and kind is not Parameter) or tensor.is_sparse:
            return None
        if floats and tensor.dtype not in _FLOATS:
            return None
        groups.setdefault(tensor.device, []).append(tensor)
    return groups


def recorded(tensors: Iterable[Tensor]) -> bool:
    """Tells whether what is done to the tensors goes on a tape: the ops over lists have no gradients."""
    return _C.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def zero_(tensors: list[Tensor]) -> None:
    """Fills tensors with zeros, which nothing records."""
    groups = by_device(tensors, floats=False)
    if groups is None or recorded(tensors):
        for tensor in tensors:
            tensor.zero_()
        return
    for group in groups.values():
        _C._list_zero_(group)
