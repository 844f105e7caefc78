"""Distances and similarities of vectors."""

from __future__ import annotations

from vesta import Tensor
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(FunctionLayer):
    """The p-norm of x1 - x2 + eps along the last dimension.

    Args:
        p: of the norm.
        eps: keeps the gradient finite.
        keepdim: keep the last dimension, with size 1.

    Shapes: inputs [N, D] or [D], output [N] or [], or with a last dimension of size 1.

    Example::

        >>> import vesta
        >>> vesta.nn.PairwiseDistance(eps=0.0)(vesta.zeros(1, 2), vesta.tensor([[3.0, 4.0]]))
        tensor([5.])
    """

    p: float
    eps: float
    keepdim: bool

    @stored
    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        self.norm = p

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Returns the distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(FunctionLayer):
    """x1 . x2 / (|x1| * |x2|) along ``dim``; each norm is at least ``eps``.

    Args:
        dim: the dimension of the vectors.
        eps: see above.

    Shapes: inputs broadcast together; the output lacks ``dim``.

    Example::

        >>> import vesta
        >>> vesta.nn.CosineSimilarity()(vesta.ones(1, 2), vesta.tensor([[2.0, 0.0]]))
        tensor([0.7071])
    """

    dim: int
    eps: float

    @stored
    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None: ...

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Returns the similarities."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
