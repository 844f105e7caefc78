"""Adamax."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta.optim.optimizer import ParamsT
from vesta.optim.rule import RuleOptimizer, hyperparameters, moving_average, zeros

__all__ = ["Adamax"]


class Adamax(RuleOptimizer):
    """Adamax: Adam with the infinity norm: p -= lr / (1 - beta1 ** t) * m / u, u = max(beta2 * u, |g| + eps).

    Kingma and Ba, "Adam: a method for stochastic optimization", 2015, section 7.1.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        betas: the parts of both averages that remain after a step.
        eps: keeps the divisor from zero.
        weight_decay: strength of the L2 penalty.
        maximize: ascend instead of descending.
        foreach, capturable, differentiable: accepted for PyTorch's sake; the last two raise if they are set.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Adamax([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _shaped_like_param = ("exp_avg", "exp_inf")

    @hyperparameters
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        """See the class."""

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return zeros(param, "exp_avg", "exp_inf")

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        beta1, beta2 = group["betas"]
        exp_avg, exp_inf = state["exp_avg"], state["exp_inf"]
        moving_average(exp_avg, grad, beta1)
        exp_inf.copy_(vesta.maximum(exp_inf * beta2, grad.abs().add_(group["eps"])))
        param.add_(exp_avg / exp_inf, alpha=-lr / (1 - beta1**step))
