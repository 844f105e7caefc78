"""Layer normalization."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["LayerNorm"]


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

    @checked
    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
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
