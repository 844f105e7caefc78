"""Adadelta."""

from __future__ import annotations

from functools import partial
from typing import Any

from vesta import _C, Tensor
from vesta.optim.fused import FusedOptimizer
from vesta.optim.optimizer import ParamsT, check, number
from vesta.optim.rule import hyperparameters

__all__ = ["Adadelta"]


class Adadelta(FusedOptimizer):
    """Adadelta: p -= lr * sqrt(u + eps) / sqrt(v + eps) * g, u and v being running means of steps ** 2 and g ** 2.

    Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        rho: the part of both averages that remains after a step.
        eps: keeps divisors from zero.
        weight_decay: strength of the L2 penalty.
        maximize: ascend instead of descending.
        foreach, capturable: accepted for PyTorch's sake; the last raises if it is set.
        differentiable: record the step, so that gradients flow through it.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Adadelta([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _operation = _C._fused_adadelta_
    _shaped_like_param = ("square_avg", "acc_delta")

    @partial(hyperparameters, order="lr rho eps weight_decay maximize capturable foreach differentiable")
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check("rho", rho, 0.0 <= rho <= 1.0)

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "lr": number(group["lr"]),
            "rho": group["rho"],
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
        }
