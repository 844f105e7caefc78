"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta._types import Real, Shape
from vesta.nn.functional import logsigmoid

from . import _sampling, constraints
from ._probs_or_logits import ProbsOrLogits
from ._special import lgamma
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The negative binomial distribution of the number of successes before the r-th failure.

    It is a Poisson distribution whose rate is gamma distributed, which is how it is drawn; r need not be an integer.

    Args:
        total_count: r, nonnegative; a tensor or number. The parameters broadcast.
        probs: the probability of a success, in [0, 1); a tensor or number.
        logits: instead of ``probs``, the log odds of it.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: both or none of ``probs`` and ``logits`` are given, or a parameter lies outside its constraint.

    Formulas: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 5.

    Example::

        >>> from vesta.distributions import NegativeBinomial
        >>> NegativeBinomial(3, 0.5).mean
        tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Real,
        probs: Real | None = None,
        logits: Real | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / vesta.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        from .gamma import Gamma

        return Gamma(self.total_count, (-self.logits).exp(), validate_args=False)  # r may be 0

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with vesta.no_grad():
            return _sampling.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        r = self.total_count
        density = r * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        choices = lgamma(r + value) - lgamma(1 + value) - lgamma(r)
        return density + choices.masked_fill(r + value == 0, 0.0)
