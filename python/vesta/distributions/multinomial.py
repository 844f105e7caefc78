"""The multinomial distribution."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Size, Tensor
from vesta._types import Shape

from . import constraints
from ._special import lgamma
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """The distribution of how often each of k indices occurs in n draws, as floats.

    Args:
        total_count: n, an int.
        probs: nonnegative weights, [..., k]; they are divided by their sum. The last dimension is the event's.
        logits: instead of ``probs``, logarithms of weights, [..., k].
        validate_args: whether arguments and values are checked. Values that sum to less than n are accepted, as in
            PyTorch.

    Raises:
        NotImplementedError: ``total_count`` is no int.
        ValueError: as for ``Categorical``.

    Formulas: Johnson, Kotz and Balakrishnan, Discrete Multivariate Distributions, chapter 35.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Multinomial
        >>> Multinomial(4, vesta.tensor([1.0, 3.0])).mean
        tensor([1., 3.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _parameters = {"total_count": None, "_categorical": 0, "_binomial": 1}

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        self._binomial = Binomial(total_count, self.probs, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def probs(self) -> Tensor:
        """The probabilities, [..., k]."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities, [..., k]."""
        return self._categorical.logits

    @property
    def param_shape(self) -> vesta.Size:
        """The shape of the parameter."""
        return self._categorical.param_shape

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count, *sample_shape))).movedim(0, -1)
        counts = vesta.zeros(self._extended_shape(sample_shape), dtype=drawn.dtype, device=drawn.device)
        return counts.scatter_add(-1, drawn, vesta.ones_like(drawn)).to(self.probs.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        never = (value == 0) & (logits == -float("inf"))
        powers = (vesta.where(never, 0.0, logits) * value).sum(-1)
        return lgamma(value.sum(-1) + 1) - lgamma(value + 1).sum(-1) + powers

    def entropy(self) -> Tensor:
        """n H(categorical) - log n! + the sum over indices of E log x_i!, each x_i binomial."""
        n = vesta.tensor(float(self.total_count), dtype=self.probs.dtype, device=self.probs.device)
        support = self._binomial.enumerate_support(expand=False)[1:]
        factorials = (self._binomial.log_prob(support).exp() * lgamma(support + 1)).sum((0, -1))
        return n * self._categorical.entropy() - lgamma(n + 1) + factorials
