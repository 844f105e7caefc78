"""Losses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from vesta import Tensor
from vesta._arguments import expect
from vesta.nn import functional as F
from vesta.nn.modules.distance import PairwiseDistance
from vesta.nn.modules.function_layer import FunctionLayer, stored

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


class _Loss(FunctionLayer):
    """The base of losses: it keeps how the values of a batch become one, and its tensors as buffers."""

    _reductions: tuple[str, ...] = ("none", "mean", "sum")
    reduction: str

    @stored
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None: ...

    def _store(self, arguments: dict[str, Any]) -> None:
        old = arguments.pop("size_average", None), arguments.pop("reduce", None)
        arguments["reduction"] = F._reduction(*old, arguments["reduction"])
        if arguments["reduction"] not in self._reductions:
            raise ValueError(f"{arguments['reduction']} is not a valid value for reduction")
        for name in ("weight", "pos_weight"):
            if name in arguments:
                self.register_buffer(name, arguments.pop(name))
        super()._store(arguments)


class _WeightedLoss(_Loss):
    """A loss with a factor for each class."""

    weight: Tensor | None

    @stored
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None: ...


class L1Loss(_Loss):
    """|input - target|, averaged over all elements.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.L1Loss()(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(2.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target) ** 2, averaged over all elements.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.MSELoss()(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(5.)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """0.5 * d ** 2 / beta where d = |input - target| is less than ``beta``, d - 0.5 * beta elsewhere, averaged.

    Girshick, "Fast R-CNN", 2015.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        beta: where the square ends.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.SmoothL1Loss()(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(1.5000)
    """

    beta: float

    @stored
    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """0.5 * d ** 2 where d = |input - target| is at most ``delta``, delta * (d - 0.5 * delta) elsewhere, averaged.

    Huber, "Robust estimation of a location parameter", 1964.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        delta: where the square ends.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.HuberLoss()(vesta.zeros(2), vesta.tensor([1.0, 3.0]))
        tensor(1.5000)
    """

    delta: float

    @stored
    def __init__(
        self,
        reduction: str = "mean",
        delta: float = 1.0,
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """-input[target], averaged: for log-probabilities, such as those of ``LogSoftmax``.

    Args:
        weight: [C], a factor for each class.
        ignore_index: a class number that counts nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input [C], [N, C] or [N, C, d1, ...], target [], [N] or [N, d1, ...].

    Example::

        >>> import vesta
        >>> vesta.nn.NLLLoss()(vesta.tensor([[-1.0, -2.0]]), vesta.tensor([1]))
        tensor(2.)
    """

    ignore_index: int

    @stored
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """``NLLLoss`` under its old name for images; it warns."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        warnings.warn(
            "NLLLoss2d has been deprecated. Please use NLLLoss instead as a drop-in replacement.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class PoissonNLLLoss(_Loss):
    """exp(input) - target * input, averaged: the negative log-likelihood of counts.

    Args:
        log_input: ``input`` is the logarithm of the rate; if not, the loss is input - target * log(input + eps).
        full: add Stirling's target * log(target) - target + log(2 pi target) / 2 for targets above 1.
        eps: keeps the logarithm finite.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.PoissonNLLLoss()(vesta.zeros(2), vesta.ones(2))
        tensor(1.)
    """

    log_input: bool
    full: bool
    eps: float

    @stored
    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None: ...

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """0.5 * (log(v) + (input - target) ** 2 / v) with v = max(var, eps), averaged.

    Nix and Weigend, "Estimating the mean and variance of the target probability distribution", 1994.

    Args:
        full: add log(2 pi) / 2.
        eps: the least variance.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target [N, *] or [*]; var of input's shape, without its last dimension, or with size 1 there.

    Example::

        >>> import vesta
        >>> vesta.nn.GaussianNLLLoss()(vesta.zeros(2), vesta.ones(2), vesta.ones(2))
        tensor(0.5000)
    """

    full: bool
    eps: float

    @stored
    def __init__(
        self,
        *,
        full: bool = False,
        eps: float = 1e-6,
        reduction: str = "mean",
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Returns the loss."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class KLDivLoss(_Loss):
    """target * (log(target) - input), averaged: the divergence of the target from log-probabilities ``input``.

    Kullback and Leibler, "On information and sufficiency", 1951.

    Args:
        reduction: ``"mean"`` divides by the number of elements, ``"batchmean"`` (the divergence) by the first size.
        log_target: the target holds logarithms too.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.KLDivLoss(reduction="batchmean")(vesta.zeros(1, 2), vesta.ones(1, 2))
        tensor(0.)
    """

    _reductions = ("none", "batchmean", "mean", "sum")
    log_target: bool

    @stored
    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """-(target * log(input) + (1 - target) * log(1 - input)), averaged; logarithms are at least -100.

    Args:
        weight: a factor for each element, broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.BCELoss()(vesta.tensor([0.5, 0.5]), vesta.tensor([0.0, 1.0]))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """-(target * log s + (1 - target) * log(1 - s)) for s = sigmoid(input), averaged: the loss of a binary classifier.

    Args:
        weight: a factor for each element, broadcast.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        pos_weight: a factor for the first term, broadcast.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.BCEWithLogitsLoss()(vesta.zeros(2), vesta.tensor([0.0, 1.0]))
        tensor(0.6931)
    """

    weight: Tensor | None
    pos_weight: Tensor | None

    @stored
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """input where the target is 1, max(0, margin - input) where it is -1, averaged.

    Args:
        margin: see above.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.HingeEmbeddingLoss()(vesta.tensor([0.5, 0.25]), vesta.tensor([1.0, -1.0]))
        tensor(0.6250)
    """

    margin: float

    @stored
    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """The sum over classes i and targets j of max(0, 1 - (input[j] - input[i])) / C, averaged over the batch.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input [C] or [N, C]; target class numbers of the same shape, of which those before the first -1 of a line
    count.

    Example::

        >>> import vesta
        >>> vesta.nn.MultiLabelMarginLoss()(vesta.zeros(1, 3), vesta.tensor([[1, -1, 0]]))
        tensor(0.6667)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), averaged; targets are 1 or -1.

    Args:
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target have one shape; the result is 0-d, or of their shape for ``"none"``.

    Example::

        >>> import vesta
        >>> vesta.nn.SoftMarginLoss()(vesta.zeros(2), vesta.ones(2))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """-log softmax(input)[target], averaged: the loss of a classifier, from logits.

    Args:
        weight: [C], a factor for each class.
        ignore_index: a class number that counts nothing.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        label_smoothing: share of the target spread over all classes, in [0, 1].

    Shapes: input [C], [N, C] or [N, C, d1, ...]; target class numbers [], [N] or [N, d1, ...], or probabilities of
    input's shape.

    Example::

        >>> import vesta
        >>> vesta.nn.CrossEntropyLoss()(vesta.zeros(2, 4), vesta.tensor([1, 3]))
        tensor(1.3863)
    """

    ignore_index: int
    label_smoothing: float

    @stored
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None: ...

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """The mean over classes of -(target * log s + (1 - target) * log(1 - s)) for s = sigmoid(input), averaged.

    Args:
        weight: [C], a factor for each class.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input and target [N, C].

    Example::

        >>> import vesta
        >>> vesta.nn.MultiLabelSoftMarginLoss()(vesta.zeros(1, 3), vesta.ones(1, 3))
        tensor(0.6931)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1, averaged.

    Args:
        margin: of [-1, 1].
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: inputs [N, D] and target [N], or inputs [D] and target [].

    Example::

        >>> import vesta
        >>> vesta.nn.CosineEmbeddingLoss()(vesta.ones(1, 2), vesta.ones(1, 2), -vesta.ones(1))
        tensor(1.)
    """

    margin: float

    @stored
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None: ...

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """max(0, -target * (input1 - input2) + margin), averaged: a target of 1 wants ``input1`` above ``input2``.

    Args:
        margin: see above.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: both inputs and target have one shape.

    Example::

        >>> import vesta
        >>> vesta.nn.MarginRankingLoss()(vesta.zeros(2), vesta.ones(2), vesta.ones(2))
        tensor(1.)
    """

    margin: float

    @stored
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None: ...

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """The sum over other classes i of max(0, margin - input[target] + input[i]) ** p / C, averaged over the batch.

    Args:
        p: 1 or 2.
        margin: see above.
        weight: [C], a factor for each target class.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: input [C] or [N, C], target [] or [N].

    Example::

        >>> import vesta
        >>> vesta.nn.MultiMarginLoss()(vesta.zeros(1, 4), vesta.tensor([1]))
        tensor(0.7500)
    """

    p: int
    margin: float

    @stored
    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"MultiMarginLoss: expected weight to be None or 1D tensor, got {weight.dim()}D instead")

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class TripletMarginLoss(_Loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), averaged; d is ``pairwise_distance``.

    Balntas et al., "Learning local feature descriptors with triplets and shallow convolutional neural networks", 2016.

    Args:
        margin: greater than 0.
        p, eps: of the distance.
        swap: use the distance of positive and negative where it is the smaller one.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: all [N, D] or [D].

    Example::

        >>> import vesta
        >>> vesta.nn.TripletMarginLoss()(vesta.zeros(1, 2), vesta.zeros(1, 2), vesta.zeros(1, 2))
        tensor(1.)
    """

    margin: float
    p: float
    eps: float
    swap: bool

    @stored
    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Returns the loss."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """``TripletMarginLoss`` with a distance of one's own.

    Args:
        distance_function: a function of two tensors; default: ``PairwiseDistance``.
        margin: greater than 0.
        swap: use the distance of positive and negative where it is the smaller one.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Shapes: all [N, *].

    Example::

        >>> import vesta
        >>> vesta.nn.TripletMarginWithDistanceLoss(margin=0.5)(*[vesta.zeros(1, 2)] * 3)
        tensor(0.5000)
    """

    margin: float
    swap: bool

    @stored
    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        if distance_function is not None:
            expect("TripletMarginWithDistanceLoss", "distance_function", distance_function, Callable, "a function")
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Returns the loss."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """-log P(target | input) over all alignments: connectionist temporal classification.

    Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent neural
    networks", 2006.

    Args:
        blank: the number of the blank.
        reduction: ``"mean"`` divides each loss by its target's length, then averages.
        zero_infinity: set infinite losses, of inputs that are too short, and their gradients to zero.

    Shapes: log_probs [T, N, C] or [T, C], targets [N, S] or all in one line, lengths [N] or [].

    Example::

        >>> import vesta
        >>> vesta.nn.CTCLoss()(vesta.zeros(2, 1, 2).log_softmax(2), vesta.tensor([[1]]), [2], [1])
        tensor(0.2877)
    """

    blank: int
    zero_infinity: bool

    @stored
    def __init__(
        self,
        blank: int = 0,
        reduction: str = "mean",
        zero_infinity: bool = False,
    ) -> None: ...

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        """Returns the loss."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )
