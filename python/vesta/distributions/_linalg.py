"""Cholesky factors and what distributions do with them.

``vesta.linalg.cholesky`` is taken where it exists; else the factor is computed column by column, and its gradient by
the formula of I. Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527, 2016.
"""

from __future__ import annotations

import math
from typing import Any

import vesta
import vesta.autograd
import vesta.linalg
from vesta import Tensor

#: Sweeps of the Jacobi method: it converges quadratically, six to ten are common.
_SWEEPS = 15


def _factor(matrix: Tensor) -> Tensor:
    """Returns the lower factor of the lower triangle; NaN stands where the matrix is not positive definite."""
    n = matrix.shape[-1]
    rows = vesta.arange(n, device=matrix.device)
    columns: list[Tensor] = []
    for j, column in enumerate(matrix.unbind(-1)):
        for done in columns:
            column = column - done * done[..., j : j + 1]
        pivot = column[..., j : j + 1]
        scaled = column * vesta.where(pivot > 0, pivot, math.nan).rsqrt()
        columns.append(vesta.where(rows >= j, scaled, 0.0))
    return vesta.stack(columns, -1)


class _Cholesky(vesta.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        factor = _factor(matrix)
        ctx.save_for_backward(factor)
        return factor

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        factor = ctx.saved_tensors[0]
        inner = (factor.mT @ grad).tril()
        inner = inner - inner.diagonal(dim1=-2, dim2=-1).diag_embed() / 2
        left = _solve_transposed(factor, inner)
        result = _solve_transposed(factor, left.mT)
        return (result + result.mT) / 2


def _solve(matrix: Tensor, right: Tensor, upper: bool) -> Tensor:
    """Solves with a triangular matrix; row by row on a device for which the library has no kernel."""
    try:
        return vesta.linalg.solve_triangular(matrix, right, upper=upper)
    except NotImplementedError:
        if matrix.device.type == "cpu":
            raise
    if upper:  # reversed, it is a lower one
        return _solve(matrix.flip((-2, -1)), right.flip(-2), False).flip(-2)
    shape = vesta.broadcast_shapes(matrix.shape[:-2], right.shape[:-2])
    rows: list[Tensor] = []
    for i, value in enumerate(right.expand(*shape, *right.shape[-2:]).unbind(-2)):
        if rows:
            value = value - (matrix[..., i : i + 1, :i] @ vesta.stack(rows, -2)).squeeze(-2)
        rows.append(value / matrix[..., i, i].unsqueeze(-1))
    return vesta.stack(rows, -2)


def _solve_transposed(factor: Tensor, right: Tensor) -> Tensor:
    return _solve(factor.mT, right, upper=True)


def has_cholesky(matrix: Tensor) -> Tensor:
    """Returns which matrices of a batch [..., n, n] are positive definite, by their lower triangles."""
    if hasattr(vesta.linalg, "cholesky_ex"):
        return vesta.linalg.cholesky_ex(matrix.detach()).info == 0
    return (_factor(matrix.detach()).diagonal(dim1=-2, dim2=-1) > 0).all(-1)


def cholesky(matrix: Tensor) -> Tensor:
    """Returns the lower factor L of ``matrix = L L^T``, [..., n, n]; differentiable.

    Raises:
        RuntimeError: a matrix is not positive definite.
    """
    if hasattr(vesta.linalg, "cholesky"):
        return vesta.linalg.cholesky(matrix)
    factor = _Cholesky.apply(matrix)
    if not bool((factor.detach().diagonal(dim1=-2, dim2=-1) > 0).all()):
        raise RuntimeError(
            "linalg.cholesky: The factorization could not be completed because the input is not positive-definite."
        )
    return factor


def solve_lower(factor: Tensor, right: Tensor) -> Tensor:
    """Solves ``factor x = right`` for lower triangular factors; batches broadcast."""
    return _solve(factor, right, upper=False)


def cholesky_solve(right: Tensor, factor: Tensor) -> Tensor:
    """Solves ``factor factor^T x = right``; batches broadcast."""
    return _solve_transposed(factor, solve_lower(factor, right))


def cholesky_inverse(factor: Tensor) -> Tensor:
    """Returns the inverse of ``factor factor^T``."""
    inverse = solve_lower(factor, identity_like(factor))
    return inverse.mT @ inverse


def identity_like(matrix: Tensor) -> Tensor:
    """Returns the identity of the size, dtype and device of a matrix."""
    return vesta.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def half_logdet(factor: Tensor) -> Tensor:
    """Returns log det of a triangular factor: half that of its matrix."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Returns the lower factor of the inverse of a matrix, without inverting it.

    With J that reverses the order, J P J = F F^T, so that P = U U^T with the upper U = J F J, and the inverse is
    U^-T U^-1, whose first factor is lower triangular.
    """
    upper = cholesky(precision.flip((-2, -1))).flip((-2, -1))
    return solve_lower(upper.mT, identity_like(precision))


def mahalanobis(factor: Tensor, difference: Tensor) -> Tensor:
    """Returns ``|factor^-1 d|^2`` for factors [..., n, n] and vectors d of [..., n] whose batches broadcast.

    Vectors that share a factor are solved as columns of one matrix.
    """
    n, batch = difference.shape[-1], factor.dim() - 2
    shape = vesta.broadcast_shapes(factor.shape[:-2], difference.shape[:-1])
    vectors = difference.expand(*shape, n)
    samples = len(shape) - batch
    # [samples..., batch..., n] -> [batch..., n, samples]
    columns = vectors.reshape(math.prod(shape[:samples]), *shape[samples:], n).movedim(0, -1)
    square = solve_lower(factor, columns).square().sum(-2)  # [batch..., samples]
    return square.movedim(-1, 0).reshape(shape)


def eigvalsh(matrix: Tensor) -> Tensor:
    """Returns the eigenvalues [..., n] of symmetric matrices, without a gradient; in no order.

    Without ``vesta.linalg.eigvalsh`` by Jacobi's rotations (Golub and Van Loan, Matrix Computations, 8.5).
    """
    if hasattr(vesta.linalg, "eigvalsh"):
        return vesta.linalg.eigvalsh(matrix)
    a, n = matrix.detach().to(vesta.float64), matrix.shape[-1]
    for _ in range(_SWEEPS):
        off = a - a.diagonal(dim1=-2, dim2=-1).diag_embed()
        if bool((off.square().sum((-2, -1)) <= 1e-30 * a.square().sum((-2, -1))).all()):
            break
        for p in range(n - 1):
            for q in range(p + 1, n):
                a = _rotated(a, p, q)
    return a.diagonal(dim1=-2, dim2=-1).to(matrix.dtype)


def _rotated(a: Tensor, p: int, q: int) -> Tensor:
    """Returns the matrices after the rotation that makes element (p, q) zero."""
    angle = 0.5 * vesta.atan2(2 * a[..., p, q], a[..., q, q] - a[..., p, p])
    c, s = angle.cos()[..., None], angle.sin()[..., None]
    rows = list(a.unbind(-2))
    rows[p], rows[q] = c * rows[p] - s * rows[q], s * rows[p] + c * rows[q]
    columns = list(vesta.stack(rows, -2).unbind(-1))
    columns[p], columns[q] = c * columns[p] - s * columns[q], s * columns[p] + c * columns[q]
    return vesta.stack(columns, -1)
