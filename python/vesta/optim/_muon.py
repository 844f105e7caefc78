"""Muon."""

from __future__ import annotations

import math
from typing import Any, cast

import vesta
from vesta import _C, Tensor
from vesta.optim.optimizer import ParamsT, check, number
from vesta.optim.rule import RuleOptimizer, alike, expect_line, hyperparameters, move_averages, zeros

__all__ = ["Muon"]


class Muon(RuleOptimizer):
    """Momentum whose update of a matrix is replaced by the nearest one with orthogonal rows, by Newton-Schulz
    iterations.

    Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024. For matrices of hidden layers;
    biases, embeddings and the last layer are better left to ``AdamW``.

    Args:
        params: matrices, (name, matrix) pairs, or dicts of them with their own options.
        lr: step size.
        weight_decay: the parameter is first multiplied by 1 - lr * weight_decay.
        momentum: the part of the average that remains after a step.
        nesterov: look ahead.
        ns_coefficients: a, b, c of the iteration x = a * x + (b * y + c * y ** 2) x with y = x x'.
        eps: keeps the norm by which the update is divided from zero.
        ns_steps: the number of iterations, below 100.
        adjust_lr_fn: the factor of ``lr``: sqrt(max(1, rows / columns)) for ``"original"`` and None,
            0.2 * sqrt(max(rows, columns)) for ``"match_rms_adamw"``, sqrt(rows / columns) for ``"spectral_unclamped"``.

    Example::

        >>> import vesta
        >>> weight = vesta.nn.Parameter(vesta.ones(2, 2))
        >>> optimizer = vesta.optim.Muon([weight], lr=0.1)
        >>> (weight * 3).sum().backward()
        >>> optimizer.step()
        >>> bool((weight < 1).all())
        True
    """

    _shaped_like_param = ("momentum_buffer",)

    @hyperparameters
    def __init__(
        self,
        params: ParamsT,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        check("momentum", momentum, momentum >= 0.0)
        expect_line("Muon", "ns_coefficients", ns_coefficients, "three numbers")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        if ns_steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of matrices; raises for other tensors."""
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            if param.dim() != 2:
                self.param_groups.pop()
                raise ValueError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
                )

    def _update(self, group: dict[str, Any]) -> None:
        params = [param for param in group["params"] if param.grad is not None]
        if any(param.is_complex() for param in params):
            raise RuntimeError("Muon does not support complex parameters")
        for param in params:  # their state has no step, so that it is not the base's
            if "momentum_buffer" not in self.state[param]:
                self.state[param].update(zeros(param, "momentum_buffer"))
        for same in alike(params, lambda p: (p.shape, p.dtype, p.device), lambda p: p.numel()):
            self._update_alike(group, same)

    def _update_alike(self, group: dict[str, Any], params: list[Tensor]) -> None:
        """Updates matrices of one shape, all of them by each operation."""
        grads = vesta.stack([cast(Tensor, param.grad) for param in params])
        averages = [self.state[param]["momentum_buffer"] for param in params]
        lr, momentum, nesterov = number(group["lr"]), group["momentum"], group["nesterov"]
        updates = grads * (1 - momentum) if nesterov else vesta.zeros_like(grads)
        move_averages(averages, grads, momentum, updates, momentum if nesterov else 1.0)
        updates = _orthogonal(updates, group["ns_coefficients"], group["ns_steps"], group["eps"]).to(params[0].dtype)
        rows, columns = params[0].shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            least = 0 if group["adjust_lr_fn"] == "spectral_unclamped" else 1
            ratio = math.sqrt(max(least, rows / columns))
        vesta._foreach_mul_(params, 1 - lr * group["weight_decay"])
        _C._fused_sgd_(params, list(updates.unbind()), [], 0.0, 0.0, lr * ratio, 0.0, False, False, False)


def _orthogonal(matrices: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Returns for each matrix about the nearest one with orthogonal rows (or columns, the fewer), in bfloat16."""
    a, b, c = coefficients
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.to(vesta.bfloat16)
    x = x.mT if tall else x
    x = x / vesta.linalg.vector_norm(x, dim=(1, 2), keepdim=True).clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.mT
        x = vesta.baddbmm(x, vesta.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
