"""Adadelta."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta.optim.optimizer import ParamsT, check
from vesta.optim.rule import RuleOptimizer, hyperparameters, moving_average, zeros

__all__ = ["Adadelta"]


class Adadelta(RuleOptimizer):
    """Adadelta: p -= lr * sqrt(u + eps) / sqrt(v + eps) * g, u and v being running means of steps ** 2 and g ** 2.

    Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        rho: the part of both averages that remains after a step.
        eps: keeps divisors from zero.
        weight_decay: strength of the L2 penalty.
        maximize: ascend instead of descending.
        foreach, capturable, differentiable: accepted for PyTorch's sake; the last two raise if they are set.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Adadelta([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _shaped_like_param = ("square_avg", "acc_delta")

    @hyperparameters
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

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return zeros(param, "square_avg", "acc_delta")

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        square_avg, acc_delta, rho = state["square_avg"], state["acc_delta"], group["rho"]
        moving_average(square_avg, grad * grad, rho)
        delta = (acc_delta + group["eps"]).sqrt_().div_((square_avg + group["eps"]).sqrt_()).mul_(grad)
        moving_average(acc_delta, delta * delta, rho)
        param.add_(delta, alpha=-lr)
