"""Collectives that gradients pass through. All ranks call each of them, and backward through it, in the same order.

The gradient of a value that is copied to all ranks is the sum of their gradients, and so on: each function's backward
is the one that moves values the opposite way. Inputs do not change; results are new tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vesta
from vesta import Tensor
from vesta.autograd import Function

from .. import _collectives as dist
from ..distributed_c10d import ReduceOp, get_rank, get_world_size

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


def _summed(op: ReduceOp, what: str) -> None:
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise NotImplementedError(f"distributed.nn.{what}: {op} has no gradient here. Use ReduceOp.SUM or AVG.")


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, tensor: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        copied = tensor.detach().clone()
        dist.broadcast(copied, src, group)
        return copied

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        total = _Reduce.apply(ctx.src, ReduceOp.SUM, ctx.group, grad)
        return None, None, total if get_rank() == ctx.src else vesta.zeros_like(total)


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, op: ReduceOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.dst, ctx.group = dst, group
        ctx.scale = 1 / get_world_size(group) if op == ReduceOp.AVG else 1
        total = tensor.detach().clone()
        dist.reduce(total, dst, op, group)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, None, _Broadcast.apply(ctx.dst, ctx.group, grad) * ctx.scale


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, tensor: Tensor) -> Tensor:
        ctx.op, ctx.group = op, group
        total = tensor.detach().clone()
        dist.all_reduce(total, op, group)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        _summed(ctx.op, "all_reduce")
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.dst, ctx.group = dst, group
        outs = [vesta.zeros_like(tensor) for _ in range(get_world_size(group))]
        dist.gather(tensor.detach().contiguous(), outs if get_rank() == dst else None, dst, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *grads)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        if not all(t.shape == tensors[0].shape for t in tensors):
            raise ValueError("distributed.nn.scatter: expected tensors of one shape (tensors).")
        out = vesta.zeros_like(tensors[0])
        parts = [t.detach().contiguous() for t in tensors]
        dist.scatter(out, parts if get_rank() == src else None, src, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return None, None, *_Gather.apply(ctx.src, ctx.group, grad)


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: ReduceOp, group: Any, *tensors: Tensor) -> Tensor:
        ctx.group, ctx.op = group, op
        ctx.scale = 1 / get_world_size(group) if op == ReduceOp.AVG else 1
        out = vesta.empty_like(tensors[0])
        dist.reduce_scatter(out, [t.detach().contiguous() for t in tensors], op, group)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        _summed(ctx.op, "reduce_scatter")
        return None, None, *(part * ctx.scale for part in _AllGather.apply(ctx.group, grad))


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, tensor: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        mine = tensor.detach().contiguous()
        outs = [vesta.empty_like(mine) for _ in range(get_world_size(group))]
        dist.all_gather(outs, mine, group)
        return tuple(outs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, _ReduceScatter.apply(ReduceOp.SUM, ctx.group, *grads)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, outs: Sequence[Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group = group
        ctx.inputs = [vesta.empty_like(t) for t in tensors]
        received = [vesta.empty_like(t) for t in outs]
        dist.all_to_all(received, [t.detach().contiguous() for t in tensors], group)
        return tuple(received)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *_AllToAll.apply(ctx.group, ctx.inputs, *grads)


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, out: Tensor, out_splits: Any, in_splits: Any, tensor: Tensor) -> Tensor:
        ctx.group, ctx.splits, ctx.input = group, (out_splits, in_splits), vesta.empty_like(tensor)
        received = vesta.empty_like(out)
        dist.all_to_all_single(received, tensor.detach().contiguous(), out_splits, in_splits, group)
        return received

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        out_splits, in_splits = ctx.splits
        back = _AllToAllSingle.apply(ctx.group, ctx.input, in_splits, out_splits, grad)
        return None, None, None, None, back


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """Returns rank ``src``'s tensor on all ranks; its gradient is the sum of the ranks' gradients."""
    return _Broadcast.apply(src, group, tensor)


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """Returns the tensors of all ranks on rank ``dst``, zeros elsewhere."""
    return _Gather.apply(dst, group, tensor)


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """Returns rank ``src``'s i-th tensor on rank i; the other ranks' tensors only give the shape."""
    return _Scatter.apply(src, group, *tensors)


def reduce(tensor: Tensor, dst: int, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Returns the sum (or average) of the ranks' tensors on rank ``dst``, its own tensor elsewhere."""
    _summed(op, "reduce")
    return _Reduce.apply(dst, op, group, tensor)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: ReduceOp = ReduceOp.SUM, group: Any = None
) -> Tensor:
    """Returns on rank i the sum of all ranks' ``input_list[i]``; ``output`` only gives the shape, as in PyTorch."""
    return _ReduceScatter.apply(op, group, *input_list)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Returns the tensors of all ranks."""
    return _AllGather.apply(group, tensor)


def all_to_all(
    output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor], group: Any = None
) -> tuple[Tensor, ...]:
    """Sends ``input_tensor_list[i]`` to rank i and returns the received tensors; the outputs only give shapes."""
    return _AllToAll.apply(group, output_tensor_list, *input_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Sends the i-th rows of ``input`` to rank i and returns the received rows; ``output`` only gives the shape."""
    return _AllToAllSingle.apply(group, output, output_split_sizes, input_split_sizes, input)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None) -> Tensor:
    """Returns the sum (or the combination by ``op``) of the ranks' tensors on all of them."""
    return _AllReduce.apply(op, group, tensor)
