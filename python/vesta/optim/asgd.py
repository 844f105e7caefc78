"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.fused import FusedOptimizer
from vesta.optim.optimizer import ParamsT, check, number
from vesta.optim.rule import hyperparameters

__all__ = ["ASGD"]


class ASGD(FusedOptimizer):
    """Averaged stochastic gradient descent: p -= eta * (lambd * p + g), and ``state[p]["ax"]`` is the mean of p from
    step t0 on.

    Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992. As in Bottou's sgd,
    eta = lr / (1 + lambd * lr * t) ** alpha.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        lambd: the decay of the parameter.
        alpha: the power of eta.
        t0: when averaging begins.
        weight_decay: strength of the L2 penalty.
        maximize: ascend instead of descending.
        foreach, capturable: accepted for PyTorch's sake; the last raises if it is set.
        differentiable: record the step, so that gradients flow through it.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.ASGD([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _operation = _C._fused_asgd_
    _shaped_like_param = ("ax",)
    _scalars = ("eta", "mu")

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
        eta = vesta.tensor(number(group["lr"]), dtype=vesta.float32, device="cpu")
        mu = vesta.ones((), dtype=vesta.float32, device="cpu")
        return {"eta": eta, "mu": mu, **super()._begin(group, param)}

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        names = ("lambd", "alpha", "t0", "weight_decay")
        return {"lr": number(group["lr"]), **{name: group[name] for name in names}}
