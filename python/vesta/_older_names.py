"""Linear algebra under the names and with the results that it had before ``torch.linalg``; ``range``.

PyTorch has dropped most of them, while programs still call them. Each says what replaces it, in a DeprecationWarning.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

from vesta._types import Device, DType, Layout

from . import _C
from ._arguments import checked
from ._C import Tensor, _linalg, _ops


class symeig_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class solve_result(NamedTuple):
    solution: Tensor
    LU: Tensor


class lstsq_result(NamedTuple):
    solution: Tensor
    QR: Tensor


class eig_result(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class qr_result(NamedTuple):
    Q: Tensor
    R: Tensor


for _shown in (symeig_result, solve_result, lstsq_result, eig_result, qr_result):
    _shown.__name__ = _shown.__name__.removesuffix("_result")


def _replaced(name: str, by: str) -> None:
    warnings.warn(f"vesta.{name} is an older name: use {by}.", DeprecationWarning, stacklevel=3)


def _nothing(like: Tensor) -> Tensor:
    return _ops.empty(0, dtype=like.dtype, device=like.device)


@checked
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """Returns ``linalg.cholesky(input, upper=upper)``."""
    _replaced("cholesky", "vesta.linalg.cholesky")
    return _linalg.cholesky(input, upper=upper, out=out)


@checked
def qr(input: Tensor, some: bool = True, *, out: Sequence[Tensor] | None = None) -> qr_result:
    """Returns ``linalg.qr(input, "reduced" if some else "complete")``."""
    _replaced("qr", "vesta.linalg.qr")
    return qr_result(*_linalg.qr(input, "reduced" if some else "complete", out=out))


@checked
def symeig(input: Tensor, eigenvectors: bool = False, upper: bool = True) -> symeig_result:
    """Returns the eigenvalues of Hermitian matrices, in ascending order, and their vectors (else nothing)."""
    _replaced("symeig", "vesta.linalg.eigh or vesta.linalg.eigvalsh")
    uplo = "U" if upper else "L"
    if eigenvectors:
        return symeig_result(*_linalg.eigh(input, uplo))
    return symeig_result(_linalg.eigvalsh(input, uplo), _nothing(input))


@checked
def eig(input: Tensor, eigenvectors: bool = False) -> eig_result:
    """Returns the eigenvalues of a matrix as rows (real, imaginary), and its eigenvectors (else nothing).

    As it was: a pair of complex eigenvalues has the real and the imaginary part of its vector as two columns.
    """
    _replaced("eig", "vesta.linalg.eig or vesta.linalg.eigvals")
    values, vectors = _linalg.eig(input)
    parts = _ops.view_as_real(values)
    if not eigenvectors:
        return eig_result(parts, _nothing(input))
    second = values.imag < 0  # of a pair: the first has the positive imaginary part
    columns = _ops.where(second, -vectors.imag, vectors.real)
    return eig_result(parts, columns)


@checked
def solve(input: Tensor, A: Tensor) -> solve_result:
    """Returns X with A X = input (``[*, n, k]``), and the LU decomposition of ``A [*, n, n]``."""
    _replaced("solve", "vesta.linalg.solve")
    if input.dim() < 2 or A.dim() < 2:
        raise RuntimeError(
            f"solve: input and A should have at least 2 dimensions, got {tuple(input.shape)} and {tuple(A.shape)}."
        )
    return solve_result(_linalg.solve(A, input), _linalg.lu_factor(A).LU)


@checked
def lstsq(input: Tensor, A: Tensor) -> lstsq_result:
    """Returns X with the least ``|A X - input|`` in its first n rows, for ``A [m, n]``; its QR decomposition is empty.

    Rows n to m hold what is left over: the sum of a column's squares there is its squared error.
    """
    _replaced("lstsq", "vesta.linalg.lstsq")
    if A.dim() != 2 or input.dim() not in (1, 2):
        raise RuntimeError(
            f"lstsq: expected a matrix A and a vector or matrix input, got {tuple(A.shape)} and {tuple(input.shape)}."
        )
    m, n = A.shape
    right = input if input.dim() == 2 else input.unsqueeze(-1)
    if m < n:
        return lstsq_result(_linalg.pinv(A) @ right, _nothing(A))
    Q, R = _linalg.qr(A, "complete")
    turned = Q.mH @ right
    top = _linalg.solve_triangular(R[:n], turned[:n], upper=True)
    return lstsq_result(_ops.cat([top, turned[n:]]), _nothing(A))


@checked
def matrix_rank(input: Tensor, tol: float | None = None, symmetric: bool = False) -> Tensor:
    """Returns ``linalg.matrix_rank(input, tol=tol, hermitian=symmetric)``."""
    _replaced("matrix_rank", "vesta.linalg.matrix_rank")
    from . import linalg

    return linalg.matrix_rank(input, hermitian=symmetric) if tol is None else linalg.matrix_rank(input, tol, symmetric)


@checked
def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Returns ``linalg.lu_factor(A)``, and with ``get_infos`` LAPACK's numbers of failures ``[*]``."""
    _replaced("lu", "vesta.linalg.lu_factor or vesta.linalg.lu_factor_ex")
    LU, pivots, info = _linalg.lu_factor_ex(A, pivot=pivot, check_errors=not get_infos)
    made = (LU, pivots, info) if get_infos else (LU, pivots)
    return made if out is None else tuple(_C._write_out("lu", made, out))


def range(
    start: float,
    end: float,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout = _C.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns start, start + step, ... up to and with ``end``, of the default dtype: a vector.

    Raises:
        RuntimeError: a step of 0, or bounds that do not fit its sign.
    """
    warnings.warn("vesta.range includes its end: use vesta.arange.", UserWarning, stacklevel=2)
    if step == 0:
        raise RuntimeError("range: step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("range: upper bound and larger bound inconsistent with step sign")
    count = int((end - start) / step) + 1
    if dtype is None:
        dtype = _C.get_default_dtype() if out is None else out.dtype
    wide = _C.int64 if all(isinstance(value, int) for value in (start, end, step)) else _C.float64
    made = _ops.arange(count, dtype=wide, device=device).mul(step).add(start).to(dtype)
    if out is not None:
        return _C._write_out("range", made, out)
    return made.requires_grad_(requires_grad)


def set_deterministic(d: bool) -> None:
    """Does what ``use_deterministic_algorithms`` does."""
    _replaced("set_deterministic", "vesta.use_deterministic_algorithms")
    from ._process_settings import use_deterministic_algorithms

    use_deterministic_algorithms(d)
