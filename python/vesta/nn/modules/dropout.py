"""Dropout."""

from __future__ import annotations

from vesta import Tensor
from vesta._arguments import checked
from vesta.nn import functional as F
from vesta.nn.modules.module import Module

__all__ = ["Dropout"]


class Dropout(Module):
    """The layer that in training zeroes each element with probability ``p`` and scales the rest by 1 / (1 - p); any
    shape.

    Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting", 2014.

    Args:
        p: probability of zero, in [0, 1].
        inplace: write the result into the input.

    Example::

        >>> import vesta
        >>> vesta.nn.Dropout(0.2).eval()(vesta.ones(3))
        tensor([1., 1., 1.])
    """

    @checked
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input``, in training with some elements zeroed."""
        return F.dropout(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return f"p={self.p}, inplace={self.inplace}"
