"""The limits of number types: ``finfo`` and ``iinfo``."""

from __future__ import annotations

from . import _C
from ._arguments import expect


class _Limits:
    """A base whose repr shows its attributes."""

    dtype: str
    bits: int

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.dtype)


class finfo(_Limits):
    """The limits of a floating-point dtype (the default one if missing): ``bits``, ``eps``, ``max``, ``min``, ``tiny``.

    Example::

        >>> import vesta
        >>> vesta.finfo(vesta.float32).eps
        1.1920928955078125e-07
    """

    eps: float
    max: float
    min: float
    resolution: float
    smallest_normal: float
    tiny: float

    def __init__(self, dtype: _C.dtype | None = None) -> None:
        dtype = _C.get_default_dtype() if dtype is None else dtype
        expect("finfo", "dtype", dtype, _C.dtype, "a dtype")
        vars(self).update(_C._finfo(dtype))
        self.dtype = str(dtype).rsplit(".", 1)[1]

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer dtype: ``bits``, ``max``, ``min``.

    Example::

        >>> import vesta
        >>> vesta.iinfo(vesta.int8).max
        127
    """

    max: int
    min: int

    def __init__(self, dtype: _C.dtype) -> None:
        expect("iinfo", "dtype", dtype, _C.dtype, "a dtype")
        vars(self).update(_C._iinfo(dtype))
        self.dtype = str(dtype).rsplit(".", 1)[1]

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"
