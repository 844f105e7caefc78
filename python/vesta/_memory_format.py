"""The memory layouts of images, as results follow them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _C
from ._C import Tensor

if TYPE_CHECKING:
    from vesta._C import memory_format

__all__ = ["channels_last_of"]


def channels_last_of(tensor: Tensor) -> memory_format | None:
    """Returns ``channels_last`` or ``channels_last_3d`` if images lie so, and not in rows as well; else None."""
    found = {4: _C.channels_last, 5: _C.channels_last_3d}.get(tensor.dim())
    return found if found and tensor.is_contiguous(memory_format=found) and not tensor.is_contiguous() else None
