"""Approximate singular values of large matrices, dense or sparse, by random projections.

Halko, Martinsson and Tropp, "Finding structure with randomness", SIAM Review 53 (2011), algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from typing import Any

from . import _C
from ._arguments import expect, python_number
from ._C import Tensor, _linalg, _ops

__all__ = ["pca_lowrank", "svd_lowrank"]


def _adjoint(A: Tensor) -> Tensor:
    turned = A.transpose(-2, -1)
    return _ops.conj(turned) if A.is_complex() else turned


def _centered(A: Tensor, M: Tensor | None, X: Tensor) -> Tensor:
    """Returns (A - M) X without A - M; M may have one row or column that stands for all of them."""
    if M is None:
        return A @ X
    return A @ X - M @ (X.sum(-2, keepdim=True) if M.shape[-1] == 1 else X)


def _expect_matrix(op: str, A: Any, name: str = "A") -> None:
    expect(op, name, A, Tensor, "Tensor")
    if A.dim() < 2 or not (A.is_floating_point() or A.is_complex()):
        raise RuntimeError(
            f"{op}: expected a floating-point or complex matrix or a batch, got {A.dtype} {list(A.shape)} ({name})."
        )


def _count(op: str, name: str, value: Any) -> int:
    number = python_number(value)
    expect(op, name, number, int, "int")
    if number < 0:
        raise ValueError(f"{op}: expected at least 0, got {number} ({name}).")
    return number


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns (U, S, V) with U diag(S) V^H about A - M, for a matrix ``[*, m, n]`` of a rank of about ``q`` or less.

    The directions are random: ``manual_seed`` repeats them. For dense matrices ``linalg.svd`` is exact, and often
    faster.

    Args:
        A: dense or sparse.
        q: the number of singular values, somewhat more than the rank.
        niter: how often the subspace is improved.
        M: broadcasts to A; A - M is not made.

    Example::

        >>> import vesta
        >>> A = vesta.ones(50, 1) @ vesta.arange(40.0).reshape(1, 40)
        >>> U, S, V = vesta.svd_lowrank(A, q=2)
        >>> vesta.allclose(U * S @ V.mT, A, atol=1e-3)
        True
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    _expect_matrix("svd_lowrank", A)
    q, niter = _count("svd_lowrank", "q", q), _count("svd_lowrank", "niter", niter)
    if M is not None:
        _expect_matrix("svd_lowrank", M, "M")
        if any(have not in (1, want) for have, want in zip(M.shape[::-1], A.shape[::-1])) or M.dim() > A.dim():
            raise RuntimeError(
                f"svd_lowrank: expected M to broadcast to {list(A.shape)}, the shape of A, got {list(M.shape)} (M)."
            )
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = _adjoint(A), None if M is None else _adjoint(M)
    adjoint, mean = _adjoint(A), None if M is None else _adjoint(M)
    Q = _linalg.qr(_centered(A, M, _ops.randn(A.shape[-1], q, dtype=A.dtype, device=A.device))).Q
    for _ in range(niter):
        Q = _linalg.qr(_centered(adjoint, mean, Q)).Q
        Q = _linalg.qr(_centered(A, M, Q)).Q
    U, S, Vh = _linalg.svd(_adjoint(_centered(adjoint, mean, Q)), full_matrices=False)
    U, V = Q @ U, _adjoint(Vh)
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the first ``q`` principal components of m samples of n features as (U, S, V).

    It is ``svd_lowrank`` of A less the mean of its rows.

    The columns of V are the directions, S**2 / (m - 1) the variances along them, A @ V the projections.

    Args:
        A: ``[*, m, n]``, dense or sparse.
        q: at most min(m, n); min(6, m, n) without it.
        center: False where the columns have the mean 0.

    Example::

        >>> import vesta
        >>> U, S, V = vesta.pca_lowrank(vesta.tensor([[0.0, 1.0], [2.0, 5.0], [4.0, 9.0]]), q=1)
        >>> (V / V[0]).flatten()
        tensor([1.0000, 2.0000])
    """
    _expect_matrix("pca_lowrank", A)
    most = min(A.shape[-2:])
    q = _count("pca_lowrank", "q", min(6, most) if q is None else q)
    niter = _count("pca_lowrank", "niter", niter)
    if q > most:
        raise ValueError(f"pca_lowrank: expected at most min(m, n) = {most}, got {q} (q).")
    if not center:
        return svd_lowrank(A, q, niter)
    if not A.is_sparse:
        return svd_lowrank(A - A.mean(-2, keepdim=True), q, niter)
    if A.dim() != 2:
        raise ValueError(f"pca_lowrank: expected a sparse tensor of 2 dimensions, got {list(A.shape)} (A).")
    return svd_lowrank(A, q, niter, _C._ops.ones(1, A.shape[0], dtype=A.dtype, device=A.device) @ A / A.shape[0])
