"""Layers as functions: PyTorch's argument order over the functions of ``nn/functional`` in C++.

A function with the same arguments in C++ is bound directly, so that a call costs nothing in Python.
"""

from __future__ import annotations

import warnings
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import expect
from vesta._C import _nn, _private

__all__ = [
    "batch_norm",
    "binary_cross_entropy_with_logits",
    "conv2d",
    "cross_entropy",
    "dropout",
    "embedding",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "max_pool2d",
    "mse_loss",
    "nll_loss",
    "normalize",
    "relu",
    "sigmoid",
    "softmax",
    "softplus",
    "tanh",
]

conv2d = vesta.conv2d
linear = _nn.linear
gelu = _nn.gelu
softplus = _nn.softplus
logsigmoid = _nn.logsigmoid
layer_norm = _nn.layer_norm
normalize = _nn.normalize


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


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Returns ``input`` where positive, ``negative_slope * input`` elsewhere; writes it into ``input`` if ``inplace``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.leaky_relu(vesta.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.5000,  2.0000])
    """
    return (_private.leaky_relu_ if inplace else _private.leaky_relu)(input, negative_slope)


def sigmoid(input: Tensor) -> Tensor:
    """Returns 1 / (1 + exp(-input)), elementwise."""
    return vesta.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Returns the hyperbolic tangent, elementwise."""
    return vesta.tanh(input)


def _implicit_dim(name: str, input: Tensor) -> int:
    """Returns PyTorch's choice of a missing dimension, with its warning."""
    expect(name, "input", input, Tensor, "Tensor")
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Returns exp(input) divided by its sum along ``dim``; computed in ``dtype`` if given.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.softmax(vesta.zeros(2, 4), dim=1)
        tensor([[0.2500, 0.2500, 0.2500, 0.2500],
                [0.2500, 0.2500, 0.2500, 0.2500]])
    """
    return vesta.softmax(input, _implicit_dim("softmax", input) if dim is None else dim, dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """The logarithm of ``softmax(input, dim)``, without its loss of digits."""
    return vesta.log_softmax(input, _implicit_dim("log_softmax", input) if dim is None else dim, dtype)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability ``p`` and scales the rest by 1 / (1 - p); does nothing unless ``training``.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.dropout(vesta.ones(2), p=0.5, training=False)
        tensor([1., 1.])
    """
    expect("dropout", "p", p, (float, int), "float")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    result = _private._dropout(input, p, training)
    return input.copy_(result) if inplace else result


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Returns the maximum of each window of ``input`` [N, C, H, W]; with ``return_indices`` also where it was in H * W.

    Args:
        stride: the step between windows; default: ``kernel_size``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.max_pool2d(vesta.ones(1, 1, 4, 4), 2)
        tensor([[[[1., 1.],
                  [1., 1.]]]])
    """
    op = _private.max_pool2d_with_indices if return_indices else vesta.max_pool2d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """batch_norm: normalises ``input`` [N, C, ...] per channel, by its own statistics if training, else by running
    ones.

    Args:
        running_mean, running_var: [C]; updated in place by ``momentum`` if ``training``.
        weight, bias: [C]; scale and shift afterwards.

    Raises:
        ValueError: ``training`` with a single value per channel, whose variance is not defined.
    """
    expect("batch_norm", "input", input, Tensor, "Tensor")
    if training and input.dim() > 1 and input.numel() == input.size(1):
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return _private.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Returns the rows of ``weight`` [V, E] at the integers of ``input`` [...]: result [..., E].

    Args:
        padding_idx: a row that gets no gradient.
        max_norm, scale_grad_by_freq, sparse: not available; anything but the default raises.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.embedding(vesta.tensor([[0, 2]]), vesta.zeros(3, 5)).shape
        vesta.Size([1, 2, 5])
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        raise NotImplementedError(
            f"embedding: expected max_norm=None, scale_grad_by_freq=False and sparse=False, got max_norm={max_norm}, "
            f"scale_grad_by_freq={scale_grad_by_freq}, sparse={sparse}. Leave them at their defaults."
        )
    if not isinstance(weight, Tensor):
        raise TypeError(f"embedding(): argument 'weight' (position 2) must be Tensor, not {type(weight).__name__}")
    if padding_idx is not None:
        expect("embedding", "padding_idx", padding_idx, int, "int or None")
    rows = weight.size(0)
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return vesta.embedding(weight, input, -1 if padding_idx is None else padding_idx % rows)


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Converts the two arguments that ``reduction`` replaced to it, with PyTorch's warning."""
    if size_average is None and reduce is None:
        return reduction
    mean, reduced = size_average is not False, reduce is not False
    chosen = "none" if not reduced else "mean" if mean else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{chosen}' instead.", stacklevel=3
    )
    return chosen


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Returns -log softmax(input)[target], averaged: the loss of a classifier.

    Args:
        input: logits [C], [N, C] or [N, C, d1, ...].
        target: class numbers, [], [N] or [N, d1, ...], or probabilities of ``input``'s shape.
        weight: [C], a factor for each class.
        ignore_index: a class number that is ignored.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: the part of the target spread over all classes, in [0, 1].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.cross_entropy(vesta.zeros(2, 4), vesta.tensor([1, 3]))
        tensor(1.3863)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _private.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """nll_loss: -input[target], averaged: ``cross_entropy`` for log-probabilities, with the same shapes."""
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _private.nll_loss(input, target, weight, ignore_index, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns (input - target) ** 2, averaged.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.mse_loss(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(5.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _private.mse_loss(input, target, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """-(target * log s + (1 - target) * log(1 - s)) for s = sigmoid(input), averaged: the loss of a binary classifier,
    without overflow.

    Args:
        input, target: of the same shape; targets are probabilities.
        weight: a factor for each element, broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: a factor for the first term, broadcast.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.binary_cross_entropy_with_logits(vesta.zeros(2), vesta.tensor([0.0, 1.0]))
        tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return _private.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)
