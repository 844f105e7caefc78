"""Gradients of convolutions by their input and their weight, without a forward: PyTorch's ``torch.nn.grad``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, NamedTuple, Union

from vesta import _C, Tensor
from vesta._arguments import called, expect
from vesta._memory_format import channels_last_of
from vesta._names import listing

Ints = Union[int, Sequence[int]]

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


class _Operand(NamedTuple):
    """An operand of a convolution whose gradient is wanted, and the one that is given beside its size."""

    name: str
    other: str
    gradient: Callable[..., Tensor]


_INPUT = _Operand("input", "weight", _C._convolution_backward_input)
_WEIGHT = _Operand("weight", "input", _C._convolution_backward_weight)


def _gradient(
    wanted: _Operand,
    dims: int,
    size: Sequence[int],
    other: Tensor,
    grad_output: Tensor,
    moves: tuple[Ints, Ints, Ints, int],
) -> Tensor:
    """Returns the gradient of an operand of a convolution over ``dims`` dimensions."""
    op = f"nn.grad.conv{dims}d_{wanted.name}"
    expect(op, wanted.other, other, Tensor, "a Tensor")
    expect(op, f"{wanted.name}_size", size, (tuple, list), "a list of integers")
    expect(op, "grad_output", grad_output, Tensor, "a Tensor")
    if not len(size) == other.dim() == grad_output.dim() == dims + 2:
        raise ValueError(
            f"{op}: expected {dims + 2} dimensions, got {len(size)} ({wanted.name}_size), {other.dim()} "
            f"({wanted.other}) and {grad_output.dim()} (grad_output)."
        )
    last = any(channels_last_of(tensor) for tensor in (other, grad_output))
    return called(op, wanted.gradient, grad_output, other, list(size), *moves, last)


def conv1d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of ``conv1d``'s input.

    Args:
        input_size: the input's sizes [N, C, L].
        weight: [O, C / groups, K].
        grad_output: the gradient of the result [N, O, M].
        stride, padding, dilation, groups: those of the convolution.

    Example::

        >>> import vesta
        >>> vesta.nn.grad.conv1d_input((1, 1, 3), vesta.ones(1, 1, 2), vesta.ones(1, 1, 2))
        tensor([[[1., 2., 1.]]])
    """
    return _gradient(_INPUT, 1, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Returns the gradient of ``conv1d``'s weight.

    Args:
        input: [N, C, L].
        weight_size: the weight's sizes [O, C / groups, K].
        grad_output: the gradient of the result [N, O, M].
        stride, padding, dilation, groups: those of the convolution.

    Example::

        >>> import vesta
        >>> vesta.nn.grad.conv1d_weight(vesta.tensor([[[1.0, 2.0, 4.0]]]), (1, 1, 2), vesta.ones(1, 1, 2))
        tensor([[[3., 6.]]])
    """
    return _gradient(_WEIGHT, 1, weight_size, input, grad_output, (stride, padding, dilation, groups))


def conv2d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """``conv1d_input`` for ``conv2d``: input [N, C, H, W], weight [O, C / groups, KH, KW].

    Example::

        >>> import vesta
        >>> vesta.nn.grad.conv2d_input((1, 1, 1, 2), vesta.ones(1, 1, 1, 2), vesta.ones(1, 1, 1, 1))
        tensor([[[[1., 1.]]]])
    """
    return _gradient(_INPUT, 2, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """``conv1d_weight`` for ``conv2d``: input [N, C, H, W], weight [O, C / groups, KH, KW].

    Example::

        >>> import vesta
        >>> vesta.nn.grad.conv2d_weight(vesta.tensor([[[[1.0, 2.0]]]]), (1, 1, 1, 2), vesta.ones(1, 1, 1, 1))
        tensor([[[[1., 2.]]]])
    """
    return _gradient(_WEIGHT, 2, weight_size, input, grad_output, (stride, padding, dilation, groups))


def conv3d_input(
    input_size: Sequence[int],
    weight: Tensor,
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """``conv1d_input`` for ``conv3d``: input [N, C, D, H, W], weight [O, C / groups, KD, KH, KW].

    Example::

        >>> import vesta
        >>> vesta.nn.grad.conv3d_input((1, 1, 1, 1, 2), vesta.ones(1, 1, 1, 1, 2), vesta.ones(1, 1, 1, 1, 1))
        tensor([[[[[1., 1.]]]]])
    """
    return _gradient(_INPUT, 3, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(
    input: Tensor,
    weight_size: Sequence[int],
    grad_output: Tensor,
    stride: Ints = 1,
    padding: Ints = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """``conv1d_weight`` for ``conv3d``: input [N, C, D, H, W], weight [O, C / groups, KD, KH, KW].

    Example::

        >>> import vesta
        >>> vesta.nn.grad.conv3d_weight(vesta.ones(1, 1, 1, 1, 2), (1, 1, 1, 1, 2), vesta.ones(1, 1, 1, 1, 1))
        tensor([[[[[1., 1.]]]]])
    """
    return _gradient(_WEIGHT, 3, weight_size, input, grad_output, (stride, padding, dilation, groups))


__dir__ = listing(globals())
