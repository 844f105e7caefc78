"""A classifier's last layer and its loss in one, whole or in parts of the batch."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect

from .ops import ops

__all__ = ["linear_cross_entropy"]


@checked
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Returns ``cross_entropy`` of input @ linear_weight' + linear_bias: the last layer of a classifier and its loss.

    Args:
        input: [N, in_features] or [in_features].
        linear_weight: [C, in_features], or [C, d1, ..., in_features] for several targets of an example.
        target: class numbers [N], [] or [N, d1, ...], or probabilities of the logits' shape [N, C, d1, ...].
        linear_bias: [C] or [C, d1, ...].
        weight, reduction, ignore_index, label_smoothing: as for ``cross_entropy``; None means -100.
        options: an ``nn.LinearCrossEntropyOptions``: the batch is worked on in parts, and logits are computed again
            in backward instead of being kept: memory for those of one part. For weights [C, in_features].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.linear_cross_entropy(vesta.ones(2, 3), vesta.zeros(4, 3), vesta.tensor([1, 3]))
        tensor(1.3863)
    """
    if linear_weight.dim() < 2:
        raise RuntimeError(
            "linear_cross_entropy: expected a weight [classes, ..., features], got "
            f"{list(linear_weight.shape)} (linear_weight)."
        )
    classes, *more, features = linear_weight.shape
    if more and input.dim() != 2:
        raise ValueError(
            f"linear_cross_entropy: K-dimensional loss defined by linear_weight shape {list(linear_weight.shape)} "
            f"requires batched input, (N, {features}), got unbatched input {list(input.shape)}"
        )
    if ignore_index is not None and target.dtype.is_floating_point:
        raise ValueError("linear_cross_entropy: ignore_index cannot be specified when target contains probabilities")
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    if options is not None:
        from vesta.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions

        expect("linear_cross_entropy", "options", options, LinearCrossEntropyOptions, "LinearCrossEntropyOptions")
        if not more and input.dim() == 2 and len(input) > 0:
            part = options.part_of(len(input), features, classes, target.dtype.is_floating_point)
            return _in_parts(input, linear_weight, target, bias, weight, reduction, ignore_index, label_smoothing, part)
    logits = ops.linear(input, linear_weight.reshape(-1, features), bias)
    logits = logits.reshape(*input.shape[:-1], classes, *more)
    ignored = -100 if ignore_index is None else ignore_index
    return ops.cross_entropy(logits, target, weight, ignored, reduction, label_smoothing)


def _in_parts(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int | None,
    label_smoothing: float,
    part: int,
) -> Tensor:
    """Returns the loss of [N, in_features], ``part`` examples at a time, whose logits are not kept for backward."""
    from vesta.utils.checkpoint import checkpoint

    ignored = -100 if ignore_index is None else ignore_index

    def losses(input: Tensor, target: Tensor) -> Tensor:
        logits = ops.linear(input, linear_weight, bias)
        return ops.cross_entropy(logits, target, weight, ignored, "none", label_smoothing)

    if target.dim() == 0 or len(target) != len(input) or reduction not in ("none", "mean", "sum"):
        return ops.cross_entropy(
            ops.linear(input, linear_weight, bias), target, weight, ignored, reduction, label_smoothing
        )  # which says what is wrong
    pieces = zip(input.split(part), target.split(part))
    each = vesta.cat([checkpoint(losses, *piece, use_reentrant=False) for piece in pieces])
    if reduction == "none":
        return each
    wide = each.to(vesta.promote_types(each.dtype, vesta.float32))  # 16-bit losses are added up in float32
    if reduction == "sum":
        return wide.sum().to(each.dtype)
    if target.dtype.is_floating_point:
        return wide.mean().to(each.dtype)
    counted = target != ignored
    if weight is None:
        return (wide.sum() / counted.sum()).to(each.dtype)
    shares = weight.to(wide.dtype)[target.where(counted, 0)].where(counted, 0.0)
    return (wide.sum() / shares.sum()).to(each.dtype)
