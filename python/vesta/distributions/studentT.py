"""Student's t distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._special import digamma, lgamma
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution, of loc + scale Z / sqrt(V / df) with normal Z and chi-squared V.

    Samples are differentiable in all parameters, in ``df`` as those of ``Gamma`` are.

    Args:
        df: the degrees of freedom; positive, a tensor or number. The three broadcast.
        loc: the median.
        scale: the scale; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2, chapter 28.

    Example::

        >>> import vesta
        >>> from vesta.distributions import StudentT
        >>> StudentT(vesta.tensor([1.5, 4.0])).variance
        tensor([inf, 2.])
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = {"df": 0, "loc": 0, "scale": 0, "_chi2": 0}

    def __init__(self, df: Real, loc: Real = 0.0, scale: Real = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=False)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return vesta.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        safe = vesta.where(self.df > 2, self.df, 3.0)
        finite = self.scale.square() * safe / (safe - 2)
        return vesta.where(self.df > 2, finite, vesta.where(self.df > 1, math.inf, vesta.full_like(safe, math.nan)))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * noise * (self._chi2.rsample(sample_shape) / self.df).rsqrt()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        square = ((value - self.loc) / self.scale).square()
        return -0.5 * (self.df + 1) * (square / self.df).log1p() - self.scale.log() - self._log_beta()

    def entropy(self) -> Tensor:
        half = 0.5 * self.df
        return self.scale.log() + (half + 0.5) * (digamma(half + 0.5) - digamma(half)) + self._log_beta()

    def _log_beta(self) -> Tensor:
        """log(sqrt(df) B(df / 2, 1 / 2))."""
        half = 0.5 * self.df
        return 0.5 * (self.df * math.pi).log() + lgamma(half) - lgamma(half + 0.5)
