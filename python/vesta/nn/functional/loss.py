"""Losses, in PyTorch's argument order: ``size_average`` and ``reduce`` are its old way to say ``reduction``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect

from .ops import ops

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Converts the two arguments that ``reduction`` replaced to it, with PyTorch's warning."""
    if size_average is None and reduce is None:
        return reduction
    mean, reduced = size_average is not False, reduce is not False
    chosen = "none" if not reduced else "mean" if mean else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{chosen}' instead.", stacklevel=3
    )
    return chosen


def _same_sizes(op: str, input: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
    """Warns of a target that is broadcast; checks the weights of elements."""
    expect(op, "input", input, Tensor, "Tensor")
    expect(op, "target", target, Tensor, "Tensor")
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )
    if weight is not None:
        expect(op, "weight", weight, Tensor, "Tensor or None")
        if weight.shape != input.shape:
            raise ValueError("Weights and input must have the same size.")


def _weighted(losses: Tensor, weight: Tensor, reduction: str, divisor: Any = None) -> Tensor:
    """Returns the reduced losses of elements with a factor each; ``divisor`` is that of the mean, default their
    number."""
    losses = losses * weight
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return losses.mean() if divisor is None else losses.sum() / divisor
    raise ValueError(f"{reduction} is not a valid value for reduction")


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Returns -log softmax(input)[target], averaged: the loss of a classifier.

    Args:
        input: logits [C], [N, C] or [N, C, d1, ...].
        target: class numbers, [], [N] or [N, d1, ...], or probabilities of ``input``'s shape.
        weight: [C], a factor for each class.
        ignore_index: a class number that is ignored.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: the part of the target spread over all classes, in [0, 1].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.cross_entropy(vesta.zeros(2, 4), vesta.tensor([1, 3]))
        tensor(1.3863)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """nll_loss: -input[target], averaged: ``cross_entropy`` for log-probabilities, with the same shapes.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.nll_loss(vesta.tensor([[-1.0, -2.0]]), vesta.tensor([1]))
        tensor(2.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


#: Whether ``mse_loss`` broadcasts and promotes dtypes, as PyTorch's does; ``vesta.as_torch`` sets it.
MSE_BROADCASTS = False


def _squares(input: Tensor, target: Tensor) -> Tensor:
    try:
        return ops.mse_loss(input, target, "none")
    except (ValueError, TypeError):
        return _squares_of_two_kinds(input, target, "none")


def _squares_of_two_kinds(input: Tensor, target: Tensor, reduction: str) -> Tensor:
    """Broadcasts and promotes what ``mse_loss`` has refused, or raises the error that is being handled."""
    if not MSE_BROADCASTS or (input.shape == target.shape and input.dtype == target.dtype):
        raise
    dtype = vesta.result_type(input, target)
    return ops.mse_loss(*vesta.broadcast_tensors(input.to(dtype), target.to(dtype)), reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Returns (input - target) ** 2, averaged.

    Args:
        weight: of the input's shape: a factor for each element; the mean divides by their sum.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.mse_loss(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(5.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    _same_sizes("mse_loss", input, target, weight)
    if weight is not None:
        return _weighted(_squares(input, target), weight, reduction, weight.sum())
    try:
        return ops.mse_loss(input, target, reduction)
    except (ValueError, TypeError):  # of the operation's own checks
        return _squares_of_two_kinds(input, target, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Returns abs(input - target), averaged.

    Args:
        weight: of the input's shape: a factor for each element; the mean divides by their sum.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.l1_loss(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(2.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    _same_sizes("l1_loss", input, target, weight)
    if weight is not None:
        return _weighted(ops.l1_loss(input, target, "none"), weight, reduction, weight.sum())
    return ops.l1_loss(input, target, reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Returns 0.5 * d ** 2 / beta where d = abs(input - target) is less than ``beta``, d - 0.5 * beta elsewhere,
    averaged.

    Girshick, "Fast R-CNN", 2015.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.smooth_l1_loss(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(1.5000)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    _same_sizes("smooth_l1_loss", input, target)
    if beta == 0:
        return ops.l1_loss(input, target, reduction)
    return ops.smooth_l1_loss(input, target, reduction, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Returns 0.5 * d ** 2 where d = abs(input - target) is at most ``delta``, delta * (d - 0.5 * delta) elsewhere,
    averaged.

    Huber, "Robust estimation of a location parameter", 1964.

    Args:
        weight: of the input's shape: a factor for each element; the mean divides by their number.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.huber_loss(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(1.5000)
    """
    _same_sizes("huber_loss", input, target, weight)
    if weight is not None:
        return _weighted(ops.huber_loss(input, target, "none", delta), weight, reduction)
    return ops.huber_loss(input, target, reduction, delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns -(target * log(input) + (1 - target) * log(1 - input)), averaged; logarithms are at least -100.

    Args:
        input: probabilities.
        target: probabilities, of the same shape.
        weight: a factor for each element, broadcast.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.binary_cross_entropy(vesta.tensor([0.5, 0.5]), vesta.tensor([0.0, 1.0]))
        tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    expect("binary_cross_entropy", "input", input, Tensor, "Tensor")
    expect("binary_cross_entropy", "target", target, Tensor, "Tensor")
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is "
            "deprecated. Please ensure they have the same size."
        )
    return ops.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """-(target * log s + (1 - target) * log(1 - s)) for s = sigmoid(input), averaged: the loss of a binary classifier,
    without overflow.

    Args:
        input, target: of the same shape; targets are probabilities.
        weight: a factor for each element, broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: a factor for the first term, broadcast.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.binary_cross_entropy_with_logits(vesta.zeros(2), vesta.tensor([0.0, 1.0]))
        tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.binary_cross_entropy_with_logits(input, target, weight, reduction, pos_weight)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Returns target * (log(target) - input), averaged: the divergence of ``target`` from log-probabilities ``input``.

    Kullback and Leibler, "On information and sufficiency", 1951.

    Args:
        reduction: ``"mean"`` divides by the number of elements, ``"batchmean"`` (the divergence) by the first size.
        log_target: the target holds logarithms too.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.kl_div(vesta.zeros(1, 2), vesta.ones(1, 2), reduction="batchmean")
        tensor(0.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    expect("kl_div", "input", input, Tensor, "Tensor")
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. "
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition. "
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    result = ops.kl_div(input, target, "sum" if reduction == "batchmean" else reduction, log_target=log_target)
    return result / input.shape[0] if reduction == "batchmean" and input.dim() else result


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns exp(input) - target * input, averaged: the negative log-likelihood of counts ``target``.

    Args:
        log_input: ``input`` is the logarithm of the rate; if not, the loss is input - target * log(input + eps).
        full: add Stirling's target * log(target) - target + log(2 pi target) / 2 for targets above 1.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.poisson_nll_loss(vesta.zeros(2), vesta.ones(2))
        tensor(1.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return ops.poisson_nll_loss(input, target, log_input, full, eps, reduction)


@checked
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Returns 0.5 * (log(v) + (input - target) ** 2 / v) with v = max(var, eps), averaged.

    Nix and Weigend, "Estimating the mean and variance of the target probability distribution", 1994.

    Args:
        var: variances, of the input's shape, without its last dimension or with size 1 in one; or one number.
        full: add log(2 pi) / 2.

    Raises:
        ValueError: a variance is negative, or ``var`` has a wrong shape.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.gaussian_nll_loss(vesta.zeros(2), vesta.ones(2), vesta.ones(2))
        tensor(0.5000)
    """
    expect("gaussian_nll_loss", "input", input, Tensor, "Tensor")
    expect("gaussian_nll_loss", "target", target, Tensor, "Tensor")
    expect("gaussian_nll_loss", "var", var, (Tensor, float, int), "Tensor or float")
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = vesta.full_like(input, float(var))
    elif not var.is_meta and bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)  # one variance for the last dimension
        elif input.dim() != var.dim() or [v for v, size in zip(var.shape, input.shape) if v != size] != [1]:
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    var = var.detach().clamp(min=eps) + (var - var.detach())  # the clamp has the gradient 1 everywhere
    losses = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns ``input`` where ``target`` is 1 and max(0, margin - input) where it is -1, averaged.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.hinge_embedding_loss(vesta.tensor([0.5, 0.25]), vesta.tensor([1.0, -1.0]))
        tensor(0.6250)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.hinge_embedding_loss(input, target, margin, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns max(0, -target * (input1 - input2) + margin), averaged: ``target`` 1 wants ``input1`` above ``input2``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.margin_ranking_loss(vesta.zeros(2), vesta.ones(2), vesta.ones(2))
        tensor(1.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    for name, value in (("input1", input1), ("input2", input2), ("target", target)):
        expect("margin_ranking_loss", name, value, Tensor, "Tensor")
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return ops.margin_ranking_loss(input1, input2, target, margin, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns log(1 + exp(-target * input)), averaged; targets are 1 or -1.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.soft_margin_loss(vesta.zeros(2), vesta.ones(2))
        tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.soft_margin_loss(input, target, reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns the sum over classes i and targets j of max(0, 1 - (input[j] - input[i])) / C, averaged over the batch.

    Args:
        input: [C] or [N, C].
        target: class numbers of the same shape; those of a row end at its first -1.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.multilabel_margin_loss(vesta.zeros(1, 3), vesta.tensor([[1, -1, 0]]))
        tensor(0.6667)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.multilabel_margin_loss(input, target, reduction)


@checked
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns the mean over classes of -(target * log s + (1 - target) * log(1 - s)) for s = sigmoid(input), averaged.

    Args:
        input, target: [*, C].
        weight: [C], a factor for each class.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.multilabel_soft_margin_loss(vesta.zeros(1, 3), vesta.ones(1, 3))
        tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    expect("multilabel_soft_margin_loss", "input", input, Tensor, "Tensor")
    expect("multilabel_soft_margin_loss", "target", target, Tensor, "Tensor")
    losses = -(target * ops.logsigmoid(input) + (1 - target) * ops.logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    losses = losses.sum(-1) / input.size(-1)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns the sum over other classes i of max(0, margin - input[target] + input[i]) ** p / C, averaged over the
    batch.

    Args:
        input: [C] or [N, C].
        target: class numbers, [] or [N].
        p: 1 or 2.
        weight: [C], a factor for each target class.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.multi_margin_loss(vesta.zeros(1, 4), vesta.tensor([1]))
        tensor(0.7500)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.multi_margin_loss(input, target, p, margin, weight, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns 1 - cos(input1, input2) where ``target`` is 1 and max(0, cos - margin) where it is -1, averaged.

    Args:
        input1, input2: [N, D], with ``target`` [N]; or [D], with ``target`` [].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.cosine_embedding_loss(vesta.ones(1, 2), vesta.ones(1, 2), -vesta.ones(1))
        tensor(1.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    return ops.cosine_embedding_loss(input1, input2, target, margin, reduction)


@checked
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Returns max(0, d(anchor, positive) - d(anchor, negative) + margin), averaged; d is ``pairwise_distance``.

    Balntas et al., "Learning local feature descriptors with triplets and shallow convolutional neural networks", 2016.

    Args:
        anchor, positive, negative: [N, D] or [D].
        p, eps: of the distance.
        swap: use the distance of ``positive`` and ``negative`` where it is the smaller one.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.triplet_margin_loss(vesta.zeros(1, 2), vesta.zeros(1, 2), vesta.zeros(1, 2))
        tensor(1.)
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)


@checked
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Returns ``triplet_margin_loss`` with a distance of one's own; default: ``pairwise_distance``.

    Example::

        >>> import vesta
        >>> x = vesta.zeros(1, 2)
        >>> vesta.nn.functional.triplet_margin_with_distance_loss(x, x, x, margin=0.5)
        tensor(0.5000)
    """
    for name, value in (("anchor", anchor), ("positive", positive), ("negative", negative)):
        expect("triplet_margin_with_distance_loss", name, value, Tensor, "Tensor")
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    distance = ops.pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = vesta.minimum(far, distance(positive, negative))
    losses = (margin + near - far).clamp(min=0)
    return losses if reduction == "none" else losses.mean() if reduction == "mean" else losses.sum()


@checked
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Returns -log P(target | input) over all alignments: connectionist temporal classification.

    Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent neural
    networks", 2006.

    Args:
        log_probs: [T, N, C] or [T, C], logarithms of probabilities.
        targets: [N, S], or all targets one after another; class numbers other than ``blank``.
        input_lengths, target_lengths: [N]: the length of each input (at most T) and target.
        blank: the number of the blank.
        reduction: ``"mean"`` divides each loss by its target's length, then averages.
        zero_infinity: set infinite losses, of inputs that are too short, and their gradients to zero.

    Example::

        >>> import vesta
        >>> log_probs = vesta.zeros(2, 1, 2).log_softmax(2)
        >>> vesta.nn.functional.ctc_loss(log_probs, vesta.tensor([[1]]), [2], [1])
        tensor(0.2877)
    """
    expect("ctc_loss", "log_probs", log_probs, Tensor, "Tensor")
    lengths = [
        _lengths(name, value)
        for name, value in zip(("input_lengths", "target_lengths"), (input_lengths, target_lengths))
    ]
    return ops.ctc_loss(log_probs, targets, *lengths, blank, reduction, zero_infinity)


def _lengths(name: str, value: Any) -> Any:
    """Returns lengths as a list of integers."""
    expect("ctc_loss", name, value, (Tensor, tuple, list), "a list of integers or a Tensor")
    if not isinstance(value, Tensor):
        return value
    if value.is_floating_point():
        raise RuntimeError(f"{name} must be integral, got {value.dtype}")
    return value.reshape(-1).tolist()
