"""The categorical distribution as one-hot vectors."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._types import Shape

from . import constraints
from ._special import one_hot
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """The distribution of vectors of k zeros with a single 1, of the parameter's dtype.

    Args:
        probs: nonnegative weights, [..., k]; they are divided by their sum. The last dimension is the event's.
        logits: instead of ``probs``, logarithms of weights, [..., k].
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: as for ``Categorical``.

    Example::

        >>> import vesta
        >>> from vesta.distributions import OneHotCategorical
        >>> OneHotCategorical(vesta.tensor([1.0, 3.0])).mode
        tensor([0., 1.])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _parameters = {"_categorical": 0}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

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
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._vectors(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _vectors(self, index: Tensor) -> Tensor:
        return one_hot(index, self._event_shape[0]).to(self.probs.dtype)

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        return self._vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self._event_shape[0]
        values = vesta.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.reshape(n, *(1 for _ in self._batch_shape), n)
        return values.expand(n, *self._batch_shape, n) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot vectors whose gradient is that of the probabilities.

    Arguments as ``OneHotCategorical``. Source: Bengio, Leonard and Courville, Estimating or propagating gradients
    through stochastic neurons for conditional computation, 2013, arXiv:1308.3432.

    Example::

        >>> import vesta
        >>> from vesta.distributions import OneHotCategoricalStraightThrough
        >>> weights = vesta.tensor([1.0, 1.0], requires_grad=True)
        >>> OneHotCategoricalStraightThrough(weights).rsample().requires_grad
        True
    """

    has_rsample = True
    _parameters = OneHotCategorical._parameters

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
