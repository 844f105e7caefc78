"""The geometric distribution."""

from __future__ import annotations

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta._types import Real, Shape
from vesta.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._probs_or_logits import ProbsOrLogits
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The geometric distribution of the number of failures before the first success: (1 - p)**k p, k = 0, 1, ...

    Args:
        probs: the probability p of a success, in (0, 1]; a tensor or number.
        logits: instead of ``probs``, the log odds of p.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: both or none of ``probs`` and ``logits`` are given, or one lies outside its constraint.

    Formulas: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 5.

    Example::

        >>> from vesta.distributions import Geometric
        >>> Geometric(0.25).mean
        tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = {"probs": 0, "logits": 0}

    def __init__(
        self, probs: Real | None = None, logits: Real | None = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            invalid = self.probs.detach()
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(invalid.shape)}) of distribution {self!r} to be "
                f"positive but found invalid values:\n{invalid[invalid <= 0]}"
            )

    @property
    def mean(self) -> Tensor:
        return self.probs.reciprocal() - 1

    @property
    def mode(self) -> Tensor:
        return vesta.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (self.probs.reciprocal() - 1) / self.probs

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with vesta.no_grad():
            u = vesta.rand(shape, dtype=self.probs.dtype, device=self.probs.device)
            return (u.clamp(min=vesta.finfo(u.dtype).tiny).log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        certain = (probs == 1) & (value == 0)  # 0 log 0
        return value * (-vesta.where(certain, 0.0, probs)).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
