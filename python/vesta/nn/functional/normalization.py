"""Normalisations that check their input here."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._arguments import expect, python_number

from .ops import ops

__all__ = ["batch_norm", "group_norm", "instance_norm", "local_response_norm"]


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

    Example::

        >>> import vesta
        >>> F = vesta.nn.functional
        >>> F.batch_norm(vesta.tensor([[1.0], [3.0]]), vesta.tensor([2.0]), vesta.tensor([1.0]), eps=0.0)
        tensor([[-1.],
                [ 1.]])
    """
    expect("batch_norm", "input", input, Tensor, "Tensor")
    if training and input.dim() > 1 and input.numel() == input.size(1):
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each example of ``input`` [N, C, ...].

    Ulyanov et al., "Instance normalization: the missing ingredient for fast stylization", 2016.

    Args:
        running_mean, running_var: [C]; updated in place by ``momentum`` if ``use_input_stats``, else used.
        weight, bias: [C]; scale and shift afterwards.

    Raises:
        ValueError: ``use_input_stats`` with a single value per channel.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.instance_norm(vesta.tensor([[[1.0, 3.0]]]), eps=0.0)
        tensor([[[-1.,  1.]]])
    """
    expect("instance_norm", "input", input, Tensor, "Tensor")
    if use_input_stats and input.dim() > 1 and input.shape[2:].numel() == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {input.size()}")
    return ops.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False
    )


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalises each of ``num_groups`` groups of channels of each example of ``input`` [N, C, ...].

    Wu and He, "Group normalization", 2018.

    Args:
        num_groups: a divisor of C.
        weight, bias: [C]; scale and shift afterwards.

    Raises:
        ValueError: there is one example, and each of its groups has a single value.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.group_norm(vesta.tensor([[1.0, 3.0]]), 1, eps=0.0)
        tensor([[-1.,  1.]])
    """
    num_groups = python_number(num_groups)
    expect("group_norm", "input", input, Tensor, "Tensor")
    expect("group_norm", "num_groups", num_groups, int, "int")
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups > 0 and input.numel() == num_groups:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    return ops.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Returns input / (k + alpha * mean of input ** 2 over ``size`` neighbouring channels) ** beta.

    Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012.

    Args:
        input: [N, C, ...].
        size: the number of neighbouring channels; zeros stand in for those outside.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.local_response_norm(vesta.ones(1, 2, 1), 2, alpha=2.0, beta=1.0).flatten()
        tensor([0.5000, 0.3333])
    """
    size, alpha, beta, k = python_number(size), python_number(alpha), python_number(beta), python_number(k)
    expect("local_response_norm", "input", input, Tensor, "Tensor")
    expect("local_response_norm", "size", size, int, "int")
    for name, value in (("alpha", alpha), ("beta", beta), ("k", k)):
        expect("local_response_norm", name, value, (int, float), "a number")
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if size < 1:
        raise RuntimeError(f"local_response_norm: expected size >= 1, got {size} (size).")
    if input.numel() == 0:
        return input
    square = (input * input).flatten(2).unsqueeze(1)  # [N, 1, C, places]: channels are the lines of an image
    before, after = square.new_zeros(()), (size - 1) // 2
    shape = list(square.shape)
    parts = [before.expand(*shape[:2], size // 2, shape[3]), square, before.expand(*shape[:2], after, shape[3])]
    mean = ops.avg_pool2d(vesta.cat(parts, 2), (size, 1), 1).squeeze(1).view(input.shape)
    return input / (mean * alpha + k) ** beta
