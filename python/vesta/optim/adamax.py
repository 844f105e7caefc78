"""Adamax."""

from __future__ import annotations

from typing import Any

from vesta import _C, Tensor
from vesta.optim.fused import FusedOptimizer
from vesta.optim.optimizer import ParamsT, number
from vesta.optim.rule import hyperparameters

__all__ = ["Adamax"]


class Adamax(FusedOptimizer):
    """Adamax: Adam with the infinity norm: p -= lr / (1 - beta1 ** t) * m / u, u = max(beta2 * u, |g| + eps).

    Kingma and Ba, "Adam: a method for stochastic optimization", 2015, section 7.1.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        betas: the parts of both averages that remain after a step.
        eps: keeps the divisor from zero.
        weight_decay: strength of the L2 penalty.
        maximize: ascend instead of descending.
        foreach, capturable: accepted for PyTorch's sake; the last raises if it is set.
        differentiable: record the step, so that gradients flow through it.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Adamax([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _operation = _C._fused_adamax_
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

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = map(number, group["betas"])
        return {
            "lr": number(group["lr"]),
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
        }
