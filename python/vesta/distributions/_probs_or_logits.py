"""``ProbsOrLogits``, the part of distributions that take probabilities or log odds, one of the two."""

from __future__ import annotations

from typing import Any

from vesta import Size, Tensor

from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ProbsOrLogits", "one_of"]


def one_of(probs: Any, logits: Any) -> str:
    """Returns which of the two is given; raises a ValueError unless it is exactly one."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


class ProbsOrLogits:
    """Keeps the parameter that was given and derives the other when it is first read."""

    _is_binary = True

    def _take(self, probs: Any, logits: Any, *others: Any) -> tuple[Tensor, ...]:
        """Sets the given parameter, broadcast with ``others``, and returns those, of the parameter's dtype."""
        given = one_of(probs, logits)
        *others, value = broadcast_all(*others, logits if probs is None else probs)
        setattr(self, given, value)
        return tuple(other.type_as(value) for other in others)

    @lazy_property
    def logits(self) -> Tensor:
        """The log odds, or the logarithms of the probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits, self._is_binary)

    @property
    def _param(self) -> Tensor:
        if "probs" in vars(self):
            return self.probs
        return self.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)
