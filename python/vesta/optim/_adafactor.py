"""Adafactor."""

from __future__ import annotations

from numbers import Real
from typing import Any

import vesta
from vesta import Tensor
from vesta.optim.optimizer import ParamsT
from vesta.optim.rule import RuleOptimizer, hyperparameters, moving_average

__all__ = ["Adafactor"]


class Adafactor(RuleOptimizer):
    """Adafactor: Adam without momentum whose second moment of a matrix is the product of those of its rows and columns.

    Shazeer and Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: the largest relative step; that of step t is min(lr, 1 / sqrt(t)).
        beta2_decay: the averages keep 1 - t ** beta2_decay.
        eps: (the least root of a second moment, default: the spacing of numbers at 1; the least size of a parameter).
        d: an update whose root mean square is greater than d is scaled down to it.
        weight_decay: the parameter is first multiplied by 1 - lr * weight_decay.
        foreach: accepted for PyTorch's sake; makes no difference.
        maximize: ascend instead of descending.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(2, 2))
        >>> optimizer = vesta.optim.Adafactor([weight], lr=0.1)
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> [tuple(value.shape) for value in optimizer.state[weight].values()]
        [(), (2, 1), (1, 2)]
    """

    @hyperparameters
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if not isinstance(eps, (tuple, list)) or len(eps) != 2 or not isinstance(eps[1], Real):
            raise TypeError(f"Adafactor: expected (number or None, number), got {eps!r} (eps).")
        limits = {
            "beta2_decay should be <= 0": (beta2_decay, beta2_decay <= 0.0),
            "epsilon1 should be >= 0": (eps[0], eps[0] is None or (isinstance(eps[0], Real) and eps[0] >= 0.0)),
            "epsilon2 should be >= 0": (eps[1], eps[1] >= 0.0),
            "Clipping threshold d should be >= 1": (d, d >= 1.0),
        }
        for rule, (value, holds) in limits.items():
            if not holds:
                raise ValueError(f"{rule} but is: {value}")

    def _decayed(self, group: dict[str, Any], param: Tensor, grad: Tensor, lr: float) -> Tensor:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        return grad

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        if param.dim() < 2:
            return {"variance": vesta.zeros_like(param).detach()}
        *lead, rows, columns = param.shape
        return {"row_var": param.new_zeros((*lead, rows, 1)), "col_var": param.new_zeros((*lead, 1, columns))}

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        least, smallest = group["eps"]
        least = vesta.finfo(param.dtype).eps if least is None else least
        keep = 1 - step ** group["beta2_decay"]
        scale = max(smallest, _root_mean_square(param)) * min(lr, step**-0.5)
        if group["weight_decay"] != 0:
            param.mul_(1 - lr * group["weight_decay"])
        square = grad * grad
        if param.dim() < 2:
            second = moving_average(state["variance"], square, keep).clone()
        else:
            row = moving_average(state["row_var"], square.mean(-1, keepdim=True), keep)
            column = moving_average(state["col_var"], square.mean(-2, keepdim=True), keep)
            second = (row @ column).div_(row.mean(-2, keepdim=True).clamp(min=least))
        update = second.clamp(min=least * least).rsqrt_().mul_(grad)
        param.add_(update, alpha=-scale / max(1.0, _root_mean_square(update) / group["d"]))


def _root_mean_square(x: Tensor) -> float:
    return vesta.norm(x).item() / max(x.numel(), 1) ** 0.5
