"""Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta.optim.adam import Adam
from vesta.optim.optimizer import ParamsT

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam that first shrinks each parameter by the factor 1 - lr * weight_decay.

    Loshchilov and Hutter, "Decoupled weight decay regularization", 2019. Arguments as for ``Adam``.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(1))
        >>> optimizer = vesta.optim.AdamW([weight], lr=0.1, weight_decay=0.5)
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> weight.data
        tensor([0.8500])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True  # a checkpoint of Adam does not turn this into Adam
