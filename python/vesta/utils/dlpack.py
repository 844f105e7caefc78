"""Tensors of other libraries without a copy, by DLPack: ``from_dlpack``, ``to_dlpack``."""

from __future__ import annotations

from typing import Any

from vesta import Tensor, from_dlpack
from vesta._arguments import expect
from vesta._names import listing

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Tensor) -> Any:
    """Returns a DLPack capsule over the tensor's memory; it can be taken once.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2)
        >>> y = vesta.from_dlpack(vesta.utils.dlpack.to_dlpack(x))
        >>> y.data_ptr() == x.data_ptr()
        True
    """
    expect("to_dlpack", "tensor", tensor, Tensor, "Tensor")
    return tensor.__dlpack__()


__dir__ = listing(globals())
