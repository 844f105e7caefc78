"""Resizing of images and other grids."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta._arguments import expect, python_numbers
from vesta._types import Floats, Ints
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(FunctionLayer):
    """A grid, resized.

    Args:
        size: the new size of each dimension; or give ``scale_factor``, a number or one for each dimension.
        mode: ``"nearest"``, ``"linear"`` (3-d inputs), ``"bilinear"``, ``"bicubic"`` (4-d), ``"trilinear"`` (5-d).
        align_corners: the corners of input and output have the same place (and not their outer edges).
        recompute_scale_factor: compute the scale anew from the rounded size.

    Shapes: input [N, C, L], [N, C, H, W] or [N, C, D, H, W], output of the same number of dimensions.

    Example::

        >>> import vesta
        >>> vesta.nn.Upsample(scale_factor=2)(vesta.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    size: Ints | None
    mode: str
    align_corners: bool | None
    recompute_scale_factor: bool | None

    @stored
    def __init__(
        self,
        size: Ints | None = None,
        scale_factor: Floats | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        self.name = type(self).__name__
        scale_factor = python_numbers(scale_factor)
        several = isinstance(scale_factor, (tuple, list))
        for factor in scale_factor if several else [0 if scale_factor is None else scale_factor]:
            expect(self.name, "scale_factor", factor, (int, float), "a number, or one for each dimension")
        if several:
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None

    def forward(self, input: Tensor) -> Tensor:
        """Returns the resized grid."""
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """Returns the size or the scale, and the mode."""
        which = "size" if self.scale_factor is None else "scale_factor"
        return f"{which}={getattr(self, which)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """An image resized by taking the nearest pixel; ``Upsample`` with ``mode="nearest"``.

    Args:
        size: (rows, columns), or one number for both; or give ``scale_factor``.

    Shapes: input [N, C, H, W], output [N, C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.UpsamplingNearest2d(scale_factor=2)(vesta.ones(1, 1, 2, 3)).shape
        vesta.Size([1, 1, 4, 6])
    """

    def __init__(self, size: Ints | None = None, scale_factor: Floats | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """An image resized linearly in both directions, with corners aligned.

    Args:
        size: (rows, columns), or one number for both; or give ``scale_factor``.

    Shapes: input [N, C, H, W], output [N, C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.UpsamplingBilinear2d(size=3)(vesta.tensor([[[[0.0, 2.0]]]]))[0, 0, 0]
        tensor([0., 1., 2.])
    """

    def __init__(self, size: Ints | None = None, scale_factor: Floats | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
