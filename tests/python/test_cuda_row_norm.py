"""Layer and root mean square normalization on CUDA: one kernel forward, two backward, against float64 on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

EPS = {vesta.float16: 2.0**-11, vesta.bfloat16: 2.0**-8, vesta.float32: 2.0**-24, vesta.float64: 2.0**-53}
# columns of one lane, of some, of a warp, of a block, and too many to keep; rows of one piece and of several
SHAPES = [(5, 1), (7, 3), (3, 40), (2, 6, 33), (70, 128), (9, 1000), (3, 1500), (2, 12100), (300, 36)]
# gradients by tiles of rows: teams that share a block, the last of which have fewer rows, and all sizes of blocks
SHAPES += [(2100, 8), (5, 2056), (6, 6000), (3, 8192), (2, 8200)]


def draw(shape, dtype, seed=0, mean=0.5):
    return vesta.tensor(mean + np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def results(device, shape, dtype, weight_dtype, affine=True, wide=None, change=lambda t: t, rms=False):
    """Returns y and the gradients by x, weight and bias; ``wide``: the dtype that everything is computed in."""
    x, g = (change(draw(shape, dtype, seed).to(device, wide or dtype)) for seed in (0, 3))
    x = x.detach().requires_grad_()
    w, b = (draw(x.shape[-1:], weight_dtype, seed).to(device, wide or weight_dtype).requires_grad_() for seed in (1, 2))
    if rms:
        y = F.rms_norm(x, x.shape[-1:], w if affine else None, 1e-5)
    else:
        y = F.layer_norm(x, x.shape[-1:], w if affine else None, b if affine else None, 1e-5)
    y.backward(g)
    return [y, x.grad] + ([w.grad, b.grad][: 1 if rms else 2] if affine else [])


def check(shape, dtype, weight_dtype, **options):
    exact = results("cpu", shape, dtype, weight_dtype, wide=vesta.float64, **options)
    for got, want in zip(results("cuda", shape, dtype, weight_dtype, **options), exact):
        a, b = (t.detach().cpu().double().numpy() for t in (got, want))
        rounding = EPS[got.dtype]
        bound = 32 * min(EPS[dtype], 2.0**-24) * shape[0] * (np.abs(b).max() + 1) + 2 * rounding * np.abs(b)
        assert got.is_cuda and np.all(np.abs(a - b) <= bound), (got.dtype, np.max(np.abs(a - b) / bound))


@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(shape, dtype, rms):
    check(shape, dtype, dtype, rms=rms)
    check(shape, dtype, dtype, affine=False, rms=rms)


@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
def test_weights_of_another_dtype_and_layouts(rms):
    check((6, 40), vesta.bfloat16, vesta.float32, rms=rms)
    for change in (lambda t: t.t(), lambda t: t[:, 1:], lambda t: t[::2, ::3]):
        check((12, 40), vesta.float32, vesta.float32, change=change, rms=rms)


def test_a_large_mean_costs_no_digits():
    x = draw((6, 700), vesta.float32, 5, 4096.0)
    exact = F.layer_norm(x.double(), (700,)).numpy()
    assert np.max(np.abs(F.layer_norm(x.cuda(), (700,)).cpu().numpy() - exact)) < 1e-5
    mean = vesta.native_layer_norm(x.cuda(), (700,), None, None, 1e-5)[1].cpu()
    np.testing.assert_allclose(mean.numpy()[:, 0], x.double().mean(1).numpy(), rtol=1e-7)


def test_no_elements():
    for shape in ((0, 5), (3, 0)):
        x = vesta.zeros(shape, device="cuda", requires_grad=True)
        w = vesta.ones(shape[1], device="cuda", requires_grad=True)
        for y in (F.layer_norm(x, shape[1:], w, w), F.rms_norm(x, shape[1:], w)):
            y.backward(vesta.ones_like(y))
            assert y.shape == shape == x.grad.shape and w.grad.tolist() == [0.0] * shape[1]


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16], ids=str)
def test_one_launch_forward_and_two_backward(dtype):
    from vesta import _C_cuda

    def launches():
        return dict(_C_cuda.counters())["launches"]

    x, w, b = (draw(shape, dtype, 1).cuda() for shape in ((64, 96), 96, 96))
    before = launches()
    y, mean, rstd = vesta.native_layer_norm(x, (96,), w, b, 1e-5)
    assert launches() - before == 1
    vesta._C._layer_norm_backward(y, x, (96,), w, mean, rstd)
    assert launches() - before == 3
    y, rstd = vesta._C._fused_rms_norm(x, (96,), w, None)
    assert launches() - before == 4
    vesta._C._rms_norm_backward(y, x, (96,), w, rstd)
    assert launches() - before == 6


def test_equal_bits_on_every_run_and_for_any_batch():
    x, w = draw((600, 50), vesta.float32).cuda(), draw(50, vesta.float32, 1).cuda()
    first = F.layer_norm(x, (50,), w)
    assert vesta.equal(F.layer_norm(x, (50,), w), first) and vesta.equal(F.layer_norm(x[7:9], (50,), w), first[7:9])
    _, mean, rstd = vesta.native_layer_norm(x, (50,), w, None, 1e-5)
    gradients = [vesta._C._layer_norm_backward(x, x, (50,), w, mean, rstd) for _ in range(3)]
    assert all(vesta.equal(a, b) for other in gradients[1:] for a, b in zip(gradients[0], other))
    memory = draw(600 * 56 + 1, vesta.float32).cuda()  # wherever the operands begin
    x, there, w = memory[1:].reshape(600, 56), memory[1:].clone().reshape(600, 56), memory[1:57]
    _, mean, rstd = vesta.native_layer_norm(x, (56,), w, None, 1e-5)
    one, other = (vesta._C._layer_norm_backward(t, t, (56,), w, mean, rstd) for t in (x, there))
    assert all(vesta.equal(a, b) for a, b in zip(one, other))
    x, w = draw((600, 50), vesta.float32).cuda(), draw(50, vesta.float32, 1).cuda()
    y = F.rms_norm(x, (50,), w)
    assert vesta.equal(F.rms_norm(x[7:9], (50,), w), y[7:9])
    strided = vesta.empty(50, 600, device="cuda").t().copy_(x)
    assert not strided.is_contiguous() and vesta.equal(F.rms_norm(strided, (50,), w), y)


def test_second_derivatives_of_rms_norm():
    found = []
    for device in ("cpu", "cuda"):
        x, w, g = (
            draw(shape, vesta.float64, seed).to(device).requires_grad_()
            for seed, shape in enumerate([(3, 5), 5, (3, 5)])
        )
        call = lambda x, w: F.rms_norm(x, (5,), w, 1e-3)
        if device == "cpu":
            assert vesta.autograd.gradcheck(call, (x, w)) and vesta.autograd.gradgradcheck(call, (x, w))
        first = vesta.autograd.grad(call(x, w), (x, w), g, create_graph=True)
        second = vesta.autograd.grad(sum((t * t).sum() for t in first), (x, w, g))
        found.append([t.detach().cpu().numpy() for t in (*first, *second)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 33), (40, 12), (3, 1500), (3, 4096), (2, 12100)], ids=str)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("rms", [False, True], ids=["layer", "rms"])
def test_squares_beyond_float32_are_summed_in_double(shape, dtype, rms):
    """Every other row is ordinary: it has the bits that it has alone."""
    x = draw(shape, vesta.float64)
    x[::2] = x[::2] * 1e30
    x[0] = x[0] * 3e7  # a row whose sum is beyond float32 too
    x = x.to(dtype)
    norm = (lambda t: F.rms_norm(t, t.shape[-1:], eps=1e-5)) if rms else (lambda t: F.layer_norm(t, t.shape[-1:]))
    got, exact = norm(x.cuda()).cpu(), norm(x.double())
    assert np.allclose(got.double().numpy(), exact.numpy(), rtol=8 * EPS[dtype], atol=64 * EPS[vesta.float32])
    alone = norm(x[1::2].cuda()).cpu()
    assert vesta.equal(got[1::2], alone)
