"""Linear algebra beyond the table: names and shapes of results, strides, ``out=``, and where LAPACK comes from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import vesta


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (2, 5, 3), (0, 3), (3, 0), (0, 2, 3)])
@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
def test_qr_shapes_and_factors(shape: tuple[int, ...], mode: str) -> None:
    """Q's columns are orthonormal, R is upper triangular with a real diagonal, Q @ R is A; mode r leaves Q out."""
    rng = np.random.default_rng(0)
    a = vesta.zeros(shape, dtype=vesta.complex128)
    a.copy_(vesta.from_numpy(rng.normal(size=shape) + 1j * rng.normal(size=shape)))
    q, r = vesta.linalg.qr(a, mode)
    *batch, m, n = shape
    rows = m if mode == "complete" else min(m, n)
    assert tuple(r.shape) == (*batch, rows, n)
    assert tuple(q.shape) == ((0,) if mode == "r" else (*batch, m, rows))
    np.testing.assert_array_equal(np.tril(r.numpy(), -1), np.zeros(r.shape))
    assert np.all(np.diagonal(r.numpy(), 0, -2, -1).imag == 0)
    if mode == "r":
        np.testing.assert_allclose(np.abs(r.numpy()), np.abs(vesta.linalg.qr(a)[1].numpy()), atol=1e-12)
        return
    np.testing.assert_allclose((q @ r).numpy(), a.numpy(), atol=1e-12)
    unit = np.broadcast_to(np.eye(rows), (*batch, rows, rows))
    np.testing.assert_allclose((q.conj().transpose(-2, -1) @ q).numpy(), unit, atol=1e-12)


def test_qr_result_has_names_and_lies_by_columns() -> None:
    result = vesta.linalg.qr(vesta.ones(2, 4, 3))
    assert type(result) is vesta.return_types.linalg_qr and result.Q is result[0] and result.R is result[1]
    assert result.Q.stride() == (12, 1, 4) and result.R.stride() == (9, 1, 3)
    assert repr(result).startswith("vesta.return_types.linalg_qr(\nQ=tensor(")


def test_qr_out() -> None:
    a = vesta.from_numpy(np.random.default_rng(1).normal(size=(4, 3)))
    q, r = vesta.empty(0, dtype=vesta.float64), vesta.empty(3, 3, dtype=vesta.float64)
    result = vesta.linalg.qr(a, out=(q, r))
    assert result[0] is q and result[1] is r
    for have, want in zip((q, r), vesta.linalg.qr(a)):
        np.testing.assert_array_equal(have.numpy(), want.numpy())
    with pytest.raises(RuntimeError, match="out"):
        vesta.linalg.qr(a, out=(q, vesta.empty(2, 2, dtype=vesta.float64)))


def test_qr_keeps_its_operand() -> None:
    a = vesta.from_numpy(np.random.default_rng(2).normal(size=(3, 4))).t()
    before = a.clone()
    vesta.linalg.qr(a)
    assert bool((a == before).all()) and a._version == 0


def test_solve_triangular_reads_one_triangle() -> None:
    a = vesta.tensor([[2.0, float("nan")], [1.0, 4.0]])
    x = vesta.linalg.solve_triangular(a, vesta.tensor([[2.0], [9.0]]), upper=False)
    assert x.tolist() == [[1.0], [2.0]]


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )


QR = "import vesta; r = vesta.linalg.qr(vesta.tensor([[3.0, 1.0], [4.0, 2.0]])).R; print(round(abs(r[0, 0].item()), 4))"


def test_without_lapack_the_error_says_what_to_install() -> None:
    """The named library is the only one tried; ``import vesta.linalg`` needs none."""
    done = run(QR, VESTA_LAPACK_LIBRARY="/nowhere/liblapack.so")
    assert done.returncode == 1 and "linalg.qr: expected LAPACK" in done.stderr
    for word in ("/nowhere/liblapack.so", "libopenblas0-openmp", "SciPy", "VESTA_LAPACK_LIBRARY"):
        assert word in done.stderr
    assert run("import vesta.linalg", VESTA_LAPACK_LIBRARY="/nowhere/liblapack.so").returncode == 0


def test_a_library_without_lapack_is_refused() -> None:
    done = run(QR, VESTA_LAPACK_LIBRARY="libm.so.6")
    assert done.returncode == 1 and "libm.so.6 lacks functions of LAPACK" in done.stderr


def bundled() -> list[Path]:
    """Returns the libraries of SciPy and NumPy: with integers of 32 and of 64 bits, under names of their own."""
    packages = Path(np.__file__).parents[1]
    return sorted([*packages.glob("scipy.libs/*openblas*"), *packages.glob("numpy.libs/*openblas*")])


@pytest.mark.skipif(not bundled(), reason="SciPy and NumPy were installed without libraries of their own")
@pytest.mark.parametrize("library", bundled(), ids=lambda path: path.parent.name)
def test_lapack_under_other_names(library: Path) -> None:
    done = run(QR, VESTA_LAPACK_LIBRARY=str(library))
    assert (done.stdout, done.stderr) == ("5.0\n", "")


def test_cuda_has_no_kernel_yet() -> None:
    if not vesta.cuda.is_available():
        pytest.skip("needs a CUDA device")
    with pytest.raises(RuntimeError, match="qr: no CUDA kernel"):
        vesta.linalg.qr(vesta.ones(2, 2, device="cuda"))
