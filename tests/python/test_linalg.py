"""Linear algebra beyond the table: names and shapes of results, strides, ``out=``, and where LAPACK comes from."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vesta
from vesta.autograd.recording import Recording

on_cuda = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a CUDA device, emulated or not")


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


def test_cuda_tensors_are_decomposed_by_the_host() -> None:
    if not vesta.cuda.is_available():
        pytest.skip("needs a CUDA device")
    matrix = random(3, 2)
    for here, there in zip(vesta.linalg.qr(matrix), vesta.linalg.qr(matrix.cuda())):
        assert there.is_cuda and vesta.equal(there.cpu(), here)


# ---- functions in Python, and errors ----


def random(*shape: int) -> vesta.Tensor:
    vesta.manual_seed(1)
    return vesta.randn(*shape, dtype=vesta.float64)


@pytest.mark.parametrize("ord", ["fro", "nuc", float("inf"), -float("inf"), 1, -1, 2, -2])
def test_matrix_norm(ord: Any) -> None:
    x = random(3, 4)
    assert np.allclose(vesta.linalg.matrix_norm(x, ord).item(), np.linalg.norm(x.numpy(), ord))
    assert np.allclose(vesta.linalg.norm(x, ord).item(), np.linalg.norm(x.numpy(), ord))
    many = random(2, 3, 4)
    got = vesta.linalg.matrix_norm(many, ord, dim=(0, 2), keepdim=True)
    want = np.linalg.norm(many.numpy(), ord, axis=(0, 2), keepdims=True)
    assert got.shape == want.shape and np.allclose(got.numpy(), want)


def test_norm_chooses_by_dimensions() -> None:
    x = random(2, 3, 4)
    assert np.allclose(vesta.linalg.norm(x).item(), np.sqrt((x.numpy() ** 2).sum()))
    assert np.allclose(vesta.linalg.norm(x, 3, 1).numpy(), np.linalg.norm(x.numpy(), 3, 1))
    for bad in (lambda: vesta.linalg.norm(x, 2), lambda: vesta.linalg.matrix_norm(x, "max")):
        with pytest.raises(RuntimeError, match="linalg"):
            bad()


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (3, 3), (2, 5, 3)])
def test_lstsq(shape: tuple[int, ...]) -> None:
    a, b = random(*shape), random(*shape[:-1], 2)
    made = vesta.linalg.lstsq(a, b)
    if len(shape) == 2:
        assert np.allclose(made.solution.numpy(), np.linalg.lstsq(a.numpy(), b.numpy(), rcond=None)[0])
    assert (made.rank == 3).all()
    deficient = vesta.ones(4, 2, dtype=vesta.float64)
    made = vesta.linalg.lstsq(deficient, vesta.ones(4, 1, dtype=vesta.float64))
    assert np.allclose(made.solution.numpy(), 0.5) and made.rank.item() == 1
    with pytest.raises(RuntimeError, match="driver"):
        vesta.linalg.lstsq(a, b, driver="qr")


def test_singular_matrices_raise() -> None:
    zero = vesta.zeros(2, 2)
    for f in (vesta.inverse, vesta.linalg.inv, lambda a: vesta.linalg.solve(a, vesta.ones(2))):
        with pytest.raises(vesta.linalg.LinAlgError, match="singular"):
            f(zero)
    with pytest.raises(vesta.linalg.LinAlgError, match="minor of order 2"):
        vesta.linalg.cholesky(vesta.tensor([[1.0, 2.0], [2.0, 1.0]]))
    batch = vesta.stack([vesta.eye(2), zero])
    with pytest.raises(vesta.linalg.LinAlgError, match="Batch element 1"):
        vesta.linalg.inv(batch)
    assert vesta.linalg.inv_ex(batch).info.tolist() == [0, 1]
    assert vesta.linalg.cholesky_ex(-vesta.eye(2)).info.item() == 1
    assert vesta.det(zero).item() == 0 and vesta.slogdet(zero).logabsdet.item() == -float("inf")


def test_the_gradient_of_a_determinant_is_the_matrix_of_cofactors() -> None:
    """Of singular matrices, too; on one of them LU's own steps would divide by zero."""
    singular = [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 1.0, 1.0]], [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]]
    batch = [np.array(singular[0]), random(3, 3).numpy(), np.array(singular[1]), np.zeros((3, 3)), np.diag([1.0, 0, 2])]
    A = vesta.tensor(np.stack(batch), requires_grad=True)
    vesta.linalg.det(A).sum().backward()
    for matrix, gradient in zip(batch, A.grad.numpy()):
        keep = [[1, 2], [0, 2], [0, 1]]
        minors = [[np.linalg.det(matrix[np.ix_(keep[i], keep[j])]) for j in range(3)] for i in range(3)]
        cofactors = np.array(minors) * [[1, -1, 1], [-1, 1, -1], [1, -1, 1]]
        np.testing.assert_allclose(gradient, cofactors, rtol=1e-9, atol=1e-12)
    z = vesta.tensor([[1.0 + 1j, 2.0], [2.0 + 2j, 4.0]], dtype=vesta.complex128, requires_grad=True)
    vesta.linalg.det(z).real.backward()
    assert vesta.allclose(z.grad.conj(), vesta.tensor([[4.0, -2 - 2j], [-2.0, 1 + 1j]], dtype=vesta.complex128))
    one = vesta.zeros(1, 1, requires_grad=True)
    vesta.det(one).backward()
    assert one.grad.item() == 1


def test_cond_rank_and_pinv() -> None:
    x = vesta.diag(vesta.tensor([4.0, 2.0, 0.0]))
    assert vesta.linalg.matrix_rank(x).item() == 2
    assert vesta.linalg.matrix_rank(x, atol=3.0).item() == 1
    assert vesta.linalg.cond(x[:2, :2]).item() == 2
    assert vesta.linalg.cond(x, 1).item() == float("inf")
    assert np.allclose(vesta.linalg.pinv(x, hermitian=True).numpy(), np.diag([0.25, 0.5, 0]))


def test_multi_dot_and_tensors() -> None:
    a, b, c = random(2, 3), random(3, 5), random(5)
    assert vesta.allclose(vesta.linalg.multi_dot([a, b, c]), a @ b @ c)
    x = random(6, 6).reshape(2, 3, 6)
    inverse = vesta.linalg.tensorinv(x)
    assert vesta.allclose(vesta.tensordot(x, inverse, 1).reshape(6, 6), vesta.eye(6, dtype=vesta.float64))
    right = random(2, 3)
    assert vesta.allclose(vesta.tensordot(x, vesta.linalg.tensorsolve(x, right), 1), right)


def test_svd_of_empty_matrices() -> None:
    u, s, vh = vesta.linalg.svd(vesta.zeros(3, 0))
    assert u.tolist() == vesta.eye(3).tolist() and s.shape == (0,) and vh.shape == (0, 0)
    assert vesta.linalg.det(vesta.zeros(0, 0)).item() == 1


def test_addmv_in_place() -> None:
    x = vesta.ones(2)
    assert x.addmv_(vesta.ones(2, 3), vesta.ones(3), beta=2, alpha=0.5) is x and x.tolist() == [3.5, 3.5]


@pytest.mark.filterwarnings("ignore:This overload of add:UserWarning")
@pytest.mark.parametrize("name", ["addmm", "addbmm", "baddbmm", "addr"])
def test_deprecated_forms_with_beta_first(name: str) -> None:
    """As in PyTorch: function, method and in-place method, with and without alpha, and ``out``."""
    left, right = random(2, 2, 3), random(2, 3, 2)
    x = random(2, 2, 2) if name == "baddbmm" else random(2, 2)
    operands = {"addmm": (left[0], right[0]), "addr": (left[0, :, 0], right[0, 0])}.get(name, (left, right))
    function = getattr(vesta, name)
    for scales in ((2.0, 0.5), (2.0,)):
        want = function(x, *operands, **dict(zip(("beta", "alpha"), scales)))
        given = (scales[0], x, *scales[1:], *operands)
        out = vesta.empty(0, dtype=x.dtype)
        assert function(*given, out=out) is out
        changed = x.clone()
        assert getattr(changed, f"{name}_")(*scales, *operands) is changed
        for got in (function(*given), getattr(x, name)(*scales, *operands), out, changed):
            assert vesta.equal(got, want)


def test_gradients_at_equal_singular_values() -> None:
    """The singular vectors have no derivative there; the pseudo-inverse has, and least squares."""
    gradient = vesta.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=vesta.float64)
    for hermitian in (False, True):
        A = vesta.eye(2, dtype=vesta.float64).requires_grad_()
        vesta.linalg.pinv(A, hermitian=hermitian).backward(gradient)
        assert vesta.allclose(A.grad, -gradient)
    A = vesta.eye(2, dtype=vesta.float64).mul(2).requires_grad_()  # d (A^-1 b) = -A^-1 dA A^-1 b
    b = vesta.tensor([[2.0], [6.0]], dtype=vesta.float64)
    vesta.linalg.lstsq(A, b).solution.backward(vesta.tensor([[1.0], [4.0]], dtype=vesta.float64))
    assert vesta.allclose(A.grad, vesta.tensor([[-0.5, -1.5], [-2.0, -6.0]], dtype=vesta.float64))


def test_gradients_of_a_factor_are_of_the_whole_matrix() -> None:
    """As PyTorch's: also where the other triangle is not read."""
    L = vesta.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=vesta.float64, requires_grad=True)
    gradient = vesta.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=vesta.float64)
    vesta.cholesky_inverse(L).backward(gradient)  # P = [[2, -1], [-1, 1]]
    assert L.grad.tolist() == [[-4.0, 4.0], [2.0, -2.0]]


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", [vesta.float64, vesta.complex128])
def test_ldl_of_indefinite_matrices(dtype: vesta.dtype, hermitian: bool) -> None:
    """Blocks of two have negative pivots; a batch of right sides takes one factor."""
    half = vesta.randn(5, 5, dtype=dtype, generator=vesta.Generator().manual_seed(2))
    A = half + (half.mH if hermitian else half.mT)
    A.fill_diagonal_(0)
    A[0, 1] = A[1, 0] = 100  # the first pivot is a block of two
    LD, pivots, info = vesta.linalg.ldl_factor_ex(A, hermitian=hermitian)
    assert info.item() == 0 and (pivots < 0).any()
    B = vesta.randn(3, 5, 2, dtype=dtype)
    x = vesta.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)
    assert x.shape == (3, 5, 2) and vesta.allclose(A @ x, B)
    assert vesta.allclose(vesta.linalg.ldl_solve(LD, pivots.long(), B, hermitian=hermitian), x)


def test_ldl_refuses() -> None:
    with pytest.raises(vesta.linalg.LinAlgError, match=r"D\[1,1\] is zero"):
        vesta.linalg.ldl_factor_ex(vesta.zeros(2, 2), check_errors=True)
    LD, pivots = vesta.linalg.ldl_factor(vesta.eye(2))
    for bad in (vesta.tensor([0, 1]), vesta.tensor([1, -3]), vesta.tensor([2**32 + 1, 1])):
        with pytest.raises(RuntimeError, match="linalg.ldl_solve: expected pivots between 1 and 2"):
            vesta.linalg.ldl_solve(LD, bad, vesta.ones(2, 1))
    for alone in ([1, -2], [-1, 2], [-1, -2]):  # LAPACK would go past the end
        with pytest.raises(RuntimeError, match="expected negative pivots in equal pairs"):
            vesta.linalg.ldl_solve(LD, vesta.tensor(alone), vesta.ones(2, 1))
    with pytest.raises(RuntimeError, match="expected pivots of shape"):
        vesta.linalg.ldl_solve(LD, pivots[:1], vesta.ones(2, 1))
    with pytest.raises(RuntimeError, match="as many rows in B"):
        vesta.linalg.ldl_solve(LD, pivots, vesta.ones(3, 1))


@pytest.mark.differs
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl_solve_has_a_gradient_by_its_right_side(hermitian: bool) -> None:
    half = vesta.randn(3, 3, dtype=vesta.complex128)
    A = half + (half.mH if hermitian else half.mT)
    LD, pivots = vesta.linalg.ldl_factor(A, hermitian=hermitian)
    B = vesta.randn(3, 2, dtype=vesta.complex128, requires_grad=True)
    solve = lambda b: vesta.linalg.ldl_solve(LD.expand(2, 3, 3), pivots.expand(2, 3), b, hermitian=hermitian)
    assert vesta.autograd.gradcheck(solve, (B,)) and vesta.autograd.gradgradcheck(solve, (B,))


def test_factors_without_a_derivative_refuse_in_backward() -> None:
    """Forward runs, as PyTorch's; a gradient is refused, not left out."""
    A = vesta.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    for results, name in ((vesta.geqrf(A), "geqrf"), (vesta.linalg.ldl_factor(A), "linalg.ldl_factor")):
        with pytest.raises(NotImplementedError, match=f"{name}: its derivative is not implemented. Take linalg"):
            results[0].sum().backward()
    LD = vesta.linalg.ldl_factor(A.detach())[0].requires_grad_()
    with pytest.raises(NotImplementedError, match="linalg.ldl_solve: its derivative by LD"):
        vesta.linalg.ldl_solve(LD, vesta.tensor([1, 2]), vesta.ones(2, 1)).sum().backward()


def test_as_strided_scatter_writes_where_only_its_memory_is() -> None:
    full = lambda n: vesta.ones(n)
    assert vesta.as_strided_scatter(vesta.zeros(3, 4)[:, ::2], full(12), (12,), (1,)).tolist() == [[1, 1]] * 3
    written = vesta.as_strided_scatter(vesta.zeros(4, 3)[:2], full(2), (2,), (1,), 8)
    assert written.tolist() == [[0, 0, 0]] * 2
    assert written.as_strided((12,), (1,), 0).tolist() == [0] * 8 + [1] * 2 + [0] * 2
    shown = vesta.as_strided_scatter(vesta.zeros(3, 1).expand(3, 4), full(2), (2,), (1,))
    assert shown.tolist() == [[1, 1, 0, 0], [0] * 4, [0] * 4]
    parts = vesta.arange(12.0).reshape(3, 4)[:, :2]
    around = vesta.as_strided_scatter(parts, full(2), (2,), (1,), 1).as_strided((8,), (1,), 0)
    assert around.tolist() == [0, 1, 1, 3, 4, 5, 6, 7]


def test_as_strided_scatter_lies_as_its_input() -> None:
    """In a view the strides count in the view's memory, of which the result has a copy."""
    columns = vesta.arange(12.0).reshape(3, 4)[:, ::2]
    assert vesta.as_strided_scatter(columns, vesta.full((3,), -1.0), (3,), (4,)).tolist() == [
        [-1, 2],
        [-1, 6],
        [-1, 10],
    ]
    rest = vesta.arange(5.0)[1:]
    assert vesta.as_strided_scatter(rest, vesta.full((2,), -1.0), (2,), (2,)).tolist() == [-1, 2, -1, 4]
    assert columns[0, 0] == 0 and rest[0] == 1


@pytest.mark.differs
def test_as_strided_scatter_has_the_gradient_of_what_is_left() -> None:
    x, src = vesta.ones(3, 3, requires_grad=True), vesta.zeros(2, 2, requires_grad=True)
    vesta.as_strided_scatter(x, src, (2, 2), (1, 2), 0).sum().backward()
    assert x.grad.tolist() == [[0, 0, 0], [0, 1, 1], [1, 1, 1]] and src.grad.tolist() == [[1, 1], [1, 1]]


@on_cuda
@pytest.mark.parametrize("driver", [None, "gels"])
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5), (2, 3, 7, 3), (3, 2, 5)], ids=str)
def test_least_squares_by_qr(shape: tuple[int, ...], driver: str | None) -> None:
    """On CUDA a full rank needs no singular values; the results are the CPU's."""
    vesta.manual_seed(4)
    a, b = vesta.randn(*shape, dtype=vesta.float64), vesta.randn(*shape[:-1], 2, dtype=vesta.float64)
    sides = []
    for device in ("cpu", "cuda"):
        x, y = a.to(device).requires_grad_(), b.to(device).requires_grad_()
        recording = Recording()
        recording.start()
        made = vesta.linalg.lstsq(x, y, driver=driver)
        recording.stop()
        ran = {event.name for event in recording.events()}
        assert any("svd" in name for name in ran) == (device == "cpu")
        sides.append([*made, *vesta.autograd.grad(made.solution.square().sum(), (x, y))])
    for want, got in zip(*sides):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        assert vesta.allclose(got.cpu(), want, rtol=1e-8, atol=1e-8)


@on_cuda
def test_least_squares_of_a_rank_that_is_not_full() -> None:
    a, b = vesta.ones(4, 2, dtype=vesta.float64), vesta.arange(4.0, dtype=vesta.float64)
    want, got = vesta.linalg.lstsq(a, b), vesta.linalg.lstsq(a.cuda(), b.cuda())
    assert vesta.allclose(got.solution.cpu(), want.solution) and got.rank.item() == want.rank.item() == 1
    empty = vesta.linalg.lstsq(vesta.zeros(0, 3).cuda(), vesta.zeros(0, 2).cuda())
    assert empty.solution.shape == (3, 2)


@pytest.mark.parametrize("order", [1, 2, float("inf")])
@pytest.mark.parametrize("shape", [(0, 1), (1, 0), (0, 0), (2, 0, 3)])
def test_the_norm_of_a_matrix_without_elements_is_0(shape, order):
    x = vesta.zeros(shape, requires_grad=True)
    y = vesta.linalg.matrix_norm(x, order)
    assert y.shape == x.shape[:-2] and not y.any()
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_cross_products() -> None:
    """Along any dimension, broadcast, into ``out=``; integers wrap; complex gradients."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 1, 3)), rng.normal(size=(1, 7, 3)).astype(np.float32)
    want = np.cross(a, b)
    x, y = vesta.from_numpy(a), vesta.from_numpy(b).double()
    np.testing.assert_allclose(vesta.linalg.cross(x, y).numpy(), want, rtol=1e-15, atol=1e-15)
    with pytest.raises(RuntimeError, match="operands of one dtype, got float64 .* and float32"):
        vesta.linalg.cross(x, y.float())
    middle = vesta.linalg.cross(x.transpose(1, 2).contiguous(), y.transpose(1, 2), dim=1)
    np.testing.assert_array_equal(middle.transpose(1, 2).numpy(), vesta.linalg.cross(x, y).numpy())
    out = vesta.empty(5, 7, 3, dtype=vesta.float64)
    assert vesta.linalg.cross(x, y, out=out) is out and vesta.equal(out, vesta.linalg.cross(x, y))
    small = vesta.tensor([100, 100, 100], dtype=vesta.int8)
    assert vesta.linalg.cross(small, small.flip(0) - 90).tolist() == [0, 0, 0]
    assert vesta.linalg.cross(vesta.tensor([0, 100, 3], dtype=vesta.int8), small).tolist() == [
        (10000 - 300 + 128) % 256 - 128,
        (300 + 128) % 256 - 128,
        (-10000 + 128) % 256 - 128,
    ]
    z = vesta.complex(x[:, 0], x[:, 0].flip(1)).requires_grad_()
    w = vesta.complex(y[0, :5].double(), y[0, :5].double().flip(0)).requires_grad_()
    assert vesta.autograd.gradcheck(vesta.linalg.cross, (z, w))
    assert vesta.autograd.gradgradcheck(vesta.linalg.cross, (z, w))
    assert vesta.autograd.gradcheck(vesta.linalg.cross, (x.requires_grad_(), y.double().requires_grad_()))


MATRICES = [((3, 3), (3, 2)), ((2, 1, 3, 3), (4, 3, 2))]
VECTORS = [((3, 3), (3,)), ((2, 3, 3), (2, 3))]  # stand on the right


@pytest.mark.parametrize(("a", "b", "left"), [(*s, True) for s in MATRICES + VECTORS] + [(*s, False) for s in MATRICES])
def test_gradients_of_solutions_and_inverses(a: tuple[int, ...], b: tuple[int, ...], left: bool) -> None:
    rng = np.random.default_rng(1)
    A = vesta.from_numpy(rng.normal(size=a) + 1j * rng.normal(size=a) + 3 * np.eye(3)).requires_grad_()
    values = rng.normal(size=b) + 1j * rng.normal(size=b)
    B = vesta.from_numpy(values if left else values.swapaxes(-1, -2).copy()).requires_grad_()

    def solve(A: Any, B: Any) -> Any:
        return vesta.linalg.solve(A, B, left=left)

    assert vesta.autograd.gradcheck(solve, (A, B)) and vesta.autograd.gradgradcheck(solve, (A, B))
    assert vesta.autograd.gradcheck(vesta.linalg.inv, (A,)) and vesta.autograd.gradgradcheck(vesta.linalg.inv, (A,))
    solve(A.detach(), B).abs().sum().backward()
    assert A.grad is None and B.grad is not None


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(5, 5), (2, 3, 1, 1), (0, 4, 4), (3, 0, 0), (40, 40)], ids=str)
def test_values_alone_are_those_with_vectors(shape: tuple[int, ...], dtype: str) -> None:
    """eigvalsh, eigvals and svdvals compute no vectors, unless a gradient asks for them."""
    a = vesta.randn(*shape, dtype=getattr(vesta, dtype))
    bound = 1e-4 if dtype in ("float32", "complex64") else 1e-10
    close = {"rtol": bound, "atol": bound}
    for uplo in "LU":
        np.testing.assert_allclose(
            vesta.linalg.eigvalsh(a, uplo).numpy(), vesta.linalg.eigh(a, uplo).eigenvalues.numpy(), **close
        )
    wide = vesta.cat([a, a[..., :2]], -1)
    for matrix in (a, wide, wide.mT):
        values = vesta.linalg.svdvals(matrix)
        np.testing.assert_allclose(values.numpy(), vesta.linalg.svd(matrix).S.numpy(), **close)
        assert values.dtype == a.real.dtype if a.is_complex() else a.dtype
    ours, theirs = vesta.linalg.eigvals(a).numpy(), vesta.linalg.eig(a).eigenvalues.numpy()
    np.testing.assert_allclose(np.sort_complex(ours).imag.sum(-1), np.sort_complex(theirs).imag.sum(-1), **close)
    np.testing.assert_allclose(np.abs(ours).sum(-1), np.abs(theirs).sum(-1), **close)
    if a.numel():
        x = a.clone().requires_grad_()
        assert vesta.linalg.svdvals(x).sum().requires_grad
        (g,) = vesta.autograd.grad(vesta.linalg.eigvalsh(x).sum(), x)  # the sum is the trace
        np.testing.assert_allclose(g.diagonal(0, -2, -1).numpy(), np.ones(shape[:-1]), rtol=1e-4, atol=1e-4)
    with pytest.raises(RuntimeError, match="driver"):
        vesta.linalg.svdvals(a, driver="gesvd")


def test_decompositions_leave_the_librarys_threads_alone() -> None:
    """Small matrices take one thread of OpenBLAS; what others set for it is there again afterwards."""
    x = vesta.randn(3, 70, 60, generator=vesta.Generator().manual_seed(0))
    vesta.linalg.qr(x)  # opens the library
    with open("/proc/self/maps") as maps:
        files = sorted({line.split()[-1] for line in maps if "openblas" in line})
    counts = []
    for file in files:
        library = ctypes.CDLL(file)
        for name in ("openblas_{}_num_threads", "scipy_openblas_{}_num_threads", "scipy_openblas_{}_num_threads64_"):
            if hasattr(library, name.format("get")):
                counts.append((getattr(library, name.format("get")), getattr(library, name.format("set"))))
    before = [get() for get, _ in counts]
    found, threads = [], vesta.get_num_threads()
    try:
        for wanted in (1, 2):
            for _, set_count in counts:
                set_count(wanted)
            vesta.set_num_threads(wanted)
            found.append([*vesta.linalg.qr(x), vesta.linalg.svdvals(x), vesta.linalg.cholesky(x.mT @ x)])
            assert [get() for get, _ in counts] == [wanted] * len(counts)
    finally:
        vesta.set_num_threads(threads)
        for (_, set_count), count in zip(counts, before):
            set_count(count)
    for one, two in zip(*found):
        assert vesta.equal(one, two)


def test_bits_of_large_decompositions_depend_on_no_threads() -> None:
    """Neither set_num_threads() nor small decompositions in another thread change those of a large matrix."""
    generator = vesta.Generator().manual_seed(0)
    x, small = vesta.randn(450, 450, generator=generator), vesta.randn(60, 60, generator=generator)
    expected, threads, done = vesta.linalg.qr(x)[1], vesta.get_num_threads(), threading.Event()

    def keep_busy() -> None:
        while not done.is_set():
            vesta.linalg.qr(small)

    other = threading.Thread(target=keep_busy)
    try:
        vesta.set_num_threads(1)
        assert vesta.equal(vesta.linalg.qr(x)[1], expected)
        vesta.set_num_threads(threads)
        other.start()
        for _ in range(5):
            assert vesta.equal(vesta.linalg.qr(x)[1], expected)
    finally:
        vesta.set_num_threads(threads)
        done.set()
        if other.ident:
            other.join()


def test_results_go_into_the_tensors_of_out() -> None:
    a, b = vesta.tensor([[2.0, 1.0], [1.0, 3.0]]), vesta.tensor([[1.0], [2.0]])
    inverse, info = vesta.empty(2, 2), vesta.empty(0, dtype=vesta.int32)
    made = vesta.linalg.inv_ex(a, out=(inverse, info))
    assert made.inverse is inverse and made.info is info and info.tolist() == 0
    vesta.testing.assert_close(inverse @ a, vesta.eye(2))
    x, info = vesta.empty(2, 1), vesta.empty(0, dtype=vesta.int32)
    assert vesta.linalg.solve_ex(a, b, out=(x, info)).result is x
    vesta.testing.assert_close(a @ x, b)
    outs = [vesta.empty(0), vesta.empty(0), vesta.empty(0, dtype=vesta.int64), vesta.empty(0)]
    solved = vesta.linalg.lstsq(input=a, b=b, out=tuple(outs))
    assert solved.solution is outs[0]
    vesta.testing.assert_close(outs[0], x)
    with pytest.raises(TypeError, match="linalg.inv_ex: expected 2 tensors, got 1"):
        vesta.linalg.inv_ex(a, out=(inverse,))


@pytest.mark.parametrize("dtype", [vesta.float64, vesta.complex128], ids=str)
def test_polar_and_roots_where_singular_values_are_equal(dtype: Any) -> None:
    """The gradients are those of the matrices, which equal values do not make infinite, and Hermitian for roots."""
    a = vesta.eye(3, dtype=dtype, requires_grad=True)
    u, h = vesta.linalg.polar(a)
    (u * vesta.arange(9).view(3, 3)).abs().sum().backward()
    assert bool(a.grad.abs().isfinite().all())
    assert vesta.autograd.gradcheck(lambda x: tuple(vesta.linalg.polar(x)), (a,))
    vesta.manual_seed(0)
    tall = vesta.randn(2, 4, 2, dtype=dtype, requires_grad=True)
    assert vesta.autograd.gradcheck(lambda x: tuple(vesta.linalg.polar(x)), (tall,))
    u, h = vesta.linalg.polar(tall)
    assert vesta.allclose(u @ h, tall) and vesta.allclose(u.mH @ u, vesta.eye(2, dtype=dtype).expand(2, 2, 2))
    b = vesta.eye(3, dtype=dtype, requires_grad=True)
    weights = vesta.arange(9).view(3, 3).to(dtype)
    (vesta.linalg.matrix_sqrth(b) * weights).abs().sum().backward()
    assert vesta.allclose(b.grad, b.grad.mH) and vesta.allclose(b.grad.diagonal().real, weights.diagonal().real / 2)


def test_polar_and_roots_refuse_other_matrices() -> None:
    polar, root = vesta.linalg.polar, vesta.linalg.matrix_sqrth
    assert polar(vesta.zeros(2, 0)).H.shape == (0, 0) and root(vesta.zeros(0, 0)).shape == (0, 0)
    assert vesta.allclose(root(vesta.tensor([[-2.0, 7.0], [0.0, 9.0]])), vesta.tensor([[0.0, 0.0], [0.0, 3.0]]))
    for call in (lambda: polar(vesta.ones(2, 3)), lambda: polar(vesta.ones(2)), lambda: root(vesta.ones(2, 3))):
        with pytest.raises(RuntimeError, match="expected|square"):
            call()
    for call in (lambda: polar(vesta.ones(2, 2).long()), lambda: root(vesta.ones(2, 2).long())):
        with pytest.raises(NotImplementedError):
            call()


def test_a_factorization_that_solves_nothing_raises() -> None:
    """lu_factor raises for a zero on the diagonal of U, as in PyTorch; lu and lu_factor_ex do not."""
    zero = vesta.zeros(2, 2)
    with pytest.raises(RuntimeError, match="lu_factor"):
        vesta.linalg.lu_factor(zero)
    assert int(vesta.linalg.lu_factor_ex(zero).info) == 1 and vesta.linalg.lu(zero).U.tolist() == zero.tolist()
