"""opt_einsum: contractions of Vesta's tensors in the order it finds.

It calls ``transpose``, ``tensordot`` and ``einsum`` of the module that a tensor's class is from, with NumPy's
arguments; here are those functions.
"""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._names import listing

__all__ = ["einsum", "register", "tensordot", "transpose"]


def register() -> None:
    """Makes ``opt_einsum.contract`` and its like work on tensors."""
    from opt_einsum.backends import dispatch

    dispatch._aliases["vesta"] = __name__
    for function in ("einsum", "tensordot", "transpose"):  # looked up before this call
        dispatch._cached_funcs[function, "vesta"] = globals()[function]


def transpose(a: Tensor, axes: Any) -> Tensor:
    """Returns a view of ``a`` with its dimensions in the order ``axes``."""
    return a.permute(tuple(axes))


def tensordot(x: Tensor, y: Tensor, axes: Any = 2) -> Tensor:
    """Returns the sum of products of ``x`` and ``y`` over ``axes``: a number, or the dimensions of each."""
    return vesta.tensordot(x, y, dims=axes)


def einsum(equation: str, *operands: Tensor, **options: Any) -> Tensor:
    """Returns ``vesta.einsum``; letters beyond the alphabet, of which opt_einsum has any number, are renamed."""
    from opt_einsum.parser import convert_to_valid_einsum_chars

    return vesta.einsum(convert_to_valid_einsum_chars(equation), *operands)


__dir__ = listing(globals())
