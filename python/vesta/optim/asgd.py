"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta.optim.optimizer import ParamsT, check, number
from vesta.optim.rule import RuleOptimizer, hyperparameters, zeros

__all__ = ["ASGD"]


class ASGD(RuleOptimizer):
    """Averaged stochastic gradient descent: p -= eta * (lambd * p + g), and ``state[p]["ax"]`` is the mean of p from
    step t0 on.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992; eta = lr / (1 + lambd * lr * t)
    **
    alpha as in Bottou's sgd.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        lambd: the decay of the parameter.
        alpha: the power of eta.
        t0: when averaging begins.
        weight_decay: strength of the L2 penalty.
        maximize: ascend instead of descending.
        foreach, capturable, differentiable: accepted for PyTorch's sake; the last two raise if they are set.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.ASGD([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _shaped_like_param = ("ax",)

    @hyperparameters
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check("lambd", lambd, lambd >= 0.0)
        check("alpha", alpha, alpha >= 0.0)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        lr = vesta.tensor(number(group["lr"]), dtype=vesta.float32)
        return {"eta": lr, "mu": vesta.ones((), dtype=vesta.float32), **zeros(param, "ax")}

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        ax, mu, eta, lambd = state["ax"], state["mu"].item(), state["eta"].item(), group["lambd"]
        param.mul_(1 - lambd * eta).add_(grad, alpha=-eta)
        if mu == 1:
            ax.copy_(param)
        else:
            ax.add_(param - ax, alpha=mu)
        state["eta"].fill_(lr / (1 + lambd * lr * step) ** group["alpha"])
        state["mu"].fill_(1 / max(1, step - group["t0"]))
