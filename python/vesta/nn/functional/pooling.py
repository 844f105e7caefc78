"""Pooling: maxima with and without their places, averages of output sizes, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import vesta
from vesta import Tensor
from vesta._arguments import expect, python_number, python_numbers
from vesta._memory_format import channels_last_of
from vesta._types import Floats, Ints, Sizes

from .ops import ops

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]


@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the maximum of each window of ``input`` [N, C, L] or [C, L]; with ``return_indices`` also where it was.

    Args:
        kernel_size: size of the window.
        stride: the step between windows; default: ``kernel_size``.
        padding: minus infinities on each side, at most half of ``kernel_size``.
        dilation: the step inside of a window.
        ceil_mode: allow the last window to reach over the edge.
        return_indices: also return the place in L of each maximum.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_pool1d(vesta.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
        tensor([[[3., 2.]]])
    """
    op = ops.max_pool1d_with_indices if return_indices else ops.max_pool1d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the maximum of each window of ``input`` [N, C, H, W]; with ``return_indices`` also where it was in H * W.

    Args:
        stride: the step between windows; default: ``kernel_size``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_pool2d(vesta.ones(1, 1, 4, 4), 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    op = ops.max_pool2d_with_indices if return_indices else ops.max_pool2d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor: ...
@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool1d`` for ``input`` [N, C, D, H, W] or [C, D, H, W]; places are numbers in D * H * W.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_pool3d(vesta.ones(1, 1, 2, 2, 2), 2).shape
        vesta.Size([1, 1, 1, 1, 1])
    """
    op = ops.max_pool3d_with_indices if return_indices else ops.max_pool3d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """``max_pool1d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_pool1d_with_indices(vesta.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
        (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """``max_pool2d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_pool2d_with_indices(vesta.arange(4.0).view(1, 2, 2), 2)
        (tensor([[[3.]]]), tensor([[[3]]]))
    """
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """``max_pool3d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_pool3d_with_indices(vesta.arange(8.0).view(1, 2, 2, 2), 2)[1]
        tensor([[[[7]]]])
    """
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


# ---- powers ----


def _lp(input: Tensor, dims: int, norm_type: Any, kernel_size: Ints, stride: Any, ceil_mode: bool) -> Tensor:
    """Returns (sum of x ** p) ** (1 / p) of each window, as the mean times the window's size."""
    op = f"lp_pool{dims}d"
    norm_type, kernel_size = python_number(norm_type), python_numbers(kernel_size)
    expect(op, "input", input, Tensor, "Tensor")
    expect(op, "norm_type", norm_type, (int, float), "float")
    if norm_type == 0:
        raise ValueError(f"{op}: expected a number other than 0, got {norm_type} (norm_type).")
    expect(op, "kernel_size", kernel_size, (int, tuple, list), "an integer, or one for each dimension")
    sizes = (kernel_size,) * dims if isinstance(kernel_size, int) else tuple(kernel_size)
    count = 1
    for size in sizes:
        expect(op, "kernel_size", size, int, "integers")
        count *= size
    stride = [] if stride is None else stride
    mean = getattr(ops, f"avg_pool{dims}d")(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu()).mul(count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor, norm_type: int | float, kernel_size: int, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """Returns (sum of x ** norm_type) ** (1 / norm_type) of each window of ``input`` [N, C, L] or [C, L].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.lp_pool1d(vesta.tensor([[[3.0, 4.0]]]), 2, 2)
        tensor([[[5.]]])
    """
    return _lp(input, 1, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor, norm_type: int | float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """``lp_pool1d`` for ``input`` [N, C, H, W] or [C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.lp_pool2d(vesta.tensor([[[3.0, 0.0], [0.0, 4.0]]]), 2, 2)
        tensor([[[5.]]])
    """
    return _lp(input, 2, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor, norm_type: int | float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
) -> Tensor:
    """``lp_pool1d`` for ``input`` [N, C, D, H, W] or [C, D, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.lp_pool3d(vesta.ones(1, 2, 2, 2), 1, 2)
        tensor([[[[8.]]]])
    """
    return _lp(input, 3, norm_type, kernel_size, stride, ceil_mode)


# ---- given output sizes ----


def _filled(op: str, input: Tensor, output_size: Sizes, dims: int) -> list[int]:
    """Returns the output size with None replaced by the input's size."""
    expect(op, "input", input, Tensor, "Tensor")
    output_size = python_numbers(output_size)
    expect(op, "output_size", output_size, (int, tuple, list, type(None)), "an integer or None, or one for each size")
    sizes = (output_size,) * dims if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(sizes) != dims:
        raise RuntimeError(f"{op}: expected {dims} output sizes, got {output_size} (output_size).")
    if input.dim() <= dims:
        raise ValueError(
            f"{op}: expected an input of {dims + 1} or {dims + 2} dimensions, got {list(input.shape)} (input)."
        )
    for size in sizes:
        expect(op, "output_size", size, (int, type(None)), "integers or None")
    return [own if size is None else size for size, own in zip(sizes, input.shape[-dims:])]


def adaptive_avg_pool2d(input: Tensor, output_size: Sizes) -> Tensor:
    """Returns averages of ``input`` [N, C, H, W] or [C, H, W] over as many windows as ``output_size`` says.

    Args:
        output_size: an integer, or two; None keeps the input's size.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_avg_pool2d(vesta.ones(1, 8, 7, 5), (None, 1)).shape
        vesta.Size([1, 8, 7, 1])
    """
    return ops.adaptive_avg_pool2d(input, _filled("adaptive_avg_pool2d", input, output_size, 2))


def adaptive_avg_pool3d(input: Tensor, output_size: Sizes) -> Tensor:
    """``adaptive_avg_pool2d`` for ``input`` [N, C, D, H, W] or [C, D, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_avg_pool3d(vesta.ones(1, 2, 2, 2), 1)
        tensor([[[[1.]]]])
    """
    return ops.adaptive_avg_pool3d(input, _filled("adaptive_avg_pool3d", input, output_size, 3))


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool1d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_max_pool1d_with_indices(vesta.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
        (tensor([[3., 4.]]), tensor([[1, 3]]))
    """
    return ops.adaptive_max_pool1d(input, _filled("adaptive_max_pool1d", input, output_size, 1))


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool2d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_max_pool2d_with_indices(vesta.arange(4.0).view(1, 2, 2), 1)
        (tensor([[[3.]]]), tensor([[[3]]]))
    """
    return ops.adaptive_max_pool2d(input, _filled("adaptive_max_pool2d", input, output_size, 2))


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Sizes, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """``adaptive_max_pool3d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_max_pool3d_with_indices(vesta.arange(8.0).view(1, 2, 2, 2), 1)[1]
        tensor([[[[7]]]])
    """
    return ops.adaptive_max_pool3d(input, _filled("adaptive_max_pool3d", input, output_size, 3))


@overload
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: Sizes, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool1d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """Returns maxima of ``input`` [N, C, L] or [C, L] over ``output_size`` windows, and their places if requested.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_max_pool1d(vesta.tensor([[[1.0, 3.0, 2.0, 0.0]]]), 2)
        tensor([[[3., 2.]]])
    """
    found = adaptive_max_pool1d_with_indices(input, output_size)
    return found if return_indices else found[0]


@overload
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: Sizes, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool2d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """``adaptive_max_pool1d`` for ``input`` [N, C, H, W] or [C, H, W]; None in ``output_size`` keeps a size.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_max_pool2d(vesta.arange(4.0).view(1, 2, 2), 1)
        tensor([[[3.]]])
    """
    found = adaptive_max_pool2d_with_indices(input, output_size)
    return found if return_indices else found[0]


@overload
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: Literal[False] = False) -> Tensor: ...
@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: Sizes, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]: ...
def adaptive_max_pool3d(input: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """``adaptive_max_pool1d`` for ``input`` [N, C, D, H, W] or [C, D, H, W]; None in ``output_size`` keeps a size.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.adaptive_max_pool3d(vesta.arange(8.0).view(1, 2, 2, 2), 1)
        tensor([[[[7.]]]])
    """
    found = adaptive_max_pool3d_with_indices(input, output_size)
    return found if return_indices else found[0]


# ---- random windows ----


def _each(op: str, name: str, value: Any, count: int, kind: Any) -> tuple[Any, ...]:
    """Converts a number, or one for each dimension, to a tuple."""
    value = python_numbers(value)
    expect(op, name, value, (int, float, tuple, list), "a number, or one for each dimension")
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,) * count
    for entry in values:
        expect(op, name, entry, kind, "a number, or one for each dimension")
    if len(values) != count:
        raise ValueError(f"{op}: expected one number or {count}, got {len(values)} ({name}).")
    return values


def _fractional(
    input: Tensor, dims: int, kernel_size: Ints, output_size: Ints, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    op = f"fractional_max_pool{dims}d"
    expect(op, "input", input, Tensor, "Tensor")
    if output_size is None and output_ratio is None:
        raise ValueError(f"{op} requires specifying either an output_size or an output_ratio")
    if input.dim() not in (dims + 1, dims + 2):
        raise ValueError(f"{op}: expected an input of {dims + 1} or {dims + 2} dimensions, got {input.dim()} (input).")
    sizes = input.shape[-dims:]
    if output_size is None:
        ratios = _each(op, "output_ratio", output_ratio, dims, (int, float))
        output_size = [int(size * ratio) for size, ratio in zip(sizes, ratios)]
    outputs = _each(op, "output_size", output_size, dims, int)
    kernels = _each(op, "kernel_size", kernel_size, dims, int)
    expect(op, "_random_samples", samples, (Tensor, type(None)), "Tensor or None")
    batched = input if input.dim() == dims + 2 else input.unsqueeze(0)
    if samples is None:
        samples = vesta.rand(*batched.shape[:2], dims, dtype=input.dtype, device=input.device)
    values, indices = vesta._C._private._fractional_max_pool(batched, samples, outputs, kernels)
    if input.dim() == dims + 1:
        return values.squeeze(0), indices.squeeze(0)
    return values, indices


def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``fractional_max_pool2d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.fractional_max_pool2d_with_indices(vesta.rand(1, 5, 5), 2, 2)[1].shape
        vesta.Size([1, 2, 2])
    """
    return _fractional(input, 2, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """``fractional_max_pool3d`` with ``return_indices=True``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.fractional_max_pool3d_with_indices(vesta.rand(1, 5, 5, 5), 2, 2)[1].shape
        vesta.Size([1, 2, 2, 2])
    """
    return _fractional(input, 3, kernel_size, output_size, output_ratio, _random_samples)


@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor: ...
@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """Returns maxima of windows whose steps are drawn at random, for ``input`` [N, C, H, W] or [C, H, W].

    Graham, "Fractional max-pooling", 2014.

    Args:
        kernel_size: size of the windows.
        output_size: an integer or two; or give ``output_ratio``, fractions of the input's size.
        return_indices: also return the place in H * W of each maximum.
        _random_samples: [N, C, 2], the numbers of [0, 1) to use.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.fractional_max_pool2d(vesta.ones(1, 2, 9, 8), 3, output_size=(4, 3)).shape
        vesta.Size([1, 2, 4, 3])
    """
    found = _fractional(input, 2, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor: ...
@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]: ...
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: Floats | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Any:
    """``fractional_max_pool2d`` for ``input`` [N, C, D, H, W] or [C, D, H, W]; ``_random_samples`` is [N, C, 3].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.fractional_max_pool3d(vesta.rand(1, 5, 5, 5), 2, 2).shape
        vesta.Size([1, 2, 2, 2])
    """
    found = _fractional(input, 3, kernel_size, output_size, output_ratio, _random_samples)
    return found if return_indices else found[0]


# ---- the way back ----


def _unpool(
    input: Tensor, dims: int, indices: Tensor, kernel_size: Ints, stride: Any, padding: Any, output_size: Ints
) -> Tensor:
    op = f"max_unpool{dims}d"
    expect(op, "input", input, Tensor, "Tensor")
    expect(op, "indices", indices, Tensor, "Tensor")

    kernels = _each(op, "kernel_size", kernel_size, dims, int)
    paddings = _each(op, "padding", padding, dims, int)
    strides = kernels if stride is None else _each(op, "stride", stride, dims, int)
    if min(strides) < 1:
        raise RuntimeError(f"{op}: strides should be greater than zero, but got stride: {strides}")
    steps = zip(input.shape[-dims:], kernels, strides, paddings)
    smallest = [(size - 1) * step + kernel - 2 * pad for size, kernel, step, pad in steps]
    sizes = smallest if output_size is None else _unpooled_size(op, output_size, smallest, strides, dims)
    return _scattered(op, input, indices, sizes, dims)


def _unpooled_size(op: str, output_size: Sequence[int], default: list[int], strides: Any, dims: int) -> list[int]:
    """Returns the sizes of an ``output_size`` that may name the batch too, each within a stride of the smallest."""
    expect(op, "output_size", output_size, (tuple, list), "a list of integers")
    sizes = [python_number(size) for size in output_size]
    sizes = sizes[-dims:] if len(sizes) == dims + 2 else sizes
    if len(sizes) != dims:
        raise ValueError(
            f"output_size should be a sequence containing {dims} or {dims + 2} elements, but it has a length of "
            f"'{len(sizes)}'"
        )
    for i, (size, least, step) in enumerate(zip(sizes, default, strides)):
        expect(op, "output_size", size, int, "a list of integers")
        if not least - step < size < least + step:
            raise ValueError(
                f"invalid output_size {sizes!r} (dim {i} must be between {least - step} and {least + step})"
            )
    return sizes


def _scattered(op: str, input: Tensor, indices: Tensor, sizes: list[int], dims: int) -> Tensor:
    """Puts each value at its index of a plane of zeros of ``sizes``."""
    if indices.dtype != vesta.int64:
        raise RuntimeError(f"{op}: elements in indices should be int64, got {indices.dtype} (indices).")
    if indices.shape != input.shape:
        raise RuntimeError(
            f"{op}: expected indices of the input's shape {list(input.shape)}, got {list(indices.shape)} (indices)."
        )
    if input.dim() not in (dims + 1, dims + 2):
        raise ValueError(f"{op}: expected an input of {dims + 1} or {dims + 2} dimensions, got {input.dim()} (input).")
    plane = 1
    for size in sizes:
        plane *= size
    flat, places = input.flatten(0, -dims - 1).flatten(1), indices.flatten(0, -dims - 1).flatten(1)
    if places.numel() and not places.is_meta and not 0 <= int(places.min()) <= int(places.max()) < plane:
        raise RuntimeError(f"{op}: expected indices in [0, {plane}), got some outside (indices). Check output_size.")
    # Windows that overlap may name a place several times: all of them hold the same value.
    planes = vesta.zeros((flat.size(0), plane), dtype=input.dtype, device=input.device)
    lines = vesta.arange(flat.size(0), device=input.device).unsqueeze(1)
    result = planes.index_put((lines, places), flat).reshape(*input.shape[:-dims], *sizes)
    format = channels_last_of(input) if input.dim() == 4 else None
    return result.contiguous(memory_format=format) if format else result


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """Puts what ``max_pool1d`` found back at its place in zeros: ``input`` and ``indices`` [N, C, L] or [C, L].

    Args:
        kernel_size, stride, padding: those of the pooling.
        output_size: the size to restore, with or without batch and channels; several sizes give the same pooled one.

    Example::

        >>> import vesta
        >>> pooled, places = vesta.nn.functional.max_pool1d(vesta.tensor([[[1.0, 3.0]]]), 2, return_indices=True)
        >>> vesta.nn.functional.max_unpool1d(pooled, places, 2)
        tensor([[[0., 3.]]])
    """
    return _unpool(input, 1, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """``max_unpool1d`` for ``max_pool2d``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_unpool2d(vesta.tensor([[[3.0]]]), vesta.tensor([[[2]]]), 2)
        tensor([[[0., 0.],
                 [3., 0.]]])
    """
    return _unpool(input, 2, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Ints | None = None,
) -> Tensor:
    """``max_unpool1d`` for ``max_pool3d``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_unpool3d(vesta.tensor([[[[3.0]]]]), vesta.tensor([[[[7]]]]), 2).flatten()
        tensor([0., 0., 0., 0., 0., 0., 0., 3.])
    """
    return _unpool(input, 3, indices, kernel_size, stride, padding, output_size)
