"""Dropout of elements, and of whole channels."""

from __future__ import annotations

from vesta import Tensor
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored

__all__ = [
    "AlphaDropout",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "FeatureAlphaDropout",
]


class _DropoutNd(FunctionLayer):
    """The common part of dropouts."""

    _text = "p={p}, inplace={inplace}"
    p: float
    inplace: bool

    @stored
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


class Dropout(_DropoutNd):
    """The layer that in training zeroes each element with probability ``p`` and scales the rest by 1 / (1 - p); any
    shape.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014.

    Args:
        p: probability, in [0, 1].
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Dropout(0.2).eval()(vesta.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``, in training with some of it dropped."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """``Dropout`` of whole channels of sequences.

    Tompson et al., "Efficient object localization using convolutional networks", 2015. Shapes: input and output
    [N, C, L] or [C, L].

    Args:
        p: probability, in [0, 1].
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Dropout1d(1.0)(vesta.ones(1, 2, 1)).flatten()
        tensor([0., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``, in training with some of it dropped."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """``Dropout`` of whole channels of images.

    Tompson et al., "Efficient object localization using convolutional networks", 2015. Shapes: input and output
    [N, C, H, W] or [N, C, L].

    Args:
        p: probability, in [0, 1].
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Dropout2d(1.0)(vesta.ones(1, 2, 1, 1)).flatten()
        tensor([0., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``, in training with some of it dropped."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """``Dropout`` of whole channels of volumes.

    Tompson et al., "Efficient object localization using convolutional networks", 2015. Shapes: input and output
    [N, C, D, H, W] or [C, D, H, W].

    Args:
        p: probability, in [0, 1].
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Dropout3d(1.0)(vesta.ones(1, 2, 1, 1, 1)).flatten()
        tensor([0., 0.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``, in training with some of it dropped."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """The dropout for networks of ``SELU``: it sets elements to selu's lower limit and restores mean and variance.

    Klambauer et al., "Self-normalizing neural networks", 2017. Any shape.

    Args:
        p: probability, in [0, 1].
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.AlphaDropout(0.2).eval()(vesta.ones(3))
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``, in training with some of it dropped."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """``AlphaDropout`` of whole channels.

    Klambauer et al., "Self-normalizing neural networks", 2017. Shapes: input and output [N, C, *].

    Args:
        p: probability, in [0, 1].
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.FeatureAlphaDropout(0.2).eval()(vesta.ones(1, 3, 1)).flatten()
        tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``, in training with some of it dropped."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
