"""Attention through cuDNN, with a stand-in that runs its graphs on the emulated device; and who computes what."""

from __future__ import annotations

import os
from pathlib import Path

import cuda_fakes
import pytest
import vesta

FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes" / "cudnn"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
pytestmark = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcudnn.so.9").exists() or not vesta.cuda.is_available(),
    reason="needs the emulated device and the fakes",
)

PRELUDE = """
import ctypes, os, warnings
import numpy as np, vesta
from vesta.nn.functional import scaled_dot_product_attention as attention
warnings.simplefilter("error")
assert vesta.cuda.is_available()
fake = ctypes.CDLL(os.environ["VESTA_CUDA_LIB_DIR"] + "/libcudnn.so.9")
def made(*shape, dtype=vesta.bfloat16):
    return vesta.tensor(np.random.default_rng(shape).standard_normal(shape)).to(dtype)
def both(*operands, **options):
    "Compares both devices; returns how many graphs of cuDNN have run, forward and backward."
    sides, counts = [], [fake.fake_programs()]
    for device in ("cpu", "cuda"):
        inputs = [t.detach().to(device).requires_grad_() for t in operands]
        vesta.manual_seed(3)
        more = {k: v.to(device) if isinstance(v, vesta.Tensor) else v for k, v in options.items()}
        y = attention(*inputs, **more)
        if device == "cuda": counts.append(fake.fake_programs())
        sides.append([y, *vesta.autograd.grad(y, inputs, made(*y.shape, dtype=y.dtype).to(device))])
    counts.append(fake.fake_programs())
    tolerance = {vesta.bfloat16: 4e-2, vesta.float16: 6e-3}.get(operands[0].dtype, 1e-4)
    for want, got in zip(*sides):
        assert want.shape == got.shape and want.dtype == got.dtype
        np.testing.assert_allclose(
            got.detach().cpu().double().numpy(), want.detach().double().numpy(), rtol=tolerance, atol=tolerance)
    return counts[1] - counts[0], counts[2] - counts[1]
"""


def check(body: str, **environment: str) -> str:
    return cuda_fakes.check(PRELUDE + body, FAKES, **environment)


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_results_and_gradients_are_the_cpus(schedule: str) -> None:
    check(
        """
for dtype in (vesta.bfloat16, vesta.float16):
    for causal in (False, True):
        q, k, v = made(2, 4, 13, 16, dtype=dtype), made(2, 4, 19, 16, dtype=dtype), made(2, 4, 19, 24, dtype=dtype)
        assert both(q, k, v, is_causal=causal) == (1, 1)
        assert both(q, k[:, :2], v[:, :2], is_causal=causal, enable_gqa=True) == (1, 1)
        inside = [made(2, 11, 3, 8, dtype=dtype).transpose(1, 2) for _ in range(3)]  # heads inside rows
        assert both(*inside, is_causal=causal, scale=0.3) == (1, 1)
x = made(2, 11, 3 * 32).cuda()  # views of one projection are read in place
before = dict(vesta._C_cuda.counters())["launches"]
y = attention(*(p.view(2, 11, 4, 8).transpose(1, 2) for p in x.split(32, 2)), is_causal=True)
assert dict(vesta._C_cuda.counters())["launches"] == before + 1
assert y.transpose(1, 2).is_contiguous()
""",
        VESTA_EMULATION_SCHEDULE=schedule,
    )


def test_masks_are_numbers_for_the_library() -> None:
    check("""
for dtype in (vesta.bfloat16, vesta.float16):
    q, k, v = (made(2, 4, 13, 16, dtype=dtype), made(2, 4, 19, 16, dtype=dtype), made(2, 4, 19, 24, dtype=dtype))
    seen = made(2, 1, 13, 19, dtype=vesta.float32) > -0.5
    seen[0, 0, 3], seen[1, 0, 12] = False, False  # queries that see nothing
    numbers = vesta.where(seen, made(2, 1, 13, 19, dtype=vesta.float32), -vesta.inf)
    lowest = numbers.masked_fill(numbers.eq(-vesta.inf), vesta.finfo(dtype).min)
    lowest[0, 0, 3] = 0
    lowest[1, 0, 12] = 1
    for mask in (
        seen, seen[0, 0], seen[:, :, :1], seen[:, :, ::2].repeat(1, 1, 2, 1)[:, :, :13], made(4, 13, 19) > 0,
        seen.transpose(2, 3).contiguous().transpose(2, 3), vesta.zeros(13, 19, dtype=vesta.bool),
        numbers, numbers.to(dtype), numbers[0, 0].to(dtype), made(2, 4, 13, 19, dtype=dtype), made(13, 1, dtype=dtype),
        lowest.clamp(min=-1e30), lowest.to(dtype),
    ):
        assert both(q, k, v, attn_mask=mask) == (1, 1)
        assert both(q, k[:, :2], v[:, :2], attn_mask=mask, enable_gqa=True) == (1, 1)
    for size in (1, 8, 64, 300):  # of a mask's rows
        q, k, v = made(1, 2, 5, 8, dtype=dtype), made(1, 2, size, 8, dtype=dtype), made(1, 2, size, 8, dtype=dtype)
        assert both(q, k, v, attn_mask=made(5, size, dtype=vesta.float32) > 0) == (1, 1)
        assert both(q, k, v, attn_mask=made(5, size, dtype=vesta.float32)) == (1, 1)
""")


def test_queries_that_see_nothing_are_zero_by_the_library() -> None:
    check("""
q, k, v = (made(2, 3, 12, 16).cuda().requires_grad_() for _ in range(3))
seen = vesta.ones(2, 1, 12, 12, dtype=vesta.bool)
seen[0, 0, 4], seen[1, 0, :6] = False, False
far = vesta.where(seen, 0, -vesta.inf)
for mask in (seen.cuda(), far.cuda(), far.bfloat16().cuda()):
    for library in (True, False):  # of the gradient
        vesta.backends.cuda.enable_cudnn_sdp(True)
        before = fake.fake_programs()
        y = attention(q, k, v, attn_mask=mask)
        assert fake.fake_programs() == before + 1
        vesta.backends.cuda.enable_cudnn_sdp(library)
        grads = vesta.autograd.grad(y, (q, k, v), vesta.ones_like(y))
        assert fake.fake_programs() == before + 1 + library
        assert not y[0, :, 4].any() and not y[1, :, :6].any() and y[0, :, 5:].all() and y[1, :, 6:].all()
        assert not grads[0][0, :, 4].any() and not grads[0][1, :, :6].any() and grads[0][0, :, 5:].any()
        assert all(g.isfinite().all() for g in grads)
v = v.detach().clone()
v[0, 1, 2, 3], v[1, 0, 11, 5] = vesta.nan, vesta.inf
y = attention(q, k, v, attn_mask=seen.cuda())
assert y[0, 1, 4, 3].isnan() and y[0, :, 4].isnan().sum() == 1
assert y[1, 0, 0, 5].isnan() and y[1, :, 0].isnan().sum() == 1 and not y[1, :, 0].nan_to_num().any()
""")


def test_gradients_over_the_limit_are_computed_in_parts() -> None:
    check("""
set_limit = ctypes.CDLL(os.environ["VESTA_CUDA_LIBRARY"])._ZN5vesta4cuda29set_attention_workspace_limitEl
set_limit.argtypes = [ctypes.c_int64]
of_head = 128 * 128 * 2 + 2048
def check(parts, *operands, **options):
    assert both(*operands, **options) == (1, parts)
q, k, v = made(5, 4, 12, 16), made(5, 4, 19, 16), made(5, 4, 19, 24)
inside = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v)]
masks = [made(5, 1, 12, 19) > 0, made(4, 12, 19), made(5, 4, 12, 19).float(), made(12, 19) > 0]
set_limit(65536 + 8 * of_head)  # two batches
check(3, q, k, v), check(3, *inside, is_causal=True)
for mask in masks: check(3, q, k, v, attn_mask=mask)
set_limit(65536 + 3 * of_head)  # three of four heads: two and two
check(10, q, k, v, is_causal=True), check(10, *inside)
for mask in masks: check(10, q, k, v, attn_mask=mask)
set_limit(65536 + 2 * (of_head + 19 * 40 * 4))  # heads that share keys stay together
check(10, q, k[:, :2], v[:, :2], enable_gqa=True, attn_mask=masks[2])
check(5, q[:, :2], k[:, :1], v[:, :1], enable_gqa=True)
q = made(5, 4, 13, 16)
set_limit(65536 + 3 * of_head)  # heads of 13 queries are not aligned: in fours
assert both(q, k, v) == (1, 1)
set_limit(65536 + 8 * of_head)
check(3, q, k, v)
""")


def test_few_queries_of_many_keys_are_our_own_kernels() -> None:
    check("""
q, k, v = made(1, 2, 3, 8), made(1, 2, 1100, 8), made(1, 2, 1100, 8)
assert both(q, k, v) == (0, 1)
assert both(q, k, v, attn_mask=made(3, 1100, dtype=vesta.float32) > 0) == (0, 1)
assert both(q, k[:, :, :900], v[:, :, :900]) == (1, 1)
assert both(made(1, 2, 17, 8), k, v) == (1, 1)
""")


def test_the_rest_is_computed_by_our_own_kernels() -> None:
    check("""
q, k, v = (made(2, 4, 13, 16) for _ in range(3))
assert both(q.float(), k.float(), v.float()) == (0, 0)
assert both(q, k, v, dropout_p=0.3) == (0, 0)
assert both(q, k, v, attn_mask=made(13, 13) > 0, dropout_p=0.3) == (0, 0)
assert both(q[..., :12], k[..., :12], v) == (0, 0)
odd = made(2, 4, 13, 17).cuda()[..., 1:]  # rows that are not aligned
before = fake.fake_programs()
attention(odd, odd, odd)
assert fake.fake_programs() == before
""")


def test_switches() -> None:
    check("""
q, k, v = (made(2, 4, 13, 16) for _ in range(3))
assert vesta.backends.cuda.cudnn_sdp_enabled()
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)
    without = vesta.backends.cuda.sdp_kernel(enable_cudnn=False)
with without:
    assert not vesta.backends.cuda.cudnn_sdp_enabled()
    assert both(q, k, v) == (0, 0)
assert vesta.backends.cuda.cudnn_sdp_enabled() and both(q, k, v) == (1, 1)
vesta.backends.cudnn.enabled = False
assert both(q, k, v) == (0, 0)
vesta.backends.cudnn.enabled = True
# a result of one, a gradient of the other
x = [t.cuda().requires_grad_() for t in (q, k, v)]
grads = []
for forward in (True, False):
    vesta.backends.cuda.enable_cudnn_sdp(forward)
    y = attention(*x, is_causal=True)
    vesta.backends.cuda.enable_cudnn_sdp(not forward)
    before = fake.fake_programs()
    grads.append(vesta.autograd.grad(y, x, vesta.ones_like(y)))
    assert fake.fake_programs() - before == (not forward)
for a, b in zip(*grads):
    np.testing.assert_allclose(a.cpu().float().numpy(), b.cpu().float().numpy(), rtol=4e-2, atol=4e-2)
""")


def test_refusals_are_silent() -> None:
    check(
        """
assert both(*(made(2, 4, 13, 16) for _ in range(3)), is_causal=True) == (0, 0)
""",
        FAKE_CUDNN="convolutions",
    )
