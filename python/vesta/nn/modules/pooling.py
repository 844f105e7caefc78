"""Pooling."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta._arguments import checked
from vesta.nn import functional as F
from vesta.nn.modules.module import Module

__all__ = ["MaxPool2d"]


class MaxPool2d(Module):
    """The maximum of each window.

    Args:
        kernel_size, padding, dilation: an integer, or one for rows and one for columns.
        stride: the step between windows; default: ``kernel_size``.
        return_indices: also return where each maximum was, as an index into H * W.
        ceil_mode: allow the last window to reach over the edge.

    Shapes: input [N, C, H, W], output [N, C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.MaxPool2d(3, stride=2)(vesta.zeros(20, 16, 50, 32)).shape
        vesta.Size([20, 16, 24, 15])
    """

    @checked
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Returns the maxima, with their places if requested."""
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )
