"""The multivariate normal distribution with a covariance of low rank and a diagonal."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta._types import Shape

from . import _linalg, constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with the covariance W W^T + D, D diagonal.

    Costs grow with n m**2 instead of n**3: by the Woodbury identity (W W^T + D)^-1 = D^-1 - D^-1 W C^-1 W^T D^-1 and
    the determinant lemma det(W W^T + D) = det C det D, with the capacitance C = I + W^T D^-1 W of m rows.

    Args:
        loc: the mean, [..., n]; the batches broadcast.
        cov_factor: W, [..., n, m].
        cov_diag: the diagonal of D, positive, [..., n].
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: shapes do not fit, or a parameter lies outside its constraint.

    Source: Golub and Van Loan, Matrix Computations, 2.1.4.

    Example::

        >>> import vesta
        >>> from vesta.distributions import LowRankMultivariateNormal
        >>> LowRankMultivariateNormal(vesta.zeros(2), vesta.ones(2, 1), vesta.ones(2)).covariance_matrix
        tensor([[2., 1.],
                [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _parameters = {
        "loc": 1,
        "cov_diag": 1,
        "cov_factor": 2,
        **dict.fromkeys(("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"), None),
    }

    @checked
    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        n = loc.shape[-1]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2] != n:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {n} x m")
        if cov_diag.dim() < 1 or cov_diag.shape[-1] != n:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {loc.shape[-1:]}")
        try:
            batch_shape = vesta.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(*batch_shape, -1)
        self.cov_factor = cov_factor.expand(*batch_shape, -1, -1)
        self.cov_diag = cov_diag.expand(*batch_shape, -1)
        super().__init__(batch_shape, loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        capacitance = self._weighted() @ cov_factor
        self._capacitance_tril = _linalg.cholesky(capacitance + _linalg.identity_like(capacitance))

    def _weighted(self) -> Tensor:
        """W^T D^-1, [..., m, n]."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _whitened(self) -> Tensor:
        """A with A^T A = D^-1 W C^-1 W^T D^-1, [..., m, n]."""
        return _linalg.solve_lower(self._capacitance_tril, self._weighted())

    def _logdet(self) -> Tensor:
        return 2 * _linalg.half_logdet(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _mahalanobis(self, difference: Tensor) -> Tensor:
        """d^T (W W^T + D)^-1 d."""
        projected = (self._weighted() @ difference.unsqueeze(-1)).squeeze(-1)
        direct = (difference.square() / self._unbroadcasted_cov_diag).sum(-1)
        return direct - _linalg.mahalanobis(self._capacitance_tril, projected)

    def _batched(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance, [..., n, n]."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        inner = scaled @ scaled.mT
        return self._batched(root * _linalg.cholesky(inner + _linalg.identity_like(inner)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance, [..., n, n]."""
        factor = self._unbroadcasted_cov_factor
        return self._batched(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, [..., n, n]."""
        white = self._whitened()
        return self._batched(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - white.mT @ white)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The variance of each element, [..., n]."""
        diagonal = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return diagonal.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        narrow = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype, self.loc.device)
        broad = _standard_normal(shape, self.loc.dtype, self.loc.device)
        low = (self._unbroadcasted_cov_factor @ narrow.unsqueeze(-1)).squeeze(-1)
        return self.loc + low + self._unbroadcasted_cov_diag.sqrt() * broad

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        constant = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (constant + self._logdet() + self._mahalanobis(value - self.loc))

    def entropy(self) -> Tensor:
        constant = self._event_shape[0] * (1 + math.log(2 * math.pi))
        return (0.5 * (constant + self._logdet())).expand(self._batch_shape)
