"""Adam with Nesterov's momentum."""

from __future__ import annotations

from functools import partial
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.fused import FusedOptimizer
from vesta.optim.optimizer import ParamsT, check, number
from vesta.optim.rule import hyperparameters

__all__ = ["NAdam"]


class NAdam(FusedOptimizer):
    """Adam with Nesterov's momentum: p -= lr * (mu' * m / (1 - P mu') + (1 - mu) * g / (1 - P)) / (sqrt(v') + eps).

    v' = v / (1 - beta2 ** t), mu = beta1 * (1 - 0.5 * 0.96 ** (t * momentum_decay)), mu' that of the next step, P
    the product of all mu up to now. Dozat, "Incorporating Nesterov momentum into Adam", 2016.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        betas: the parts of both averages that remain after a step.
        eps: keeps the divisor from zero.
        weight_decay: strength of the L2 penalty.
        momentum_decay: see above.
        decoupled_weight_decay: decay the parameter itself, not through g.
        maximize: ascend instead of descending.
        foreach, capturable: accepted for PyTorch's sake; the last raises if it is set.
        differentiable: record the step, so that gradients flow through it.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.NAdam([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _operation = _C._fused_nadam_
    _shaped_like_param = ("exp_avg", "exp_avg_sq")
    _scalars = ("mu_product",)

    @partial(
        hyperparameters,
        order="lr betas eps weight_decay momentum_decay decoupled_weight_decay "
        "maximize foreach capturable differentiable",
    )
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
        return {"mu_product": vesta.ones((), dtype=vesta.float32, device="cpu"), **super()._begin(group, param)}

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        return {
            "lr": number(group["lr"]),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "momentum_decay": group["momentum_decay"],
            "decoupled": bool(group["decoupled_weight_decay"]),
        }
