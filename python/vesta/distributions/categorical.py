"""The categorical distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Size, Tensor
from vesta._arguments import expect
from vesta._types import Shape

from . import _sampling, constraints
from ._probs_or_logits import ProbsOrLogits, one_of
from .bernoulli import values_from_0
from .distribution import Distribution

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """The distribution of an index 0 ... k - 1, int64.

    Args:
        probs: nonnegative weights of the indices, [..., k]; they are divided by their sum.
        logits: instead of ``probs``, logarithms of weights, [..., k].
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: both or none of ``probs`` and ``logits`` are given, one lies outside its constraint or has no
            dimension.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Categorical
        >>> Categorical(vesta.tensor([1.0, 3.0])).log_prob(vesta.tensor([0, 1])).exp()
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _parameters = {"probs": 1, "logits": 1, "_num_events": None}

    def __init__(
        self, probs: Tensor | None = None, logits: Tensor | None = None, validate_args: bool | None = None
    ) -> None:
        given = one_of(probs, logits)
        weights = logits if probs is None else probs
        expect("Categorical", given, weights, Tensor, "Tensor")
        if weights.dim() < 1:
            raise ValueError(f"`{given}` parameter must be at least one-dimensional.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        self._num_events = weights.shape[-1]
        super().__init__(weights.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return vesta.full(self._batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(-1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        sample_shape = Size(sample_shape)
        rows = self.probs.detach().reshape(math.prod(self._batch_shape), self._num_events)
        with vesta.no_grad():
            drawn = _sampling.categorical(rows, math.prod(sample_shape))
        return drawn.mT.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        shape = vesta.broadcast_shapes(value.shape, self._batch_shape)
        index = value.long().expand(shape).unsqueeze(-1)
        return self.logits.expand(*shape, self._num_events).gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        finite = self.logits.clamp(min=vesta.finfo(self.logits.dtype).min)  # 0 log 0 is 0
        return -(finite * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return values_from_0(self._num_events, self._batch_shape, self._param, expand, vesta.int64)
