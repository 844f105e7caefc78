"""Transforms of vectors and matrices: to the simplex and to Cholesky factors; public names in ``transforms``."""

from __future__ import annotations

import math
from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Size, Tensor
from vesta._types import Shape
from vesta.nn.functional import logsigmoid, softplus

from . import constraints
from ._special import cumprod
from ._transform import Transform, _expect_dims, _unit_clamp
from .utils import tril_matrix_to_vec, vec_to_tril_matrix


def _led_by_one(x: Tensor) -> Tensor:
    """Puts a 1 before the last dimension."""
    return vesta.cat([vesta.ones_like(x[..., :1]), x], -1)


class SoftmaxTransform(Transform):
    """y = softmax(x) over the last dimension, which is no bijection: the inverse is log(y).

    Example::

        >>> import vesta
        >>> from vesta.distributions import SoftmaxTransform
        >>> SoftmaxTransform()(vesta.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    _comparable = True

    def _call(self, x: Tensor) -> Tensor:
        return vesta.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Shape) -> Shape:
        _expect_dims(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Maps n real numbers to n + 1 numbers on the simplex, a bijection.

    A stick of length 1 is broken n times: z_i = sigmoid(x_i - log(n + 1 - i)) of what is left, counted from i = 1.
    Source: Stan Reference Manual, Unit simplex.

    Example::

        >>> import vesta
        >>> from vesta.distributions import StickBreakingTransform
        >>> StickBreakingTransform()(vesta.zeros(1))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True
    _comparable = True

    @staticmethod
    def _centred(x: Tensor) -> Tensor:
        n = x.shape[-1]
        return x - vesta.arange(n, 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x: Tensor) -> Tensor:
        fraction = _unit_clamp(vesta.sigmoid(self._centred(x)))
        left = _led_by_one(cumprod(1 - fraction, -1))
        return vesta.cat([fraction, vesta.ones_like(fraction[..., :1])], -1) * left

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        left = (1 - head.cumsum(-1)).clamp(min=vesta.finfo(y.dtype).tiny)
        return head.log() - left.log() - self._centred(vesta.zeros_like(head))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        centred = self._centred(x)
        return (logsigmoid(centred) - centred + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Shape) -> Shape:
        _expect_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Shape) -> Shape:
        _expect_dims(shape, 1)
        return Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(Transform):
    """Maps matrices to lower triangular ones with a positive diagonal: the exponential of the diagonal.

    Example::

        >>> import vesta
        >>> from vesta.distributions import LowerCholeskyTransform
        >>> LowerCholeskyTransform()(vesta.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky
    _comparable = True

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Maps matrices to positive definite ones: L L^T with L of ``LowerCholeskyTransform``.

    Example::

        >>> import vesta
        >>> from vesta.distributions import PositiveDefiniteTransform
        >>> PositiveDefiniteTransform()(vesta.tensor([[0.0, 9.0], [1.0, 0.0]]))
        tensor([[1., 1.],
                [1., 2.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite
    _comparable = True

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        from ._linalg import cholesky

        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """Maps n (n - 1) / 2 real numbers to Cholesky factors of correlation matrices, a bijection.

    The numbers, through tanh, are partial correlations z, row by row; in a row L_ij = z_ij sqrt(prod(1 - z_ik**2)) over
    k < j. Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines and extended
    onion method, 2009; Stan Reference Manual, Cholesky factors of correlation matrices.

    Example::

        >>> import vesta
        >>> from vesta.distributions import CorrCholeskyTransform
        >>> CorrCholeskyTransform()(vesta.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = vesta.finfo(x.dtype).eps
        z = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = cumprod((1 - z * z).sqrt(), -1)
        ones = vesta.eye(z.shape[-1], dtype=x.dtype, device=x.device)
        return (z + ones) * _led_by_one(left[..., :-1])

    def _inverse(self, y: Tensor) -> Tensor:
        left = _led_by_one((1 - (y * y).cumsum(-1))[..., :-1])
        z = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (z.log1p() - (-z).log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        tanh_part = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) + tanh_part

    def forward_shape(self, shape: Shape) -> Shape:
        _expect_dims(shape, 1)
        count = shape[-1]
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Shape) -> Shape:
        _expect_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))
