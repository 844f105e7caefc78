"""The binomial distribution."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import _sampling, constraints
from ._probs_or_logits import ProbsOrLogits
from ._special import lgamma
from .bernoulli import values_from_0
from .distribution import Distribution

__all__ = ["Binomial"]


class Binomial(ProbsOrLogits, Distribution):
    """The binomial distribution of the number of successes in n trials, as floats.

    Args:
        total_count: n, a nonnegative integer or a tensor of them. The parameters broadcast.
        probs: the probability of a success; a tensor or number.
        logits: instead of ``probs``, the log odds of it.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: both or none of ``probs`` and ``logits`` are given, or a parameter lies outside its constraint.
        NotImplementedError: entropy or support of different numbers of trials is asked for.

    Formulas: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 3.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Binomial
        >>> Binomial(2, 0.5).log_prob(vesta.tensor([0.0, 1.0, 2.0])).exp()
        tensor([0.2500, 0.5000, 0.2500])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(
        self,
        total_count: Real = 1,
        probs: Real | None = None,
        logits: Real | None = None,
        validate_args: bool | None = None,
    ) -> None:
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return vesta.minimum(((self.total_count + 1) * self.probs).floor(), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with vesta.no_grad():
            return _sampling.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        choices = lgamma(n + 1) - lgamma(value + 1) - lgamma(n - value + 1)
        # n log(1 + exp(logits)), without overflow; the gradient at 0 is the mean of both sides.
        positive = (logits + logits.abs()) / 2
        return choices + value * logits - n * (positive + (-logits.abs()).exp().log1p())

    def _one_count(self, what: str) -> int:
        """Returns the number of trials; raises if there are several."""
        count = int(self.total_count.max())
        if int(self.total_count.min()) != count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return values_from_0(self._one_count("enumerate_support") + 1, self._batch_shape, self._param, expand)
