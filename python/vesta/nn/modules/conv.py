"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["Conv2d"]


def _pair(value: Any, name: str) -> tuple[int, int]:
    """Converts one or two integers to two."""
    expect("Conv2d", name, value, (int, tuple, list), "an integer or two of them")
    pair = (value, value) if isinstance(value, int) else tuple(value)
    if len(pair) != 2 or not all(isinstance(size, int) for size in pair):
        raise ValueError(f"Conv2d: expected an integer or two of them, got {value!r} ({name}). Give rows and columns.")
    return pair


class Conv2d(Module):
    """2-d cross-correlation of images with learned kernels.

    Args:
        in_channels, out_channels: channels of input and output; both divisible by ``groups``.
        kernel_size, stride, dilation: an integer, or one for rows and one for columns.
        padding: zeros on each side (an integer or two), ``"valid"`` (none) or ``"same"`` (output as large as input).
        groups: the number of independent parts of the channels.
        bias: whether a value per channel is added.
        padding_mode: ``"zeros"``.

    Shapes: input [N, in_channels, H, W], output [N, out_channels, H', W'] with H' = floor((H + 2 * padding - dilation *
    (kernel_size - 1) - 1) / stride + 1), ``weight`` [out_channels, in_channels / groups, kH, kW], ``bias``
    [out_channels].

    Example::

        >>> import vesta
        >>> vesta.nn.Conv2d(16, 33, 3, stride=2)(vesta.zeros(20, 16, 50, 100)).shape
        vesta.Size([20, 33, 24, 49])
    """

    weight: Parameter
    bias: Parameter | None

    @checked
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode != "zeros":
            raise ValueError(f"padding_mode must be one of {{'zeros'}}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = _pair(kernel_size, "kernel_size")
        self.stride = _pair(stride, "stride")
        self.dilation = _pair(dilation, "dilation")
        self.groups = groups
        self.padding_mode = padding_mode
        self.padding = self._checked_padding(padding)
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(vesta.empty(shape, device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(vesta.empty((out_channels,), device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def _checked_padding(self, padding: Any) -> Any:
        if not isinstance(padding, str):
            return _pair(padding, "padding")
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
        if padding == "same" and self.stride != (1, 1):
            raise ValueError("padding='same' is not supported for strided convolutions")
        return padding

    def reset_parameters(self) -> None:
        """Redraws weight and bias, uniformly from [-k, k], k = sqrt(groups / (in_channels * kH * kW))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = self.weight[0].numel() if self.out_channels else 0
        if self.bias is not None and fan_in:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the convolution of ``input`` with ``weight``, plus ``bias``."""
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments, without those at their defaults."""
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0, 0):
            text += f", padding={self.padding}"
        if self.dilation != (1, 1):
            text += f", dilation={self.dilation}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text
