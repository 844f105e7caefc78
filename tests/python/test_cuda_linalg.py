"""Decompositions by cuSOLVER and cuBLAS, with stand-ins that compute on the emulated device; and without them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import cuda_fakes
import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes" / "solver"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
needed = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcusolver.so.12").exists(), reason="needs the emulated device and the fakes"
)

PRELUDE = """
import ctypes, os, sys, warnings
import numpy as np, vesta
warnings.simplefilter("error")
L = vesta.linalg
folder = os.environ.get("VESTA_CUDA_LIB_DIR")
fakes = [ctypes.CDLL(folder + "/" + f) for f in ("libcusolver.so.12", "libcublas.so.13")] if folder else []
for f in fakes: f.fake_solver_calls.restype = f.fake_solver_batched_calls.restype = ctypes.c_uint64
def calls(): return sum(f.fake_solver_calls() for f in fakes)
def batched(): return sum(f.fake_solver_batched_calls() for f in fakes)
DTYPES = {"float32": 2e-4, "float64": 1e-11, "complex64": 2e-4, "complex128": 1e-11}
def made(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng([seed, *shape])
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if "complex" in dtype else 0)
    return vesta.tensor(values).to(getattr(vesta, dtype))
def near(got, want, tol, what):
    assert got.shape == want.shape and got.dtype == want.dtype, (what, got.shape, want.shape, got.dtype, want.dtype)
    got, want = (np.asarray(x.cpu().resolve_conj().to(vesta.complex128).numpy()) for x in (got, want))
    np.testing.assert_allclose(got, want, rtol=tol, atol=tol, err_msg=str(what))
def unit(q, tol, what):
    eye = vesta.eye(q.shape[-1], dtype=q.dtype).expand(*q.shape[:-2], q.shape[-1], q.shape[-1])
    near(q.mH.cpu() @ q.cpu(), eye, tol, what)
"""


def run(body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return cuda_fakes.run(PRELUDE + body, FAKES, **environment)


def check(body: str, **environment: str) -> str:
    return cuda_fakes.check(PRELUDE + body, FAKES, **environment)


ALL = """
def solvable(dtype, *batch):
    return made(*batch, 6, 6, dtype=dtype) + 4 * vesta.eye(6, dtype=getattr(vesta, dtype))
for dtype, tol in DTYPES.items():
    for batch in ((), (1,), (3,), (2, 2), (0,)):
        before = calls()
        # Cholesky
        x = solvable(dtype, *batch)
        p = x @ x.mH
        for upper in (False, True):
            near(L.cholesky(p.cuda(), upper=upper), L.cholesky(p, upper=upper), tol, ("cholesky", dtype, batch, upper))
        near(vesta.cholesky_solve(x.cuda(), L.cholesky(p.cuda())), vesta.cholesky_solve(x, L.cholesky(p)), tol, "solve")
        # LU, square, wide and tall
        for shape in ((6, 6), (4, 7), (7, 4), (1, 1)):
            a = made(*batch, *shape, dtype=dtype)
            LU, pivots = L.lu_factor(a.cuda())
            near(LU, L.lu_factor(a).LU, tol, ("lu", dtype, batch, shape))
            assert pivots.dtype == vesta.int32 and pivots.tolist() == L.lu_factor(a).pivots.tolist()
            for mine, its in zip(L.lu(a.cuda()), L.lu(a)): near(mine, its, tol, ("P L U", dtype, batch, shape))
            # QR
            for mode in ("reduced", "complete", "r"):
                q, r = L.qr(a.cuda(), mode=mode)
                near(r, L.qr(a, mode=mode).R, tol, ("R", dtype, batch, shape, mode))
                if mode == "r": continue
                near(q.cpu() @ r.cpu(), a, tol, ("QR", dtype, batch, shape, mode))
                assert q.shape == L.qr(a, mode=mode).Q.shape
                unit(q, tol, ("Q", dtype, batch, shape, mode))
            h, tau = vesta.geqrf(a.cuda())
            near(h, vesta.geqrf(a)[0], tol, "geqrf")
            near(tau, vesta.geqrf(a)[1], tol, "tau")
            # singular values
            for full in (False, True):
                u, s, vh = L.svd(a.cuda(), full_matrices=full)
                near(s, L.svdvals(a), tol, ("S", dtype, batch, shape, full))
                unit(u, tol, "U")
                unit(vh.mH, tol, "V")
                k = min(shape)
                near((u[..., :k] * s.unsqueeze(-2).to(u.dtype)) @ vh[..., :k, :], a.cuda(), tol, ("USV", dtype, batch))
                assert u.shape == L.svd(a, full_matrices=full).U.shape
                assert vh.shape == L.svd(a, full_matrices=full).Vh.shape
            near(L.pinv(a.cuda()), L.pinv(a), 10 * tol, "pinv")
        # solutions
        b = made(*batch, 6, 2, dtype=dtype, seed=3)
        near(L.solve(x.cuda(), b.cuda()), L.solve(x, b), tol, ("solve", dtype, batch))
        near(L.inv(x.cuda()), L.inv(x), tol, ("inv", dtype, batch))
        near(L.det(x.cuda()), L.det(x), 1e3 * tol, ("det", dtype, batch))
        near(L.solve(x.cuda(), b.mT.cuda(), left=False), L.solve(x, b.mT, left=False), tol, "solve from the right")
        near(L.lstsq(x.cuda(), b.cuda()).solution, L.lstsq(x, b).solution, 10 * tol, "lstsq")
        # R's diagonal hides a small singular value: both devices count it as 0.
        few, ones = vesta.tensor([[1.0, 10.0], [0.0, 1.0]]).to(x.dtype), vesta.ones(2, 1, dtype=x.dtype)
        least = L.lstsq(few, ones, rcond=0.05).solution
        near(L.lstsq(few.cuda(), ones.cuda(), rcond=0.05).solution, least, tol, "rcond")
        for upper in (False, True):
            t = x.triu() if upper else x.tril()
            for unit_diagonal in (False, True):
                if unit_diagonal: t = t / 4
                for left in (False, True):
                    c = b if left else b.mT
                    near(L.solve_triangular(t.cuda(), c.cuda(), upper=upper, left=left, unitriangular=unit_diagonal),
                         L.solve_triangular(t, c, upper=upper, left=left, unitriangular=unit_diagonal),
                         tol, ("triangular", dtype, batch, upper, left, unit_diagonal))
        # eigenvalues: one triangle is read
        for uplo in "LU":
            w, v = L.eigh(x.cuda(), UPLO=uplo)
            near(w, L.eigh(x, UPLO=uplo).eigenvalues, tol, ("eigh", dtype, batch, uplo))
            unit(v, tol, "vectors")
            low = x.tril(-1) if uplo == "L" else x.triu(1).mH
            diagonal = vesta.diag_embed(x.diagonal(dim1=-2, dim2=-1).real).to(x.dtype)
            near(v.cpu() @ (w.cpu().unsqueeze(-1).to(v.dtype) * v.cpu().mH), low + low.mH + diagonal, tol, "A")
        used = calls() - before
        assert (used > 20) == ((batch != (0,)) and bool(fakes)), (batch, used)
# a batch of A against one of B, and back
a, b = solvable("float64", 3, 1), made(1, 2, 6, 2)
t = a.tril()
near(L.solve_triangular(t.cuda(), b.cuda(), upper=False), L.solve_triangular(t, b, upper=False), 1e-11, "broadcast")
# small matrices of a batch together, large ones one by one
if fakes:
    before, together = calls(), batched()
    x = solvable("float32", 50).cuda()
    L.lu_factor(x), L.cholesky_ex(x), L.solve_triangular(x, x, upper=True)
    assert (calls() - before, batched() - together) == (3, 3)
    x = vesta.eye(300, device="cuda").expand(2, 300, 300)
    before, together = calls(), batched()
    L.lu_factor(x), L.cholesky_ex(x), L.solve_triangular(x, x, upper=True)
    assert (calls() - before, batched() - together) == (6, 0)
# gradients, against the CPU's
for f in (lambda x: L.cholesky(x @ x.mH), lambda x: L.inv(x), lambda x: L.eigh(x + x.mH).eigenvalues,
          lambda x: L.svdvals(x), lambda x: L.qr(x).R.abs(), lambda x: L.solve(x, x[:, :2])):
    grads = []
    for device in ("cpu", "cuda"):
        x = solvable("float64").to(device).requires_grad_()
        f(x).sum().backward()
        grads.append(x.grad.cpu())
    near(grads[1], grads[0], 1e-9, "gradient")
"""


@needed
@pytest.mark.parametrize("schedule", ["lazy", pytest.param("random", marks=pytest.mark.campaign)])
def test_all_decompositions_agree_with_the_host(schedule: str) -> None:
    check(ALL, VESTA_EMULATION_SCHEDULE=schedule)


@needed
@pytest.mark.parametrize("how", ["missing", "left out", "refuses"])
def test_without_the_library_the_host_computes(how: str) -> None:
    changes = {"missing": {"VESTA_CUDA_LIB_DIR": ""}, "left out": {"VESTA_CUDA_LIBRARIES": "cublaslt"}}
    program = "fakes = []\n" + ALL if how != "refuses" else (
        "warnings.simplefilter('always')\n"
        "x = made(4, 4).cuda()\n"
        "for f in (L.qr, L.svd, L.lu_factor, L.cholesky_ex): f(x @ x.mH)\n"
        "near(L.inv(x), L.inv(x.cpu()), 1e-11, 'inv')\n"
    )  # fmt: skip
    out = check(program.replace("DTYPES.items()", "[('float32', 2e-4)]"),
                **changes.get(how, {"FAKE_CUSOLVER": "refuse"}))  # fmt: skip
    assert ("failed with status 6; the host computes instead" in out) == (how == "refuses"), out


@needed
def test_errors_are_those_of_the_host() -> None:
    check("""
def raised(f, device):
    try:
        f(device)
    except Exception as e:
        return type(e).__name__, str(e)
    raise AssertionError("no error")
bad = vesta.tensor([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
def ones(*shape, dtype=None): return lambda d: vesta.ones(*shape, device=d, dtype=dtype)
cases = [
    (L.cholesky, lambda d: bad.to(d)), (lambda x: L.cholesky_ex(x, check_errors=True), lambda d: bad.to(d)),
    (L.cholesky, lambda d: vesta.stack([vesta.eye(3), bad]).to(d)), (L.inv, lambda d: vesta.zeros(2, 2, device=d)),
    (lambda x: L.solve(x, x[:, :1]), ones(2, 2)), (lambda x: L.lu_factor_ex(x - 1, check_errors=True), ones(2, 2)),
    (L.qr, ones(3)), (lambda x: L.qr(x, mode="x"), ones(2, 2)), (L.eigh, ones(2, 3)),
    (lambda x: L.eigh(x, UPLO="x"), ones(2, 2)), (L.svd, ones(2, 2, dtype=vesta.bfloat16)),
    (L.cholesky, ones(2, 2, dtype=vesta.int64)), (lambda x: L.solve_triangular(x, x.t(), upper=True), ones(2, 3)),
]
for g, operand in cases:
    f = lambda d: g(operand(d))
    host, device = raised(f, "cpu"), raised(f, "cuda")
    assert host == device, (host, device)
L_, info = L.cholesky_ex(bad.cuda())
assert info.item() == 2 and info.dtype == vesta.int32
assert L.lu_factor_ex(vesta.zeros(2, 3, 3, device="cuda")).info.tolist() == [1, 1]
assert L.inv_ex(vesta.zeros(2, 2, device="cuda")).info.item() == 1
def fails(f, *words):
    try:
        f()
    except RuntimeError as e:
        assert all(word in str(e) for word in words), str(e)
    else:
        raise AssertionError(words)
pivots = vesta.tensor([1, 9], dtype=vesta.int32, device="cuda")
one = vesta.ones(2, 1, device="cuda")
fails(lambda: L.lu_solve(vesta.eye(2, device="cuda"), pivots, one).tolist(), "lu_solve", "9")
fails(lambda: L.solve_triangular(vesta.eye(2, device="cuda"), vesta.ones(2, 2), upper=True), "device")
""")
    check("""
for f in (L.eigh, L.svd, L.eigvalsh, L.svdvals):
    try: f(vesta.eye(3, device="cuda"))
    except L.LinAlgError as e: assert "failed to converge" in str(e) and "error code: 2" in str(e)
    else: raise AssertionError(f)
""", FAKE_CUSOLVER="unconverged")  # fmt: skip


def headers() -> list[Path]:
    return [p for p in (Path("/usr/local/cuda/include"), Path("/usr/include")) if (p / "cusolverDn.h").exists()]


@pytest.mark.skipif(not headers(), reason="needs the headers of cuSOLVER")
def test_names_numbers_and_arguments_are_those_of_the_headers() -> None:
    source = (ROOT / "cuda/lib/solver.cpp").read_text()
    abi = (ROOT / "cuda/lib/solver_abi.h").read_text()
    theirs = "".join((headers()[0] / f).read_text() for f in ("cusolverDn.h", "cublas_api.h"))
    common = (headers()[0] / "cusolver_common.h").read_text() + (headers()[0] / "cublas_api.h").read_text()
    common += (headers()[0] / "library_types.h").read_text()
    for mine, its in {
        "lower": "CUBLAS_FILL_MODE_LOWER", "upper": "CUBLAS_FILL_MODE_UPPER", "left": "CUBLAS_SIDE_LEFT",
        "right": "CUBLAS_SIDE_RIGHT", "non_unit": "CUBLAS_DIAG_NON_UNIT", "unit": "CUBLAS_DIAG_UNIT",
        "op_n": "CUBLAS_OP_N", "eig_vectors": "CUSOLVER_EIG_MODE_VECTOR",
        "deterministic_results": "CUSOLVER_DETERMINISTIC_RESULTS",
        "allow_nondeterministic_results": "CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS",
        "r_32f": "CUDA_R_32F", "r_64f": "CUDA_R_64F", "c_32f": "CUDA_C_32F", "c_64f": "CUDA_C_64F",
    }.items():  # fmt: skip
        assert re.search(rf"\b{mine} = (\d+)", abi)[1] == re.search(rf"\b{its}\s*=\s*(\d+)", common)[1], mine

    def arguments(text: str, name: str) -> int:
        found = re.search(rf"{name}\s*\(([^;]*?)\);", text, re.S)
        assert found, name
        return len(found[1].split(","))

    pairs = re.findall(r'resolve\(&f\.(\w+), "(\w+)"\)', source)
    assert len(pairs) == 16
    for field in ("orgqr", "orgqr_size", "potrf_batched", "trsm", "trsm_batched", "getrf_batched"):
        for i, letter in enumerate("SDCZ"):
            q = f"cusolverDn{letter}{'orgqr' if i < 2 else 'ungqr'}"
            pairs.append((field, {
                "orgqr": q, "orgqr_size": q + "_bufferSize", "potrf_batched": f"cusolverDn{letter}potrfBatched",
                "trsm": f"cublas{letter}trsm_v2", "trsm_batched": f"cublas{letter}trsmBatched",
                "getrf_batched": f"cublas{letter}getrfBatched",
            }[field]))  # fmt: skip
    mine_solver, mine_blas = abi.split("struct BlasFunctions")
    for field, name in pairs:
        ours = mine_blas if name.startswith("cublas") else mine_solver
        assert arguments(ours, rf"\(\*{field}(?:\[4\])?\)") == arguments(theirs, rf"\b{name}"), (field, name)


@pytest.mark.skipif(not Path("/usr/local/cuda/lib64/libcusolver.so").exists(), reason="needs cuSOLVER")
def test_the_libraries_have_every_function() -> None:
    names = subprocess.run(["nm", "-D", "--defined-only", "/usr/local/cuda/lib64/libcusolver.so",
                            "/usr/local/cuda/lib64/libcublas.so"], capture_output=True, text=True).stdout  # fmt: skip
    defined = {re.sub(r"@.*", "", line.split()[-1]) for line in names.splitlines() if " T " in line}
    wanted = set(re.findall(r'"((?:cusolverDn|cublas)\w+)"', (ROOT / "cuda/lib/solver.cpp").read_text()))
    wanted = {n for n in wanted if not n.endswith("Batched")} - {"cublas", "cublasCreate", "cublasSetStream"}
    wanted -= {n for n in wanted if n in ("cusolverDnorgqr", "cusolverDnorgqr_bufferSize", "cublastrsm")}
    for i, letter in enumerate("SDCZ"):
        q = f"cusolverDn{letter}{'orgqr' if i < 2 else 'ungqr'}"
        wanted |= {q, q + "_bufferSize", f"cusolverDn{letter}potrfBatched", f"cublas{letter}trsm_v2"}
        wanted |= {f"cublas{letter}trsmBatched", f"cublas{letter}getrfBatched"}
    assert wanted <= defined, wanted - defined
