"""The categorical distribution relaxed to the simplex."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._sampling import gumbel
from ._special import lgamma
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The distribution of the logarithm of a ``RelaxedOneHotCategorical``.

    Args:
        temperature: how far values lie from the corners; positive, a tensor.
        probs: nonnegative weights, [..., k]; they are divided by their sum. The last dimension is the event's.
        logits: instead of ``probs``, logarithms of weights, [..., k].
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: as for ``Categorical``.

    Sources: Maddison, Mnih and Teh, The concrete distribution, 2017, arXiv:1611.00712; Jang, Gu and Poole, Categorical
    reparameterization with Gumbel-softmax, 2017.

    Example::

        >>> import vesta
        >>> from vesta.distributions.relaxed_categorical import ExpRelaxedCategorical
        >>> round(float(ExpRelaxedCategorical(vesta.tensor(0.5), vesta.ones(3)).sample().exp().sum()), 4)
        1.0
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # the true support is a submanifold of it
    has_rsample = True
    _parameters = {"temperature": None, "_categorical": 0}

    def __init__(
        self,
        temperature: Real,
        probs: Real | None = None,
        logits: Real | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        (self.temperature,) = broadcast_all(temperature)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self) -> vesta.Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, [..., k]."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities, [..., k]."""
        return self._categorical.probs

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = gumbel(clamp_probs(vesta.rand(shape, dtype=self.logits.dtype, device=self.logits.device)))
        return vesta.log_softmax((self.logits + noise) / self.temperature, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self._event_shape[0]
        constant = lgamma(vesta.full_like(self.temperature, float(k))) + (k - 1) * self.temperature.log()
        return vesta.log_softmax(self.logits - value * self.temperature, -1).sum(-1) + constant


class RelaxedOneHotCategorical(TransformedDistribution):
    """One-hot vectors relaxed to the simplex, where samples are differentiable.

    Arguments and sources as of ``ExpRelaxedCategorical``.

    Example::

        >>> import vesta
        >>> from vesta.distributions import RelaxedOneHotCategorical
        >>> RelaxedOneHotCategorical(vesta.tensor(2.0), vesta.ones(3)).rsample((2,)).shape
        vesta.Size([2, 3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]
    _parameters: dict[str, int | None] = {}

    def __init__(
        self,
        temperature: Real,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, [..., k]."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities, [..., k]."""
        return self.base_dist.probs
