"""``make_tensor``: random tensors for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta._types import Device, DType, MemoryFormat

__all__ = ["make_tensor"]

_UNSIGNED = (_C.uint8,)


def make_tensor(
    *shape: int | Sequence[int],
    dtype: DType,
    device: Device,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """Returns a tensor of the shape, dtype and device, with values drawn uniformly from [low, high).

    Args:
        shape: sizes, or one sequence of them.
        low, high: the bounds; by default [0, 2) for bool, [0, 10) for uint8, [-9, 10) for other integers and
            [-9, 9) for floating and complex dtypes (for both parts of these).
        requires_grad: for floating and complex dtypes.
        noncontiguous: whether every second element of its memory is left out; not with ``memory_format``.
        exclude_zero: zeros are replaced by the smallest number (1 for integers).
        memory_format: of the result.

    Raises:
        ValueError: the bounds are empty or NaN, ``requires_grad`` of integers, or both layouts are asked for.

    Example::

        >>> import vesta
        >>> x = vesta.testing.make_tensor(2, 3, dtype=vesta.float32, device="cpu", low=0, high=1)
        >>> bool(((x >= 0) & (x < 1)).all())
        True
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    real = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError(
            f"make_tensor: the parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"{noncontiguous=} and {memory_format=}."
        )
    if requires_grad and not real:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    low, high = _bounds(dtype, low, high)
    doubled = noncontiguous and math.prod(sizes) > 1
    drawn = (*sizes[:-1], 2 * sizes[-1]) if doubled else sizes
    if real:
        made = _uniform(drawn, dtype, device, low, high)
    elif dtype == _C.bool:
        made = vesta.randint(int(low), max(int(high), int(low) + 1), drawn, device=device).to(dtype)
    else:
        made = vesta.randint(math.ceil(low), math.ceil(high), drawn, dtype=dtype, device=device)
    if exclude_zero:
        smallest = vesta.finfo(dtype).tiny if real else 1
        made = made.masked_fill(made == 0, smallest)
    if doubled:
        made = made[..., ::2]
    elif memory_format is not None:
        made = made.clone(memory_format=memory_format)
    return made.requires_grad_() if requires_grad else made


def _bounds(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    if dtype == _C.bool:
        least, most, default = 0, 2, (0, 2)
    elif dtype.is_floating_point or dtype.is_complex:
        limits = vesta.finfo(dtype)
        least, most, default = limits.min, limits.max, (-9, 9)
    else:
        ends = vesta.iinfo(dtype)
        least, most, default = ends.min, ends.max + 1, (0, 10) if dtype in _UNSIGNED else (-9, 10)
    low, high = default[0] if low is None else low, default[1] if high is None else high
    if any(isinstance(value, float) and math.isnan(value) for value in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low > high or (low == high and not (dtype.is_floating_point or dtype.is_complex)):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    return max(low, least), min(high, most)


def _uniform(sizes: Any, dtype: Any, device: Any, low: float, high: float) -> Tensor:
    if dtype.is_complex:
        part = _C.float32 if dtype == _C.complex64 else _C.float64
        real, imaginary = (_uniform(sizes, part, device, low, high) for _ in range(2))
        return real.to(dtype) + 1j * imaginary.to(dtype)
    wide = dtype if dtype in (_C.float32, _C.float64) else _C.float32
    scale = vesta.rand(sizes, dtype=wide, device=device)
    return (low + scale * (high - low)).clamp(low, high).to(dtype)
