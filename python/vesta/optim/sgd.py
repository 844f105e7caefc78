"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.optimizer import Optimizer, ParamsT, _Bucket, check, number
from vesta.optim.rule import hyperparameters

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent: p -= lr * g, with momentum b = momentum * b + (1 - dampening) * g in place of g.

    Nesterov: g + momentum * b in place of g (Sutskever et al., "On the importance of initialization and momentum in
    deep learning", 2013). ``weight_decay`` adds weight_decay * p to g. The first step sets b = g.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        momentum, dampening: see above.
        weight_decay: strength of the L2 penalty.
        nesterov: needs a momentum and no dampening.
        maximize: ascend instead of descending.
        foreach, fused: accepted for PyTorch's sake; the step is always fused.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.SGD([weight], lr=0.1, momentum=0.9)
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> weight.data
        tensor([0.7000])
    """

    _shaped_like_param = ("momentum_buffer",)
    _may_be_none = ("momentum_buffer",)

    @hyperparameters
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check("momentum", momentum, number(momentum) >= 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _options(self, group: dict[str, Any]) -> Any:
        return group["momentum"] != 0

    def _is_new(self, param: Tensor) -> bool:
        return self.state.get(param, {}).get("momentum_buffer") is None

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> tuple[list[Tensor], ...]:
        if group["momentum"] == 0:
            return ([],)
        for param in params:
            if self.state[param].get("momentum_buffer") is None:
                self.state[param]["momentum_buffer"] = vesta.zeros_like(param).detach()
        return ([self.state[param]["momentum_buffer"] for param in params],)

    def _update_sparse(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        for i, (param, grad) in enumerate(zip(bucket.params, grads)):
            momenta = bucket.states[0][i : i + 1]
            if not grad.is_sparse:
                self._fused(group, _Bucket([0], [param], (momenta,), bucket.first), [grad])
                continue
            if group["weight_decay"] != 0:
                raise RuntimeError("SGD: weight_decay option is not compatible with sparse gradients")
            change = -grad if group["maximize"] else grad
            if momenta:
                (momentum,) = momenta
                momentum.mul_(group["momentum"]).add_(change, alpha=1.0 if bucket.first else 1 - group["dampening"])
                change = (momentum * group["momentum"]).add_(change) if group["nesterov"] else momentum
            param.add_(change, alpha=-number(group["lr"]))

    def _fused(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        _C._fused_sgd_(
            bucket.params,
            grads,
            bucket.states[0],
            weight_decay=number(group["weight_decay"]),
            momentum=group["momentum"],
            lr=number(group["lr"]),
            dampening=group["dampening"],
            nesterov=bool(group["nesterov"]),
            maximize=bool(group["maximize"]),
            is_first_step=bucket.first,
        )
