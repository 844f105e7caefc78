"""A linear layer and its loss in one."""

from __future__ import annotations

import math
from typing import Any

from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn.modules.linear import Linear
from vesta.nn.modules.loss import _WeightedLoss

__all__ = ["LinearCrossEntropyLoss"]


class LinearCrossEntropyLoss(_WeightedLoss):
    """A linear layer and the cross entropy of what it gives: the last layer of a classifier with its loss.

    Args:
        in_features: size of the input.
        num_classes: C.
        out_features: further sizes (d1, ...), for several targets of an example.
        bias: whether the linear layer has a bias.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.
        weight: [C], a factor for each class.
        ignore_index: a class number that counts nothing; None: -100.
        label_smoothing: share of the target spread over all classes, in [0, 1].
        options: accepted for PyTorch's sake; makes no difference.

    Shapes: input [N, in_features], target [N] or [N, d1, ...], or probabilities [N, C, d1, ...]; ``linear.weight``
    [C * d1 * ..., in_features].

    Example::

        >>> import vesta
        >>> loss = vesta.nn.LinearCrossEntropyLoss(3, 4)
        >>> loss(vesta.zeros(2, 3), vesta.tensor([1, 3])).item()
        1.3862943649291992
    """

    _text = (
        "in_features={linear.in_features}, num_classes={num_classes}, out_features={out_features}, "
        "bias={with_bias}, reduction={reduction}, ignore_index={ignore_index}, label_smoothing={label_smoothing}, "
        "options={options}"
    )

    @checked
    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        for size in out_features:
            expect("LinearCrossEntropyLoss", "out_features", size, int, "integers")
        super().__init__(weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        outputs = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, outputs, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Returns the loss."""
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*shape, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return self._text.format(with_bias=self.linear.bias is not None, **self.__dict__)
