"""Normalisations of one example: over layers, over groups of channels, over neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.function_layer import FunctionLayer, stored
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LayerNorm(Module):
    """The layer that brings the last dimensions to mean 0 and variance 1: (x - mean) / sqrt(var + eps) * weight + bias.

    Ba et al., "Layer normalization", 2016.

    Args:
        normalized_shape: the last dimensions, as a size or several.
        eps: added to the variance.
        elementwise_affine: whether there are ``weight`` and ``bias`` of ``normalized_shape``.
        bias: whether there is a ``bias`` if ``elementwise_affine``.

    Shapes: input and output [*, *normalized_shape].

    Example::

        >>> import vesta
        >>> vesta.nn.LayerNorm(10)(vesta.randn(20, 5, 10)).shape
        vesta.Size([20, 5, 10])
    """

    normalized_shape: tuple[int, ...]
    weight: Parameter | Any  # None without them
    bias: Parameter | Any

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)
        )
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        with_bias = elementwise_affine and bias
        shape = self.normalized_shape
        self.register_parameter("weight", Parameter(vesta.empty(shape, **where)) if elementwise_affine else None)
        self.register_parameter("bias", Parameter(vesta.empty(shape, **where)) if with_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """The layer that divides the last dimensions by the root of their mean square: x / sqrt(mean(x ** 2) + eps) *
    weight.

    Zhang and Sennrich, "Root mean square layer normalization", 2019.

    Args:
        normalized_shape: the last dimensions, as a size or several.
        eps: added to the mean square; default: float32's spacing of numbers at 1, for float64 its own.
        elementwise_affine: whether there is a ``weight`` of ``normalized_shape``.

    Shapes: input and output [*, *normalized_shape].

    Example::

        >>> import vesta
        >>> vesta.nn.RMSNorm(2)(vesta.tensor([1.0, 7.0]))
        tensor([0.2000, 1.4000], grad_fn=<MulBackward0>)
    """

    normalized_shape: tuple[int, ...]
    weight: Parameter | Any  # None without one

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, Integral) else tuple(normalized_shape)
        )
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = (
            Parameter(vesta.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        )
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """The layer that brings each group of channels to mean 0 and variance 1: (x - mean) / sqrt(var + eps) * weight +
    bias.

    Wu and He, "Group normalization", 2018.

    Args:
        num_groups: the number of groups, a divisor of ``num_channels``.
        num_channels: C.
        eps: added to the variance.
        affine: whether there are ``weight`` and ``bias`` [C].
        bias: whether there is a ``bias`` if ``affine``.

    Shapes: input and output [N, C, *].

    Example::

        >>> import vesta
        >>> vesta.nn.GroupNorm(3, 6)(vesta.randn(20, 6, 10, 10)).shape
        vesta.Size([20, 6, 10, 10])
    """

    weight: Parameter | Any  # None without them
    bias: Parameter | Any

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_groups <= 0 or num_channels % num_groups != 0:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        where = {"device": device, "dtype": dtype}
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", Parameter(vesta.empty((num_channels,), **where)) if affine else None)
        self.register_parameter("bias", Parameter(vesta.empty((num_channels,), **where)) if affine and bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets weight 1, bias 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class LocalResponseNorm(FunctionLayer):
    """x / (k + alpha * mean of x ** 2 over ``size`` neighbouring channels) ** beta.

    Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012.

    Args:
        size: the number of neighbouring channels, the own one in the middle.
        alpha, beta, k: see above.

    Shapes: input and output [N, C, *].

    Example::

        >>> import vesta
        >>> vesta.nn.LocalResponseNorm(2)(vesta.ones(32, 5, 24, 24)).shape
        vesta.Size([32, 5, 24, 24])
    """

    _text = "{size}, alpha={alpha}, beta={beta}, k={k}"
    size: int
    alpha: float
    beta: float
    k: float

    @stored
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(FunctionLayer):
    """``LocalResponseNorm`` for images, as in Torch 7: the window of channel c is [c - (size - 1) / 2, c + (size - 1)
    / 2].

    Args:
        size: the number of neighbouring channels.
        alpha, beta, k: as for ``LocalResponseNorm``.

    Shapes: input and output [N, C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(vesta.ones(1, 3, 1, 1)).flatten().tolist()
        [0.3333333432674408, 0.25, 0.3333333432674408]
    """

    _text = "{size}, alpha={alpha}, beta={beta}, k={k}"
    size: int
    alpha: float
    beta: float
    k: float

    @stored
    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the normalised input."""
        expect("CrossMapLRN2d", "input", input, Tensor, "Tensor")
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        channels, reach = input.size(1), (self.size - 1) // 2 + 1
        square = input * input
        total = square
        for shift in range(1, min(reach, channels)):  # windows end at the first and the last channel
            zeros = vesta.zeros_like(square[:, :shift])
            total = total + vesta.cat([square[:, shift:], zeros], 1) + vesta.cat([zeros, square[:, :-shift]], 1)
        return input * (total * (self.alpha / self.size) + self.k) ** -self.beta
