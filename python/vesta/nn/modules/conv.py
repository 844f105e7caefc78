"""Convolutions and their transposes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect, python_number
from vesta._types import Device, DType, Ints
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.lazy import LazyModuleMixin
from vesta.nn.modules.module import Module
from vesta.nn.modules.utils import _reverse_repeat_tuple, sizes
from vesta.nn.parameter import Parameter, UninitializedParameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """The common part of convolutions: sizes, parameters, text. A subclass says how many dimensions it has."""

    _dims: int
    weight: Parameter
    bias: Parameter | Any  # None without one

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._all_sides()
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        where = {"device": device, "dtype": dtype}
        self.weight = Parameter(vesta.empty((*channels, *kernel_size), **where))
        self.register_parameter("bias", Parameter(vesta.empty((out_channels,), **where)) if bias else None)
        self.reset_parameters()

    def _all_sides(self) -> list[int]:
        """Returns the padding of every side in the order of ``F.pad``: the last dimension first."""
        if not isinstance(self.padding, str):
            return list(_reverse_repeat_tuple(self.padding, 2))
        sides = [0] * (2 * len(self.kernel_size))
        if self.padding == "same":
            for i, (step, size) in enumerate(zip(reversed(self.dilation), reversed(self.kernel_size))):
                total = step * (size - 1)
                sides[2 * i] = total // 2
                sides[2 * i + 1] = total - total // 2
        return sides

    def reset_parameters(self) -> None:
        """Redraws weight and bias, uniformly from [-k, k] with k = 1 / sqrt(values that a sum of the weight takes)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in = self.weight.size(1) * math.prod(self.kernel_size)
        if self.bias is not None and fan_in:
            bound = 1 / math.sqrt(fan_in)
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments, without those at their defaults."""
        dims = len(self.kernel_size)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, default in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            if getattr(self, name) != (default,) * dims:
                text += f", {name}={getattr(self, name)}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")  # older pickles do not have it


class _Conv(_ConvNd):
    """A convolution of ``_dims`` dimensions."""

    @checked
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        op, dims = type(self).__name__, self._dims
        super().__init__(
            in_channels,
            out_channels,
            sizes(op, "kernel_size", kernel_size, dims),
            sizes(op, "stride", stride, dims, shared=True),
            padding if isinstance(padding, str) else sizes(op, "padding", padding, dims, shared=True),
            sizes(op, "dilation", dilation, dims, shared=True),
            False,
            (0,) * dims,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _padded(self, input: Tensor) -> Tensor:
        """Returns ``input`` with values of ``padding_mode`` around it."""
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution of ``_dims`` dimensions."""

    @checked
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        op, dims = type(self).__name__, self._dims
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {op}')
        super().__init__(
            in_channels,
            out_channels,
            sizes(op, "kernel_size", kernel_size, dims),
            sizes(op, "stride", stride, dims, shared=True),
            sizes(op, "padding", padding, dims, shared=True),
            sizes(op, "dilation", dilation, dims, shared=True),
            True,
            sizes(op, "output_padding", output_padding, dims, shared=True),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Ints | None,
        stride: tuple[int, ...] | None = None,
        padding: tuple[int, ...] | None = None,
        kernel_size: tuple[int, ...] | None = None,
        num_spatial_dims: int | None = None,
        dilation: tuple[int, ...] | None = None,
    ) -> tuple[int, ...]:
        """Returns the padding that gives ``output_size``, with or without batch and channels.

        Subclasses with a ``forward`` of their own call it with the layer's attributes, which it takes where not given.
        """
        op, dims = type(self).__name__, num_spatial_dims or self._dims
        stride, padding = stride or self.stride, padding or self.padding
        kernel_size, dilation = kernel_size or self.kernel_size, dilation or self.dilation
        stride, padding, dilation = (v * dims if len(v) == 1 else v for v in (stride, padding, dilation))
        expect(op, "input", input, Tensor, "Tensor")
        if output_size is None:
            return self.output_padding
        expect(op, "output_size", output_size, (tuple, list), "a list of integers")
        lead = input.dim() - dims
        wanted = list(output_size)[lead:] if len(output_size) == dims + lead else list(output_size)
        if len(wanted) != dims:
            raise ValueError(
                f"{op}: for {input.dim()}D input, output_size must have {dims} or {dims + lead} elements "
                f"(got {len(output_size)})"
            )
        result = []
        for i, size in enumerate(map(python_number, wanted)):
            expect(op, "output_size", size, int, "a list of integers")
            least = (input.size(i + lead) - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel_size[i] - 1) + 1
            if not least <= size < least + stride[i]:
                raise ValueError(
                    f"requested an output size of {list(output_size)}, but valid sizes of dimension {i} range from "
                    f"{least} to {least + stride[i] - 1} (for an input of {input.size()[lead:]})"
                )
            result.append(size - least)
        return tuple(result)


class Conv1d(_Conv):
    """1-d cross-correlation of sequences with learned kernels.

    Args:
        in_channels, out_channels: channels of input and output; both divisible by ``groups``.
        kernel_size, stride, dilation: an integer.
        padding: values added on each side (an integer), ``"valid"`` (none) or ``"same"`` (output as
            large as input).
        groups: the number of independent parts of the channels.
        bias: whether a value per channel is added.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Shapes: input [N, in_channels, L] or [in_channels, L], output [N, out_channels, L'] with sizes
    floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1), ``weight``
    [out_channels, in_channels / groups, k], ``bias`` [out_channels].

    Example::

        >>> import vesta
        >>> vesta.nn.Conv1d(16, 33, 3, stride=2)(vesta.zeros(20, 16, 50)).shape
        vesta.Size([20, 33, 24])
    """

    _dims = 1

    def forward(self, input: Tensor) -> Tensor:
        """Returns the convolution of ``input`` with ``weight``, plus ``bias``."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv1d(self._padded(input), weight, bias, self.stride, 0, self.dilation, self.groups)
        return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """2-d cross-correlation of images with learned kernels.

    Args:
        in_channels, out_channels: channels of input and output; both divisible by ``groups``.
        kernel_size, stride, dilation: an integer, or one for rows and one for columns.
        padding: values added on each side (an integer, or one for rows and one for columns), ``"valid"`` (none) or
            ``"same"`` (output as
            large as input).
        groups: the number of independent parts of the channels.
        bias: whether a value per channel is added.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Shapes: input [N, in_channels, H, W] or [in_channels, H, W], output [N, out_channels, H', W'] with sizes
    floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1), ``weight``
    [out_channels, in_channels / groups, kH, kW], ``bias`` [out_channels].

    Example::

        >>> import vesta
        >>> vesta.nn.Conv2d(16, 33, 3, stride=2)(vesta.zeros(20, 16, 50, 100)).shape
        vesta.Size([20, 33, 24, 49])
    """

    _dims = 2

    def forward(self, input: Tensor) -> Tensor:
        """Returns the convolution of ``input`` with ``weight``, plus ``bias``."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv2d(self._padded(input), weight, bias, self.stride, 0, self.dilation, self.groups)
        return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """3-d cross-correlation of volumes with learned kernels.

    Args:
        in_channels, out_channels: channels of input and output; both divisible by ``groups``.
        kernel_size, stride, dilation: an integer, or one for each of depth, rows and columns.
        padding: values added on each side (an integer, or one for each of depth, rows and columns), ``"valid"`` (none)
            or ``"same"`` (output as
            large as input).
        groups: the number of independent parts of the channels.
        bias: whether a value per channel is added.
        padding_mode: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Shapes: input [N, in_channels, D, H, W] or [in_channels, D, H, W], output [N, out_channels, D', H', W'] with sizes
    floor((size + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1), ``weight``
    [out_channels, in_channels / groups, kD, kH, kW], ``bias`` [out_channels].

    Example::

        >>> import vesta
        >>> vesta.nn.Conv3d(16, 33, 3, stride=2)(vesta.zeros(2, 16, 10, 12, 14)).shape
        vesta.Size([2, 33, 4, 5, 6])
    """

    _dims = 3

    def forward(self, input: Tensor) -> Tensor:
        """Returns the convolution of ``input`` with ``weight``, plus ``bias``."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            return F.conv3d(self._padded(input), weight, bias, self.stride, 0, self.dilation, self.groups)
        return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a 1-d convolution (its gradient as a layer): it enlarges sequences.

    Args:
        in_channels, out_channels: channels of input and output; both divisible by ``groups``.
        kernel_size, stride, dilation: those of the convolution: an integer.
        padding: dilation * (kernel_size - 1) - padding zeros are added on each side of the input.
        output_padding: what is added to one side of the output, since several sizes shrink to one.
        groups: the number of independent parts of the channels.
        bias: whether a value per channel is added.
        padding_mode: ``"zeros"``.

    Shapes: input [N, in_channels, L] or [in_channels, L], output [N, out_channels, L'] with sizes
    (size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1, ``weight``
    [in_channels, out_channels / groups, k], ``bias`` [out_channels].

    Example::

        >>> import vesta
        >>> vesta.nn.ConvTranspose1d(16, 33, 3, stride=2)(vesta.zeros(20, 16, 50)).shape
        vesta.Size([20, 33, 101])
    """

    _dims = 1

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        """Returns the transposed convolution, of ``output_size`` (with or without batch and channels) if given."""
        padding = self._output_padding(input, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation
        )


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a 2-d convolution (its gradient as a layer): it enlarges images.

    Args:
        in_channels, out_channels: channels of input and output; both divisible by ``groups``.
        kernel_size, stride, dilation: those of the convolution: an integer, or one for rows and one for columns.
        padding: dilation * (kernel_size - 1) - padding zeros are added on each side of the input.
        output_padding: what is added to one side of the output, since several sizes shrink to one.
        groups: the number of independent parts of the channels.
        bias: whether a value per channel is added.
        padding_mode: ``"zeros"``.

    Shapes: input [N, in_channels, H, W] or [in_channels, H, W], output [N, out_channels, H', W'] with sizes
    (size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1, ``weight``
    [in_channels, out_channels / groups, kH, kW], ``bias`` [out_channels].

    Example::

        >>> import vesta
        >>> vesta.nn.ConvTranspose2d(16, 33, 3, stride=2)(vesta.zeros(20, 16, 50, 100)).shape
        vesta.Size([20, 33, 101, 201])
    """

    _dims = 2

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        """Returns the transposed convolution, of ``output_size`` (with or without batch and channels) if given."""
        padding = self._output_padding(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation
        )


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a 3-d convolution (its gradient as a layer): it enlarges volumes.

    Args:
        in_channels, out_channels: channels of input and output; both divisible by ``groups``.
        kernel_size, stride, dilation: those of the convolution: an integer, or one for each of depth, rows and columns.
        padding: dilation * (kernel_size - 1) - padding zeros are added on each side of the input.
        output_padding: what is added to one side of the output, since several sizes shrink to one.
        groups: the number of independent parts of the channels.
        bias: whether a value per channel is added.
        padding_mode: ``"zeros"``.

    Shapes: input [N, in_channels, D, H, W] or [in_channels, D, H, W], output [N, out_channels, D', H', W'] with sizes
    (size - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1, ``weight``
    [in_channels, out_channels / groups, kD, kH, kW], ``bias`` [out_channels].

    Example::

        >>> import vesta
        >>> vesta.nn.ConvTranspose3d(16, 33, 3, stride=2)(vesta.zeros(2, 16, 10, 12, 14)).shape
        vesta.Size([2, 33, 21, 25, 29])
    """

    _dims = 3

    def forward(self, input: Tensor, output_size: Ints | None = None) -> Tensor:
        """Returns the transposed convolution, of ``output_size`` (with or without batch and channels) if given."""
        padding = self._output_padding(input, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation
        )


class _LazyConvXdMixin(LazyModuleMixin):
    """The common part of convolutions that take ``in_channels`` from their first input."""

    _dims: int
    in_channels: int
    out_channels: int
    kernel_size: tuple[int, ...]
    groups: int
    transposed: bool
    weight: UninitializedParameter
    bias: UninitializedParameter | Any

    def _without_shape(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Puts parameters without a shape in place of those of no channels."""
        if out_channels % self.groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Redraws weight and bias, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *rest: Any, **named: Any) -> None:
        """Gives the parameters the shapes that ``input`` [N, in_channels, ...] wants."""
        name = type(self).__name__
        expect(name, "input", input, Tensor, "Tensor")
        if self.has_uninitialized_params():
            batched = self._dims + 2
            if input.dim() not in (batched - 1, batched):
                raise RuntimeError(
                    f"Expected {batched - 1}D (unbatched) or {batched}D (batched) input to {name}, but got input of "
                    f"size: {input.shape}"
                )
            self.in_channels = input.shape[input.dim() - self._dims - 1]
            if self.in_channels % self.groups != 0:
                raise ValueError("in_channels must be divisible by groups")
            channels = (self.in_channels, self.out_channels // self.groups)
            if not self.transposed:
                channels = (self.out_channels, self.in_channels // self.groups)
            with vesta.no_grad():
                self.weight.materialize((*channels, *self.kernel_size))
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()
        if self.in_channels == 0:  # the shapes came from a state_dict
            self.in_channels = self.weight.shape[0] if self.transposed else self.weight.shape[1] * self.groups


class LazyConv1d(_LazyConvXdMixin, Conv1d):
    """``Conv1d`` that takes ``in_channels`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyConv1d(4, 3)
        >>> _ = layer(vesta.zeros(2, 5, 9))
        >>> layer.in_channels
        5
    """

    cls_to_become = Conv1d

    @checked
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        options = (kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        super().__init__(0, 0, *options)
        self._without_shape(out_channels, bias, device, dtype)


class LazyConv2d(_LazyConvXdMixin, Conv2d):
    """``Conv2d`` that takes ``in_channels`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyConv2d(4, 3)
        >>> _ = layer(vesta.zeros(2, 5, 9, 9))
        >>> layer.in_channels
        5
    """

    cls_to_become = Conv2d

    @checked
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        options = (kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        super().__init__(0, 0, *options)
        self._without_shape(out_channels, bias, device, dtype)


class LazyConv3d(_LazyConvXdMixin, Conv3d):
    """``Conv3d`` that takes ``in_channels`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyConv3d(4, 3)
        >>> _ = layer(vesta.zeros(2, 5, 9, 9, 9))
        >>> layer.in_channels
        5
    """

    cls_to_become = Conv3d

    @checked
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints | str = 0,
        dilation: Ints = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        options = (kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        super().__init__(0, 0, *options)
        self._without_shape(out_channels, bias, device, dtype)


class LazyConvTranspose1d(_LazyConvXdMixin, ConvTranspose1d):
    """``ConvTranspose1d`` that takes ``in_channels`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyConvTranspose1d(4, 3)
        >>> _ = layer(vesta.zeros(2, 5, 9))
        >>> layer.in_channels
        5
    """

    cls_to_become = ConvTranspose1d

    @checked
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        options = (kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        super().__init__(0, 0, *options)
        self._without_shape(out_channels, bias, device, dtype)


class LazyConvTranspose2d(_LazyConvXdMixin, ConvTranspose2d):
    """``ConvTranspose2d`` that takes ``in_channels`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyConvTranspose2d(4, 3)
        >>> _ = layer(vesta.zeros(2, 5, 9, 9))
        >>> layer.in_channels
        5
    """

    cls_to_become = ConvTranspose2d

    @checked
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        options = (kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        super().__init__(0, 0, *options)
        self._without_shape(out_channels, bias, device, dtype)


class LazyConvTranspose3d(_LazyConvXdMixin, ConvTranspose3d):
    """``ConvTranspose3d`` that takes ``in_channels`` from its first input; the other arguments are the same.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyConvTranspose3d(4, 3)
        >>> _ = layer(vesta.zeros(2, 5, 9, 9, 9))
        >>> layer.in_channels
        5
    """

    cls_to_become = ConvTranspose3d

    @checked
    def __init__(
        self,
        out_channels: int,
        kernel_size: Ints,
        stride: Ints = 1,
        padding: Ints = 0,
        output_padding: Ints = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Ints = 1,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        options = (kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype)
        super().__init__(0, 0, *options)
        self._without_shape(out_channels, bias, device, dtype)
