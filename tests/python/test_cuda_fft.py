"""Fourier transforms by cuFFT, with a stand-in that computes on the emulated device; and without it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import cuda_fakes
import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes" / "cufft"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
needed = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcufft.so.12").exists(), reason="needs the emulated device and the stand-in"
)

PRELUDE = """
import ctypes, itertools, os, threading, warnings
import numpy as np, vesta
from vesta import _C
import vesta._C_cuda
warnings.simplefilter("error")
folder = os.environ.get("VESTA_CUDA_LIB_DIR")
fake = ctypes.CDLL(folder + "/libcufft.so.12") if folder else None
def calls(): return fake.fake_cufft_calls() if fake else 0
def launches(): return dict(vesta._C_cuda.counters())["launches"] - calls()  # of our kernels
def copies(): return dict(vesta._C_cuda.counters())["copies"]
plans = vesta.backends.cuda.cufft_plan_cache
def made(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng([seed, *shape])
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if "complex" in dtype else 0)
    return vesta.tensor(values).to(getattr(vesta, dtype))
def near(got, want, tol, what):
    assert got.shape == want.shape and got.dtype == want.dtype, (what, got.shape, want.shape, got.dtype, want.dtype)
    got, want = (np.asarray(x.detach().cpu().numpy()) for x in (got, want))
    size = max(1, np.abs(want).max()) if want.size else 1
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * size, err_msg=str(what))
def complex_of(dtype): return {"float32": "complex64", "float64": "complex128"}[dtype]
def compare(x, dims, dtype, tol, what, layout=lambda t: t, norms=(0, 1, 2)):
    "Compares all transforms of a real tensor and a complex one over dims with the CPU's; nothing else may change."
    z = made(*x.shape, dtype=complex_of(dtype), seed=1)
    def both(f, operand):
        host = layout(operand)
        device = layout(operand.cuda())
        assert host.stride() == device.stride()
        got, want = f(device), f(host)
        near(got, want, tol, what)
        assert vesta.equal(vesta.view_as_real(device).cpu() if device.is_complex() else device.cpu(),
                           vesta.view_as_real(host) if host.is_complex() else host), what
    for norm in norms:
        both(lambda t: _C._fft_c2c(t, dims, norm, True), z)
        both(lambda t: _C._fft_c2c(t, dims, norm, False), z)
        both(lambda t: _C._fft_r2c(t, dims, norm, True), x)
        both(lambda t: _C._fft_r2c(t, dims, norm, False), x)
        half = layout(z).size(dims[-1])
        for n in {max(1, 2 * (half - 1)), 2 * half - 1}:
            if half: both(lambda t: _C._fft_c2r(t, dims, norm, n), z)
"""


def check(body: str, **environment: str) -> str:
    return cuda_fakes.check(PRELUDE + body, FAKES, **environment)


SHAPES = """
CASES = [
    ((8,), [0]), ((1,), [0]), ((2,), [0]), ((3,), [-1]), ((37,), [0]), ((134,), [0]), ((211,), [0]), ((256,), [0]),
    ((0, 5), [1]), ((3, 0, 4), [0, 2]), ((5, 6), [0]), ((5, 6), [1]), ((5, 6), [0, 1]), ((5, 6), [1, 0]),
    ((1, 6), [0, 1]), ((5, 1), [0, 1]), ((1, 1), [0, 1]), ((4, 5, 6), [1]), ((4, 5, 6), [0]), ((4, 5, 6), [2]),
    ((4, 5, 6), [0, 2]), ((4, 5, 6), [2, 0]), ((4, 5, 6), [0, 1]), ((4, 5, 6), [1, 2]), ((4, 5, 6), [2, 1, 0]),
    ((4, 1, 6), [1, 0]), ((1, 5, 6), [1]), ((4, 5, 1), [0]), ((2, 3, 4, 5), [1, 2]), ((2, 3, 4, 5), [1, 2, 3]),
    ((2, 3, 4, 5), [0, 1, 2, 3]), ((2, 3, 4, 5), [3, 1]), ((2, 3, 4, 5), [0, 3]), ((3, 2, 3, 2, 3), [0, 1, 2, 3, 4]),
    ((3, 2, 3, 2, 3), [0, 2, 4]), ((3, 2, 3, 2, 3), [4, 0, 1, 3]), ((2, 2, 3, 2, 2, 2), [0, 1, 2, 3, 4, 5]),
    ((2, 3, 2, 2, 2, 2, 2), [0, 2, 4, 6]), ((2, 3, 2, 2, 2, 2, 2), [0, 1, 2, 3, 4, 5, 6]),
    ((2, 2, 2, 2, 2, 2, 2, 3), [0, 1, 2, 3, 5, 6, 7]), ((3, 2, 2, 2, 2, 2, 2, 2), [7, 1, 2, 3, 4, 5, 6, 0]),
]
for dtype, tol in (("float32", 1e-6), ("float64", 1e-14)):
    for shape, dims in CASES:
        before = calls()
        compare(made(*shape, dtype=dtype), dims, dtype, 8 * tol, (dtype, shape, dims))
        worked = all(shape) and any(shape[d] > 1 for d in dims)
        assert (calls() > before) == (bool(fake) and worked), (shape, dims)
"""


@needed
@pytest.mark.parametrize("schedule", ["eager", "lazy"])
def test_transforms_are_those_of_the_host(schedule: str) -> None:
    check(SHAPES, VESTA_EMULATION_SCHEDULE=schedule)


@needed
def test_operands_of_any_strides() -> None:
    check("""
x = made(6, 7, 8)
LAYOUTS = {
    "transposed": lambda t: t.transpose(0, 2), "permuted": lambda t: t.permute(1, 2, 0), "a step": lambda t: t[:, ::3],
    "last in steps": lambda t: t[:, :, ::3], "both": lambda t: t[::2, :, 1::3],
    "expanded": lambda t: t[:, :1].expand(6, 5, 8), "expanded last": lambda t: t[:, :, :1].expand(6, 7, 4),
    "one line for all": lambda t: t[0, 0].expand(6, 7, 8), "a part": lambda t: t[1:5, 2:6, 3:7],
    "an offset": lambda t: t.flatten()[1:].narrow(0, 0, 252).view(6, 6, 7),
    "frames": lambda t: t.flatten().unfold(0, 40, 8).unsqueeze(1),
    "wide frames": lambda t: t.flatten()[::3].unfold(0, 5, 2)[None],
    "windows": lambda t: t[0].unfold(1, 4, 1), "one": lambda t: t[:1, :1], "none": lambda t: t.unsqueeze(3)[..., :0],
}
for dtype in ("float64", "float32"):
    for name, layout in LAYOUTS.items():
        for dims in ([2], [1], [0], [0, 2], [1, 2], [2, 1], [0, 1, 2]):
            tol, norms = 1e-6 if dtype == "float32" else 1e-14, (1, 0) if dims == [2] else (1,)
            compare(x.to(getattr(vesta, dtype)), dims, dtype, tol, (name, dims), layout, norms)
""")  # fmt: skip


@needed
def test_calls_and_launches() -> None:
    """One call of the library does it, and one launch where numbers are scaled; the host waits for nothing."""
    check("""
def cost(f, *a):
    before = launches(), copies(), calls()
    result = f(*a)
    after = launches(), copies(), calls()
    return result, tuple(b - a for a, b in zip(before, after))
z, x = made(4, 6, 8, dtype="complex64").cuda(), made(4, 6, 8, dtype="float32").cuda()
F = vesta.fft
for f, a, want in (
    (F.fft, (z,), (0, 0, 1)), (F.ifft, (z,), (1, 0, 1)), (F.fftn, (z,), (0, 0, 1)), (F.fft2, (z,), (0, 0, 1)),
    (F.rfft, (x,), (0, 0, 1)), (F.rfftn, (x,), (0, 0, 1)), (F.rfft2, (x, None, (-2, -1), "ortho"), (1, 0, 1)),
    (lambda z: F.fft(z, dim=0), (z,), (0, 0, 1)), (lambda z: F.fft2(z, dim=(0, 1)), (z,), (0, 0, 1)),
    (lambda z: F.fft(z, dim=1), (z,), (1, 0, 1)),  # signals before and behind: they are moved together
    (F.irfft, (z,), (2, 0, 1)), (F.irfftn, (z,), (2, 0, 1)),  # a scaled copy, and its Hermitian part
    (lambda z: F.fft(z[:, ::2, ::2]), (z,), (0, 0, 1)), (lambda z: F.fft2(z[:, 1:4, 3:]), (z,), (0, 0, 1)),
    (lambda z: F.ifft2(z.transpose(1, 2)), (z,), (1, 0, 1)),  # scaled as it is copied
):
    got, spent = cost(f, *a)
    assert spent == want, (f, spent, want)
    near(got, f(*(t.cpu() if isinstance(t, vesta.Tensor) else t for t in a)), 1e-6, f)
# a result is contiguous where the library can write it so
for dims, contiguous in ((2, True), (0, True), ((1, 2), True), ((0, 1, 2), True), ((0, 2), True), (1, False)):
    dims = (dims,) if isinstance(dims, int) else dims
    assert F.fftn(z, dim=dims).is_contiguous() == contiguous, dims
# out= is written where it lies, if it can be
out = vesta.empty(4, 6, 8, dtype=vesta.complex64, device="cuda")
at, spent = out.data_ptr(), cost(lambda: F.fft(z, out=out))[1]
assert out.data_ptr() == at and spent == (0, 0, 1), spent
near(out, F.fft(z.cpu()), 1e-6, "out")
F.fft(z, dim=1, out=out)
near(out, F.fft(z.cpu(), dim=1), 1e-6, "out")
real = vesta.empty(4 * 6 * 14 + 1, device="cuda")[1:].view(4, 6, 14)
F.irfft(z, out=real)
near(real, F.irfft(z.cpu()), 1e-6, "out that is not aligned")
""")


@needed
@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_gradients_and_what_is_made_of_transforms(schedule: str) -> None:
    check("""
F = vesta.fft
real, whole = made(3, 4, 5), made(3, 4, 5, dtype="complex128")
for f, x in (
    (F.fft, whole), (F.ifft, whole), (F.fftn, whole), (F.fft, real), (F.rfft, real), (F.rfft2, real), (F.rfftn, real),
    (F.irfft, whole), (F.irfft2, whole), (F.irfftn, whole), (lambda x: F.irfft(x, 5, 1, "ortho"), whole),
    (F.hfft, whole), (F.ihfft, real), (lambda x: F.hfft2(x, norm="forward"), whole), (F.ihfftn, real),
    (lambda x: F.rfft(x, dim=1, norm="forward"), real), (lambda x: F.ifftn(x, s=(4, 7), norm="ortho"), whole),
    (lambda x: F.fftshift(F.fft2(x)), whole),
):
    grads = []
    for device in ("cpu", "cuda"):
        t = x.to(device).requires_grad_()
        y = f(t)
        weights = made(*y.shape, dtype="complex128" if y.is_complex() else "float64", seed=7).to(device)
        weights.requires_grad_()
        (g,) = vesta.autograd.grad(y, t, weights, create_graph=True)
        (again,) = vesta.autograd.grad((g.abs() ** 2).sum(), weights)
        grads.append((y, g, again))
    for host, device in zip(*grads): near(device, host, 1e-13, f)
signal, window = made(2, 400), vesta.hann_window(64, dtype=vesta.float64)
for options in ({}, {"hop_length": 10, "normalized": True}, {"onesided": False}):
    host = vesta.stft(signal, 64, window=window, return_complex=True, **options)
    device = vesta.stft(signal.cuda(), 64, window=window.cuda(), return_complex=True, **options)
    near(device, host, 1e-13, options)
    near(vesta.istft(device, 64, window=window.cuda(), length=400, **options), signal, 1e-12, options)
""", VESTA_EMULATION_SCHEDULE=schedule)  # fmt: skip


@needed
def test_streams_and_threads_share_plans() -> None:
    check("""
z = made(5, 24, dtype="complex64")
want = vesta.fft.ifft(vesta.fft.fft(z), dim=0)
failures = []
def work():
    try:
        streams = [vesta.cuda.Stream() for _ in range(3)]
        results = []
        for i in range(9):
            with vesta.cuda.stream(streams[i % 3]):
                t = z.cuda()
                results.append(vesta.fft.ifft(vesta.fft.fft(t), dim=0))
                del t
        vesta.cuda.synchronize()
        for r in results: near(r, want, 1e-6, "stream")
    except BaseException as e:
        failures.append(e)
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
assert not failures, failures
assert (plans.size, fake.fake_cufft_plans_made()) == (2, 2), (plans.size, fake.fake_cufft_plans_made())
x = made(6, 6, dtype="complex128").to("cuda:1")
near(vesta.fft.fft2(x), vesta.fft.fft2(x.cpu()), 1e-14, "another device")
sizes = plans.size, plans[1].size, plans["cuda:1"].size
assert sizes == (2, 1, 1), sizes
""", VESTA_EMULATION_SCHEDULE="random")  # fmt: skip


@needed
def test_the_cache_of_plans_is_bounded() -> None:
    check("""
def run(n): near(vesta.fft.rfft(made(n).cuda()), vesta.fft.rfft(made(n)), 1e-13, n)
def made_plans(): return fake.fake_cufft_plans_made()
assert plans.size == 0 and plans.max_size == 1024
for n in (4, 5, 6, 4): run(n)
assert plans.size == 3 == made_plans()
plans.max_size = 2
assert plans.size == 2 == fake.fake_cufft_plans_alive()
run(4), run(6)  # the last used ones
assert made_plans() == 3
run(7), run(6)
assert made_plans() == 4 and plans.size == 2
run(4)
assert made_plans() == 5
plans.clear()
assert plans.size == 0 == fake.fake_cufft_plans_alive()
plans.max_size = 0
run(4), run(4)
assert made_plans() == 7 and plans.size == 0 == fake.fake_cufft_plans_alive()
for change, words in ((lambda: setattr(plans, "max_size", -1), "number of plans >= 0"), (lambda: plans[9].size, "9"),
                      (lambda: setattr(plans, "size", 3), "")):
    try: change()
    except (RuntimeError, ValueError, AttributeError) as e: assert words in str(e), e
    else: raise AssertionError(words)
""")  # fmt: skip
    check("""
for n in range(4, 12): near(vesta.fft.rfft(made(n).cuda()), vesta.fft.rfft(made(n)), 1e-13, n)
assert plans.size == fake.fake_cufft_plans_alive() <= 3 and fake.fake_cufft_plans_made() == 8
""", FAKE_CUFFT="small")  # fmt: skip


@needed
@pytest.mark.parametrize("how", ["missing", "left out", "refuses"])
def test_without_the_library_the_host_computes(how: str) -> None:
    changes = {"missing": {"VESTA_CUDA_LIB_DIR": ""}, "left out": {"VESTA_CUDA_LIBRARIES": "cublaslt,cusolver"}}
    program = "fake = None\n" + SHAPES if how != "refuses" else "warnings.simplefilter('always')\n" + (
        "compare(made(4, 6), [0, 1], 'float64', 1e-14, 'refused')\nassert calls() == 0 == plans.size\n"
    )  # fmt: skip
    out = check(program, **changes.get(how, {"FAKE_CUFFT": "refuse"}))
    said = "cufftXtMakePlanMany failed with status 5; the host computes instead"
    assert out.count(said) == (how == "refuses"), out


@needed
def test_errors_are_those_of_the_host() -> None:
    check("""
def raised(f):
    try: f()
    except Exception as e: return type(e).__name__, str(e)
    raise AssertionError("no error")
for f in (
    lambda d: _C._fft_c2r(vesta.ones(3, device=d, dtype=vesta.complex64), [0], 0, 9),
    lambda d: _C._fft_c2c(vesta.ones(3, device=d), [0], 0, True),
    lambda d: vesta.fft.fft(vesta.ones(3, device=d), dim=2),
    lambda d: _C._fft_r2c(vesta.ones(3, device=d), [0, 0], 0, True),
    lambda d: vesta.fft.fft(vesta.ones(0, device=d)),
    lambda d: _C._fft_r2c(vesta.ones(3, device=d), [0], 5, True),
    lambda d: vesta.fft.rfft(vesta.ones(3, device=d).half()),
):
    assert raised(lambda: f("cpu")) == raised(lambda: f("cuda")), (raised(lambda: f("cpu")), raised(lambda: f("cuda")))
""")  # fmt: skip


def headers() -> list[Path]:
    return [p for p in (Path("/usr/local/cuda/include"), Path("/usr/include")) if (p / "cufftXt.h").exists()]


@pytest.mark.skipif(not headers(), reason="needs the headers of cuFFT")
def test_names_numbers_and_arguments_are_those_of_the_headers() -> None:
    source = (ROOT / "cuda/lib/cufft.cpp").read_text()
    abi = (ROOT / "cuda/lib/cufft_abi.h").read_text()
    theirs = "".join((headers()[0] / f).read_text() for f in ("cufft.h", "cufftXt.h", "library_types.h"))
    for mine, its in {"r_32f": "CUDA_R_32F", "r_64f": "CUDA_R_64F", "c_32f": "CUDA_C_32F", "c_64f": "CUDA_C_64F",
                      "kAllocationFailed": "CUFFT_ALLOC_FAILED"}.items():  # fmt: skip
        number = re.search(rf"\b{its}\s*=\s*(\w+)", theirs)[1]
        assert int(re.search(rf"\b{mine} = (\d+)", abi)[1]) == int(number, 0), mine
    for mine, its in {"forward": "CUFFT_FORWARD", "inverse": "CUFFT_INVERSE"}.items():
        assert re.search(rf"\b{mine} = (-?\d+)", abi)[1] == re.search(rf"define {its}\s+(-?\d+)", theirs)[1], mine

    def types(text: str, name: str) -> list[str]:
        found = re.search(rf"{name}\s*\(([^;]*?)\);", text, re.S)
        assert found, name
        words = [re.sub(r"\w*Handle|cudaDataType|libraryPropertyType", "int", a) for a in found[1].split(",")]
        words = [re.sub(r"cudaStream_t", "void *", w) for w in words]
        return ["".join(re.findall(r"\b(?:long|int|size_t|void)\b|\*", w)) for w in words]

    pairs = re.findall(r'resolve\(&f\.(\w+), "(\w+)"\)', source)
    assert len(pairs) == 7
    for field, name in pairs:
        ours, its = types(abi, rf"\(\*{field}\)"), types(theirs, rf"\b{name}")
        assert [a.replace("longlongint", "longlong") for a in its] == ours, (field, name)


@pytest.mark.skipif(not Path("/usr/local/cuda/lib64/libcufft.so").exists(), reason="needs cuFFT")
def test_the_library_has_every_function() -> None:
    names = subprocess.run(["nm", "-D", "--defined-only", "/usr/local/cuda/lib64/libcufft.so"],
                           capture_output=True, text=True).stdout  # fmt: skip
    defined = {re.sub(r"@.*", "", line.split()[-1]) for line in names.splitlines() if " T " in line}
    wanted = set(re.findall(r'resolve\(&f\.\w+, "(\w+)"\)', (ROOT / "cuda/lib/cufft.cpp").read_text()))
    assert len(wanted) == 7 and wanted <= defined, wanted - defined
