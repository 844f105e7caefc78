"""Adafactor."""

from __future__ import annotations

from numbers import Real
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta.optim.optimizer import ParamsT
from vesta.optim.rule import RuleOptimizer, Update, alike, hyperparameters, move_averages

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

    def _rules(self, group: dict[str, Any], updates: list[Update], lr: float) -> None:
        for same in alike(updates, lambda u: (u[0].shape, u[0].dtype, u[0].device, u[3]), lambda u: u[0].numel()):
            self._update_alike(group, same, same[0][3], lr)

    def _update_alike(self, group: dict[str, Any], updates: list[Update], step: float, lr: float) -> None:
        """Updates parameters of one shape, all of them by each operation; the host waits for nothing."""
        params = [param for param, _, _, _ in updates]
        grads = vesta.stack([grad for _, grad, _, _ in updates])
        least, smallest = group["eps"]
        least = vesta.finfo(grads.dtype).eps if least is None else least
        keep = 1 - step ** group["beta2_decay"]
        # not of a stack, which would be a copy
        sizes = vesta.stack(vesta._foreach_norm(params)).double() / max(params[0].numel(), 1) ** 0.5
        scales = sizes.clamp(min=smallest) * min(lr, step**-0.5)
        if group["weight_decay"] != 0:
            vesta._foreach_mul_(params, 1 - lr * group["weight_decay"])

        def moved(name: str, values: Tensor) -> Tensor:
            averages = vesta.zeros_like(values)
            move_averages([state[name] for _, _, state, _ in updates], values, keep, averages, 1.0)
            return averages

        square = grads * grads
        if params[0].dim() < 2:
            second = moved("variance", square)
        else:
            row = moved("row_var", square.mean(-1, keepdim=True))
            column = moved("col_var", square.mean(-2, keepdim=True))
            second = (row @ column).div_(row.mean(-2, keepdim=True).clamp_(min=least))
        change = second.clamp_(min=least * least).rsqrt_().mul_(grads)
        norms = vesta.linalg.vector_norm(change.flatten(1) if change.dim() > 1 else change.unsqueeze(1), dim=1)
        scales /= (norms.double() / (max(params[0].numel(), 1) ** 0.5 * group["d"])).clamp(min=1.0)
        change *= scales.to(change.dtype).view(-1, *(1,) * params[0].dim())
        _C._fused_sgd_(params, list(change.unbind()), [], 0.0, 0.0, 1.0, 0.0, False, False, False)
