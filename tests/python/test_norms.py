"""Batch and group norm keep their digits where means are large, and say what infinities and empty batches are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F
from op_db_check import DEVICES

SHAPES = {"matrix": (32, 16), "short runs": (2, 8, 3), "small planes": (8, 16, 7, 7), "large planes": (4, 8, 40, 40)}
LAYOUTS = [(name, last) for name, shape in SHAPES.items() for last in (False, True) if len(shape) == 4 or not last]


def exact(x, g, w, b, mean, variance, training):
    """Batch norm and its gradients in float64; mean and variance are those of the evaluation."""
    over = tuple(d for d in range(x.ndim) if d != 1)
    column = lambda v: v.reshape([1, -1] + [1] * (x.ndim - 2))
    x, g = x.astype(np.float64), g.astype(np.float64)
    if training:
        mean = x.mean(over)
        variance = ((x - column(mean)) ** 2).mean(over)
    inverse = 1 / np.sqrt(variance + 1e-5)
    unit = (x - column(mean)) * column(inverse)
    gb, gw = g.sum(over), (g * unit).sum(over)
    n = x.size / x.shape[1]
    gx = g - (column(gb) + unit * column(gw)) / n if training else g
    return unit * column(w) + column(b), gx * column(w * inverse), gw, gb


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name, last", LAYOUTS)
def test_a_large_mean_costs_no_digits(name, last, training, device):
    shape, center = SHAPES[name], 1000
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(shape) + center).astype(np.float32)
    g, w, b = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[1], shape[1]))
    want = exact(x, g, w, b, np.full(shape[1], center), np.ones(shape[1]), training)
    place = lambda v: vesta.tensor(v).to(device)
    image = (lambda t: t.contiguous(memory_format=vesta.channels_last)) if last else (lambda t: t)
    x, w, b = image(place(x)).requires_grad_(), place(w).requires_grad_(), place(b).requires_grad_()
    mean, variance = vesta.full((shape[1],), float(center)).to(device), vesta.ones(shape[1]).to(device)
    y = F.batch_norm(x, mean, variance, w, b, training)
    y.backward(image(place(g)))
    got = [t.detach().cpu().numpy() for t in (y, x.grad, w.grad, b.grad)]
    # The sums of gradients see the mean as it is saved, in float32, 3e-5 off: PyTorch's errors are the same.
    for actual, wanted, limit in zip(got, want, (3e-6, 2e-4 if training else 3e-6, 1e-2, 1e-4)):
        assert np.abs(actual - wanted).max() < limit


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("place", ["first", "last", "everywhere"])
def test_outliers_cost_no_digits(place, last, device):
    x = np.random.default_rng(5).standard_normal((8, 8, 30, 31)).astype(np.float32)
    at = {"first": (0, ..., 0, 0), "last": (7, ..., 29, 30), "everywhere": (..., 0)}[place]
    x[at] = 1e4
    wide = x.astype(np.float64)
    want = (wide - wide.mean((0, 2, 3), keepdims=True)) / np.sqrt(wide.var((0, 2, 3), keepdims=True) + 1e-5)
    image = vesta.tensor(x).to(device)
    if last:
        image = image.contiguous(memory_format=vesta.channels_last)
    got = F.batch_norm(image, None, None, training=True).cpu().numpy()
    assert np.abs(got - want).max() < 1e-6 * np.abs(want).max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("last", [False, True])
def test_many_pixels(last, device):  # of few channels: some hundred pieces of sums
    rng = np.random.default_rng(6)
    shape = (16, 8, 64, 65)
    x, g, w, b = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape, shape[1], shape[1]))
    want = exact(x, g, w, b, None, None, True)
    format = vesta.channels_last if last else vesta.contiguous_format
    place = lambda v: vesta.tensor(v).to(device)
    image = lambda v: place(v).contiguous(memory_format=format)
    x, w, b = image(x).requires_grad_(), place(w).requires_grad_(), place(b).requires_grad_()
    y = F.batch_norm(x, None, None, w, b, True)
    y.backward(image(g))
    for actual, wanted, limit in zip((y, x.grad, w.grad, b.grad), want, (3e-6, 3e-6, 1e-2, 1e-2)):
        assert np.abs(actual.detach().cpu().numpy() - wanted).max() < limit


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("last", [False, True])
def test_values_whose_squares_overflow_are_no_nan(last, device):
    x = vesta.randn(4, 8, 9, 9).mul_(1e30).to(device)
    if last:
        x = x.contiguous(memory_format=vesta.channels_last)
    y = F.batch_norm(x, None, None, training=True)
    assert vesta.isfinite(y).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mean", [0, 1000, 10000])
@pytest.mark.parametrize(
    ("op", "shape"),
    [
        (op, shape)
        for op in ("group_norm", "layer_norm", "instance_norm")
        for shape in ((2, 6, 9, 9), (2, 6), (2, 6, 1), (3, 8, 2), (2, 64, 3, 1))
        if op != "instance_norm" or len(shape) > 2 and shape[2] > 1  # it needs more than one value
    ],
)
def test_norms_of_rows_of_a_large_mean(op, shape, mean, device):
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32) + np.float32(mean)
    lead = {"group_norm": (shape[0], 2), "layer_norm": shape[:1], "instance_norm": shape[:2]}[op]
    rows = x.astype(np.float64).reshape(*lead, -1)
    want = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    extra = {"group_norm": (2,), "layer_norm": (shape[1:],), "instance_norm": ()}[op]
    got = getattr(F, op)(vesta.tensor(x).to(device), *extra).cpu().numpy()
    assert np.abs(got - want.reshape(x.shape)).max() < 3e-6


def statistics(x, last=False, device="cpu", dtype=vesta.float32):
    """Returns the result and the running statistics of a step with momentum 1."""
    mean, variance = vesta.zeros(x.shape[1], device=device), vesta.ones(x.shape[1], device=device)
    t = vesta.tensor(x.astype(np.float32), device=device, dtype=dtype)
    if last:
        t = t.contiguous(memory_format=vesta.channels_last)
    y = F.batch_norm(t, mean, variance, training=True, momentum=1.0)
    return y, mean.tolist(), variance.tolist()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("place", [0, 20, 2300])
def test_the_mean_of_an_infinity_is_infinite(place, last):
    x = np.random.default_rng(1).standard_normal((3, 2, 40, 60))
    x[1, 0].flat[place] = math.inf
    x[2, 0].flat[place // 2] = math.inf
    y, mean, variance = statistics(x, last)
    assert mean[0] == math.inf and math.isnan(variance[0])
    assert math.isfinite(mean[1]) and math.isfinite(variance[1]) and y[:, 0].isnan().all() and y[:, 1].isfinite().all()
    x[0, 0, 0, 0] = -math.inf
    assert math.isnan(statistics(x, last)[1][0])


@pytest.mark.differs
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", [(8, 3, 4, 4), (2, 3, 50, 60), (16, 3, 1, 1)])
@pytest.mark.parametrize("scale", [1e13, 1e14, 1e16, 1e20, 3e37])
@pytest.mark.parametrize("device", DEVICES)
def test_values_whose_squares_float32_cannot_hold(device, scale, shape, last):
    x = np.random.default_rng(2).standard_normal(shape).astype(np.float32) * np.float32(scale)
    x[:, 1] *= np.float32(1e-3)  # channels beside each other, of which one alone is that large
    wide = x.astype(np.float64)
    y, mean, variance = statistics(x, last, device)
    center = wide.mean((0, 2, 3))
    np.testing.assert_allclose(mean, center, rtol=1e-5, atol=1e-6 * scale)
    want = (wide - center[:, None, None]) / wide.std((0, 2, 3))[:, None, None]
    np.testing.assert_allclose(y.cpu().numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_an_outlier_whose_square_float32_cannot_hold(device):
    x = np.random.default_rng(3).standard_normal((3, 2, 8, 8)).astype(np.float32)
    x[1, 0, 2, 3] = 1e30
    for dtype in (vesta.float32, vesta.bfloat16):
        y = statistics(x, device=device, dtype=dtype)[0].cpu().float()
        assert y[1, 0, 2, 3].item() == pytest.approx(191**0.5, rel=1e-2) and (y[0, 0] < 0).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("last, shape", [(False, (64, 8)), (True, (4, 8, 6, 6)), (True, (3, 7, 5, 5))])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30, 1e17])
def test_a_channel_leaves_those_beside_it_alone(device, last, shape, value):
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    want = statistics(x, last, device)
    x[(0, 0) + (0,) * (len(shape) - 2)] = value
    for was, now in zip(want, statistics(x, last, device), strict=True):
        was, now = (np.asarray(t.cpu() if isinstance(t, vesta.Tensor) else t) for t in (was, now))
        at = (slice(None), slice(1, None)) if was.ndim > 1 else slice(1, None)
        np.testing.assert_array_equal(now[at], was[at])


@pytest.mark.differs
@pytest.mark.parametrize("device", DEVICES)
def test_rms_norm_of_values_whose_squares_float32_cannot_hold(device):
    row = [3e38, 3e38, 2e38, 0.0]
    x = vesta.tensor([row, [1.0, 2.0, 3.0, 4.0]], device=device, requires_grad=True)
    y = F.rms_norm(x, (4,))
    y[:, 0].sum().backward()
    want = np.array(row) / np.sqrt(np.mean(np.square(row)))
    np.testing.assert_allclose(y[0].detach().cpu().numpy(), want, rtol=1e-6)
    assert x.grad.isfinite().all()


def test_equal_values_give_the_bias():
    y, mean, _ = statistics(np.full((4, 2, 5, 5), 3e38))
    assert mean == pytest.approx([3e38] * 2, rel=1e-6) and (y == 0).all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(0, 3), (0, 3, 2), (0, 3, 2, 2), (2, 3, 0)])
def test_an_empty_batch_has_gradients_of_zero(shape, device):
    mean, variance = vesta.zeros(3).to(device), vesta.ones(3).to(device)
    w, b = (vesta.ones(3).to(device).requires_grad_() for _ in range(2))
    x = vesta.zeros(shape).to(device).requires_grad_()
    F.batch_norm(x, mean, variance, w, b, training=True).sum().backward()
    assert w.grad.tolist() == b.grad.tolist() == [0, 0, 0] and x.grad.shape == x.shape
    assert mean.tolist() == [0, 0, 0] and variance.tolist() == [1, 1, 1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64], ids=str)
def test_the_default_eps_of_rms_norm_is_that_of_its_statistics(dtype, device):
    eps = vesta.finfo(vesta.float64 if dtype == vesta.float64 else vesta.float32).eps
    x = vesta.full((2, 8), 1e-4, dtype=dtype)
    want = (x.double() / (x.double().square().mean(-1, keepdim=True) + eps).sqrt()).to(dtype)
    got = F.rms_norm(x.to(device), (8,)).cpu()
    assert vesta.allclose(got, want, rtol=vesta.finfo(dtype).eps, atol=0)


def test_native_batch_norm_without_running_statistics() -> None:
    x, w, b = vesta.randn(8, 3), vesta.rand(3), vesta.rand(3)
    mean, variance = vesta.zeros(3), vesta.ones(3)
    whole = vesta.native_batch_norm(x, w, b, mean.clone(), variance.clone(), True, 0.1, 1e-5)
    for got in (
        vesta._native_batch_norm_legit(x, w, b, True, 0.1, 1e-5),
        vesta._native_batch_norm_legit(x, w, b, mean.clone(), variance.clone(), True, 0.1, eps=1e-5),
        vesta._native_batch_norm_legit(x, w, b, training=True, momentum=0.1, eps=1e-5),
    ):
        assert all(vesta.equal(a, b) for a, b in zip(got, whole))
    evaluated = vesta._native_batch_norm_legit_no_training(x, w, b, mean, variance, 0.1, 1e-5)[0]
    assert vesta.equal(evaluated, F.batch_norm(x, mean, variance, w, b))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.bfloat16, vesta.float16])
def test_statistics_of_16_bit_floats_are_in_float32(dtype, device):
    x, w = vesta.randn(2, 4, 3).to(device, dtype), vesta.ones(4).to(device, dtype)
    for made in (
        vesta.native_layer_norm(x, (3,), None, None, 1e-5),
        vesta.native_group_norm(x, w, w, 2, 4, 3, 2, 1e-5),
        vesta.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5),
    ):
        assert [t.dtype for t in made] == [dtype, vesta.float32, vesta.float32]


@pytest.mark.parametrize("slope", [0.0, 1.0])  # with one, some sums are taken again around a better center
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16])
@pytest.mark.parametrize(
    "shape", [(2, 33, 9, 11), (3, 40, 8, 8), (1, 20, 16, 17), (2, 17, 33, 33), (130, 7, 4, 4), (2, 5, 70, 61)]
)
def test_batch_norm_has_the_same_bits_with_channels_last(shape, dtype, slope):
    """Whether an image is one piece of a sum or several, with channels for whole vectors and for less."""
    rng = np.random.default_rng(4)
    ramp = slope * np.arange(shape[2])[:, None] * (np.arange(shape[1]) % 3 == 0)[:, None, None]
    x, g = (vesta.tensor(rng.standard_normal(shape) * 3 + 2 + ramp).to(dtype) for _ in range(2))
    w, b = (vesta.tensor(rng.standard_normal(shape[1])).to(vesta.float32).requires_grad_() for _ in range(2))
    results = []
    for layout in (vesta.contiguous_format, vesta.channels_last):
        at = x.contiguous(memory_format=layout).detach().requires_grad_()
        mean, variance = vesta.zeros(shape[1]), vesta.ones(shape[1])
        y = F.batch_norm(at, mean, variance, w, b, training=True)
        grads = vesta.autograd.grad(y, (at, w, b), g.contiguous(memory_format=layout))
        results.append([y.detach(), *grads, mean, variance])
    for rows, last in zip(*results):
        assert vesta.equal(rows, last)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16], ids=str)
def test_rms_norm_of_an_infinity_spares_the_others(dtype, device):
    x = vesta.tensor([[1.0, 2.0, math.inf, 3.0]], dtype=dtype, device=device)
    y = F.rms_norm(x, (4,), eps=1e-5)
    assert y[0, [0, 1, 3]].tolist() == [0, 0, 0] and math.isnan(y[0, 2].item())


@pytest.mark.parametrize("device", DEVICES)
def test_a_vector_as_long_as_eps_has_the_gradient_of_clamp_min(device: str) -> None:
    for values, eps, weights, want in (
        ([1.0, 0.0], 1.0, [1.0, 2.0], [1.0, 2.0]),
        ([3.0, 4.0], 5.0, [1.0, 2.0], [0.2, 0.4]),
        ([3.0, 4.0], 4.0, [1.0, 2.0], [-0.064, 0.048]),
    ):
        x = vesta.tensor(values, device=device, requires_grad=True)
        y = F.normalize(x, dim=0, eps=eps)
        (y * vesta.tensor(weights, device=device)).sum().backward()
        assert x.grad.tolist() == pytest.approx(want, abs=1e-6), (values, eps)


@pytest.mark.parametrize("device", DEVICES)
def test_a_length_that_overflows_has_a_recorded_gradient_too(device: str) -> None:
    x = vesta.tensor([1e25, 1e25], device=device, requires_grad=True)
    y = F.cosine_similarity(x, vesta.tensor([1.0, 2.0], device=device), dim=0)
    (grad,) = vesta.autograd.grad(y, x, create_graph=True)
    assert grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_behind_a_zero_has_no_part_in_a_gradient_of_products(device: str) -> None:
    x = vesta.tensor([2.0, 0.0, math.nan, 3.0], device=device, requires_grad=True)
    x.cumprod(0)[:2].sum().backward()
    got = x.grad.tolist()
    assert got[0] == 1.0 and math.isnan(got[1]) and got[2:] == [0.0, 0.0]


def test_a_rank_that_requires_grad_is_no_number() -> None:
    x, q = vesta.tensor([3.0, 1.0, 2.0, 5.0]), vesta.tensor(0.3, requires_grad=True)
    vesta.quantile(x, q).backward()
    assert q.grad.item() == pytest.approx(3.0)
    with pytest.raises(RuntimeError, match="without a gradient"):
        F.leaky_relu(x, vesta.tensor(0.1, requires_grad=True))
