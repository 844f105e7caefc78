"""RMSprop."""

from __future__ import annotations

from functools import partial
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.optimizer import Optimizer, ParamsT, _Bucket, check, number
from vesta.optim.rule import hyperparameters
from vesta.optim.state_dict import number_tensor

__all__ = ["RMSprop"]


class RMSprop(Optimizer):
    """RMSprop: p -= lr * g / (sqrt(v) + eps), v being a running mean of g ** 2.

    Hinton, lecture 6e of the Coursera course "Neural networks for machine learning", 2012; ``centered``: Graves,
    "Generating sequences with recurrent neural networks", 2013, which subtracts the square of g's running mean from v.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        alpha: the part of v that remains after a step.
        eps: keeps the divisor from zero.
        weight_decay: strength of the L2 penalty.
        momentum: b = momentum * b + g / (sqrt(v) + eps) in place of the quotient.
        centered: see above.
        foreach: accepted for PyTorch's sake; the step is always fused.
        maximize: ascend instead of descending.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.RMSprop([weight], lr=0.01)
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> weight.data
        tensor([0.9000])
    """

    _shaped_like_param = ("square_avg", "momentum_buffer", "grad_avg")

    @partial(
        hyperparameters,
        order="lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable",
    )
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check("momentum", momentum, momentum >= 0.0)
        check("alpha", alpha, alpha >= 0.0)

    def _options(self, group: dict[str, Any]) -> Any:
        return group["momentum"] > 0, group["centered"]

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> tuple[list[Tensor], ...]:
        used = {"square_avg": True, "grad_avg": group["centered"], "momentum_buffer": group["momentum"] > 0}
        for param in params:
            state = self.state[param]
            if "step" not in state:
                state["step"] = vesta.zeros((), dtype=vesta.float32, device="cpu")
            state["step"] = number_tensor(state["step"])
            for name in ("square_avg", "momentum_buffer", "grad_avg"):  # PyTorch's order
                if used[name] and name not in state:
                    state[name] = vesta.zeros_like(param).detach()
        used["step"] = True
        lists = [[self.state[param][name] for param in params] if used[name] else [] for name in used]
        return tuple(lists)

    def _fused(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        square_avgs, grad_avgs, momentum_buffer_list, steps = bucket.states
        _C._fused_rmsprop_(
            bucket.params,
            grads,
            square_avgs,
            grad_avgs,
            momentum_buffer_list,
            steps,  # the operation increments them itself
            lr=number(group["lr"]),
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            centered=bool(group["centered"]),
            maximize=bool(group["maximize"]),
        )
