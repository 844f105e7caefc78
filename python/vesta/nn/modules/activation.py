"""Activations: pointwise ones, and softmax with its relatives."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect, python_number
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.attention import MultiheadAttention
from vesta.nn.modules.function_layer import FunctionLayer, stored
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "MultiheadAttention",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SELU",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class ReLU(FunctionLayer):
    """max(x, 0), elementwise; any shape.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.ReLU()(vesta.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    _text = "{inplace_text}"
    inplace: bool

    @stored
    def __init__(self, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.relu(input, self.inplace)


class RReLU(FunctionLayer):
    """x where positive, elsewhere x times a slope: in training drawn from [lower, upper], else their mean; any shape.

    Xu et al., "Empirical evaluation of rectified activations in convolutional network", 2015.

    Args:
        lower, upper: ends of the interval of slopes.
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.RReLU(0.25, 0.75).eval()(vesta.tensor([-1.0, 2.0]))
        tensor([-0.5000,  2.0000])
    """

    _text = "lower={lower}, upper={upper}{inplace_text}"
    lower: float
    upper: float
    inplace: bool

    @stored
    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class Hardtanh(FunctionLayer):
    """x clamped to [min_val, max_val], elementwise; any shape.

    Args:
        min_val, max_val: ends of the interval.
        inplace: write the result into the input.
        min_value, max_value: old names of them; they warn.

    Example::

        >>> import vesta
        >>> vesta.nn.Hardtanh()(vesta.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """

    _text = "min_val={min_val}, max_val={max_val}{inplace_text}"
    inplace: bool
    min_value: float | None
    max_value: float | None

    @stored
    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        for old, new, value in (("min_value", "min_val", min_value), ("max_value", "max_val", max_value)):
            if value is not None:
                warnings.warn(
                    f"keyword argument `{old}` is deprecated and rename to `{new}`", FutureWarning, stacklevel=3
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val must be larger than min_val, got min_val={self.min_val} and max_val={self.max_val}"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """min(max(x, 0), 6), elementwise; any shape.

    Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.ReLU6()(vesta.tensor([-1.0, 2.0, 7.0]))
        tensor([0., 2., 6.])
    """

    _text = "{inplace_text}"

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class ELU(FunctionLayer):
    """x where positive, alpha * (exp(x) - 1) elsewhere; any shape.

    Clevert et al., "Fast and accurate deep network learning by exponential linear units (ELUs)", 2016.

    Args:
        alpha: minus the limit at minus infinity.
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.ELU()(vesta.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """

    _text = "alpha={alpha}{inplace_text}"
    alpha: float
    inplace: bool

    @stored
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(FunctionLayer):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)); any shape.

    Barron, "Continuously differentiable exponential linear units", 2017.

    Args:
        alpha: minus the limit at minus infinity.
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.CELU(2.0)(vesta.tensor([-2.0, 1.0]))
        tensor([-1.2642,  1.0000])
    """

    _text = "alpha={alpha}{inplace_text}"
    alpha: float
    inplace: bool

    @stored
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.celu(input, self.alpha, self.inplace)


class SELU(FunctionLayer):
    """1.0507 * elu(x, 1.6733), which keeps mean 0 and variance 1 from layer to layer; any shape.

    Klambauer et al., "Self-normalizing neural networks", 2017.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.SELU()(vesta.tensor([1.0]))
        tensor([1.0507])
    """

    _text = "{inplace_text}"
    inplace: bool

    @stored
    def __init__(self, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.selu(input, self.inplace)


class SiLU(FunctionLayer):
    """x * sigmoid(x), also called swish (Elfwing et al., 2017); any shape.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.SiLU()(vesta.tensor([1.0]))
        tensor([0.7311])
    """

    _text = "{inplace_text}"
    inplace: bool

    @stored
    def __init__(self, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.silu(input, self.inplace)


class Mish(FunctionLayer):
    """x * tanh(log(1 + exp(x))) (Misra, 2019); any shape.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Mish()(vesta.tensor([1.0]))
        tensor([0.8651])
    """

    _text = "{inplace_text}"
    inplace: bool

    @stored
    def __init__(self, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.mish(input, self.inplace)


class Hardswish(FunctionLayer):
    """x * min(max(x + 3, 0), 6) / 6; any shape.

    Howard et al., "Searching for MobileNetV3", 2019.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Hardswish()(vesta.tensor([3.0]))
        tensor([3.])
    """

    inplace: bool

    @stored
    def __init__(self, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.hardswish(input, self.inplace)


class Hardsigmoid(FunctionLayer):
    """min(max(x + 3, 0), 6) / 6; any shape.

    Args:
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Hardsigmoid()(vesta.tensor([-3.0, 0.0]))
        tensor([0.0000, 0.5000])
    """

    inplace: bool

    @stored
    def __init__(self, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.hardsigmoid(input, self.inplace)


class LeakyReLU(FunctionLayer):
    """x where positive, ``negative_slope`` * x elsewhere; any shape.

    Args:
        negative_slope: the factor of negative values.
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.LeakyReLU(0.5)(vesta.tensor([-1.0, 2.0]))
        tensor([-0.5000,  2.0000])
    """

    _text = "negative_slope={negative_slope}{inplace_text}"
    negative_slope: float
    inplace: bool

    @stored
    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class Threshold(FunctionLayer):
    """x where greater than ``threshold``, ``value`` elsewhere; any shape.

    Args:
        threshold: what x is compared with.
        value: what replaces it.
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Threshold(1.0, 20.0)(vesta.tensor([0.5, 2.0]))
        tensor([20.,  2.])
    """

    _text = "threshold={threshold}, value={value}{inplace_text}"
    threshold: float
    value: float
    inplace: bool

    @stored
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


class GELU(FunctionLayer):
    """x * P(X <= x) for a standard normal X, elementwise (Hendrycks and Gimpel, 2016); any shape.

    Args:
        approximate: ``"none"`` (by erf) or ``"tanh"``.

    Example::

        >>> import vesta
        >>> vesta.nn.GELU()(vesta.tensor([0.0, 1.0]))
        tensor([0.0000, 0.8413])
    """

    _text = "approximate={approximate!r}"
    approximate: str

    @stored
    def __init__(self, approximate: str = "none") -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.gelu(input, approximate=self.approximate)


class Tanh(FunctionLayer):
    """Hyperbolic tangent, elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.Tanh()(vesta.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return vesta.tanh(input)


class Sigmoid(FunctionLayer):
    """1 / (1 + exp(-x)), elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.Sigmoid()(vesta.tensor([0.0, 1.0]))
        tensor([0.5000, 0.7311])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return vesta.sigmoid(input)


class LogSigmoid(FunctionLayer):
    """log(1 / (1 + exp(-x))), elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.LogSigmoid()(vesta.tensor([0.0]))
        tensor([-0.6931])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.logsigmoid(input)


class Softplus(FunctionLayer):
    """log(1 + exp(beta * x)) / beta, elementwise; x itself where beta * x is greater than ``threshold``. Any shape.

    Args:
        beta: sharpness of the bend.
        threshold: where it is a line.

    Example::

        >>> import vesta
        >>> vesta.nn.Softplus()(vesta.tensor([0.0]))
        tensor([0.6931])
    """

    _text = "beta={beta}, threshold={threshold}"
    beta: float
    threshold: float

    @stored
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.softplus(input, self.beta, self.threshold)


class Softsign(FunctionLayer):
    """x / (1 + |x|), elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.Softsign()(vesta.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.softsign(input)


class Tanhshrink(FunctionLayer):
    """x - tanh(x), elementwise; any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.Tanhshrink()(vesta.tensor([1.0]))
        tensor([0.2384])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.tanhshrink(input)


class Hardshrink(FunctionLayer):
    """x where |x| is greater than ``lambd``, else 0; any shape.

    Args:
        lambd: half the width of the zeros.

    Example::

        >>> import vesta
        >>> vesta.nn.Hardshrink()(vesta.tensor([-1.0, 0.5]))
        tensor([-1.,  0.])
    """

    _text = "{lambd}"
    lambd: float

    @stored
    def __init__(self, lambd: float = 0.5) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.hardshrink(input, self.lambd)


class Softshrink(FunctionLayer):
    """x - lambd where x > lambd, x + lambd where x < -lambd, else 0; any shape.

    Args:
        lambd: half the width of the zeros, not negative.

    Example::

        >>> import vesta
        >>> vesta.nn.Softshrink()(vesta.tensor([-1.0, 0.5]))
        tensor([-0.5000,  0.0000])
    """

    _text = "{lambd}"
    lambd: float

    @stored
    def __init__(self, lambd: float = 0.5) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.softshrink(input, self.lambd)


class GLU(FunctionLayer):
    """a * sigmoid(b) for the two halves a and b of the input along ``dim``.

    Dauphin et al., "Language modeling with gated convolutional networks", 2017. Shapes: input [*, 2 * D, *], output
    [*, D, *].

    Args:
        dim: the dimension to halve.

    Example::

        >>> import vesta
        >>> vesta.nn.GLU()(vesta.tensor([2.0, 0.0]))
        tensor([1.])
    """

    _text = "dim={dim}"
    dim: int

    @stored
    def __init__(self, dim: int = -1) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.glu(input, self.dim)


def _check_dim(dim: int | None) -> None:
    """Raises for a dimension that is a bool, which counts as an int elsewhere."""
    if isinstance(dim, bool):
        raise TypeError(f"dim must be an int or None, got {type(dim)}")


class Softmax(FunctionLayer):
    """exp(x) divided by its sum along ``dim``.

    Args:
        dim: along which the result sums to 1.

    Example::

        >>> import vesta
        >>> vesta.nn.Softmax(dim=1)(vesta.zeros(1, 4))
        tensor([[0.2500, 0.2500, 0.2500, 0.2500]])
    """

    _text = "dim={dim}"
    dim: int | None

    @stored
    def __init__(self, dim: int | None = None) -> None:
        _check_dim(dim)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.softmax(input, self.dim, _stacklevel=5)


class Softmin(FunctionLayer):
    """softmax(-x) along ``dim``.

    Args:
        dim: along which the result sums to 1.

    Example::

        >>> import vesta
        >>> vesta.nn.Softmin(dim=0)(vesta.tensor([0.0, 1.0]))
        tensor([0.7311, 0.2689])
    """

    _text = "dim={dim}"
    dim: int | None

    @stored
    def __init__(self, dim: int | None = None) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(FunctionLayer):
    """The logarithm of softmax along ``dim``, without its loss of digits.

    Args:
        dim: along which softmax sums to 1.

    Example::

        >>> import vesta
        >>> vesta.nn.LogSoftmax(dim=1)(vesta.zeros(1, 4))
        tensor([[-1.3863, -1.3863, -1.3863, -1.3863]])
    """

    _text = "dim={dim}"
    dim: int | None

    @stored
    def __init__(self, dim: int | None = None) -> None:
        _check_dim(dim)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the activation of ``input``."""
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels at each place of an image: input and output [N, C, H, W] or [C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.Softmax2d()(vesta.zeros(2, 1, 1)).flatten()
        tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns softmax(input) along the channels."""
        expect("Softmax2d", "input", input, Tensor, "Tensor")
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3, _stacklevel=5)


class PReLU(Module):
    """x where positive, ``weight`` * x elsewhere, with a trained weight for all channels or one for each.

    He et al., "Delving deep into rectifiers", 2015.

    Args:
        num_parameters: 1, or the number of channels.
        init: the weight to start with.

    Shapes: input and output [N, C, *] or any shape; ``weight`` [num_parameters].

    Example::

        >>> import vesta
        >>> vesta.nn.PReLU()(vesta.tensor([-1.0, 2.0])).tolist()
        [-0.25, 2.0]
    """

    if TYPE_CHECKING:
        __getattr__: None  # a slip in an attribute's name is an error

    @checked
    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Device | None = None, dtype: DType | None = None
    ) -> None:
        super().__init__()
        num_parameters, init = python_number(num_parameters), python_number(init)
        expect("PReLU", "num_parameters", num_parameters, int, "int")
        expect("PReLU", "init", init, (float, int), "float")
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(vesta.empty((num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the weight to ``init``."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` with its negative values scaled."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Returns the number of weights."""
        return f"num_parameters={self.num_parameters}"
