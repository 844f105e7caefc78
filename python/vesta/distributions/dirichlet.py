"""The Dirichlet distribution."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta._types import Shape

from . import _sampling, constraints
from ._special import digamma, lgamma, one_hot, xlogy
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of vectors on the simplex, with density proportional to prod(x_i**(a_i - 1)).

    Samples are differentiable (Jankowiak and Obermeyer, Pathwise derivatives beyond the reparameterization trick,
    2018).

    Args:
        concentration: the parameters a, positive, [..., k]; the last dimension is the event's.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: ``concentration`` has no dimension, or is not positive.

    Formulas: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions 1, chapter 49.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Dirichlet
        >>> Dirichlet(vesta.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parameters = {"concentration": 1}

    @checked
    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self) -> Tensor:
        beyond = (self.concentration - 1).clamp(min=0)
        mode = beyond / beyond.sum(-1, keepdim=True)
        # All below 1: the density is unbounded at the corners; PyTorch takes the first.
        corner = (self.concentration < 1).all(-1, keepdim=True)
        first = one_hot(mode.argmax(-1), mode.shape[-1]).to(mode.dtype)
        return vesta.where(corner, first, mode)

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, keepdim=True)
        return self.concentration * (total - self.concentration) / (total.square() * (total + 1))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return _sampling.dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return xlogy(a - 1, value).sum(-1) + lgamma(a.sum(-1)) - lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = a.sum(-1)
        inner = lgamma(a).sum(-1) - ((a - 1) * digamma(a)).sum(-1)
        return inner - lgamma(total) + (total - k) * digamma(total)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return lgamma(x).sum(-1) - lgamma(x.sum(-1))
