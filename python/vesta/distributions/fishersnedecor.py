"""The F distribution of Fisher and Snedecor."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._special import lgamma
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: of the ratio of two chi-squared variables, each divided by its degrees of freedom.

    Args:
        df1: degrees of freedom of the numerator; positive, a tensor or number. The two broadcast.
        df2: degrees of freedom of the denominator; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 2, chapter 27.

    Example::

        >>> from vesta.distributions import FisherSnedecor
        >>> FisherSnedecor(2.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = {"df1": 0, "df2": 0, "_gamma1": 0, "_gamma2": 0}

    def __init__(self, df1: Real, df2: Real, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 / 2, self.df1, validate_args=False)
        self._gamma2 = Gamma(self.df2 / 2, self.df2, validate_args=False)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        safe = vesta.where(self.df2 > 2, self.df2, math.nan)
        return safe / (safe - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return vesta.where(self.df1 > 2, mode, math.nan)

    @property
    def variance(self) -> Tensor:
        safe = vesta.where(self.df2 > 4, self.df2, math.nan)
        return 2 * safe.square() * (self.df1 + safe - 2) / (self.df1 * (safe - 2).square() * (safe - 4))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        tiny = vesta.finfo(self.df1.dtype).tiny
        ratio = self._gamma1.rsample(sample_shape) / self._gamma2.rsample(sample_shape).clamp(min=tiny)
        return ratio.clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        density = a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
        return density + lgamma(a + b) - lgamma(a) - lgamma(b)
