"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Real, Shape

from . import _linalg, constraints
from ._special import digamma, mvlgamma
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import factor_of, only_one
from .utils import _NUMBERS, lazy_property

__all__ = ["Wishart"]

_LOG_2 = math.log(2)


class Wishart(ExponentialFamily):
    """The distribution of the sums of df outer products of normal vectors of mean 0: positive definite matrices.

    Args:
        df: the degrees of freedom, more than n - 1; a tensor or number. The batches broadcast.
        covariance_matrix: the covariance of the vectors, positive definite, [..., n, n].
        precision_matrix: instead of it, its inverse.
        scale_tril: instead of it, its lower Cholesky factor, with a positive diagonal.
        validate_args: whether arguments and values are checked.

    Raises:
        AssertionError: not exactly one of the matrices is given.
        ValueError: a matrix has less than two dimensions, ``df`` is too small, or a parameter outside its constraint.

    Sources: T. W. Anderson, An Introduction to Multivariate Statistical Analysis, chapter 7; samples by Bartlett's
    decomposition, theorem 7.2.1 there.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Wishart
        >>> Wishart(vesta.tensor(3.0), vesta.eye(2)).mean
        tensor([[3., 0.],
                [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {
        "df": 0,
        **dict.fromkeys(("covariance_matrix", "precision_matrix", "scale_tril", "_unbroadcasted_scale_tril"), 2),
        "_dist_chi2": 1,
    }

    @checked
    def __init__(
        self,
        df: Real,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = only_one(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
        if given is None:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        n = matrix.shape[-1]
        if isinstance(df, _NUMBERS):
            df = vesta.tensor(float(df), dtype=matrix.dtype, device=matrix.device)
        expect("Wishart", "df", df, Tensor, "a number or a Tensor")
        batch_shape = vesta.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch_shape)
        if bool((self.df <= n - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        if bool((self.df < n).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand(*batch_shape, -1, -1))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)
        steps = vesta.arange(n, dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def _batched(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance, [..., n, n]."""
        return self._batched(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of the vectors, [..., n, n]."""
        return self._batched(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, [..., n, n]."""
        return self._batched(_linalg.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - n - 1) times the covariance for df > n + 1, else NaN."""
        factor = self.df - self._event_shape[-1] - 1
        return vesta.where(factor > 0, factor, math.nan)[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df[..., None, None] * (self.covariance_matrix.square() + outer)

    def _bartlett(self, sample_shape: Any) -> Tensor:
        """Draws L A A^T L^T with roots of chi-squared variables on the diagonal of A and normal ones below."""
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        roots = roots.clamp(min=vesta.finfo(roots.dtype).eps)
        noise = vesta.randn(self._extended_shape(sample_shape), dtype=roots.dtype, device=roots.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (noise + roots.diag_embed())
        return factor @ factor.mT

    def rsample(self, sample_shape: Shape = (), max_try_correction: int | None = None) -> Tensor:
        """Draws a differentiable sample; a matrix that is singular in its precision is drawn again.

        Args:
            sample_shape: the shape of the sample.
            max_try_correction: how often singular matrices are drawn again, 10 by default.
        """
        sample = self._bartlett(sample_shape)
        singular = ~self.support.check(sample.detach())
        for attempt in range(10 if max_try_correction is None else max_try_correction):
            if not bool(singular.any()):
                break
            if attempt == 0:
                warnings.warn("Singular sample detected.", stacklevel=2)
            sample = vesta.where(singular[..., None, None], self._bartlett(sample_shape), sample)
            singular = ~self.support.check(sample.detach())
        return sample

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, n, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = _linalg.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        constant = nu * (n * _LOG_2 / 2 + _linalg.half_logdet(factor)) + mvlgamma(nu / 2, n)
        return (nu - n - 1) * _linalg.half_logdet(_linalg.cholesky(value)) - trace / 2 - constant

    def entropy(self) -> Tensor:
        nu, n = self.df, self._event_shape[-1]
        halves = vesta.arange(n, dtype=nu.dtype, device=nu.device) / 2
        derivative = digamma((nu / 2).unsqueeze(-1) - halves).sum(-1)
        scale = (n + 1) * (n * _LOG_2 / 2 + _linalg.half_logdet(self._unbroadcasted_scale_tril))
        return scale + mvlgamma(nu / 2, n) - (nu - n - 1) / 2 * derivative + nu * n / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        n = self._event_shape[-1]
        shape = y + (n + 1) / 2
        return shape * (n * _LOG_2 - 2 * _linalg.half_logdet(_linalg.cholesky(-2 * x))) + mvlgamma(shape, n)
