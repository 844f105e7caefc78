"""SparseAdam."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta.optim.optimizer import ParamsT, number
from vesta.optim.rule import RuleOptimizer, hyperparameters, zeros

__all__ = ["SparseAdam"]


def _with(grad: Tensor, values: Tensor) -> Tensor:
    """Returns a sparse tensor of ``values`` at the places of a gradient."""
    return vesta.sparse_coo_tensor(grad._indices(), values, grad.shape, is_coalesced=True)


class SparseAdam(RuleOptimizer):
    """Adam for sparse gradients: moments and parameters change only where the gradient has elements.

    m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g ** 2, p -= lr sqrt(1 - b2 ** t) / (1 - b1 ** t) m / (sqrt(v) + eps).
    Kingma and Ba, "Adam: a method for stochastic optimization", 2015; at the stored places only.

    Args:
        params: tensors, (name, tensor) pairs, or dicts of them with their own options.
        lr: step size.
        betas: the factors b1 and b2.
        eps: keeps the divisor from zero.
        maximize: ascend instead of descending.

    Raises:
        RuntimeError: ``step`` meets a dense gradient.

    Example::

        >>> import vesta
        >>> table = vesta.nn.Embedding(3, 1, sparse=True)
        >>> optimizer = vesta.optim.SparseAdam(table.parameters())
        >>> table(vesta.tensor([1])).sum().backward()
        >>> optimizer.step()
    """

    _shaped_like_param = ("exp_avg", "exp_avg_sq")

    @hyperparameters
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        """See the class."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of dense parameters of real numbers; raises for sparse and complex ones."""
        super().add_param_group(param_group)
        params = self.param_groups[-1]["params"]
        for kind, found, said in (
            ("Sparse", [param.is_sparse for param in params], "SparseAdam requires dense parameter tensors"),
            ("Complex", [param.is_complex() for param in params], "SparseAdam does not support complex parameters"),
        ):
            if any(found):
                self.param_groups.pop()
                places = [[len(self.param_groups), i] for i, bad in enumerate(found) if bad]
                raise ValueError(f"{kind} params at indices {places}: {said}")

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return zeros(param, "exp_avg", "exp_avg_sq")

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _sparse_rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        g = grad._values()
        if g.numel() == 0:
            return
        first, second = (state[name].sparse_mask(grad)._values() for name in ("exp_avg", "exp_avg_sq"))
        beta1, beta2 = map(number, group["betas"])
        change, change_sq = (g - first) * (1 - beta1), (g * g - second) * (1 - beta2)
        state["exp_avg"].add_(_with(grad, change))
        state["exp_avg_sq"].add_(_with(grad, change_sq))
        divisor = (second + change_sq).sqrt_().add_(group["eps"])
        size = lr * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
        param.add_(_with(grad, (first + change) / divisor), alpha=-size)
