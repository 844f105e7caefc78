"""Approximate singular values: exact where the rank allows it, with means, of sparse matrices; gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vesta


@pytest.fixture(autouse=True)
def seed() -> None:
    vesta.manual_seed(0)


def low_rank(*shape: int, rank: int = 3, kind: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(1)
    factor = lambda n: rng.standard_normal((*shape[:-2], n, rank)) + (
        1j * rng.standard_normal((*shape[:-2], n, rank)) if kind == np.complex128 else 0
    )
    return (factor(shape[-2]) @ np.swapaxes(factor(shape[-1]), -1, -2)).astype(kind)


def whole(found: Any) -> np.ndarray:
    U, S, V = (part.detach().numpy() for part in found)
    return (U * S[..., None, :]) @ np.swapaxes(V, -1, -2).conj()


@pytest.mark.parametrize("shape", [(20, 9), (9, 20), (2, 12, 8), (3, 3), (2, 5)], ids=str)
@pytest.mark.parametrize("kind", [np.float64, np.complex128])
def test_what_has_a_low_rank_is_exact(kind: Any, shape: tuple[int, ...]) -> None:
    A = low_rank(*shape, kind=kind)
    found = vesta.svd_lowrank(vesta.tensor(A), q=4)
    k = min(4, *shape[-2:])
    assert [t.shape[-1] for t in found] == [k, k, k]
    np.testing.assert_allclose(whole(found), A, atol=1e-12)
    exact = np.linalg.svd(A, compute_uv=False)[..., :k]
    np.testing.assert_allclose(found[1].numpy(), exact, atol=1e-12)


@pytest.mark.parametrize("shape", [(20, 9), (9, 20)], ids=str)
@pytest.mark.parametrize("size", ["matrix", "row", "column", "number"])
def test_a_mean_is_taken_off(size: str, shape: tuple[int, int]) -> None:
    A = low_rank(*shape) + 5
    m, n = {"matrix": shape, "row": (1, shape[1]), "column": (shape[0], 1), "number": (1, 1)}[size]
    M = np.full((m, n), 5.0)
    np.testing.assert_allclose(whole(vesta.svd_lowrank(vesta.tensor(A), 3, M=vesta.tensor(M))), A - M, atol=1e-12)


def test_sparse_matrices() -> None:
    rng = np.random.default_rng(2)
    A = low_rank(30, 12) * (rng.random((30, 1)) < 0.3)
    sparse = vesta.tensor(A).to_sparse()
    np.testing.assert_allclose(whole(vesta.svd_lowrank(sparse, 5)), A, atol=1e-12)
    np.testing.assert_allclose(whole(vesta.svd_lowrank(sparse.t(), 5)), A.T, atol=1e-12)
    np.testing.assert_allclose(whole(vesta.pca_lowrank(sparse, 5)), A - A.mean(0), atol=1e-12)


def test_principal_components() -> None:
    A = low_rank(2, 40, 7) + np.arange(7)
    U, S, V = vesta.pca_lowrank(vesta.tensor(A))
    assert U.shape == (2, 40, 6) and S.shape == (2, 6) and V.shape == (2, 7, 6)
    centered = A - A.mean(-2, keepdims=True)
    np.testing.assert_allclose(whole((U, S, V)), centered, atol=1e-12)
    variances = np.linalg.eigvalsh(centered[0].T @ centered[0] / 39)[::-1]
    np.testing.assert_allclose((S[0] ** 2 / 39).numpy(), variances[:6], atol=1e-12)
    np.testing.assert_allclose(whole(vesta.pca_lowrank(vesta.tensor(centered), 3, center=False)), centered, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)], ids=str)
def test_gradients(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    a, b = (vesta.tensor(rng.standard_normal((n, 2)), requires_grad=True) for n in shape)

    def values(a: vesta.Tensor, b: vesta.Tensor) -> Any:
        vesta.manual_seed(0)
        U, S, V = vesta.svd_lowrank(a @ b.mT, q=2)
        return U @ V.mT, S

    assert vesta.autograd.gradcheck(values, (a, b))


def test_a_seed_repeats_the_result() -> None:
    A = vesta.tensor(np.random.default_rng(4).standard_normal((20, 15)))
    first = vesta.svd_lowrank(A, 3, niter=0)
    vesta.manual_seed(0)
    again = vesta.svd_lowrank(A, 3, niter=0)
    assert all(vesta.equal(a, b) for a, b in zip(first, again))


def test_wrong_arguments() -> None:
    A = vesta.ones(4, 3)
    for call, error, words in (
        (lambda: vesta.svd_lowrank(vesta.ones(3)), RuntimeError, r"got vesta.float32 \[3\] \(A\)"),
        (lambda: vesta.svd_lowrank(A.long()), RuntimeError, "got vesta.int64"),
        (lambda: vesta.svd_lowrank([1.0]), TypeError, "expected Tensor, got list"),
        (lambda: vesta.svd_lowrank(A, -1), ValueError, r"at least 0, got -1 \(q\)"),
        (lambda: vesta.svd_lowrank(A, 2.0), TypeError, r"expected int, got float \(q\)"),
        (lambda: vesta.svd_lowrank(A, 2, M=vesta.ones(2, 3)), RuntimeError, r"M to broadcast to \[4, 3\]"),
        (lambda: vesta.pca_lowrank(A, 4), ValueError, r"at most min\(m, n\) = 3, got 4"),
        (lambda: vesta.pca_lowrank(A, 2, niter=-1), ValueError, r"got -1 \(niter\)"),
    ):
        with pytest.raises(error, match=words):
            call()
