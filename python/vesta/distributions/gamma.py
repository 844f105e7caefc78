"""The gamma distribution."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._sampling import standard_gamma
from ._special import digamma, lgamma, xlogy
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution with density rate**a x**(a - 1) exp(-rate x) / Gamma(a) for x >= 0.

    Samples are differentiable in both parameters: implicitly in the concentration (Figurnov, Mohamed and Mnih,
    Implicit reparameterization gradients, 2018), as is ``cdf``.

    Args:
        concentration: the shape a; positive, a tensor or number. The two broadcast.
        rate: the inverse of the scale; positive.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 17.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Gamma
        >>> Gamma(3.0, vesta.tensor([1.0, 2.0])).mean
        tensor([3.0000, 1.5000])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Real, rate: Real, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def sample(self, sample_shape: Shape = (), *, generator: vesta.Generator | None = None) -> Tensor:
        """Draws a sample without a gradient; ``generator`` is the source of the random numbers."""
        with vesta.no_grad():
            if generator is None:  # a subclass's rsample() may know no generator
                return self.rsample(sample_shape)
            return self.rsample(sample_shape, generator=generator)

    def rsample(self, sample_shape: Shape = (), generator: vesta.Generator | None = None) -> Tensor:
        """Draws a differentiable sample; it is never 0, but at least the smallest normal number."""
        shape = self._extended_shape(sample_shape)
        value = standard_gamma(self.concentration.expand(shape), generator) / self.rate
        value.detach().clamp_(min=vesta.finfo(value.dtype).tiny)  # the gradient is not cut
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = vesta.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return xlogy(a, rate) + xlogy(a - 1, value) - rate * value - lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return vesta.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + lgamma(a) + (1 - a) * digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x + 1) - (x + 1) * (-y).log()
