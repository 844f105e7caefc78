"""The table of pairs of distributions whose divergence is known, and ``kl_divergence``; public names in ``kl``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from vesta import Tensor

from .distribution import Distribution

#: The function of each pair of classes.
_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
#: What ``_dispatch_kl`` has found.
_KL_MEMOIZE: dict[tuple[type, type], Any] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Any], Any]:
    """Decorates a function ``f(p, q)`` as the divergence of a pair of classes; it holds for subclasses too.

    Raises:
        TypeError: an argument is no class. A base class of other libraries' distributions is one, as in PyTorch.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Normal, kl_divergence, register_kl
        >>> class Centred(Normal):
        ...     pass
        >>> @register_kl(Centred, Centred)
        ... def _(p, q):
        ...     return vesta.tensor(0.0)
        >>> kl_divergence(Centred(0.0, 1.0), Centred(0.0, 1.0))
        tensor(0.)
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def decorator(function: Any) -> Any:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _nearest(pairs: list[tuple[type, type]], first: int) -> tuple[type, type]:
    """Returns the most derived pair, compared by one of its two classes before the other."""
    best = pairs[0]
    for pair in pairs[1:]:
        for side in (first, 1 - first):
            if pair[side] is not best[side]:
                best = pair if issubclass(pair[side], best[side]) else best
                break
    return best


def _dispatch_kl(type_p: type, type_q: type) -> Any:
    """Returns the function of the most derived registered pair, or NotImplemented."""
    pairs = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return NotImplemented
    left, right = _nearest(pairs, 0), _nearest(pairs, 1)
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, "
            f"{right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Returns the Kullback-Leibler divergence KL(p || q), the mean of log p(x) - log q(x) for x of p, in nats.

    Args:
        p: the distribution of x.
        q: the other distribution; the batch shapes broadcast.

    Returns: a tensor of the batch shape; inf where p has values outside the support of q.

    Raises:
        NotImplementedError: the pair of classes is not registered.

    Source: S. Kullback and R. A. Leibler, On information and sufficiency, 1951.

    Example::

        >>> from vesta.distributions import Normal, kl_divergence
        >>> kl_divergence(Normal(1.0, 1.0), Normal(0.0, 1.0))
        tensor(0.5000)
    """
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    function = _KL_MEMOIZE[key]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return function(p, q)
