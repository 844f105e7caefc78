"""Kernels of the CPU that read memory once: the bits or the accuracy of the plain ways, in every layout."""

from __future__ import annotations

import math

import numpy as np
import pytest
import vesta
from op_db_check import assert_same
from op_db_check import random_tensor as random

F = vesta.nn.functional


def ulps(got: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.max(np.abs(got.astype(np.float64) - wanted) / np.spacing(np.abs(wanted).astype(got.dtype))))


# ---- moments ----


@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((5, 3), 1),
        ((7, 70_001), 1),
        ((200_003,), 0),
        ((3000, 37), 0),
        ((1100, 700), 0),
        ((4, 6, 9, 11), (0, 2, 3)),
        ((4, 6, 50, 40), (0, 2)),
        ((64, 32, 33), (1,)),
    ],
)
@pytest.mark.parametrize("offset", [0.0, 1000.0])
def test_variance_within_ulps_of_float64(shape, dim, offset: float) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32) + np.float32(offset)
    t, true = vesta.tensor(x), x.astype(np.float64)
    dims = dim if isinstance(dim, tuple) else (dim,)
    variance, mean = vesta.var_mean(t, dim)
    assert ulps(variance.numpy(), true.var(dims, ddof=1)) <= 5
    assert ulps(vesta.std(t, dim).numpy(), true.std(dims, ddof=1)) <= 3
    assert np.abs(mean.numpy() - true.mean(dims)).max() <= 2 * np.spacing(np.float32(max(offset, 1.0)))
    norm = np.sqrt((true**2).sum(dims))
    assert ulps(t.norm(2, dim).numpy(), norm) <= 3
    np.testing.assert_allclose(vesta.var(t.double(), dim).numpy(), true.var(dims, ddof=1), rtol=1e-13)


@pytest.mark.parametrize("shape", [(6, 40), (6, 700), (3, 5000), (700, 70), (40, 37)])
@pytest.mark.parametrize("dim", [0, 1])
def test_variance_where_the_first_elements_are_far_from_the_mean(shape, dim) -> None:
    """A ramp, a step and an outlier that comes first: what is summed up around is none of the mean's neighbours."""
    steps = np.arange(shape[dim], dtype=np.float64) / shape[dim]
    noise = np.random.default_rng(1).normal(size=shape)
    along = np.expand_dims(steps, 1 - dim)
    ramp, step, outlier = (
        1000 + 50 * along + noise,
        np.where(along < 0.1, 3.0, 7.0) + noise,
        100.0 * (along == 0) + noise,
    )
    for x, most in ((ramp, 5), (step, 5), (outlier, 8)):
        t = vesta.tensor(x.astype(np.float32))
        true = x.astype(np.float32).astype(np.float64).var(dim, ddof=1)
        assert ulps(vesta.var(t, dim).numpy(), true) <= most
    x[(slice(None), 0) if dim == 0 else 0] = np.inf
    variance = vesta.var(vesta.tensor(x.astype(np.float32)), dim).numpy()
    assert np.isnan(variance[0]) and np.isfinite(variance[1:]).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_moments_of_16_bit_floats_are_those_of_float32(dtype: str) -> None:
    x = random(9, 333, 5, dtype=dtype)
    for dim in (0, 1, 2, (0, 1)):
        assert_same(x.norm(2, dim), x.float().norm(2, dim).to(x.dtype))
        variance, mean = vesta.var_mean(x, dim)
        wide_variance, wide_mean = vesta.var_mean(x.float(), dim)
        assert_same(variance, wide_variance.to(x.dtype))
        assert_same(mean, wide_mean.to(x.dtype))


@pytest.mark.parametrize("shape", [(3, 70_001), (2000, 41), (6, 5, 31, 17)])
def test_moments_do_not_depend_on_threads_nor_on_the_batch(shape) -> None:
    x = random(*shape)
    dims = tuple(range(1, len(shape)))
    before = vesta.get_num_threads()
    results = []
    for threads in (1, 2, 3):
        vesta.set_num_threads(threads)
        results.append([*vesta.var_mean(x, dims), *vesta.var_mean(x, 0), x.norm(2, 0), vesta.logsumexp(x, -1)])
    vesta.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert_same(a, b)
    for i in range(shape[0]):
        assert_same(vesta.var(x[i : i + 1], dims), results[0][0][i : i + 1])


def test_moments_of_infinities_and_of_nothing() -> None:
    x = vesta.tensor([[1.0, float("inf"), 2.0], [1.0, 2.0, 3.0]])
    variance, mean = vesta.var_mean(x, 1)
    assert np.isnan(variance[0].item()) and variance[1].item() == 1
    assert mean.tolist() == [float("inf"), 2.0]
    assert np.isnan(vesta.var(vesta.ones(3, 0), 1).numpy()).all()
    assert vesta.var(vesta.ones(0, 3), 1).shape == (0,)
    assert np.isnan(vesta.var(vesta.tensor(5.0)).item())
    assert vesta.std(vesta.full((70_000,), 0.1)).item() == 0


@pytest.mark.parametrize("shape, dim", [((2, 5), 0), ((100, 3), 0), ((3, 70), 1), ((5, 70_001), 1), ((2100, 2), 0)])
@pytest.mark.parametrize("scale", [2e38, 3e25, 1e-18, 3e-25, 1e-36])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_moments_that_leave_the_range_of_float32(shape, dim: int, scale: float, dtype: str) -> None:
    """A root in float32 may be of a square that is none: PyTorch adds up in float64."""
    x = np.random.default_rng(0).choice([-1.0, -0.5, 1.0], size=shape) * scale
    first = np.moveaxis(x, dim, 0)
    first[0], first[1] = scale, -scale
    t = vesta.tensor(x).to(getattr(vesta, dtype))
    true = t.double().numpy()
    limit = 2e-6 if dtype == "float32" else 2e-2
    std, square = vesta.std(t, dim), vesta.var(t, dim)
    assert (np.abs(std.double().numpy() / true.std(dim, ddof=1) - 1) < limit).all()
    with np.errstate(over="ignore"):
        want = true.var(dim, ddof=1).astype(np.float32)
    np.testing.assert_allclose(square.float().numpy(), want, rtol=limit, atol=2e-44)


def test_small_moments_leave_those_beside_them_alone() -> None:
    x = random(300, 4)
    plain = vesta.std(x, 0)
    small = x[:, 1].double() * 1e-25
    x[:, 1] *= 1e-25
    x[:, 2] = 7.0
    together = vesta.std(x, 0)
    assert_same(together[::3].clone(), plain[::3].clone())
    assert together[2].item() == 0
    np.testing.assert_allclose(together[1].item(), small.std(0).item(), rtol=1e-6)


def test_gradients_of_a_variance_with_more_corrections_than_elements() -> None:
    """The gradient divides by their difference, as PyTorch's does."""
    for count, correction, want in ((1, 2, [0.0]), (2, 3, [1.0, -1.0]), (3, 5, [1.0, 0.0, -1.0])):
        x = vesta.arange(float(count)).requires_grad_()
        y = vesta.var(x, 0, correction=correction)
        y.backward()
        assert x.grad.tolist() == want and not math.isfinite(y.item())
    x = vesta.arange(2.0).requires_grad_()
    vesta.std(x, 0, correction=3).backward()
    assert x.grad.tolist() == [0.0, 0.0]
    vesta.var(x, 0, correction=2).backward()
    assert x.grad.tolist() == [-math.inf, math.inf]


@pytest.mark.parametrize("top", [0.0, 1e4, -1e6])
@pytest.mark.parametrize("dim", [1, (0, 1)])
def test_the_gradient_of_a_large_logarithm_of_a_sum(top: float, dim) -> None:
    x = (random(4, 50) + top).requires_grad_()
    vesta.logsumexp(x, dim).sum().backward()
    exact = x.detach().double().numpy()
    powers = np.exp(exact - exact.max())
    want = powers / powers.sum(dim, keepdims=True)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-6, atol=1e-9)
    edge = vesta.tensor([0.0, math.inf, 1.0], requires_grad=True)
    vesta.logsumexp(edge, 0).backward()
    np.testing.assert_array_equal(edge.grad.numpy(), [0.0, math.nan, 0.0])


def test_gradients_of_moments() -> None:
    x = vesta.tensor(np.random.default_rng(0).normal(size=(4, 3, 5)), requires_grad=True)
    for f in (
        lambda v: vesta.var(v, (0, 2)),
        lambda v: vesta.std(v, 1, keepdim=True),
        lambda v: vesta.var_mean(v, 0),
        lambda v: vesta.std_mean(v),
        lambda v: v.norm(2, 1),
        lambda v: vesta.logsumexp(v, 1),
        lambda v: vesta.logsumexp(v, (0, 2), keepdim=True),
    ):
        assert vesta.autograd.gradcheck(f, (x,))
        assert vesta.autograd.gradgradcheck(f, (x,))


@pytest.mark.parametrize(("shape", "dim"), [((5, 9000), 1), ((300, 7), 0), ((4, 50, 6), 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_logarithms_of_sums_recorded_or_not(shape, dim: int, dtype: str) -> None:
    x = random(*shape, dtype=dtype)
    plain = vesta.logsumexp(x, dim)
    assert_same(plain, vesta.logsumexp(x.clone().requires_grad_(), dim).detach())
    true = x.double().numpy()
    top = true.max(dim, keepdims=True)
    wanted = (np.log(np.exp(true - top).sum(dim, keepdims=True)) + top).squeeze(dim)
    if dtype == "float32":
        assert ulps(plain.numpy(), wanted) <= 2
    infinite = vesta.full((2, 3), -float("inf"))
    infinite[1, 1] = float("inf")
    assert vesta.logsumexp(infinite, 1).tolist() == [-float("inf"), float("inf")]


# ---- softmax down columns ----


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [
        ((7, 9), 0),
        ((1500, 40), 0),
        ((600, 32), 0),
        ((70, 64), 0),
        ((20000, 35), 0),
        ((3, 33, 70), 1),
        ((2, 5, 9, 11), 1),
    ],
)
def test_softmax_down_columns_is_that_of_rows(shape, dim: int, dtype: str) -> None:
    x, g = random(*shape, dtype=dtype), random(*shape, dtype=dtype, seed=1)
    x.movedim(dim, 0)[2, 0] = -float("inf")
    x.movedim(dim, -1)[(0,) * (x.dim() - 1)] = -float("inf")  # a column of nothing else
    for op in (F.softmax, F.log_softmax):
        leaf, turned = x.clone().requires_grad_(), x.movedim(dim, -1).contiguous().requires_grad_()
        down, along = op(leaf, dim=dim), op(turned, dim=-1)
        down.backward(g)
        along.backward(g.movedim(dim, -1).contiguous())
        assert_same(down, along.movedim(-1, dim), op.__name__)
        assert_same(leaf.grad, turned.grad.movedim(-1, dim), op.__name__ + " gradient")
    assert_same(vesta.logsumexp(x, dim), vesta.logsumexp(x.movedim(dim, -1).contiguous(), -1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("rows", "n"), [(8, 2), (1501, 2), (700, 3), (99, 7), (50, 16), (40, 31), (33, 33), (35, 48), (20, 90)]
)
def test_short_rows_are_those_of_a_row_alone(rows: int, n: int, dtype: str) -> None:
    """Many short rows are transposed to columns; a row by itself is not."""
    x, g = random(rows, n, dtype=dtype), random(rows, n, dtype=dtype, seed=1)
    x[2, 0] = -float("inf")
    x[3] = -float("inf")
    target = (vesta.arange(rows) * 7) % n
    target[5] = -100
    weight = vesta.rand(n) + 0.5

    def results(x, g, target):
        leaf = x.clone().requires_grad_()
        kept = []
        losses = [
            F.cross_entropy(leaf, target, reduction="none"),
            F.cross_entropy(leaf, target, weight.to(x.dtype), reduction="none", label_smoothing=0.1),
        ]
        for y in (F.softmax(leaf, dim=1), F.log_softmax(leaf, dim=1), leaf.logsumexp(1), *losses):
            leaf.grad = None
            y.backward(g if y.dim() == 2 else g[:, 0].to(y.dtype))
            kept += [y.detach(), leaf.grad]
        return kept

    together = results(x, g, target)
    for r in [0, 1, 2, 3, 5, rows - 1]:
        for whole, alone in zip(together, results(x[r : r + 1], g[r : r + 1], target[r : r + 1])):
            assert_same(whole[r : r + 1], alone)


@pytest.mark.parametrize("classes", [2, 3, 40])
def test_cross_entropy_of_images_in_any_layout(classes: int) -> None:
    x, target = random(3, classes, 9, 11), (vesta.arange(3 * 9 * 11) % classes).view(3, 9, 11)
    weight = vesta.rand(classes)
    layouts = [x, x.contiguous(memory_format=vesta.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3)]
    found = []
    for layout in layouts:
        leaf = layout.detach().requires_grad_()
        loss = F.cross_entropy(leaf, target, weight, reduction="none", label_smoothing=0.2)
        loss.backward(vesta.arange(loss.numel()).view(loss.shape).float())
        found.append((loss.detach(), leaf.grad))
    for loss, gradient in found[1:]:
        assert_same(loss, found[0][0])
        assert_same(gradient, found[0][1])


def test_small_probabilities_are_exponentials() -> None:
    """Of numbers far below the maximum, whose sum is 1: with the bits of exp, down to what is no longer a number."""
    x = vesta.linspace(-30, -110, 4096).view(16, 256)
    x[3:5, ::7] = -float("inf")
    x[:, 0] = 0.0
    assert_same(F.softmax(x, 1), vesta.exp(x))
    assert_same(F.softmax(x.t().contiguous(), 0), vesta.exp(x).t().contiguous())


# ---- extrema ----


@pytest.mark.parametrize("n", [1, 100, 2048, 2049, 9000, 70_001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_the_first_of_equal_extrema_wins(n: int, dtype: str) -> None:
    x = vesta.tensor(np.random.default_rng(0).integers(-3, 4, size=(3, n))).to(getattr(vesta, dtype))
    values = x.double().numpy()
    np.testing.assert_array_equal(x.argmax(1).numpy(), values.argmax(1))
    np.testing.assert_array_equal(x.min(1).indices.numpy(), values.argmin(1))
    if x.is_floating_point():
        places = sorted({n // 3, n // 2, n - 1})
        for at in places:
            x[1, at] = float("nan")
        assert x.argmax(1)[1].item() == x.argmin(1)[1].item() == places[0]


# ---- pooling ----

WINDOWS = [
    (2, 2, 0, 1),
    (3, 2, 1, 1),
    (3, 1, 1, 1),
    ((2, 3), (1, 3), (1, 0), 1),
    (3, 2, 1, 2),
    (5, 4, 2, 1),
    (1, 1, 0, 1),
    ((3, 1), (2, 1), (1, 0), 1),
]
PLANES = [(2, 3, 8, 8), (1, 2, 16, 16), (3, 1, 33, 50), (1, 20, 14, 14), (1, 1, 150, 200)]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("shape", PLANES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["rows", "pixels"])
def test_values_of_max_pooling_are_those_with_places(window, shape, dtype: str, layout: str) -> None:
    x = random(*shape, dtype=dtype).round()  # many equal values, zeros of both signs
    if layout == "pixels":
        x = x.to(memory_format=vesta.channels_last)
    kernel, stride, padding, dilation = window
    for ceil_mode in (False, True):
        args = (kernel, stride, padding, dilation, ceil_mode)
        values = F.max_pool2d(x, *args)
        with_places, places = F.max_pool2d(x, *args, return_indices=True)
        assert_same(values, with_places)
        assert values.stride() == with_places.stride()
        inside = places.flatten(2)
        assert_same(with_places.flatten(2), x.contiguous().flatten(2).gather(2, inside))
    x[0, 0, 3, 3] = float("nan")
    assert_same(F.max_pool2d(x, kernel, stride, padding, dilation), F.max_pool2d(x, *args[:4], return_indices=True)[0])


@pytest.mark.parametrize(
    "window", [((2, 2), (2, 2)), ((1, 3), (2, 1)), ((3, 2), (3, 2)), ((2, 2), (3, 2)), ((3, 3), (2, 2))]
)
@pytest.mark.parametrize("size", [(4, 6), (6, 16), (12, 34), (7, 8)])
def test_small_planes_are_pooled_alike_alone_and_together(window, size) -> None:
    """Where no window sees beyond its plane, the rows of all planes are pooled as those of one."""
    x = random(3, 5, *size)
    y = F.max_pool2d(x, *window)
    for n in range(3):
        for c in range(5):
            assert_same(y[n, c], F.max_pool2d(x[n : n + 1, c : c + 1].clone(), *window)[0, 0], f"plane {n}, {c}")
    x[1, 2, 0, 0] = float("nan")
    assert np.isnan(F.max_pool2d(x, *window).numpy()).sum() == 1


def test_values_of_max_pooling_over_volumes_and_lines() -> None:
    x = random(2, 3, 7, 9, 12)
    for args in ((2, 2), (3, 2, 1), (3, 1, 1, 1, True)):
        assert_same(F.max_pool3d(x, *args), F.max_pool3d(x, *args, return_indices=True)[0])
        line = x.flatten(2)
        assert_same(F.max_pool1d(line, *args), F.max_pool1d(line, *args, return_indices=True)[0])
    low = vesta.full((1, 1, 4, 4), -float("inf"))
    assert F.max_pool2d(low, 3, 2, 1).flatten().tolist() == [-float("inf")] * 4


def averages(x: np.ndarray, kernel, stride, padding) -> np.ndarray:
    """The means over windows, padding included, in float64."""
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (2, 3))
    return windows[:, :, :: stride[0], :: stride[1]].mean((-2, -1))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [((2, 2), (2, 2), (0, 0)), ((3, 3), (1, 1), (1, 1)), ((3, 2), (2, 3), (1, 0))]
)
@pytest.mark.parametrize("shape", [*PLANES, (2, 5, 2, 2), (1, 3, 7, 130)])
def test_average_pooling_within_ulps_of_float64(kernel, stride, padding, shape) -> None:
    x = np.abs(np.random.default_rng(0).normal(size=shape)).astype(np.float32) + 1
    if shape[2] + 2 * padding[0] < kernel[0]:
        return
    t, true = vesta.tensor(x), averages(x.astype(np.float64), kernel, stride, padding)
    rows = F.avg_pool2d(t, kernel, stride, padding)
    assert ulps(rows.numpy(), true) <= 4
    pixels = F.avg_pool2d(t.to(memory_format=vesta.channels_last), kernel, stride, padding)
    assert_same(rows, pixels.contiguous(), "channels last")
    for n in range(shape[0]):
        for c in range(shape[1]):
            assert_same(F.avg_pool2d(t[n : n + 1, c : c + 1], kernel, stride, padding)[0, 0], rows[n, c])
    half = t.half()
    assert_same(F.avg_pool2d(half, kernel, stride, padding), F.avg_pool2d(half.float(), kernel, stride, padding).half())


@pytest.mark.parametrize("width", [3, 5, 8, 17, 64])
def test_what_the_padding_leaves_out_of_an_average_adds_nothing(width: int) -> None:
    x = vesta.full((1, 1, 9, width), -0.0)
    x[0, 0, 4, 0] = float("inf")
    x[0, 0, 7, width - 1] = float("nan")
    for kernel, padding in ((3, 1), (5, 2), ((1, 7), (0, 3))):
        if not isinstance(kernel, int) and width < 7:
            continue
        rows = F.avg_pool2d(x, kernel, 1, padding)
        pixels = F.avg_pool2d(x.to(memory_format=vesta.channels_last), kernel, 1, padding)
        assert_same(rows, pixels.contiguous())
        assert vesta.signbit(rows[0, 0, 0]).all()


def test_gradients_over_planes() -> None:
    x = vesta.tensor(np.random.default_rng(0).normal(size=(2, 3, 6, 8)), requires_grad=True)
    for f in (
        lambda v: F.avg_pool2d(v, (3, 2), (2, 1), (1, 0)),
        lambda v: F.adaptive_avg_pool2d(v, (4, 5)),
        lambda v: F.interpolate(v, size=(9, 5), mode="bilinear"),
        lambda v: F.interpolate(v, scale_factor=2, mode="nearest"),
        lambda v: F.avg_pool2d(v.to(memory_format=vesta.channels_last), 2),
    ):
        assert vesta.autograd.gradcheck(f, (x,))
        assert vesta.autograd.gradgradcheck(f, (x,))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("size", [(40, 60), (9, 11), (33, 7), (5, 90)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_planes_are_resampled_alike_alone_and_together(mode: str, size, dtype: str) -> None:
    x = random(3, 5, 20, 30, dtype=dtype)
    x[0, 0, 3, 4] = float("inf")  # stays where it is read

    def run(part):
        leaf = part.clone().requires_grad_()
        y = F.interpolate(leaf, size=size, mode=mode)
        y.backward(vesta.ones_like(y))
        return y.detach(), leaf.grad

    y, gradient = run(x)
    last, last_gradient = run(x.to(memory_format=vesta.channels_last))
    assert_same(y, last.contiguous(), "channels last")
    assert_same(gradient, last_gradient.contiguous(), "gradient, channels last")
    for n in range(3):
        for c in range(5):
            alone, alone_gradient = run(x[n : n + 1, c : c + 1])
            assert_same(y[n, c], alone[0, 0])
            assert_same(gradient[n, c], alone_gradient[0, 0], "gradient")


# ---- running sums ----


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("shape", [(37, 5), (50, 700), (9, 1031), (3, 21, 600)])
def test_running_sums_are_the_same_along_rows_and_columns(dtype: str, shape) -> None:
    x = random(*shape, dtype=dtype)
    for op in (vesta.cumsum, vesta.cumprod):
        down = op(x, -2)
        assert_same(down, op(x.transpose(-1, -2).contiguous(), -1).transpose(-1, -2), op.__name__)


# ---- transpositions ----


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
@pytest.mark.parametrize("shape", [(64, 64), (128, 192), (65, 64), (130, 47), (3, 96, 80)])
def test_transposed_copies(dtype: str, shape) -> None:
    x = random(*shape, dtype=dtype)
    np.testing.assert_array_equal(x.transpose(-1, -2).contiguous().numpy(), np.swapaxes(x.numpy(), -1, -2))


# ---- padding, flags ----


@pytest.mark.parametrize("pads", [(1, 2), (3, 0, 1, 1), (-2, 3, 2, -1, 1, 0), (0, 0, -50, 3), (5, 5, 0, 0, 0, 0, 2, 1)])
@pytest.mark.parametrize("layout", ["rows", "pixels"])
def test_padding_of_large_tensors(pads, layout: str) -> None:
    x = random(3, 5, 50, 70)
    values = x.numpy()
    if layout == "pixels":
        x = x.to(memory_format=vesta.channels_last)
    wanted = np.full([n + a + b for n, (a, b) in zip(values.shape, sides(pads))], 7.0, np.float32)
    source = tuple(slice(max(0, -a), n - max(0, -b)) for n, (a, b) in zip(values.shape, sides(pads)))
    into = tuple(slice(max(0, a), m - max(0, b)) for m, (a, b) in zip(wanted.shape, sides(pads)))
    if values[source].size:
        wanted[into] = values[source]
    np.testing.assert_array_equal(F.pad(x, pads, value=7.0).numpy(), wanted)


def sides(pads) -> list[tuple[int, int]]:
    """The (before, after) of each of 4 dimensions."""
    given = [tuple(pads[i : i + 2]) for i in range(0, len(pads), 2)]
    return [*[(0, 0)] * (4 - len(given)), *given[::-1]]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "float16", "complex64"])
def test_flags_of_long_rows(dtype: str) -> None:
    x = vesta.zeros(3, 10_001).to(getattr(vesta, dtype))
    assert vesta.any(x, 1).tolist() == [False] * 3
    x[1, 10_000] = 1
    x[2] = 1
    assert vesta.any(x, 1).tolist() == [False, True, True]
    assert vesta.all(x, 1).tolist() == [False, False, True]
    x[2, 9_000] = 0
    assert vesta.all(x, 1).tolist() == [False] * 3
    assert vesta.any(x).item() and not vesta.all(x).item()
    if x.is_floating_point():
        x[0, 5] = float("nan")  # is not zero
        assert vesta.any(x, 1)[0].item()


@pytest.mark.parametrize("function", [vesta.var_mean, vesta.std_mean])
def test_the_mean_may_be_written_before_the_gradient_of_the_other(function):
    x = vesta.randn(6, 50).requires_grad_()
    want = vesta.autograd.grad(function(x, 1)[0].sum(), x)[0]
    spread, mean = function(x, 1)
    with vesta.no_grad():
        mean.add_(1)
    assert vesta.equal(vesta.autograd.grad(spread.sum(), x)[0], want)


@pytest.mark.parametrize("padding", [1, 9])
def test_rows_without_terms_come_first(padding: int) -> None:
    # Columns of an image whose first and last lie in the padding: rows of the matrix that read nothing.
    x = vesta.randn(4, 64, 1, 40)
    got = vesta.nn.functional.unfold(x, (1, 3), padding=(0, padding))
    wide = vesta.nn.functional.pad(x, (padding, padding))
    parts = [wide[:, :, 0, k : k + wide.shape[3] - 2] for k in range(3)]
    assert vesta.equal(got, vesta.stack(parts, 2).reshape(got.shape))


@pytest.mark.parametrize("dim", [0, 1])
def test_variances_whose_mean_has_an_infinite_square(dim: int) -> None:
    assert vesta.full((64, 8), 1e200, dtype=vesta.float64).var(dim).tolist() == [0.0] * (8 if dim == 0 else 64)
    steps = vesta.arange(64, dtype=vesta.float64)
    x = 2e160 + (steps * 1e150)[:, None] * vesta.ones(1, 8, dtype=vesta.float64)
    got = (x if dim == 0 else x.T.contiguous()).var(dim)
    assert vesta.allclose(got / 1e300, vesta.full((8,), steps.var().item(), dtype=vesta.float64))


# ---- bags of an embedding ----


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_bags_of_one_size_are_those_of_offsets(mode: str, n: int) -> None:
    """Bags of one size are a dimension; a last bag of another size, or padding that nobody has, makes them ragged."""
    table, rows = random(20, 6), vesta.randint(0, 19, (7, n))
    factors = random(7, n, seed=2) if mode == "sum" else None
    found = []
    for ragged in (False, True):
        leaf = table.clone().requires_grad_()
        shares = None if factors is None else factors.clone().requires_grad_()
        y = F.embedding_bag(rows, leaf, mode=mode, per_sample_weights=shares, padding_idx=19 if ragged else None)
        y.backward(vesta.arange(42).view(7, 6).float())
        found.append((y, leaf.grad, shares.grad if shares is not None else None))
    for one, other in zip(*found):
        if one is not None:
            np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=2e-6, atol=2e-6)
    flat = F.embedding_bag(
        rows.reshape(-1),
        table,
        vesta.arange(7) * n,
        mode=mode,
        per_sample_weights=None if factors is None else factors.reshape(-1),
    )
    assert_same(flat, found[0][0].detach())


# ---- rows with a number each ----


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "uint8", "bool"])
@pytest.mark.parametrize("columns", [5, 17, 48, 64, 200])
def test_rows_with_numbers_are_those_of_whole_operands(columns: int, dtype: str) -> None:
    """Dense rows, numbers for each row and rows that repeat, in 3 dimensions, into dense and other results."""
    kind = getattr(vesta, dtype)
    x = (random(3, 150, columns) * 4).abs().to(kind)
    numbers, row, plane = x[:, :, :1], x[:1, :1], x[:, :1, :1]
    places = vesta.zeros(3, 150, 2 * columns, dtype=kind)[:, :, ::2]
    mask = random(3, 150, 1) > 0
    for a, b in [(x, numbers), (numbers, row), (row, plane), (x[::2], numbers[::2]), (x[:, 1::3], numbers[:, 1::3])]:
        shape = np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
        whole = [t.expand(shape).contiguous() for t in (a, b)]
        assert_same(vesta.maximum(a, b), vesta.maximum(*whole))
        assert_same(a + b, whole[0] + whole[1])
        assert_same(a > b, whole[0] > whole[1])
        if shape == tuple(places.shape):
            vesta.maximum(a, b, out=places)
            assert_same(places.contiguous(), vesta.maximum(*whole))
            chosen = vesta.where(mask.expand(shape).contiguous(), *whole)
            assert_same(vesta.where(mask, a, b), chosen)


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16, vesta.int64, vesta.bool, vesta.complex64])
def test_masked_fill_in_place(dtype: vesta.dtype) -> None:
    """Views, broadcast masks, masks and values of the tensor's own memory; the memory and one version stay."""
    x = vesta.arange(24).reshape(4, 6).to(dtype)
    mask = vesta.tensor([True, False, True, False, False, True])
    for view in (lambda t: t, lambda t: t.t(), lambda t: t[1:3, ::2], lambda t: t[:, :3]):
        place = view(x)
        m = mask[: place.shape[-1]] if place.shape[-1] != 4 else mask[:4]
        for value in (1, vesta.tensor(3.0 if dtype.is_floating_point else 1)):
            place = view(a := x.clone())
            want, pointer, version = place.masked_fill(m, value), a.data_ptr(), a._version
            assert place.masked_fill_(m, value) is place
            assert vesta.equal(place, want) and a.data_ptr() == pointer and a._version == version + 1
    flags = vesta.tensor([True, False, True])
    assert flags.masked_fill_(flags, False).tolist() == [False, False, False]
    y = vesta.tensor([1.0, 2.0, 3.0])
    y[y > 1] = 0
    assert y.masked_fill_(y == 1, y[0] * 5).tolist() == [5.0, 0.0, 0.0]


def test_masked_fill_in_place_of_what_it_must_not_write() -> None:
    leaf = vesta.ones(3, requires_grad=True)
    mask = vesta.tensor([True, False, True])
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.masked_fill_(mask, 0.0)
    with vesta.no_grad():
        leaf.masked_fill_(mask, 0.0)
    assert leaf.tolist() == [0.0, 1.0, 0.0]
    y = leaf * 2
    y.masked_fill_(mask, 5.0)
    y.sum().backward()
    assert y.tolist() == [5.0, 2.0, 5.0] and leaf.grad.tolist() == [0.0, 2.0, 0.0]
    value = vesta.tensor(7.0, requires_grad=True)
    z = vesta.zeros(3)
    z.masked_fill_(mask, value)
    z.sum().backward()
    assert value.grad.item() == 2.0
    with vesta.inference_mode():
        frozen = vesta.zeros(3)
    x = vesta.zeros(4, requires_grad=True)
    y = x * 1
    with vesta.no_grad():
        view = y[:3]
    for refused in (frozen, view):
        with pytest.raises(RuntimeError):
            refused.masked_fill_(mask, 1.0)
        with pytest.raises(RuntimeError):
            refused[mask] = 1.0
    flags = vesta.ones(10**5, dtype=vesta.bool)
    assert flags.masked_fill_(flags[0], False).sum().item() == 0
    saved = (leaf * 2).exp()
    saved.detach().masked_fill_(mask, 0.0)
    with pytest.raises(RuntimeError, match="masked_fill_"):
        saved.sum().backward()
    row = vesta.ones(3)
    for wrong in (vesta.ones(2, 3, dtype=vesta.bool), vesta.ones(2, dtype=vesta.bool), vesta.ones(3)):
        with pytest.raises(RuntimeError):
            row.masked_fill_(wrong, 0.0)
    with pytest.raises(RuntimeError):
        vesta.ones(1).expand(3).masked_fill_(mask, 0.0)
    assert row.tolist() == [1.0, 1.0, 1.0]
