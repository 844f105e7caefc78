"""Layers that multiply by a matrix, and the identity."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.lazy import LazyModuleMixin
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter, UninitializedParameter

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """The layer that returns its input; it accepts any arguments, to stand in for another layer.

    Example::

        >>> import vesta
        >>> vesta.nn.Identity(54, unused=True)(vesta.zeros(2))
        tensor([0., 0.])
    """

    @checked
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``."""
        return input


class Linear(Module):
    """The map input @ weight.T + bias on the last dimension.

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's last dimension.
        bias: whether there is a bias.

    Shapes: input [..., in_features], output [..., out_features], ``weight`` [out_features, in_features],
    ``bias`` [out_features]; both start uniform in [-k, k], k = 1 / sqrt(in_features).

    Example::

        >>> import vesta
        >>> vesta.nn.Linear(20, 30)(vesta.zeros(128, 20)).shape
        vesta.Size([128, 30])
    """

    in_features: int
    out_features: int
    weight: Parameter
    bias: Parameter | Any  # None without one

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(vesta.empty((out_features, in_features), device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(vesta.empty((out_features,), device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws weight and bias."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Returns input @ weight.T + bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class NonDynamicallyQuantizableLinear(Linear):
    """``Linear`` under the name that attention's output projection has in PyTorch's files."""


class Bilinear(Module):
    """The bilinear map y_o = x1' W_o x2 + b_o on the last dimensions.

    Args:
        in1_features, in2_features: sizes of the inputs' last dimensions, A and B.
        out_features: size of the output's last dimension, O.
        bias: whether there is a bias.

    Shapes: inputs [*, A] and [*, B], output [*, O], ``weight`` [O, A, B], ``bias`` [O]; both start uniform in [-k, k],
    k = 1 / sqrt(A).

    Example::

        >>> import vesta
        >>> vesta.nn.Bilinear(20, 30, 40)(vesta.zeros(128, 20), vesta.zeros(128, 30)).shape
        vesta.Size([128, 40])
    """

    weight: Parameter
    bias: Parameter | Any  # None without one

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        where = {"device": device, "dtype": dtype}
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(vesta.empty((out_features, in1_features, in2_features), **where))
        self.register_parameter("bias", Parameter(vesta.empty((out_features,), **where)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws weight and bias."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Returns the bilinear map of both inputs."""
        expect("Bilinear", "input1", input1, Tensor, "Tensor")
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """``Linear`` that takes ``in_features`` from its first input.

    Args:
        out_features: size of the output's last dimension.
        bias: whether there is a bias.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.LazyLinear(3)
        >>> layer(vesta.zeros(2, 5)).shape, layer.in_features
        (vesta.Size([2, 3]), 5)
    """

    cls_to_become = Linear

    @checked
    def __init__(
        self, out_features: int, bias: bool = True, device: Device | None = None, dtype: DType | None = None
    ) -> None:
        where = {"device": device, "dtype": dtype}
        super().__init__(0, 0, False, **where)
        self.weight = UninitializedParameter(**where)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(**where)

    def reset_parameters(self) -> None:
        """Redraws weight and bias, once they have shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:  # type: ignore[override]
        """Gives the parameters the shapes that ``input`` [..., in_features] wants."""
        expect("LazyLinear", "input", input, Tensor, "Tensor")
        if self.has_uninitialized_params():
            with vesta.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))  # type: ignore[attr-defined]
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))  # type: ignore[attr-defined]
                self.reset_parameters()
        if self.in_features == 0:  # the shapes came from a state_dict
            self.in_features = self.weight.shape[-1]
