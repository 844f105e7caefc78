"""Rectified Adam."""

from __future__ import annotations

from functools import partial
from typing import Any

from vesta import _C, Tensor
from vesta.optim.fused import FusedOptimizer
from vesta.optim.optimizer import ParamsT, number
from vesta.optim.rule import hyperparameters

__all__ = ["RAdam"]


class RAdam(FusedOptimizer):
    """Adam whose step is rectified while the variance of v is large: p -= lr * r * m / (1 - beta1 ** t) / sqrt(v).

    Liu et al., "On the variance of the adaptive learning rate and beyond", 2020. Without enough steps (rho <= 5), it is
    momentum alone.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        betas: the parts of both averages that remain after a step.
        eps: keeps the divisor from zero.
        weight_decay: strength of the L2 penalty.
        decoupled_weight_decay: decay the parameter itself, not through g.
        maximize: ascend instead of descending.
        foreach, capturable: accepted for PyTorch's sake; the last raises if it is set.
        differentiable: record the step, so that gradients flow through it.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.RAdam([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _operation = _C._fused_radam_
    _shaped_like_param = ("exp_avg", "exp_avg_sq")

    @partial(
        hyperparameters,
        order="lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable",
    )
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        """See the class."""

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        return {
            "lr": number(group["lr"]),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "decoupled": bool(group["decoupled_weight_decay"]),
        }
