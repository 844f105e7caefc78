"""Rectified Adam."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta.optim.optimizer import ParamsT
from vesta.optim.rule import RuleOptimizer, hyperparameters, moving_average, zeros

__all__ = ["RAdam"]


class RAdam(RuleOptimizer):
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
        foreach, capturable, differentiable: accepted for PyTorch's sake; the last two raise if they are set.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.RAdam([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _shaped_like_param = ("exp_avg", "exp_avg_sq")

    @hyperparameters
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

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return zeros(param, "exp_avg", "exp_avg_sq")

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        beta1, beta2 = group["betas"]
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        moving_average(exp_avg, grad, beta1)
        moving_average(exp_avg_sq, grad * grad, beta2)
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / correction2
        if length <= 5.0:
            param.add_(exp_avg, alpha=-lr / correction1)
            return
        above, below = (length - 4) * (length - 2) * longest, (longest - 4) * (longest - 2) * length
        factor = (above / below * correction2) ** 0.5
        param.add_(exp_avg / exp_avg_sq.sqrt().add_(group["eps"]), alpha=-lr * factor / correction1)
