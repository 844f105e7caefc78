"""Adagrad."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta.optim.optimizer import ParamsT, check
from vesta.optim.rule import RuleOptimizer, hyperparameters

__all__ = ["Adagrad"]


class Adagrad(RuleOptimizer):
    """Adagrad: p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps), s being the sum of all g ** 2.

    Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization", 2011.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        lr_decay: see above.
        weight_decay: strength of the L2 penalty.
        initial_accumulator_value: what s starts with.
        eps: keeps the divisor from zero.
        fused: as ``foreach``.
        maximize: ascend instead of descending.
        foreach, capturable, differentiable: accepted for PyTorch's sake; the last two raise if they are set.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Adagrad([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _shaped_like_param = ("sum",)

    @hyperparameters
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check("lr_decay", lr_decay, lr_decay >= 0.0)
        check("initial_accumulator_value", initial_accumulator_value, initial_accumulator_value >= 0.0)

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        return {"sum": vesta.full_like(param, complex(start, start) if param.is_complex() else start).detach()}

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        state["sum"].add_(grad * grad)
        param.add_(grad / (state["sum"].sqrt().add_(group["eps"])), alpha=-lr / (1 + (step - 1) * group["lr_decay"]))

    def _sparse_rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        state["sum"].add_(grad.square())
        divisor = state["sum"].sparse_mask(grad)._values().sqrt_().add_(group["eps"])
        change = vesta.sparse_coo_tensor(grad._indices(), grad._values() / divisor, grad.shape, is_coalesced=True)
        param.add_(change, alpha=-lr / (1 + (step - 1) * group["lr_decay"]))
