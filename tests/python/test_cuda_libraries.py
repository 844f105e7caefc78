"""cuBLASLt as ops use it, with a stand-in that computes on the emulated device; missing, old and failing libraries."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import cuda_fakes
import pytest
import vesta

BUILD = Path(os.environ.get("VESTA_BUILD", "build")).resolve()
FAKES = BUILD / "fakes"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
pytestmark = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcublasLt.so.13").exists(), reason="needs the emulated device and the fakes"
)

PRELUDE = """
import ctypes, os, warnings
import numpy as np, vesta
import vesta.nn.functional as F
warnings.simplefilter("always")
fake = ctypes.CDLL(os.environ["VESTA_CUDA_LIB_DIR"] + "/libcublasLt.so.13")
def made(*shape, dtype="float32"):
    rng = np.random.default_rng(shape)
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if "complex" in dtype else 0)
    return vesta.tensor(values).to(getattr(vesta, dtype))
def same(got, want, rtol=2e-2):
    got, want = got.cpu().to(vesta.complex128).numpy(), want.to(vesta.complex128).numpy()
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
"""


def run(body: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return cuda_fakes.run(PRELUDE + body, FAKES, **environment)


def check(body: str, **environment: str) -> str:
    return cuda_fakes.check(PRELUDE + body, FAKES, **environment)


def test_products_of_all_layouts_go_to_the_library() -> None:
    check("""
for dtype, rtol in (("float32", 2e-6), ("float64", 1e-13), ("float16", 2e-3), ("bfloat16", 2e-2),
                    ("complex64", 2e-6), ("complex128", 1e-13)):
    a, b, batch = made(19, 33, dtype=dtype), made(33, 7, dtype=dtype), made(4, 5, 19, 33, dtype=dtype)
    da, db, dbatch = a.cuda(), b.cuda(), batch.cuda()
    cases = [
        (lambda a, b, t: a @ b, 1), (lambda a, b, t: b.t() @ a.t(), 1), (lambda a, b, t: a @ a.t(), 1),
        (lambda a, b, t: a[:, ::2] @ b[::2], 1),      # neither rows nor columns: copied first
        (lambda a, b, t: a[3] @ b, 1), (lambda a, b, t: a @ b[:, 2], 1), (lambda a, b, t: a[1] @ a[2], 1),
        (lambda a, b, t: a[:, :1] @ b[:1], 1), (lambda a, b, t: a[:1].expand(6, 33) @ b, 1),
        (lambda a, b, t: t @ b, 1),                   # one tall product
        (lambda a, b, t: t @ t.transpose(2, 3), 1),   # one batch
        (lambda a, b, t: t.transpose(0, 1) @ t.transpose(0, 1).transpose(2, 3), 1),
        (lambda a, b, t: t.transpose(2, 3) @ a, 1), (lambda a, b, t: a.t() @ t[:, :1], 1),
    ]
    for i, (case, calls) in enumerate(cases):
        before = fake.fake_calls()
        got = case(da, db, dbatch)
        assert fake.fake_calls() - before == calls, (dtype, i, fake.fake_calls() - before)
        same(got, case(a, b, batch), rtol)
""")


HEADS = """
assert vesta.cuda.is_available()
def counts():
    calls = fake.fake_calls()  # the library's work counts as launches, too
    return calls, dict(vesta._C_cuda.counters())["launches"] - calls
def since(before):
    return tuple(now - then for now, then in zip(counts(), before))
for dtype, rtol in (("float32", 2e-6), ("float64", 1e-13), ("bfloat16", 2e-2), ("complex64", 2e-6)):
    q, k = (made(*s, dtype=dtype).view(5, s[1], 3, 8) for s in ((5, 7, 24), (5, 9, 24)))
    cases = [
        lambda q, k: q.transpose(1, 2) @ k.transpose(1, 2).transpose(-1, -2),
        lambda q, k: q.transpose(1, 2).transpose(-1, -2) @ q.transpose(1, 2),
        lambda q, k: q.transpose(1, 2) @ k.transpose(1, 2)[:, :1].transpose(-1, -2),   # one head for all
        lambda q, k: q[:, :, None].transpose(1, 3) @ k[:, :, None].transpose(1, 3).transpose(-1, -2),
    ]
    dq, dk = q.cuda(), k.cuda()
    for i, case in enumerate(cases):
        before = counts()
        got = case(dq, dk)
        assert since(before) == EXPECTED, (dtype, i, since(before))
        same(got, case(q, k), rtol)
"""


def test_heads_of_transposed_views_are_one_call() -> None:
    # the second number counts our own kernels: the one that writes the pointers
    check("EXPECTED = 1, 1" + HEADS)
    for schedule in ("lazy", "random"):
        check("EXPECTED = 1, 1" + HEADS, VESTA_EMULATION_SCHEDULE=schedule)


def test_heads_without_arrays_of_pointers_are_copied_or_few_calls() -> None:
    # 3 heads of 5: copies of both operands would not be fewer launches
    out = check("EXPECTED = 3, 0" + HEADS, FAKE_CUBLAS_LT="strided")
    assert "cuBLASLt" not in out
    check(
        """
assert vesta.cuda.is_available()
def counts():
    calls = fake.fake_calls()  # the library's work counts as launches, too
    return calls, dict(vesta._C_cuda.counters())["launches"] - calls
def since(before):
    return tuple(now - then for now, then in zip(counts(), before))
q, k = made(12, 10, 4, 8).transpose(1, 2), made(12, 4, 9, 8)
for other, copies in ((k, 1), (q, 2)):  # 4 heads of 12
    a, b = q.cuda(), other.cuda()
    assert a.stride() == q.stride() and b.stride() == other.stride()
    before = counts()
    got = a @ b.transpose(-1, -2)
    assert since(before) == (1, copies)
    same(got, q @ other.transpose(-1, -2), 2e-6)
""",
        FAKE_CUBLAS_LT="strided",
    )


def test_linear_takes_its_bias_along() -> None:
    check("""
for dtype, rtol in (("float32", 2e-6), ("float64", 1e-13), ("float16", 2e-3), ("bfloat16", 2e-2), ("complex64", 2e-6)):
    x, w, b = made(2, 3, 40, dtype=dtype), made(9, 40, dtype=dtype), made(9, dtype=dtype)
    for view in (lambda t: t, lambda t: t.transpose(0, 1), lambda t: t[0, 0]):
        before = fake.fake_calls()
        same(F.linear(view(x.cuda()), w.cuda(), b.cuda()), F.linear(view(x), w, b), rtol)
        assert fake.fake_calls() == before + 1
    same(F.linear(x.cuda(), w[0].cuda(), b[:1].cuda()), F.linear(x, w[0], b[:1]), rtol)
""")


BIAS_GRADIENTS = """
for dtype, rtol in (("float32", 2e-6), ("float16", 2e-3), ("bfloat16", 2e-2), ("float64", 1e-13), ("complex64", 2e-6)):
    for view in (lambda t: t, lambda t: t.transpose(0, 1), lambda t: t[0], lambda t: t[0, 0], lambda t: t[:, :, ::2]):
        sides = []
        for device in ("cpu", "cuda"):
            x = view(made(2, 3, 40, dtype=dtype).to(device)).detach().requires_grad_()
            w = made(9, x.shape[-1], dtype=dtype).to(device).requires_grad_()
            b = made(9, dtype=dtype).to(device).requires_grad_()
            y = F.linear(x, w, b)
            before = fake.fake_bias_gradients(), fake.fake_calls()
            sides.append(vesta.autograd.grad(y, (x, w, b), made(*y.shape, dtype=dtype).to(device)))
            fused, calls = fake.fake_bias_gradients() - before[0], fake.fake_calls() - before[1]
            takes_bias = device == "cuda" and dtype in ("float32", "float16", "bfloat16")
            assert fused == (EXPECTED and takes_bias), (dtype, fused)
            assert calls == 2 * (device == "cuda"), (dtype, calls)
        for want, got in zip(*sides): same(got, want, rtol)
"""


def test_the_gradient_of_a_bias_is_that_product_s_epilogue() -> None:
    check("EXPECTED = 1" + BIAS_GRADIENTS)
    check("EXPECTED = 1" + BIAS_GRADIENTS, VESTA_EMULATION_SCHEDULE="random")
    out = check("EXPECTED = 0" + BIAS_GRADIENTS, FAKE_CUBLAS_LT="plain")  # refused: a sum of its own, no warning
    assert "cuBLASLt" not in out


def test_a_gradient_that_nobody_asks_for_is_not_computed() -> None:
    check("""
x, w, b = made(4, 8).cuda(), made(5, 8).cuda().requires_grad_(), made(5).cuda().requires_grad_()
y = F.linear(x, w, b)
for wanted, calls, fused in (((w, b), 1, 1), ((w,), 1, 0), ((b,), 0, 0)):
    before = fake.fake_calls(), fake.fake_bias_gradients()
    vesta.autograd.grad(y.sum(), wanted, retain_graph=True)
    assert (fake.fake_calls() - before[0], fake.fake_bias_gradients() - before[1]) == (calls, fused)
seconds = []
for device in ("cpu", "cuda"):  # of higher order: by the ops that the gradient is made of
    x, w, b = (t.detach().to(device).requires_grad_() for t in (x, w, b))
    of_w, of_b = vesta.autograd.grad((F.linear(x, w, b) ** 3).sum(), (w, b), create_graph=True)
    seconds.append(vesta.autograd.grad(of_w.sum() + (of_b ** 2).sum(), (x, w, b)))
for want, got in zip(*seconds): same(got, want, 1e-4)
""")


def test_addmm_with_a_bias_is_one_call() -> None:
    check("""
assert vesta.cuda.is_available()
for dtype, rtol in (("float32", 2e-6), ("float64", 1e-13), ("bfloat16", 2e-2)):
    b, x, w = made(9, dtype=dtype), made(6, 40, dtype=dtype), made(40, 9, dtype=dtype)
    on_device = b.cuda(), x.cuda(), w.cuda()
    before = fake.fake_calls(), dict(vesta._C_cuda.counters())["launches"]
    got = vesta.addmm(*on_device)
    assert fake.fake_calls() == before[0] + 1
    if dtype != "float64":
        assert dict(vesta._C_cuda.counters())["launches"] == before[1] + 1
    same(got, vesta.addmm(b, x, w), rtol)
    same(vesta.addmm(b.cuda(), x.cuda(), w.cuda(), beta=2), 2 * b + x @ w, rtol)
""")


def test_gradients_and_orders() -> None:
    for schedule in ("eager", "random"):
        check(
            """
sides = []
for device in ("cpu", "cuda"):
    x, w = made(3, 4, 8).to(device).requires_grad_(), made(5, 8).to(device).requires_grad_()
    y = F.linear(x, w) @ w
    sides.append(vesta.autograd.grad(y, (x, w), made(3, 4, 8).to(device)))
for want, got in zip(*sides): same(got, want, 1e-5)
assert fake.fake_calls() > 4
""",
            VESTA_EMULATION_SCHEDULE=schedule,
        )


def test_tf32_is_asked_for_only_when_allowed() -> None:
    check("""
a, b = made(8, 8).cuda(), made(8, 8).double().cuda()
assert vesta.backends.cuda.matmul.allow_tf32 is False
a @ a
assert fake.fake_tf32_calls() == 0
vesta.backends.cuda.matmul.allow_tf32 = True
a @ a, b @ b
assert fake.fake_tf32_calls() == 1
vesta.backends.cuda.matmul.allow_tf32 = False
a @ a
assert fake.fake_tf32_calls() == 1
try: vesta.backends.cuda.matmul.allow_tf32 = 1
except TypeError: pass
else: raise AssertionError
""")


def test_what_the_library_does_not_take_is_computed_by_plain_kernels() -> None:
    check("""
i = vesta.tensor(np.arange(12).reshape(3, 4))
assert ((i.cuda() @ i.t().cuda()).cpu().numpy() == (i @ i.t()).numpy()).all()
e = made(3, 0).cuda() @ made(0, 2).cuda()
assert (e.cpu().numpy() == 0).all() and fake.fake_calls() == 0
""")


def test_a_refusal_warns_once_and_computes() -> None:
    out = check(
        """
a = made(5, 6)
for _ in range(3): same(a.cuda() @ a.t().cuda(), a @ a.t(), 2e-6)
same(F.linear(a.cuda(), a.cuda(), made(5).cuda()), F.linear(a, a, made(5)), 2e-6)
assert fake.fake_calls() == 0
""",
        FAKE_CUBLAS_LT="refuse",
    )
    assert out.count("cuBLASLt has no algorithm for a product of float32 [5, 6] and [6, 5]") == 1
    assert "plain kernels are used" in out


def test_an_old_or_missing_library_is_left_alone() -> None:
    body = """
a = made(5, 6)
same(a.cuda() @ a.t().cuda(), a @ a.t(), 2e-6)
assert fake.fake_calls() == 0
"""
    check(body, FAKE_CUBLAS_LT="old")
    check(body, VESTA_CUDA_LIBRARIES="off")
    check(body.replace("== 0", "== 1"), VESTA_CUDA_LIBRARIES="cudnn,cublas")


def test_settings_of_backends() -> None:
    cudnn = vesta.backends.cudnn
    assert cudnn.enabled is True and cudnn.allow_tf32 is True and cudnn.deterministic is True
    cudnn.benchmark = True
    cudnn.deterministic = True
    cudnn.enabled = False
    try:
        assert cudnn.enabled is False
        with pytest.raises(TypeError, match="expected a bool"):
            cudnn.enabled = "yes"
    finally:
        cudnn.enabled = True
