"""Activations: pointwise functions with ``inplace``, and softmax with its relatives."""

from __future__ import annotations

import warnings

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import DType

from .ops import ops

__all__ = [
    "celu",
    "elu",
    "gumbel_softmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "tanh",
    "threshold",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns max(input, 0), elementwise; writes it into ``input`` if ``inplace``. Any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.relu(vesta.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if inplace:
        expect("relu", "input", input, Tensor, "Tensor")
        return input.relu_()
    return vesta.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns min(max(input, 0), 6), elementwise; writes it into ``input`` if ``inplace``. Any shape.

    Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.relu6(vesta.tensor([-1.0, 2.0, 7.0]))
        tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Returns ``input`` where positive, ``negative_slope * input`` elsewhere; writes it into ``input`` if ``inplace``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.leaky_relu(vesta.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.5000,  2.0000])
    """
    return (ops.leaky_relu_ if inplace else ops.leaky_relu)(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Returns ``input`` where positive, elsewhere ``input`` times a slope: drawn from [lower, upper] for each element
    if
    ``training``, else their mean. Any shape.

    Xu et al., "Empirical evaluation of rectified activations in convolutional network", 2015.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.rrelu(vesta.tensor([-1.0, 2.0]), 0.25, 0.75)
        tensor([-0.5000,  2.0000])
    """
    return (ops.rrelu_ if inplace else ops.rrelu)(input, lower, upper, training)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Returns ``input`` where it is greater than ``threshold``, ``value`` elsewhere. Any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.threshold(vesta.tensor([0.5, 2.0]), 1.0, 20.0)
        tensor([20.,  2.])
    """
    return (ops.threshold_ if inplace else ops.threshold)(input, threshold, value)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns ``input`` clamped to [min_val, max_val]; its gradient at both ends is 0. Any shape.

    Raises:
        ValueError: ``min_val`` is greater than ``max_val``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.hardtanh(vesta.tensor([-3.0, 0.5]))
        tensor([-1.0000,  0.5000])
    """
    if isinstance(min_val, (int, float)) and isinstance(max_val, (int, float)) and min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (ops.hardtanh_ if inplace else ops.hardtanh)(input, min_val, max_val)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns ``input`` where positive, alpha * (exp(input) - 1) elsewhere. Any shape.

    Clevert et al., "Fast and accurate deep network learning by exponential linear units (ELUs)", 2016.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.elu(vesta.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
    """
    return (ops.elu_ if inplace else ops.elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns scale * elu(input, alpha) with the alpha 1.6733 and the scale 1.0507 that keep mean 0 and variance 1.

    Klambauer et al., "Self-normalizing neural networks", 2017. Any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.selu(vesta.tensor([1.0]))
        tensor([1.0507])
    """
    return (ops.selu_ if inplace else ops.selu)(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns max(0, input) + min(0, alpha * (exp(input / alpha) - 1)). Any shape.

    Barron, "Continuously differentiable exponential linear units", 2017.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.celu(vesta.tensor([-2.0, 1.0]), 2.0)
        tensor([-1.2642,  1.0000])
    """
    return (ops.celu_ if inplace else ops.celu)(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns input * sigmoid(input), also called swish (Elfwing et al., 2017). Any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.silu(vesta.tensor([1.0]))
        tensor([0.7311])
    """
    return (ops.silu_ if inplace else ops.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns input * tanh(log(1 + exp(input))) (Misra, 2019). Any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.mish(vesta.tensor([1.0]))
        tensor([0.8651])
    """
    return (ops.mish_ if inplace else ops.mish)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns input * min(max(input + 3, 0), 6) / 6 (Howard et al., "Searching for MobileNetV3", 2019). Any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.hardswish(vesta.tensor([1.0, 3.0]))
        tensor([0.6667, 3.0000])
    """
    return (ops.hardswish_ if inplace else ops.hardswish)(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns min(max(input + 3, 0), 6) / 6. Any shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.hardsigmoid(vesta.tensor([-3.0, 0.0]))
        tensor([0.0000, 0.5000])
    """
    return (ops.hardsigmoid_ if inplace else ops.hardsigmoid)(input)


def sigmoid(input: Tensor) -> Tensor:
    """Returns 1 / (1 + exp(-input)), elementwise.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.sigmoid(vesta.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """
    return vesta.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Returns the hyperbolic tangent, elementwise.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.tanh(vesta.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """
    return vesta.tanh(input)


def _implicit_dim(name: str, input: Tensor) -> int:
    """Returns PyTorch's choice of a missing dimension, with its warning."""
    expect(name, "input", input, Tensor, "Tensor")
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """Returns exp(input) divided by its sum along ``dim``; computed in ``dtype`` if given.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.softmax(vesta.zeros(2, 4), dim=1)
        tensor([[0.2500, 0.2500, 0.2500, 0.2500],
                [0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return vesta.softmax(input, _implicit_dim("softmax", input) if dim is None else dim, dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """Returns softmax(-input, dim).

    Example::

        >>> import vesta
        >>> vesta.nn.functional.softmin(vesta.tensor([0.0, 1.0]), dim=0)
        tensor([0.7311, 0.2689])
    """
    expect("softmin", "input", input, Tensor, "Tensor")
    return vesta.softmax(-input, _implicit_dim("softmin", input) if dim is None else dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """The logarithm of ``softmax(input, dim)``, without its loss of digits.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.log_softmax(vesta.tensor([0.0, 0.0]), dim=0)
        tensor([-0.6931, -0.6931])
    """
    return vesta.log_softmax(input, _implicit_dim("log_softmax", input) if dim is None else dim, dtype)


@checked
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """Draws from the Gumbel-softmax distribution: softmax((logits + g) / tau) with g = -log(-log(u)), u uniform.

    Jang et al., "Categorical reparameterization with Gumbel-softmax", 2017.

    Args:
        logits: unnormalised log-probabilities, any shape.
        tau: temperature.
        hard: return one-hot values, with the gradient of the soft ones.
        eps: not used, as in PyTorch.
        dim: along which the result sums to 1.

    Example::

        >>> import vesta
        >>> drawn = vesta.nn.functional.gumbel_softmax(vesta.zeros(5, 3), hard=True)
        >>> drawn.sum(1)
        tensor([1., 1., 1., 1., 1.])
    """
    expect("gumbel_softmax", "logits", logits, Tensor, "Tensor")
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    tiny = 2.0**-24 if logits.dtype is not vesta.float64 else 2.0**-53  # rand may give 0, whose logarithm is not finite
    noise = -(-vesta.rand_like(logits).clamp_(min=tiny).log()).clamp_(min=tiny).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.argmax(dim, keepdim=True)
    one_hot = vesta.zeros_like(soft).scatter_add(dim, best, vesta.ones_like(best, dtype=soft.dtype))
    return one_hot - soft.detach() + soft
