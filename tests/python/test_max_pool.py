"""Max pooling with several NaNs in a window: the last one wins, in every path, as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F
from op_db_check import DEVICES

DTYPES = [vesta.float32, vesta.float64, vesta.bfloat16]
SPATIAL = {1: (37,), 2: (9, 21), 3: (4, 5, 17)}


def windows_of(sizes, kernel, stride):
    """The places of each window in a flattened plane, in order: [windows, taps]."""
    places = np.arange(int(np.prod(sizes))).reshape(sizes)
    found = np.lib.stride_tricks.sliding_window_view(places, (kernel,) * len(sizes))
    found = found[tuple(slice(None, None, stride) for _ in sizes)]
    return found.reshape(-1, kernel ** len(sizes))


def choice(values):
    """The tap that a window takes: the last NaN, else the first of the largest."""
    nans = np.flatnonzero(np.isnan(values))
    return nans[-1] if len(nans) else int(values.argmax())


def data(dims, dtype):
    rng = np.random.default_rng(dims)
    x = rng.integers(0, 6, (2, 5, *SPATIAL[dims])).astype(np.float32)
    x[rng.random(x.shape) < 0.25] = np.nan
    return x, vesta.tensor(x).to(dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kernel, stride", [(2, 2), (3, 1), (3, 2)])
@pytest.mark.parametrize("dims, last", [(1, False), (2, False), (2, True), (3, False), (3, True)])
def test_the_last_nan_of_a_window_wins(dims, kernel, stride, last, dtype, device):
    x, t = data(dims, dtype)
    t = t.to(device)
    if last:
        t = t.contiguous(memory_format=vesta.channels_last if dims == 2 else vesta.channels_last_3d)
    t.requires_grad_()
    y, places = getattr(F, f"max_pool{dims}d")(t, kernel, stride, return_indices=True)
    windows = windows_of(SPATIAL[dims], kernel, stride)
    want = [[[w[choice(plane[w])] for w in windows] for plane in image] for image in x.reshape(2, 5, -1)]
    assert places.flatten(2).tolist() == want
    counts = np.zeros((2, 5, x[0, 0].size))
    for n in range(2):
        for c in range(5):
            np.add.at(counts[n, c], want[n][c], 1)
    y.sum().backward()
    assert t.grad.flatten(2).tolist() == counts.tolist()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive_and_random_windows(dims, size, device):
    x, t = data(dims, vesta.float32)
    t = t.to(device)
    _, places = getattr(F, f"adaptive_max_pool{dims}d")(t, size, return_indices=True)
    grid = np.arange(x[0, 0].size).reshape(SPATIAL[dims])
    edges = [[(o * n // size, -(-(o + 1) * n // size)) for o in range(size)] for n in SPATIAL[dims]]
    for output in np.ndindex(*(size,) * dims):
        window = grid[tuple(slice(*edges[d][o]) for d, o in enumerate(output))].ravel()
        for n, c in np.ndindex(2, 5):
            assert places[(n, c, *output)].item() == window[choice(x[n, c].ravel()[window])]


def test_numbers_of_fractional_windows_are_checked() -> None:
    x, numbers = vesta.arange(100.0).reshape(4, 5, 5), vesta.rand(2, 4, 2)
    taken = F.fractional_max_pool2d(x, 2, output_ratio=0.5, _random_samples=numbers)  # more than one image needs
    assert vesta.equal(taken, F.fractional_max_pool2d(x, 2, output_ratio=0.5, _random_samples=numbers[:1]))
    for wrong in (numbers[:, :3], numbers[:, :, :1], numbers[0], numbers[:0]):
        with pytest.raises(RuntimeError, match=r"expected \[at least 1, 4, 2\] numbers, got .* \(_random_samples\)\.$"):
            F.fractional_max_pool2d(x, 2, output_ratio=0.5, _random_samples=wrong)


def test_fractional_windows():
    x = vesta.tensor([[1.0, float("nan"), float("nan"), 0.0], [5.0, 5.0, 4.0, 4.0]]).reshape(1, 2, 1, 4)
    samples = vesta.zeros(1, 2, 2)
    y, places = F.fractional_max_pool2d(x, (1, 4), output_size=1, return_indices=True, _random_samples=samples)
    assert places.flatten().tolist() == [2, 0] and y[0, 1].item() == 5


# dims, kernel, stride, padding, dilation, ceil: windows apart, side by side and one over the other
GRADIENTS = [(1, 2, 3, 0, 1, False), (1, 5, 2, 2, 1, True), (2, 2, 2, 0, 1, True), (2, 3, 2, 1, 1, False),
             (2, 3, 1, 1, 1, False), (2, (3, 2), (1, 2), (1, 0), 1, False), (2, 2, 1, 1, 2, False),
             (2, 3, 2, 0, 3, True), (2, 6, 1, 3, 1, False), (3, 2, 2, 1, 1, True), (3, 3, 2, 1, 1, False)]  # fmt: skip


def sums_at(shape, places, values):
    """Sums of each row's values at their places."""
    sums = np.zeros(shape, np.float32)
    for plane, to, v in zip(sums, places, values):
        np.add.at(plane, to, v)
    return sums


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("channels", [3, 16])  # 16: in packs, with channels last
@pytest.mark.parametrize("case, last", [(c, last) for c in GRADIENTS for last in (False, True) if c[0] > 1 or not last])
def test_values_places_and_gradients_of_overlapping_windows(case, last, channels, dtype, device):
    dims, kernel, stride, padding, dilation, ceil = case
    rng = np.random.default_rng(7)
    sizes = {1: (23,), 2: (11, 14), 3: (6, 7, 9)}[dims]
    x = rng.integers(-9, 9, (2, channels, *sizes)).astype(np.float32)  # equal elements, and sums that are exact
    t = vesta.tensor(x).to(dtype).to(device)
    if last:
        t = t.contiguous(memory_format=vesta.channels_last if dims == 2 else vesta.channels_last_3d)
    t.requires_grad_()
    pool = getattr(F, f"max_pool{dims}d")
    y, places = pool(t, kernel, stride, padding, dilation, ceil, return_indices=True)
    grad = rng.integers(-4, 4, tuple(y.shape)).astype(np.float32)
    y.backward(vesta.tensor(grad).to(dtype).to(device).contiguous())
    flat, at = x.reshape(2 * channels, -1), places.cpu().numpy().reshape(2 * channels, -1)
    np.testing.assert_array_equal(y.detach().float().cpu().numpy().reshape(at.shape), np.take_along_axis(flat, at, 1))
    want = sums_at(flat.shape, at, grad.reshape(at.shape))
    np.testing.assert_array_equal(t.grad.float().cpu().numpy().reshape(want.shape), want)
    g = vesta.tensor(grad).to(dtype).to(device)
    anywhere = vesta._C._max_pool_backward(g, places, t.shape)  # without a window
    np.testing.assert_array_equal(anywhere.float().cpu().numpy().reshape(want.shape), want)


@pytest.mark.parametrize("device", DEVICES)
def test_a_window_that_exists_by_ceil_mode_alone(device):
    x = vesta.tensor([[[[1.0], [3.0], [2.0]]]]).to(device).requires_grad_()
    y = F.max_pool2d(x, 2, 2, 0, 1, True)
    y.sum().backward()
    assert y.flatten().tolist() == [3, 2] and x.grad.flatten().tolist() == [0, 1, 1]


@pytest.mark.parametrize("size", [(4, 8), (4, 14), (16, 16), (5, 7), (6, 30)], ids=str)
def test_values_alone_of_small_planes_are_those_with_places(size):
    """Rows of fewer results than a vector has are stored over each other's surplus; no number beyond is touched."""
    rng = np.random.default_rng(0)
    x = rng.integers(-3, 3, (9, 5, *size)) * np.where(rng.random(size) < 0.5, 1.0, -1.0)  # zeros of both signs
    for dtype in (vesta.float32, vesta.float64):
        t = vesta.tensor(x).to(dtype)
        for stride in ((2, 2), (2, 1)):
            want = F.max_pool2d(t, 2, stride, return_indices=True)[0].numpy()
            assert F.max_pool2d(t, 2, stride).numpy().tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64], ids=str)
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 32, 32), {"kernel_size": 8}),
        ((2, 3, 37, 41), {"kernel_size": (6, 5), "stride": 6, "padding": (3, 2)}),
        ((2, 3, 20, 67), {"kernel_size": 7, "stride": 3, "padding": 3, "dilation": 2}),
        ((1, 2, 40, 33), {"kernel_size": (9, 3), "stride": (1, 4), "dilation": (3, 1)}),
        ((2, 2, 24, 5), {"kernel_size": (24, 5)}),
        ((2, 2, 9, 10, 35), {"kernel_size": (4, 5, 6), "stride": 5, "padding": (2, 2, 3), "ceil_mode": True}),
    ],
)
def test_large_windows_take_the_maxima_of_columns(shape, options, dtype) -> None:
    """Of float32 and float64: with the places of float16, whose windows see element by element."""
    rng = np.random.default_rng(1)
    x = rng.integers(-4, 5, shape).astype(np.float32)
    x[rng.random(shape) < 0.003] = np.nan
    x[rng.random(shape) < 0.1] = -np.inf
    x[0, 0] = -np.inf
    pool = getattr(F, f"max_pool{len(shape) - 2}d")
    t = vesta.tensor(x)
    values, places = pool(t.to(dtype), **options, return_indices=True)
    want, want_places = pool(t.half(), **options, return_indices=True)
    assert vesta.equal(places, want_places)
    np.testing.assert_array_equal(values.numpy(), want.to(dtype).numpy())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("last", [False, True])
def test_gradients_of_adaptive_windows_that_differ(last: bool, device) -> None:
    """Windows of 5 and 6 elements, which overlap: a maximum of several takes the sum of their gradients."""
    x = vesta.randn(2, 3, 32, 23, generator=vesta.Generator().manual_seed(0))
    if last:
        x = x.contiguous(memory_format=vesta.channels_last)
    leaf = x.to(device).requires_grad_()
    y, places = F.adaptive_max_pool2d(leaf, (7, 5), return_indices=True)
    g = vesta.arange(y.numel()).view(y.shape).float()
    y.backward(g.to(device))
    want = np.zeros((2, 3, 32, 23))
    for n, c, i, j in np.ndindex(2, 3, 7, 5):
        rows, columns = slice(i * 32 // 7, -(-(i + 1) * 32 // 7)), slice(j * 23 // 5, -(-(j + 1) * 23 // 5))
        window = x.detach()[n, c, rows, columns].numpy()
        a, b = np.unravel_index(window.argmax(), window.shape)
        a, b = a + rows.start, b + columns.start
        assert y[n, c, i, j].item() == window.max() and places[n, c, i, j].item() == a * 23 + b
        want[n, c, a, b] += g[n, c, i, j].item()
    np.testing.assert_array_equal(leaf.grad.cpu().numpy(), want)
    assert y.is_contiguous(memory_format=vesta.channels_last) == last
