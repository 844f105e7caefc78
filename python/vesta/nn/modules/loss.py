"""Losses."""

from __future__ import annotations

from vesta import Tensor
from vesta._arguments import checked
from vesta.nn import functional as F
from vesta.nn.modules.module import Module

__all__ = ["BCEWithLogitsLoss", "CrossEntropyLoss", "MSELoss", "NLLLoss"]


class _Loss(Module):
    """The base of losses: it keeps how the values of a batch become one."""

    @checked
    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = F._reduction(size_average, reduce, reduction)
        if self.reduction not in ("none", "mean", "sum"):
            raise ValueError(f"{reduction} is not a valid value for reduction")


class _WeightedLoss(_Loss):
    """A loss with a factor for each class."""

    weight: Tensor | None

    @checked
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


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

    @checked
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


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

    @checked
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

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

    @checked
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )
