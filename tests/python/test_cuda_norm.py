"""Batch normalization on CUDA against the CPU: results, running statistics, gradients.

Values may differ by ``64 * eps`` of the statistics' type (float32 except for float64) relative to the largest, plus one
rounding to the result's type.
"""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

EPS = {vesta.float16: 2.0**-11, vesta.bfloat16: 2.0**-8, vesta.float32: 2.0**-24, vesta.float64: 2.0**-53}
SHAPES = [(2, 1), (7, 3), (70, 33), (1500, 5), (2, 3, 5), (4, 6, 7, 3), (3, 2, 40, 33), (2, 40, 2, 2, 2)]


def draw(shape, dtype, seed=0, mean=0.5):
    return vesta.tensor(mean + np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def as_numpy(t):
    return t.detach().cpu().to(vesta.float64).numpy()


def close(got, want, factor=64):
    assert got.is_cuda and got.dtype == want.dtype and got.shape == want.shape
    a, b, eps = as_numpy(got), as_numpy(want), EPS[want.dtype]
    bound = factor * min(eps, 2.0**-24) * (np.max(np.abs(b), initial=0) + 1)
    if eps > 2.0**-24:
        bound = bound + 2 * eps * np.abs(b)
    assert np.all(np.abs(a - b) <= bound), np.max(np.abs(a - b) / bound)


def run(device, shape, dtype, training, affine, running, mean=0.5):
    channels = shape[1]
    x = draw(shape, dtype, 0, mean).to(device).requires_grad_()
    w = draw(channels, dtype, 1).to(device).requires_grad_() if affine else None
    b = draw(channels, dtype, 2).to(device).requires_grad_() if affine else None
    m = vesta.zeros(channels, dtype=dtype, device=device) if running else None
    v = vesta.ones(channels, dtype=dtype, device=device) if running else None
    y = F.batch_norm(x, m, v, w, b, training, 0.1, 1e-5)
    y.backward(draw(shape, dtype, 3).to(device))
    return [t for t in (y, m, v, x.grad, w.grad if affine else None, b.grad if affine else None) if t is not None]


@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_training(shape, dtype):
    for affine, running in ((True, True), (False, False)):
        for want, got in zip(*(run(d, shape, dtype, True, affine, running) for d in ("cpu", "cuda"))):
            close(got, want, 64 * shape[0])


@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("shape", SHAPES[1:5], ids=str)
def test_evaluation(shape, dtype):
    for want, got in zip(*(run(d, shape, dtype, False, True, True) for d in ("cpu", "cuda"))):
        close(got, want, 64 * shape[0])


def test_a_large_mean_costs_no_digits():
    x = draw((64, 3, 20), vesta.float32, 5, 4096.0)
    y = as_numpy(F.batch_norm(x.cuda(), None, None, training=True))
    exact = as_numpy(F.batch_norm(x.double(), None, None, training=True))
    assert np.max(np.abs(y - exact)) < 1e-3


def test_layouts_and_statistics_of_other_dtypes():
    x = draw((6, 5, 4), vesta.bfloat16)
    for change in (lambda t: t.transpose(0, 2), lambda t: t[:, :, ::2], lambda t: t[1:, :, 1:]):
        got, want = (F.batch_norm(change(x.to(d)), None, None, training=True) for d in ("cuda", "cpu"))
        close(got, want)
    for device in ("cpu", "cuda"):
        mean, var = vesta.zeros(10, device=device)[::2], vesta.ones(5, device=device, dtype=vesta.float64)
        F.batch_norm(x.to(device), mean, var, training=True)
        if device == "cpu":
            want = (mean, var)
    close(mean, want[0])
    np.testing.assert_allclose(var.cpu().numpy(), want[1].numpy(), rtol=1e-6)


def test_equal_bits_on_every_run():
    x = draw((9, 5, 700), vesta.float32).cuda()
    first = F.batch_norm(x, None, None, training=True)
    for _ in range(3):
        assert vesta.equal(F.batch_norm(x, None, None, training=True).cpu(), first.cpu())


@pytest.mark.parametrize("inner", [700, 702], ids=["packs", "no packs"])
def test_equal_bits_at_any_address(inner):
    x = draw((9, 5, inner), vesta.float32)
    results = []
    for offset in (0, 1):
        memory = vesta.zeros(x.numel() + 1, device="cuda")
        placed = memory[offset : offset + x.numel()].view(x.shape).copy_(x)
        w = placed.detach().requires_grad_()
        y = F.batch_norm(w, None, None, training=True)
        y.backward(placed)
        results.append((y, w.grad))
    assert all(vesta.equal(a, b) for a, b in zip(*results))


def test_errors_are_those_of_the_cpu():
    for call in (
        lambda d: F.batch_norm(vesta.ones(1, 3, device=d), None, None, training=True),
        lambda d: F.batch_norm(vesta.ones(4, 3, device=d), None, None),
        lambda d: F.batch_norm(vesta.ones(4, 3, device=d), vesta.ones(4, device=d), vesta.ones(3, device=d)),
        lambda d: F.batch_norm(vesta.ones(4, device=d), None, None, training=True),
        lambda d: F.batch_norm(vesta.ones(4, 3, device=d, dtype=vesta.int64), None, None, training=True),
    ):
        with pytest.raises((ValueError, TypeError, RuntimeError)) as cpu:
            call("cpu")
        with pytest.raises(type(cpu.value)) as cuda:
            call("cuda")
        assert str(cuda.value) == str(cpu.value)
    with pytest.raises(RuntimeError, match=r"batch_norm: expected all tensors on one device, got cuda:0 .* and cpu"):
        F.batch_norm(vesta.ones(4, 3).cuda(), vesta.zeros(3), vesta.ones(3))


def test_the_gradient_in_evaluation_does_not_look_at_the_input():
    m, v = vesta.zeros(2).cuda(), vesta.ones(2).cuda()
    for values in (1.0, float("nan"), float("inf")):
        x = vesta.full((3, 2, 4), values).cuda().requires_grad_()
        (gx,) = vesta.autograd.grad(F.batch_norm(x, m, v, eps=0.0).sum(), x)
        assert gx.cpu().equal(vesta.ones(3, 2, 4)), values


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("format", [vesta.contiguous_format, vesta.channels_last], ids=str)
def test_a_recorded_evaluation_takes_two_launches_each_way(format, dtype):
    """The statistics that backward needs are written on the way, and its map with the sums."""
    norm = vesta.nn.BatchNorm2d(8).cuda().eval()
    norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
    x = vesta.randn(3, 8, 5, 4).cuda().to(dtype).contiguous(memory_format=format).requires_grad_()

    def launches():
        return dict(vesta._C_cuda.counters())["launches"]

    start = launches()
    y = norm(x)
    middle = launches()
    g = vesta.ones_like(y)
    before = launches()
    grads = vesta.autograd.grad(y, (x, norm.weight, norm.bias), g)
    assert (middle - start, launches() - before) == (2, 2)
    assert grads[0].stride() == x.stride()
    with vesta.no_grad():
        assert vesta.equal(norm(x), y)
    y = norm(x)
    want = vesta.autograd.grad(y, (x, norm.weight), vesta.ones_like(y))
    y = norm(x)
    norm.running_mean.add_(1), norm.running_var.mul_(3)  # a pass in training writes them
    for got, expected in zip(vesta.autograd.grad(y, (x, norm.weight), vesta.ones_like(y)), want):
        assert vesta.equal(got, expected)
    (gx,) = vesta.autograd.grad(norm(x).float().square().sum(), x, create_graph=True)
    assert gx.requires_grad  # by way of the weight
