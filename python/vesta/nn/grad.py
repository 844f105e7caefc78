"""Gradients of convolutions by their input and their weight, without a forward: PyTorch's ``torch.nn.grad``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from vesta import _C, Tensor
from vesta._arguments import called, expect
from vesta._memory_format import channels_last_of

Ints = Union[int, Sequence[int]]

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(
    name: str, first: Tensor | Ints, second: Tensor | Ints, grad_output: Tensor, moves: tuple[Ints, Ints, Ints, int]
) -> Tensor:
    """Returns the gradient of the operand whose size is given in place of the operand."""
    op = f"nn.grad.{name}"
    dims, of_input = int(name[4]), name.endswith("input")
    operand, size = (second, first) if of_input else (first, second)
    names = ("weight", "input_size") if of_input else ("input", "weight_size")
    expect(op, names[0], operand, Tensor, "a Tensor")
    expect(op, names[1], size, (tuple, list), "a list of integers")
    expect(op, "grad_output", grad_output, Tensor, "a Tensor")
    if not len(size) == operand.dim() == grad_output.dim() == dims + 2:
        raise ValueError(
            f"{op}: expected {dims + 2} dimensions, got {len(size)} ({names[1]}), {operand.dim()} ({names[0]}) and "
            f"{grad_output.dim()} (grad_output)."
        )
    last = any(channels_last_of(tensor) for tensor in (operand, grad_output))
    function = _C._convolution_backward_input if of_input else _C._convolution_backward_weight
    return called(op, function, grad_output, operand, list(size), *moves, last)


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
    return _gradient("conv1d_input", input_size, weight, grad_output, (stride, padding, dilation, groups))


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
    return _gradient("conv1d_weight", input, weight_size, grad_output, (stride, padding, dilation, groups))


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
    return _gradient("conv2d_input", input_size, weight, grad_output, (stride, padding, dilation, groups))


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
    return _gradient("conv2d_weight", input, weight_size, grad_output, (stride, padding, dilation, groups))


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
    return _gradient("conv3d_input", input_size, weight, grad_output, (stride, padding, dilation, groups))


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
    return _gradient("conv3d_weight", input, weight_size, grad_output, (stride, padding, dilation, groups))
