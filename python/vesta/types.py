"""Types for annotations, with ``torch.types``' names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Union

import vesta
from vesta._C import Size, Tensor
from vesta._names import listing

__all__ = ["Device", "FileLike", "IntLikeType", "Number", "_device", "_dtype", "_int", "_size"]

_int, _float, _bool, _complex = int, float, bool, complex
_dtype, _device, _layout = vesta.dtype, vesta.device, vesta.layout
Number = (int, float, bool)
_Number = Union[int, float, bool]
_size = Union[Size, list[int], tuple[int, ...]]
_TensorOrTensors = Union[Tensor, Sequence[Tensor]]
_dispatchkey = str
Device = Union[vesta.device, str, int, None]
DeviceLikeType = Union[str, vesta.device, int]
FileLike = Union[str, os.PathLike, Any]
IntLikeType = int
FloatLikeType = float
BoolLikeType = bool


def __getattr__(name: str) -> Any:
    if name == "Storage":
        return vesta.UntypedStorage
    raise AttributeError(f"module 'vesta.types' has no attribute {name!r}")


__dir__ = listing(globals())
