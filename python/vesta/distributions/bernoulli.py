"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta._types import Real, Shape
from vesta.nn.functional import binary_cross_entropy_with_logits, softplus

from . import constraints
from ._probs_or_logits import ProbsOrLogits
from .exp_family import ExponentialFamily
from .utils import broadcast_all, probs_to_logits

__all__ = ["Bernoulli"]


def values_from_0(count: int, batch_shape: Any, like: Tensor, expand: bool, dtype: Any = None) -> Tensor:
    """Returns 0, 1, ..., count - 1 along a first dimension before the batch dimensions."""
    values = vesta.arange(count, dtype=dtype or like.dtype, device=like.device)
    values = values.reshape(count, *(1 for _ in batch_shape))
    return values.expand(count, *batch_shape) if expand else values


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability p, else 0; as floats.

    Args:
        probs: the probability of 1; a tensor or number.
        logits: instead of ``probs``, the log odds log(p / (1 - p)).
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: both or none of ``probs`` and ``logits`` are given, or one lies outside its constraint.

    Formulas: Johnson, Kemp and Kotz, Univariate Discrete Distributions, chapter 3.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Bernoulli
        >>> Bernoulli(0.25).log_prob(vesta.tensor([0.0, 1.0])).exp()
        tensor([0.7500, 0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _parameters = {"probs": 0, "logits": 0}

    def __init__(
        self, probs: Real | None = None, logits: Real | None = None, validate_args: bool | None = None
    ) -> None:
        self._take(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return vesta.where(self.probs == 0.5, math.nan, (self.probs > 0.5).to(self.probs.dtype))

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with vesta.no_grad():
            return vesta.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return values_from_0(2, self._batch_shape, self._param, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (probs_to_logits(self.probs, is_binary=True),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return softplus(x)
