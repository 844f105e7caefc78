"""Rounding to the numbers that quantized values can hold, in floating point: training aware of quantization."""

from __future__ import annotations

import vesta

from ._arguments import checked
from ._C import Tensor

__all__ = ["fake_quantize_per_channel_affine", "fake_quantize_per_tensor_affine"]


@checked
def fake_quantize_per_tensor_affine(
    input: Tensor, scale: float | Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    """Returns ``input`` at the nearest of the values ``(q - zero_point) * scale`` with ``quant_min <= q <= quant_max``.

    The gradient passes where ``q`` needed no clamping, and is 0 elsewhere.

    Args:
        input: floating-point.
        scale: the step, a number or a tensor of one element.
        zero_point: the q that stands for 0.
        quant_min, quant_max: the least and the greatest q.

    Raises:
        RuntimeError: ``quant_min`` is greater than ``quant_max``, a number ``zero_point`` lies outside of them, a
            tensor has more than one element, or ``scale`` requires a gradient, which it has not.

    Example::

        >>> import vesta
        >>> vesta.fake_quantize_per_tensor_affine(vesta.tensor([0.17, 0.5, -9.0]), 0.1, 0, -8, 7)
        tensor([ 0.2000,  0.5000, -0.8000])
    """
    op = "fake_quantize_per_tensor_affine"
    _check_range(op, quant_min, quant_max)
    for name, given in (("scale", scale), ("zero_point", zero_point)):
        if isinstance(given, Tensor) and given.numel() != 1:
            raise RuntimeError(f"{op}: expected a number or a tensor of one element, got {list(given.shape)} ({name}).")
    if isinstance(zero_point, Tensor):
        zero_point = zero_point.reshape(())
    else:
        _check_zero_point(op, quant_min <= zero_point <= quant_max)
    step = scale.reshape(()) if isinstance(scale, Tensor) else vesta.full((), scale, device=input.device)
    return _fake_quantize(op, input, step, zero_point, quant_min, quant_max)


@checked
def fake_quantize_per_channel_affine(
    input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int
) -> Tensor:
    """Returns ``fake_quantize_per_tensor_affine`` with a scale and a zero point for each index of ``axis``.

    Args:
        input: floating-point.
        scale, zero_point: ``[C]``, C being the size of ``axis``.
        axis: the dimension of the channels.
        quant_min, quant_max: the least and the greatest q.

    Raises:
        RuntimeError: a range without numbers, a zero point outside of it, sizes that do not fit, or a ``scale`` that
            requires a gradient, which it has not.
        IndexError: there is no such dimension.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([[0.17, 0.5], [0.17, 0.5]])
        >>> vesta.fake_quantize_per_channel_affine(x, vesta.tensor([0.1, 1.0]), vesta.tensor([0, 0]), 0, -8, 7)
        tensor([[0.2000, 0.5000],
                [0.0000, 0.0000]])
    """
    op = "fake_quantize_per_channel_affine"
    _check_range(op, quant_min, quant_max)
    if not -input.dim() <= axis < input.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.dim()}, {input.dim() - 1}], but got {axis})"
        )
    size = input.size(axis)
    for name, given in (("scale", scale), ("zero_point", zero_point)):
        if given.dim() != 1 or given.numel() != size:
            raise RuntimeError(
                f"{op}: expected one value for each of the {size} channels, got {list(given.shape)} ({name})."
            )
    _check_zero_point(op, bool(((zero_point >= quant_min) & (zero_point <= quant_max)).all()))
    shape = [1] * input.dim()
    shape[axis] = size
    return _fake_quantize(op, input, scale.reshape(shape), zero_point.reshape(shape), quant_min, quant_max)


def _check_range(op: str, quant_min: int, quant_max: int) -> None:
    if quant_min > quant_max:
        raise RuntimeError(f"{op}: `quant_min` should be less than or equal to `quant_max`.")


def _check_zero_point(op: str, inside: bool) -> None:
    if not inside:
        raise RuntimeError(f"{op}: `zero_point` must be between `quant_min` and `quant_max`.")


def _fake_quantize(
    op: str, input: Tensor, scale: Tensor, zero_point: int | Tensor, quant_min: int, quant_max: int
) -> Tensor:
    if not input.is_floating_point():
        raise RuntimeError(f"{op}: expected a floating-point dtype, got {input.dtype} (input).")
    if scale.requires_grad and vesta.is_grad_enabled():
        raise RuntimeError(f"{op}: the derivative for 'scale' is not implemented.")
    with vesta.no_grad():
        wide = input if input.dtype == vesta.float64 else input.float()  # as 16-bit floats, 1 / scale may be infinite
        step = scale.to(wide.dtype)
        number = (wide * step.reciprocal()).round() + zero_point
        inside = (number >= quant_min) & (number <= quant_max)
        # NaN has no number: it becomes the least, as in PyTorch
        nearest = number.nan_to_num(quant_min, float("inf"), float("-inf")).clamp(quant_min, quant_max)
        rounded = ((nearest - zero_point) * step).to(input.dtype)
    if not (input.requires_grad and vesta.is_grad_enabled()):
        return rounded
    passed = vesta.where(inside, input, 0)
    return rounded + (passed - passed.detach())  # the difference is 0: it carries the gradient alone
