"""The LKJ distribution of correlation matrices, by their Cholesky factors."""

from __future__ import annotations

import math

import vesta
from vesta import Size, Tensor
from vesta._arguments import checked
from vesta._types import Real, Shape

from . import constraints
from ._special import lgamma, mvlgamma
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """The distribution of correlation matrices R, by their lower Cholesky factors, with density ~ det(R)**(eta - 1).

    Args:
        dim: the size n of the matrices, at least 2.
        concentration: eta, positive; a tensor or number. With 1 all correlation matrices are equally likely.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: ``dim`` is below 2, or eta not positive.

    Sources: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines and extended onion
    method, 2009 (section 3 draws row by row; page 1999 has the constant); Stan Functions Reference, Cholesky LKJ
    correlation distribution, for the Jacobian.

    Example::

        >>> import vesta
        >>> from vesta.distributions import LKJCholesky
        >>> factor = LKJCholesky(3, 0.5).sample()
        >>> bool(vesta.allclose((factor @ factor.mT).diagonal(), vesta.ones(3)))
        True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parameters = {"dim": None, "concentration": 0, "_beta": 1}

    @checked
    def __init__(self, dim: int, concentration: Real = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The squared length of row i before the diagonal, i = 1 ... n - 1, is Beta(i / 2, eta + (n - 1 - i) / 2); for
        # the first row, which has no such elements, any parameters do.
        rows = self._rows(0).clamp(min=1)
        self._beta = Beta(rows / 2, self.concentration.unsqueeze(-1) + (dim - 1 - rows) / 2, validate_args=False)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args=validate_args)

    def _rows(self, start: int) -> Tensor:
        return vesta.arange(start, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with vesta.no_grad():
            square = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            direction = vesta.randn(shape, dtype=square.dtype, device=square.device).tril(-1)
            length = direction.square().sum(-1, keepdim=True).sqrt()
            below = square.sqrt() * vesta.where(length > 0, direction / length, 0.0)
            diagonal = (1 - below.square().sum(-1)).clamp(min=vesta.finfo(below.dtype).tiny).sqrt()
            return below + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, eta = self.dim, self.concentration
        # det(R)**(eta - 1) is the product of L_ii**(2 eta - 2), the Jacobian that of L_ii**(n - i), i from 1.
        order = 2 * (eta - 1).unsqueeze(-1) + (n - 1 - self._rows(1))
        density = (order * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        alpha = eta + (n - 1) / 2
        return density - (n - 1) / 2 * math.log(math.pi) - mvlgamma(alpha - 0.5, n - 1) + (n - 1) * lgamma(alpha)
