"""Images and other grids: resizing, sampling at places, windows as columns."""

from __future__ import annotations

import math
import warnings
from typing import Any

from vesta import Tensor
from vesta._arguments import called, expect, python_number, python_numbers
from vesta._types import Floats, Ints

from .ops import ops

__all__ = [
    "affine_grid",
    "fold",
    "grid_sample",
    "interpolate",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

#: The number of dimensions that a mode wants; others take 3, 4 and 5.
_LINEAR = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
_MODES = ("nearest", "nearest-exact", "area", *_LINEAR)


def _for_each_dimension(name: str, value: Any, dims: int, input: Tensor) -> list[Any] | None:
    """Returns a size or a scale for each dimension."""
    if value is None:
        return None
    if not isinstance(value, (list, tuple)):
        value = [value] * dims
    value = [python_number(entry) for entry in value]
    if len(value) != dims:
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions "
            f"of {list(input.shape[2:])} and {name} of {tuple(value)}. Please provide input tensor in (N, C, d1, "
            f"d2, ...,dK) format and {name} in (d1, d2, ...,dK) format."
        )
    for entry in value:
        expect("interpolate", name, entry, (int, float), "a number, or one for each dimension")
    return value


def _check_mode(input: Tensor, mode: str, align_corners: bool | None, antialias: bool) -> None:
    if mode not in _MODES or not 3 <= input.dim() <= 5:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: "
            f"{' | '.join(_MODES)} (got {mode})"
        )
    if mode not in _LINEAR and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if mode in _LINEAR and input.dim() != _LINEAR[mode]:
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {_LINEAR[mode]}D input")
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )


def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Returns ``input`` [N, C, L], [N, C, H, W] or [N, C, D, H, W] with other sizes.

    Args:
        size: the new size, or one for each dimension; or give ``scale_factor``.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"area"``, ``"linear"`` (3-d input), ``"bilinear"``, ``"bicubic"``
            (4-d) or ``"trilinear"`` (5-d).
        align_corners: the corners of input and output have the same place (and not their outer edges).
        recompute_scale_factor: compute the scale anew from the rounded size.
        antialias: average over what a pixel of a smaller image covers (``"bilinear"`` and ``"bicubic"``).

    Raises:
        ValueError: both or none of ``size`` and ``scale_factor`` are given, or options do not fit the mode.
        NotImplementedError: the mode does not take as many dimensions.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([[[0.0, 2.0]]])
        >>> vesta.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
        tensor([[[0., 1., 2.]]])
    """
    expect("interpolate", "input", input, Tensor, "Tensor")
    _check_mode(input, mode, align_corners, antialias)
    dims = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    sizes = _for_each_dimension("output size", size, dims, input)
    scales = _for_each_dimension("scale_factor", scale_factor, dims, input)
    if sizes is None:
        sizes = [math.floor(float(own) * scale) for own, scale in zip(input.shape[2:], scales or ())]
        if recompute_scale_factor or mode == "area":
            scales = None
    if mode == "area":
        return getattr(ops, f"adaptive_avg_pool{dims}d")(input, sizes)
    padded = [None] * (3 - dims) + ([None] * dims if scales is None else [float(scale) for scale in scales])
    return ops._interpolate(input, sizes, mode, bool(align_corners), antialias, *padded)


def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: Floats | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Does the same as ``interpolate``, under its old name; warns.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.upsample(vesta.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Ints | None = None, scale_factor: Floats | None = None) -> Tensor:
    """``interpolate`` with ``mode="nearest"``, under its old name; warns.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.upsample_nearest(vesta.tensor([[[[1.0, 2.0]]]]), scale_factor=2)
        tensor([[[[1., 1., 2., 2.],
                  [1., 1., 2., 2.]]]])
    """
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Ints | None = None, scale_factor: Floats | None = None) -> Tensor:
    """``interpolate`` with ``mode="bilinear"`` and aligned corners, under its old name; warns.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.upsample_bilinear(vesta.ones(1, 1, 2, 2), scale_factor=2).shape
        vesta.Size([1, 1, 4, 4])
    """
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_UNALIGNED = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired."
)


def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Returns the values of ``input`` [N, C, H, W] (or [N, C, D, H, W]) at the places ``grid`` [N, H', W', 2] (.., 3).

    Jaderberg et al., "Spatial transformer networks", 2015.

    Args:
        grid: places (x, y) or (x, y, z), of [-1, 1] from edge to edge.
        mode: ``"bilinear"``, ``"nearest"`` or, for images, ``"bicubic"``.
        padding_mode: what is outside: ``"zeros"``, ``"border"`` or ``"reflection"``.
        align_corners: -1 and 1 are the centres of the corner pixels, not their outer edges.

    Example::

        >>> import vesta
        >>> image = vesta.tensor([[[[0.0, 2.0]]]])
        >>> vesta.nn.functional.grid_sample(image, vesta.zeros(1, 1, 1, 2), align_corners=True)
        tensor([[[[1.]]]])
    """
    expect("grid_sample", "input", input, Tensor, "Tensor")
    expect("grid_sample", "grid", grid, Tensor, "Tensor")
    modes, paddings = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    if mode not in modes:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in paddings:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(_UNALIGNED, stacklevel=2)
        align_corners = False
    expect("grid_sample", "align_corners", align_corners, bool, "bool or None")
    return ops.grid_sampler(input, grid, modes.index(mode), paddings.index(padding_mode), align_corners)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """Returns the places [N, H, W, 2] that the affine maps ``theta`` [N, 2, 3] give to the pixels of [N, C, H, W].

    Args:
        theta: [N, 2, 3], or [N, 3, 4] for volumes.
        size: the size of the output of ``grid_sample``, [N, C, H, W] or [N, C, D, H, W].
        align_corners: as for ``grid_sample``.

    Example::

        >>> import vesta
        >>> theta = vesta.eye(2, 3).unsqueeze(0)
        >>> vesta.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=False)[0, 0]
        tensor([[-0.5000,  0.0000],
                [ 0.5000,  0.0000]])
    """
    expect("affine_grid", "theta", theta, Tensor, "Tensor")
    size = python_numbers(size)
    expect("affine_grid", "size", size, (tuple, list), "a list of integers")
    if align_corners is None:
        warnings.warn(_UNALIGNED, stacklevel=2)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    for entry in size:
        expect("affine_grid", "size", entry, int, "a list of integers")
    dims = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size {size}. Got "
            f"{theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return ops.affine_grid_generator(theta, list(size), bool(align_corners))


def unfold(input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> Tensor:
    """Returns the windows of ``input`` [N, C, H, W] or [C, H, W] as columns [N, C * kH * kW, L] or [C * kH * kW, L].

    Args:
        kernel_size, dilation, padding, stride: of the windows: an integer, or one for rows and one for columns.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.unfold(vesta.arange(4.0).view(1, 1, 2, 2), (1, 2))
        tensor([[[0., 2.],
                 [1., 3.]]])
    """
    expect("unfold", "input", input, Tensor, "Tensor")
    values = (kernel_size, dilation, padding, stride)
    return called("unfold", ops.im2col, input, *(_pair("unfold", value) for value in values))


def fold(
    input: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Returns the image that sums windows, columns of ``input`` [N, C * kH * kW, L] or [C * kH * kW, L], at their
    places.

    Args:
        output_size: (H, W).
        kernel_size, dilation, padding, stride: of the windows: an integer, or one for rows and one for columns.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.fold(vesta.ones(1, 2, 2), (1, 3), (1, 2))
        tensor([[[[1., 2., 1.]]]])
    """
    expect("fold", "input", input, Tensor, "Tensor")
    values = (output_size, kernel_size, dilation, padding, stride)
    return called("fold", ops.col2im, input, *(_pair("fold", value) for value in values))


def _pair(op: str, value: Any) -> list[int]:
    value = python_numbers(value)
    expect(op, "sizes", value, (int, tuple, list), "an integer or two of them")
    return [value, value] if isinstance(value, int) else list(value)
