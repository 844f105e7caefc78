"""References of linear algebra."""

from __future__ import annotations

import numpy as np


def qr(x: np.ndarray, mode: str = "reduced") -> tuple:
    """NumPy's, which knows no matrices without elements in some modes."""
    if x.size:
        return tuple(np.linalg.qr(x, mode))
    *batch, m, n = x.shape
    rank = m if mode == "complete" else min(m, n)
    q = np.broadcast_to(np.eye(m, rank, dtype=x.dtype), (*batch, m, rank))
    return q, np.zeros((*batch, rank, n), x.dtype)


def solve_triangular(
    a: np.ndarray, b: np.ndarray, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> np.ndarray:
    a = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        a = a * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    if left:
        return np.linalg.solve(a, b)
    return np.linalg.solve(a.swapaxes(-1, -2), b.swapaxes(-1, -2)).swapaxes(-1, -2)


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def cholesky(a: np.ndarray, upper: bool = False) -> np.ndarray:
    lower = np.linalg.cholesky(a)
    return adjoint(lower) if upper else lower


def cholesky_solve(b: np.ndarray, factor: np.ndarray, upper: bool = False) -> np.ndarray:
    factor = np.triu(factor) if upper else np.tril(factor)
    return np.linalg.solve(adjoint(factor) @ factor if upper else factor @ adjoint(factor), b)


def cholesky_inverse(factor: np.ndarray, upper: bool = False) -> np.ndarray:
    factor = np.triu(factor) if upper else np.tril(factor)
    return np.linalg.inv(adjoint(factor) @ factor if upper else factor @ adjoint(factor))


def lu(a: np.ndarray) -> tuple:
    from scipy import linalg

    if a.ndim == 2:
        return (
            linalg.lu(a)
            if a.size
            else (
                np.eye(a.shape[0]).astype(a.dtype),
                np.zeros((a.shape[0], min(a.shape)), a.dtype),
                np.zeros((min(a.shape), a.shape[1]), a.dtype),
            )
        )
    parts = [linalg.lu(m) for m in a.reshape(-1, *a.shape[-2:])]
    return tuple(np.stack(p).reshape(*a.shape[:-2], *p[0].shape) for p in zip(*parts))


def solve(a: np.ndarray, b: np.ndarray, left: bool = True) -> np.ndarray:
    if not left:
        return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)
    vector = b.ndim == 1 or b.shape == a.shape[:-1]
    made = np.linalg.solve(a, b[..., None] if vector else b)
    return made[..., 0] if vector else made


def logdet(a: np.ndarray) -> np.ndarray:
    sign, size = np.linalg.slogdet(a)
    return np.log(sign) + size


def eigh(a: np.ndarray) -> tuple:
    """The eigenvalues of A + A^H, and its exponential."""
    values, vectors = np.linalg.eigh(a + adjoint(a))
    return values, (vectors * np.exp(values)[..., None, :]) @ adjoint(vectors)


def eig(a: np.ndarray) -> tuple:
    """The sum of the cubes of the eigenvalues, and A's square by its decomposition."""
    a = a.astype(np.complex128)
    return np.trace(a @ a @ a, axis1=-2, axis2=-1), a @ a


def svd(a: np.ndarray) -> tuple:
    """The singular values, and U V^H."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return s, u @ vh


def polar(a: np.ndarray) -> tuple:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return u @ vh, (adjoint(vh) * s[..., None, :]) @ vh


def matrix_sqrth(a: np.ndarray) -> np.ndarray:
    """The root of A + A^H + 8."""
    values, vectors = np.linalg.eigh(a + adjoint(a) + 8 * np.eye(a.shape[-1], dtype=a.dtype))
    return (vectors * np.sqrt(values)[..., None, :]) @ adjoint(vectors)


def matrix_rank(a: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.matrix_rank(a))


def matrix_exp(a: np.ndarray) -> np.ndarray:
    from scipy import linalg

    if a.ndim == 2 and a.size:
        return linalg.expm(a)
    return np.stack([linalg.expm(m) for m in a.reshape(-1, *a.shape[-2:])]).reshape(a.shape) if a.size else a


def triangular_solve(
    b: np.ndarray, a: np.ndarray, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple:
    matrix = np.triu(a) if upper else np.tril(a)
    if unitriangular:
        matrix = matrix * (1 - np.eye(a.shape[-1])) + np.eye(a.shape[-1])
    matrix = np.swapaxes(matrix, -1, -2) if transpose else matrix
    return np.linalg.solve(matrix, b), a


def ormqr(v: np.ndarray, tau: np.ndarray, c: np.ndarray, left: bool = True, transpose: bool = False) -> np.ndarray:
    v = v[..., : v.shape[-2]]
    more = np.zeros((*v.shape[:-1], v.shape[-2] - v.shape[-1]), v.dtype)
    q = householder(np.concatenate([v, more], -1), tau)
    q = np.swapaxes(q, -1, -2).conj() if transpose else q
    return q @ c if left else c @ q


def householder(v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The first columns of H_1 ... H_k, H_i = 1 - tau_i v_i v_i^H."""
    m, n = v.shape[-2:]
    q = np.broadcast_to(np.eye(m, dtype=v.dtype), (*v.shape[:-2], m, m))
    for i in range(tau.shape[-1]):
        column = np.where(np.arange(m) < i, 0, np.where(np.arange(m) == i, 1, v[..., i]))
        outer = column[..., :, None] * column[..., None, :].conj()
        q = q @ (np.eye(m) - tau[..., i, None, None] * outer)
    return q[..., :n]
