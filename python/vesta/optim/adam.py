"""Adam."""

from __future__ import annotations

from functools import partial
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.optimizer import Optimizer, ParamsT, _Bucket, number
from vesta.optim.rule import hyperparameters
from vesta.optim.state_dict import number_tensor

__all__ = ["Adam"]


class Adam(Optimizer):
    """Adam: p -= lr * m / (sqrt(v) + eps), m and v being bias-corrected running means of g and g ** 2.

    Kingma and Ba, "Adam: a method for stochastic optimization", 2015; ``amsgrad``: Reddi et al., "On the convergence of
    Adam and beyond", 2018, which uses the largest v seen.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        betas: the parts of m and of v that remain after a step.
        eps: keeps the divisor from zero.
        weight_decay: strength of the L2 penalty; with ``decoupled_weight_decay`` of the decay, as in ``AdamW``.
        amsgrad: see above.
        maximize: ascend instead of descending.
        foreach, fused: accepted for PyTorch's sake; the step is always fused.
        decoupled_weight_decay: decay the parameter itself, not through g.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.Adam([weight], lr=0.1)
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> weight.data
        tensor([0.9000])
    """

    _shaped_like_param = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    @partial(
        hyperparameters,
        order="lr betas eps weight_decay amsgrad maximize foreach capturable "
        "differentiable fused decoupled_weight_decay",
    )
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        """See the class."""

    def _options(self, group: dict[str, Any]) -> Any:
        return group["amsgrad"]

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> tuple[list[Tensor], ...]:
        names = ["exp_avg", "exp_avg_sq", *(["max_exp_avg_sq"] if group["amsgrad"] else [])]
        for param in params:
            state = self.state[param]
            if "step" not in state:
                state["step"] = vesta.zeros((), dtype=vesta.float32, device="cpu")
            state["step"] = number_tensor(state["step"])
            for name in names:
                if name not in state:
                    state[name] = vesta.zeros_like(param).detach()
        lists = [[self.state[param][name] for param in params] for name in (*names, "step")]
        return (lists[0], lists[1], lists[2] if group["amsgrad"] else [], lists[-1])

    def _fused(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps = bucket.states
        beta1, beta2 = group["betas"]
        _C._fused_adam_(
            bucket.params,
            grads,
            exp_avgs,
            exp_avg_sqs,
            max_exp_avg_sqs,
            steps,  # the operation increments them itself
            lr=number(group["lr"]),
            beta1=number(beta1),
            beta2=number(beta2),
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=bool(group["amsgrad"]),
            maximize=bool(group["maximize"]),
            decoupled=bool(group["decoupled_weight_decay"]),
        )
