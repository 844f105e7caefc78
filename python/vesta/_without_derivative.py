"""Marks of results that no derivative leads to: a backward through them raises."""

from __future__ import annotations

from typing import Any

from . import _C
from ._C import Tensor
from .autograd import Function


class _Marked(Function):
    @staticmethod
    def forward(ctx: Any, input: Tensor, made: Tensor, op: str) -> Tensor:
        ctx.op = op
        return made.view_as(made)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise NotImplementedError(f"{ctx.op}: the derivative is not implemented.")


def marked(op: str, input: Tensor, made: Tensor) -> Tensor:
    """Returns what ``op`` made of ``input``; where that is recorded, so that its backward raises."""
    recorded = _C.is_grad_enabled() and input.requires_grad and (made.is_floating_point() or made.is_complex())
    return _Marked.apply(input, made, op) if recorded else made
