"""Activations: pointwise ones and softmax."""

from __future__ import annotations

from vesta import Tensor
from vesta._arguments import checked
from vesta.nn import functional as F
from vesta.nn.modules.module import Module

__all__ = ["GELU", "LeakyReLU", "LogSigmoid", "LogSoftmax", "ReLU", "Sigmoid", "Softmax", "Softplus", "Tanh"]


class ReLU(Module):
    """max(x, 0), elementwise; any shape.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.ReLU()(vesta.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    @checked
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Returns max(input, 0)."""
        return F.relu(input, self.inplace)

    def extra_repr(self) -> str:
        """Returns ``inplace`` if set."""
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """x where positive, ``negative_slope`` * x elsewhere; any shape.

    Args:
        negative_slope: the factor of negative values.
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.LeakyReLU(0.5)(vesta.tensor([-1.0, 2.0]))
        tensor([-0.5000,  2.0000])
    """

    @checked
    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` with its negative values scaled."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class GELU(Module):
    """x * P(X <= x) for a standard normal X, elementwise (Hendrycks and Gimpel, 2016); any shape.

    Args:
        approximate: ``"none"`` (by erf) or ``"tanh"``.

    Example::

        >>> import vesta
        >>> vesta.nn.GELU()(vesta.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8413])
    """

    @checked
    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Returns gelu(input)."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Returns the constructor's argument."""
        return f"approximate={self.approximate!r}"


class Tanh(Module):
    """Hyperbolic tangent, elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.Tanh()(vesta.zeros(2))
        tensor([0., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns tanh(input)."""
        return F.tanh(input)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.Sigmoid()(vesta.zeros(2))
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns sigmoid(input)."""
        return F.sigmoid(input)


class LogSigmoid(Module):
    """log(1 / (1 + exp(-x))), elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.LogSigmoid()(vesta.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns logsigmoid(input)."""
        return F.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, elementwise: a smooth max(x, 0); any shape.

    Args:
        beta: the sharpness of the bend.
        threshold: where beta * x is above it, the result is x itself.

    Example::

        >>> import vesta
        >>> vesta.nn.Softplus()(vesta.tensor([0.0, 30.0]))
        tensor([ 0.6931, 30.0000])
    """

    @checked
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Returns softplus(input)."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """exp(x) divided by its sum along ``dim``: positive values that sum to 1; any shape.

    Args:
        dim: the dimension of the sum.

    Example::

        >>> import vesta
        >>> vesta.nn.Softmax(dim=0)(vesta.zeros(4))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    @checked
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Returns softmax(input)."""
        return F.softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Returns the constructor's argument."""
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax along ``dim``; any shape.

    Args:
        dim: the dimension of the sum.

    Example::

        >>> import vesta
        >>> vesta.nn.LogSoftmax(dim=0)(vesta.zeros(2))
        tensor([-0.6931, -0.6931])
    """

    @checked
    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Returns log_softmax(input)."""
        return F.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        """Returns the constructor's argument."""
        return f"dim={self.dim}"
