"""``ExponentialFamily``: distributions whose entropy and divergence follow from one function, the log normalizer."""

from __future__ import annotations

from typing import Any

import vesta.autograd
from vesta import Tensor

from .distribution import Distribution
from .utils import _sum_rightmost

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """The base of distributions with a density exp(<t(x), theta> - F(theta) + k(x)).

    A subclass gives the natural parameters theta (``_natural_params``), the log normalizer F (``_log_normalizer``) and
    the mean of k (``_mean_carrier_measure``). The entropy F - <theta, F'> - E k follows by differentiation, as do
    divergences within a family; F. Nielsen and R. Nock, Entropies and cross-entropies of exponential families, 2010.

    Example::

        >>> from vesta.distributions import Exponential, ExponentialFamily
        >>> Exponential(1.0).entropy(), ExponentialFamily.entropy(Exponential(1.0))
        (tensor(1.), tensor(1.))
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def _normalizer_and_gradients(self) -> tuple[list[Tensor], Tensor, Any]:
        """Returns natural parameters, the log normalizer and its gradients, which can be differentiated again."""
        given = self._natural_params
        if not any(p.requires_grad for p in given):
            with vesta.enable_grad():
                natural = [p.detach().requires_grad_() for p in given]
                normalizer = self._log_normalizer(*natural)
                gradients = vesta.autograd.grad(normalizer.sum(), natural)
            return [p.detach() for p in natural], normalizer.detach(), gradients
        with vesta.enable_grad():
            natural = [p if p.requires_grad else p.detach().requires_grad_() for p in given]
            normalizer = self._log_normalizer(*natural)
            return natural, normalizer, vesta.autograd.grad(normalizer.sum(), natural, create_graph=True)

    def entropy(self) -> Tensor:
        """Returns the entropy, of shape ``batch_shape``; see the class."""
        natural, result, gradients = self._normalizer_and_gradients()
        result = result - self._mean_carrier_measure
        for parameter, gradient in zip(natural, gradients):
            result = result - _sum_rightmost(parameter * gradient, parameter.dim() - len(self._batch_shape))
        return result
