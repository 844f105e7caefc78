"""The Bernoulli distribution relaxed to (0, 1)."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._probs_or_logits import ProbsOrLogits
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The distribution of the logit of a ``RelaxedBernoulli``: a logistic variable around logits / temperature.

    Args:
        temperature: how far values lie from the ends; positive, a tensor.
        probs: the probability of 1; a tensor or number.
        logits: instead of ``probs``, the log odds of it.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: both or none of ``probs`` and ``logits`` are given, or one lies outside its constraint.

    Source: Maddison, Mnih and Teh, The concrete distribution, 2017, arXiv:1611.00712, appendix B.

    Example::

        >>> import vesta
        >>> from vesta.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
        >>> LogitRelaxedBernoulli(vesta.tensor(1.0), 0.5).log_prob(vesta.tensor(0.0)).exp()
        tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _parameters = {"temperature": None, "probs": 0, "logits": 0}

    def __init__(
        self,
        temperature: Real,
        probs: Real | None = None,
        logits: Real | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._take(probs, logits)
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(self._param.shape, validate_args=validate_args)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        probs = clamp_probs(self.probs.expand(self._extended_shape(sample_shape)))
        noise = clamp_probs(vesta.rand(probs.shape, dtype=probs.dtype, device=probs.device))
        logistic = noise.log() - (-noise).log1p()
        return (logistic + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = self.logits - value * self.temperature
        return self.temperature.log() - away.abs() - 2 * (-away.abs()).exp().log1p()  # even in ``away``


class RelaxedBernoulli(TransformedDistribution):
    """The Bernoulli distribution relaxed to (0, 1), where samples are differentiable.

    Arguments and source as of ``LogitRelaxedBernoulli``.

    Example::

        >>> import vesta
        >>> from vesta.distributions import RelaxedBernoulli
        >>> RelaxedBernoulli(vesta.tensor(0.5), vesta.tensor([0.1, 0.9])).rsample((3,)).shape
        vesta.Size([3, 2])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]
    _parameters: dict[str, int | None] = {}

    def __init__(
        self,
        temperature: Real,
        probs: Real | None = None,
        logits: Real | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        return self.base_dist.probs
