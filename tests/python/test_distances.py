"""Distances between points: every norm against float64, equal bits whatever lies around, slopes at 0, derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F
from op_db_check import DEVICES
from vesta.autograd import gradcheck, gradgradcheck

INF = float("inf")
NORMS = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, INF]
EXACT = "donot_use_mm_for_euclid_dist"


def exact(x, y, p):
    d = np.abs(x.astype(np.float64)[..., :, None, :] - y.astype(np.float64)[..., None, :, :])
    if p == 0:
        return (d != 0).sum(-1).astype(np.float64)
    return d.max(-1) if p == INF else (d**p).sum(-1) ** (1 / p)


def slopes(x, y, p):
    """The derivative of the distance of x[i] and y[j] by x[i, m], 0 where the distance is 0."""
    d = x.astype(np.float64)[:, None] - y.astype(np.float64)[None]
    size = exact(x, y, p)[..., None]
    if p == 0:
        return 0 * d
    if p == INF:
        return np.where(np.abs(d) == size, np.sign(d), 0)
    with np.errstate(all="ignore"):
        return np.where((size == 0) | (d == 0), 0, np.sign(d) * (np.abs(d) / size) ** (p - 1))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", NORMS)
def test_values_and_gradients(p, device):
    rng = np.random.default_rng(3)
    for dtype, rel in (("float32", 3e-6), ("float64", 1e-13)):
        for n, m, columns in ((5, 9, 3), (70, 40, 1), (4, 33, 150), (33, 4, 65), (67, 70, 300), (1, 20, 7)):
            x, y = (rng.standard_normal((k, columns)).astype(dtype) for k in (n, m))
            x[-1, 0] = y[0, 0]
            a, b = (vesta.tensor(t).to(device).requires_grad_() for t in (x, y))
            d = vesta.cdist(a, b, p=p, compute_mode=EXACT)
            want, g = exact(x, y, p), rng.standard_normal((n, m)).astype(dtype)
            assert np.abs(d.detach().cpu().numpy() - want).max() <= rel * max(1, want.max()), (n, m, columns)
            d.backward(vesta.tensor(g).to(device))
            by_x = slopes(x, y, p) * g[..., None]
            for got, summed in ((a.grad, by_x.sum(1)), (b.grad, -by_x.sum(0))):
                scale = max(1, np.abs(by_x).sum(1).max(), np.abs(by_x).sum(0).max())
                assert np.abs(got.cpu().numpy() - summed).max() <= rel * scale, (n, m, columns)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", NORMS)
def test_all_pairs(p, device):
    rng = np.random.default_rng(4)
    for n, columns in ((2, 3), (19, 2), (50, 130), (1, 4), (0, 4), (6, 0)):
        x = rng.standard_normal((n, columns)).astype(np.float32)
        x[n // 2 :][:1] = x[:1]  # a distance of 0
        a = vesta.tensor(x).to(device).requires_grad_()
        d = F.pdist(a, p)
        upper = np.triu_indices(n, 1)
        assert d.shape == (len(upper[0]),)
        want = exact(x, x, p)[upper] if columns else np.zeros(len(upper[0]))
        assert np.abs(d.detach().cpu().numpy() - want).max(initial=0) <= 3e-6 * max(1, want.max(initial=0))
        g = rng.standard_normal(len(want)).astype(np.float32)
        d.backward(vesta.tensor(g).to(device))
        square = np.zeros((n, n))
        square[upper] = g
        by_x = slopes(x, x, p) * (square + square.T)[..., None] if columns else np.zeros((n, n, 0))
        assert np.abs(a.grad.cpu().numpy() - by_x.sum(1)).max(initial=0) <= 3e-6 * max(
            1, np.abs(by_x).sum(1).max(initial=0)
        )


@pytest.mark.parametrize("p", NORMS)
def test_bits_depend_on_the_two_points_alone(p):
    rng = np.random.default_rng(5)
    x, y = (vesta.tensor(rng.standard_normal((k, 100)).astype(np.float32)) for k in (40, 30))
    whole = vesta.cdist(x, y, p=p, compute_mode=EXACT)
    assert vesta.equal(vesta.cdist(x[7:20], y[3:], p=p, compute_mode=EXACT), whole[7:20, 3:])
    assert vesta.equal(vesta.cdist(y, x, p=p, compute_mode=EXACT), whole.T)
    strided = vesta.cdist(x.T.contiguous().T, y.repeat(1, 2)[:, :100], p=p, compute_mode=EXACT)
    assert vesta.equal(strided, whole)
    batched = vesta.cdist(x.expand(2, 1, 40, 100), y.view(1, 1, 30, 100).expand(2, 3, 30, 100), p=p, compute_mode=EXACT)
    assert batched.shape == (2, 3, 40, 30) and all(vesta.equal(one, whole) for one in batched.view(6, 40, 30))
    upper = vesta.triu_indices(40, 40, 1)
    assert vesta.equal(F.pdist(x, p), vesta.cdist(x, x, p=p, compute_mode=EXACT)[upper[0], upper[1]])


def test_threads_do_not_change_a_bit():
    x, y = vesta.randn(150, 300), vesta.randn(90, 300)
    threads = vesta.get_num_threads()
    try:
        seen = []
        for count in (1, 3):
            vesta.set_num_threads(count)
            a, b = x.clone().requires_grad_(), y.clone().requires_grad_()
            r = vesta.cdist(a, b, p=1).sum() + F.pdist(a, 3).sum()
            r.backward()
            seen.append((r.detach(), a.grad, b.grad))
    finally:
        vesta.set_num_threads(threads)
    assert all(vesta.equal(one, other) for one, other in zip(*seen, strict=True))


@pytest.mark.parametrize("p", [1.0, 1.7, 2.0, 3.0, INF])
def test_derivatives_of_both_orders(p):
    vesta.manual_seed(0)
    x, y = (vesta.randn(n, 3, dtype=vesta.float64, requires_grad=True) for n in (6, 5))
    z = vesta.randn(2, 6, 3, dtype=vesta.float64, requires_grad=True)
    for f, operands in (
        (lambda a, b: vesta.cdist(a, b, p=p), (x, y)),
        (lambda a, b: vesta.cdist(a, b, p=p), (z, y)),
        (lambda a: vesta.cdist(a[:, :2], a[:, 2:], p=p), (z,)),
        (lambda a: F.pdist(a, p), (x,)),
    ):
        assert gradcheck(f, operands)
        assert gradgradcheck(f, operands)


def test_maxima_that_are_equal_take_the_whole_gradient_each():
    x = vesta.tensor([[1.0, -1.0, 0.5], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 3.0, 0.0]], requires_grad=True)
    vesta.cdist(x, vesta.zeros(1, 3), p=INF).sum().backward()
    assert x.grad.tolist() == [[1, -1, 0], [0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_half_floats_mixed_dtypes_and_nan():
    x, y = vesta.randn(30, 9), vesta.randn(20, 9)
    half = vesta.cdist(x.half(), y.half(), p=1)
    assert half.dtype == vesta.float16
    assert vesta.equal(half, vesta.cdist(x.half().float(), y.half().float(), p=1).half())
    assert vesta.cdist(x, y.double(), p=1).dtype == vesta.float64
    x[3, 4] = float("nan")
    for p in (0.5, 1.0, 2.0, 3.0, INF):
        d = vesta.cdist(x, y, p=p, compute_mode=EXACT)
        assert d.isnan().sum() == 20 and d[3].isnan().all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16], ids=str)
def test_gradients_of_maxima_of_halves(dtype, device):
    """The coordinate that is farthest takes the gradient, though the distance itself was rounded."""
    vesta.manual_seed(2)
    x = vesta.randn(7, 5).to(dtype).to(device).requires_grad_()
    y = vesta.randn(1, 5).to(dtype).to(device)
    vesta.cdist(x, y, p=INF).sum().backward()
    assert vesta.equal(x.grad.cpu().abs().sum(1).float(), vesta.ones(7))
    x.grad = None
    F.pdist(x, INF)[0].backward()  # of the first two points
    assert vesta.equal(x.grad.cpu().abs().sum(1).float(), vesta.tensor([1.0, 1, 0, 0, 0, 0, 0]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("points", [1, 3, 40])
def test_number_of_points_does_not_change_what_ties_and_nan_do(points, device):
    x = vesta.tensor([[1.0, -1.0, 0.5]] * points).to(device).requires_grad_()
    zero = vesta.zeros(1, 3, device=device)
    vesta.cdist(x, zero, p=INF).sum().backward()
    assert x.grad.tolist() == [[1, -1, 0]] * points
    lost = vesta.tensor([[1.0, float("nan"), 0.5]] * points).to(device).requires_grad_()
    assert vesta.cdist(lost, zero, p=0).isnan().all() and F.pdist(lost, 0).isnan().all()
    vesta.cdist(lost, zero, p=INF).sum().backward()
    assert lost.grad.isnan().any(1).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_single_point_has_no_gradient(device):
    for p in NORMS:
        x = vesta.tensor([[1.0, INF, float("nan")]]).to(device).requires_grad_()
        F.pdist(x, p).sum().backward()
        assert x.grad.tolist() == [[0, 0, 0]]


@pytest.mark.parametrize("device", DEVICES)
def test_shapes_that_do_not_fit_are_refused(device):
    x, other = vesta.randn(5, 4, device=device), vesta.randn(5, 7, device=device)
    distances, gradient = vesta._C._distances, vesta._C._distances_backward
    few = vesta.randn(2, device=device)
    for call in (
        lambda: distances(x, other, 2.0),
        lambda: distances(x[0], x[0], 2.0),
        lambda: distances(x.view(1, 5, 4), None, 2.0),
        lambda: distances(x, x, -1.0),
        lambda: gradient(few, x, None, 2.0, few),
        lambda: gradient(vesta.ones(5, 5, device=device), x, x, 2.0, few),
    ):
        with pytest.raises(ValueError, match="_distances"):
            call()
