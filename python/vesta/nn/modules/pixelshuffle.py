"""Channels turned into pixels and back."""

from __future__ import annotations

from vesta import Tensor
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored

__all__ = ["PixelShuffle", "PixelUnshuffle"]


class PixelShuffle(FunctionLayer):
    """Channels turned into a finer grid: [*, C * r ** 2, H, W] to [*, C, H * r, W * r].

    Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel convolutional neural
    network", 2016.

    Args:
        upscale_factor: r.

    Example::

        >>> import vesta
        >>> vesta.nn.PixelShuffle(3)(vesta.zeros(1, 9, 4, 4)).shape
        vesta.Size([1, 1, 12, 12])
    """

    _text = "upscale_factor={upscale_factor}"
    upscale_factor: int

    @stored
    def __init__(self, upscale_factor: int) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the finer grid."""
        return F.pixel_shuffle(input, self.upscale_factor)


class PixelUnshuffle(FunctionLayer):
    """A grid turned into channels of a coarser one: [*, C, H * r, W * r] to [*, C * r ** 2, H, W].

    Args:
        downscale_factor: r.

    Example::

        >>> import vesta
        >>> vesta.nn.PixelUnshuffle(3)(vesta.zeros(1, 1, 12, 12)).shape
        vesta.Size([1, 9, 4, 4])
    """

    _text = "downscale_factor={downscale_factor}"
    downscale_factor: int

    @stored
    def __init__(self, downscale_factor: int) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the coarser grid."""
        return F.pixel_unshuffle(input, self.downscale_factor)
