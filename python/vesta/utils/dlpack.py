"""Tensors of other libraries without a copy, by DLPack: ``from_dlpack``, ``to_dlpack``."""

from __future__ import annotations

from typing import Any

from vesta import Tensor, from_dlpack
from vesta._arguments import expect
from vesta._names import listing

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(
    data: Tensor, dl_device: tuple[int, int] | None = None, copy: bool | None = None, read_only: bool = False
) -> Any:
    """Returns a DLPack capsule over the tensor's memory; it can be taken once.

    Args:
        dl_device: the device of the capsule, as the protocol writes it; the tensor's own unless given.
        copy: True: over a copy; False: never.
        read_only: True: over a copy too, so that writing to it does not change the tensor.

    Raises:
        BufferError: ``read_only`` without a copy.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2)
        >>> y = vesta.from_dlpack(vesta.utils.dlpack.to_dlpack(x))
        >>> y.data_ptr() == x.data_ptr()
        True
    """
    expect("to_dlpack", "data", data, Tensor, "Tensor")
    if read_only and copy is False:
        raise BufferError("to_dlpack: expected copy=True or None with read_only=True, got False (copy).")
    return data.__dlpack__(dl_device=dl_device, copy=True if read_only and copy is None else copy)


__dir__ = listing(globals())
