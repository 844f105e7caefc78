"""Resilient backpropagation."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.fused import FusedOptimizer
from vesta.optim.optimizer import ParamsT, number
from vesta.optim.rule import expect_line, hyperparameters

__all__ = ["Rprop"]


class Rprop(FusedOptimizer):
    """Resilient backpropagation: each element has a step size of its own, and only the sign of its gradient counts.

    The size grows by etas[1] while the sign stays and shrinks by etas[0] when it changes, without a step then.
    Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning", 1993.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: the step size of all elements to begin with.
        etas: factors of the step size: (below 1, above 1).
        step_sizes: the least and the greatest step size.
        maximize: ascend instead of descending.
        foreach, capturable: accepted for PyTorch's sake; the last raises if it is set.
        differentiable: record the step, so that gradients flow through it.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Rprop([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _operation = _C._fused_rprop_
    _shaped_like_param = ("prev", "step_size")

    @partial(hyperparameters, order="lr etas step_sizes foreach maximize differentiable capturable")
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        for name, pair in (("etas", etas), ("step_sizes", step_sizes)):
            expect_line("Rprop", name, pair)
            if len(pair) != 2 or not all(isinstance(value, Real) for value in pair):
                raise TypeError(f"Rprop: expected two numbers, got {pair!r} ({name}).")
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        lr = number(group["lr"])
        start = complex(lr, lr) if param.is_complex() else lr
        return {**super()._begin(group, param), "step_size": vesta.full_like(param, start).detach()}

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        (etaminus, etaplus), (min_step, max_step) = group["etas"], group["step_sizes"]
        return {"etaminus": etaminus, "etaplus": etaplus, "min_step": min_step, "max_step": max_step}
