"""Adagrad."""

from __future__ import annotations

from functools import partial
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.fused import FusedOptimizer
from vesta.optim.optimizer import ParamsT, _Bucket, check, number
from vesta.optim.rule import hyperparameters

__all__ = ["Adagrad"]


class Adagrad(FusedOptimizer):
    """Adagrad: p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps), s being the sum of all g ** 2.

    Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization", 2011.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        lr_decay: see above.
        weight_decay: strength of the L2 penalty.
        initial_accumulator_value: what s starts with.
        eps: keeps the divisor from zero.
        maximize: ascend instead of descending.
        foreach, fused: accepted for PyTorch's sake; the step is always fused.
        differentiable: record the step, so that gradients flow through it.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Adagrad([weight])
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool(weight < 1)
        True
    """

    _operation = _C._fused_adagrad_
    _shaped_like_param = ("sum",)

    @partial(
        hyperparameters,
        order="lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused",
    )
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

    def _prepare(self) -> None:  # as in PyTorch: programs read and share the sums before the first step
        from vesta.nn.parameter import is_lazy

        for group in self.param_groups:
            self._states(group, [param for param in group["params"] if not is_lazy(param)])

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        return {"sum": vesta.full_like(param, complex(start, start) if param.is_complex() else start).detach()}

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        return {
            "lr": number(group["lr"]),
            "lr_decay": group["lr_decay"],
            "weight_decay": group["weight_decay"],
            "eps": group["eps"],
        }

    def _update_sparse(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        sums, steps = bucket.states
        if group["weight_decay"] != 0 and any(grad.is_sparse for grad in grads):
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        for param, grad, total, step in zip(bucket.params, grads, sums, steps):
            if not grad.is_sparse:
                self._fused(group, _Bucket([0], [param], ([total], [step]), False), [grad])
                continue
            step.add_(1)
            grad = (-grad if group["maximize"] else grad).coalesce()
            total.add_(grad.square())
            divisor = total.sparse_mask(grad)._values().sqrt_().add_(group["eps"])
            change = vesta.sparse_coo_tensor(grad._indices(), grad._values() / divisor, grad.shape, is_coalesced=True)
            param.add_(change, alpha=-number(group["lr"]) / (1 + (step.item() - 1) * group["lr_decay"]))
