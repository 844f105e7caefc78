"""Adam with Nesterov's momentum."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta.optim.optimizer import ParamsT, check
from vesta.optim.rule import RuleOptimizer, hyperparameters, moving_average, zeros

__all__ = ["NAdam"]


class NAdam(RuleOptimizer):
    """Adam with Nesterov's momentum: p -= lr * (mu' * m / (1 - P mu') + (1 - mu) * g / (1 - P)) / (sqrt(v / (1 - beta2
    ** t)) + eps).

    mu = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)), mu' that of the next step, P the product of all mu up to now.
    Dozat, "Incorporating Nesterov momentum into Adam", 2016.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        betas: the parts of both averages that remain after a step.
        eps: keeps the divisor from zero.
        weight_decay: strength of the L2 penalty.
        momentum_decay: see above.
        decoupled_weight_decay: decay the parameter itself, not through g.
        maximize: ascend instead of descending.
        foreach, capturable, differentiable: accepted for PyTorch's sake; the last two raise if they are set.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.NAdam([weight])
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
        lr: float | Tensor = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check("momentum_decay", momentum_decay, momentum_decay >= 0.0)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {"mu_product": vesta.ones((), dtype=vesta.float32), **zeros(param, "exp_avg", "exp_avg_sq")}

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        beta1, beta2 = group["betas"]
        exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
        mu, mu_next = (beta1 * (1.0 - 0.5 * 0.96 ** (t * group["momentum_decay"])) for t in (step, step + 1))
        product = state["mu_product"].mul_(mu).item()
        moving_average(exp_avg, grad, beta1)
        moving_average(exp_avg_sq, grad * grad, beta2)
        divisor = (exp_avg_sq / (1 - beta2**step)).sqrt_().add_(group["eps"])
        param.add_(grad / divisor, alpha=-lr * (1.0 - mu) / (1.0 - product))
        param.add_(exp_avg / divisor, alpha=-lr * mu_next / (1.0 - product * mu_next))
