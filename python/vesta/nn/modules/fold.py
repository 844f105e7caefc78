"""Windows of an image as columns, and back."""

from __future__ import annotations

from vesta import Tensor
from vesta._types import Ints
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored

__all__ = ["Fold", "Unfold"]


class Fold(FunctionLayer):
    """The sum of windows, given as columns, at their places in an image: the adjoint of ``Unfold``.

    Args:
        output_size: the image's size.
        kernel_size, dilation, padding, stride: of the windows: an integer, or one for rows and one for columns.

    Shapes: input [N, C * kH * kW, L] or [C * kH * kW, L] with L windows, output [N, C, H, W] or [C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.Fold((4, 5), (2, 2))(vesta.zeros(1, 3 * 2 * 2, 12)).shape
        vesta.Size([1, 3, 4, 5])
    """

    _text = (
        "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"
    )

    output_size: Ints
    kernel_size: Ints
    dilation: Ints
    padding: Ints
    stride: Ints

    @stored
    def __init__(
        self, output_size: Ints, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
    ) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the image."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(FunctionLayer):
    """The windows of an image as columns.

    Args:
        kernel_size, dilation, padding, stride: of the windows: an integer, or one for rows and one for columns.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C * kH * kW, L] or [C * kH * kW, L] with L windows.

    Example::

        >>> import vesta
        >>> vesta.nn.Unfold((2, 3))(vesta.zeros(2, 5, 3, 4)).shape
        vesta.Size([2, 30, 4])
    """

    _text = "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}"
    kernel_size: Ints
    dilation: Ints
    padding: Ints
    stride: Ints

    @stored
    def __init__(self, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the windows."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
