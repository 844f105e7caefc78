"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta._types import Shape

from . import _linalg, constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]

_NAMES = ("covariance_matrix", "precision_matrix", "scale_tril")


def only_one(**matrices: Any) -> tuple[str, Tensor] | None:
    """Returns name and value of the one matrix that is given, or None if there are several or none."""
    given = [(name, value) for name, value in matrices.items() if value is not None]
    return given[0] if len(given) == 1 else None


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """Returns the lower Cholesky factor of the covariance that ``covariance_matrix`` and so on describe."""
    if name == "scale_tril":
        return matrix
    return _linalg.cholesky(matrix) if name == "covariance_matrix" else _linalg.precision_to_scale_tril(matrix)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors of n numbers with a mean and a covariance matrix.

    Everything is computed with the lower Cholesky factor of the covariance, so ``scale_tril`` costs least.

    Args:
        loc: the mean, [..., n]; the batches broadcast.
        covariance_matrix: the covariance, positive definite, [..., n, n].
        precision_matrix: instead of it, its inverse.
        scale_tril: instead of it, its lower Cholesky factor, with a positive diagonal.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: not exactly one of the matrices is given, dimensions are missing, or a parameter lies outside its
            constraint.

    Formulas: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions 1, chapter 45.

    Example::

        >>> import vesta
        >>> from vesta.distributions import MultivariateNormal
        >>> MultivariateNormal(vesta.zeros(2), vesta.eye(2)).log_prob(vesta.tensor([1.0, 1.0]))
        tensor(-2.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _parameters = {"loc": 1, **dict.fromkeys(_NAMES, 2), "_unbroadcasted_scale_tril": None}

    @checked
    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = only_one(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
        if given is None:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given
        if matrix.dim() < 2:
            raise ValueError(f"{name} matrix must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = vesta.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(*batch_shape, -1, -1))
        self.loc = loc.expand(*batch_shape, -1)
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def _batched(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance, [..., n, n]."""
        return self._batched(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance, [..., n, n]."""
        return self._batched(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, [..., n, n]."""
        return self._batched(_linalg.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + (self._unbroadcasted_scale_tril @ noise.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        square = _linalg.mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + square) - _linalg.half_logdet(factor)

    def entropy(self) -> Tensor:
        constant = 0.5 * self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (constant + _linalg.half_logdet(self._unbroadcasted_scale_tril)).expand(self._batch_shape)
