"""Normalisations that check their input here."""

from __future__ import annotations

from vesta import Tensor
from vesta._arguments import expect

from .ops import ops

__all__ = ["batch_norm"]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """batch_norm: normalises ``input`` [N, C, ...] per channel, by its own statistics if training, else by running
    ones.

    Args:
        running_mean, running_var: [C]; updated in place by ``momentum`` if ``training``.
        weight, bias: [C]; scale and shift afterwards.

    Raises:
        ValueError: ``training`` with a single value per channel, whose variance is not defined.
    """
    expect("batch_norm", "input", input, Tensor, "Tensor")
    if training and input.dim() > 1 and input.numel() == input.size(1):
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    return ops.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
