"""Names of the types that functions take. Type checkers read them in ``vesta._C._types``; here is what the annotations
mean to ``typing.get_type_hints``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from . import _C
from ._C import Tensor

if TYPE_CHECKING:
    from ._C._types import (
        Data,
        Device,
        DType,
        Floats,
        Ints,
        Layout,
        MemoryFormat,
        Number,
        Real,
        Shape,
        Sizes,
    )
else:
    Number = Union[bool, int, float, complex]
    Real = Union[float, Tensor]
    Data = Union[Tensor, Number, Sequence[Any], Any]
    Device = Union[_C.device, str, int]
    DType = Union[_C.dtype, type]
    Floats = Union[float, Sequence[float]]
    Ints = Union[int, Sequence[int]]
    Layout = _C.layout
    MemoryFormat = _C.memory_format
    Shape = Sequence[int]
    Sizes = Union[int, None, Sequence[Union[int, None]]]

__all__ = ["DType", "Data", "Device", "Floats", "Ints", "Layout", "MemoryFormat", "Number", "Real", "Shape", "Sizes"]
