"""Mixtures of distributions of one family."""

from __future__ import annotations

import vesta
from vesta import Size, Tensor
from vesta._types import Shape

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The mixture of k distributions of one family: one is chosen by a categorical distribution, and drawn from.

    Args:
        mixture_distribution: a ``Categorical`` over the k components.
        component_distribution: the components, along the last dimension of its batch.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: the distributions are of another kind, or their batch shapes do not fit.

    Source: McLachlan and Peel, Finite Mixture Models, chapter 1.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Categorical, MixtureSameFamily, Normal
        >>> weights = Categorical(vesta.tensor([0.5, 0.5]))
        >>> mixture = MixtureSameFamily(weights, Normal(vesta.tensor([-1.0, 1.0]), 1.0))
        >>> mixture.mean, mixture.variance
        (tensor(0.), tensor(2.))
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _parameters = {
        "_mixture_distribution": 0,
        "_component_distribution": 1,
        "_num_component": None,
        "_event_ndims": None,
    }

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of vesta.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of vesta.distributions.Distribution")
        mixture_shape, batch_shape = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(mixture_shape), reversed(batch_shape)):
            if a != b and 1 not in (a, b):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1:]
        if components != (count,):
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components[0] if components else 'none'})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = count
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch_shape, component_distribution.event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The distribution of the component's index."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The distributions of the components."""
        return self._component_distribution

    def _pad(self, value: Tensor) -> Tensor:
        """Adds the dimension of the components."""
        return value.unsqueeze(-1 - self._event_ndims)

    def _weighted(self, values: Tensor) -> Tensor:
        """Returns the mean over the components of their values [..., k, event]."""
        probs = self.mixture_distribution.probs
        probs = probs.reshape((*probs.shape, *(1 for _ in range(self._event_ndims))))
        return (probs * values).sum(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """E Var(X | K) + Var E(X | K)."""
        away = (self.component_distribution.mean - self._pad(self.mean)).square()
        return self._weighted(self.component_distribution.variance) + self._weighted(away)

    def cdf(self, x: Tensor) -> Tensor:
        return (self.component_distribution.cdf(self._pad(x)) * self.mixture_distribution.probs).sum(-1)

    def log_prob(self, x: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(x)
        inside = self.component_distribution.log_prob(self._pad(x))
        return (inside + vesta.log_softmax(self.mixture_distribution.logits, -1)).logsumexp(-1)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        with vesta.no_grad():
            dim = len(sample_shape) + len(self._batch_shape)
            which = self.mixture_distribution.expand(self._batch_shape).sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = which.reshape((*which.shape, *(1 for _ in range(self._event_ndims + 1))))
            index = index.expand(*which.shape, 1, *self._event_shape)
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
