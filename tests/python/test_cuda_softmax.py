"""Softmax, log-softmax and cross-entropy on CUDA against the CPU.

Values may differ by ``16 * eps`` of the compute type (float32 for 16-bit floats) relative to the largest of the row,
plus one rounding to the result's type.
"""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

EPS = {vesta.float16: 2.0**-11, vesta.bfloat16: 2.0**-8, vesta.float32: 2.0**-24, vesta.float64: 2.0**-53}
COLUMNS = [1, 3, 10, 128, 130, 1024, 1025, 7001, 13001]  # a row per lane, per warp, per block; one not kept
SHAPES = [((3, n), 1) for n in COLUMNS] + [((4, 5, 6), 0), ((4, 5, 6), 1), ((7,), 0), ((), 0), ((0, 4), 1), ((4, 0), 1)]
# down columns: in packs or one by one, shared by the lanes of a block or not, and few long ones, which become rows
SHAPES += [((2, 21, 8, 34), 1), ((3, 70, 40), 1), ((5, 64, 7), 1), ((2, 300, 2056), 1), ((301, 9), 0), ((2, 0, 5), 1)]


def draw(shape, dtype, seed=0):
    return vesta.tensor(3 * np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def as_numpy(t):
    return t.detach().cpu().to(vesta.float64).numpy()


def close(got, want, dtype, factor=16):
    assert got.is_cuda and got.dtype == want.dtype and got.shape == want.shape
    a, b = as_numpy(got), as_numpy(want)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(np.isfinite(a), finite)
    np.testing.assert_array_equal(a[~finite], b[~finite])
    a, b = a[finite], b[finite]
    size = np.max(np.abs(b), initial=0) + 1
    bound = factor * min(EPS[dtype], 2.0**-24) * size
    if EPS[dtype] > 2.0**-24:
        bound = bound + 2 * EPS[dtype] * np.abs(b)
    assert np.all(np.abs(a - b) <= bound), np.max(np.abs(a - b) / bound)


# Of a million 16-bit results a few lie so close to the middle of two numbers that the devices round them apart, which
# changes their gradients by more than roundings do.
CASES = [(s, d, t) for s, d in SHAPES for t in EPS if EPS[t] <= 2.0**-24 or np.prod(s) < 1_000_000]


@pytest.mark.parametrize(("shape", "dim", "dtype"), CASES, ids=str)
def test_softmax_and_its_gradient(shape, dim, dtype):
    for op in (F.softmax, F.log_softmax):
        results = []
        for device in ("cpu", "cuda"):
            x = draw(shape, dtype).to(device).requires_grad_()
            y = op(x, dim)
            y.backward(draw(shape, dtype, 1).to(device))
            results.append((y, x.grad))
        for want, got in zip(*results):
            close(got, want, dtype, 64)


@pytest.mark.parametrize("layout", ["transposed", "sliced", "shifted", "expanded"])
def test_softmax_of_any_layout(layout):
    change = {
        "transposed": lambda x: x.t(),
        "sliced": lambda x: x[:, ::2],
        "shifted": lambda x: x[:, 1:],
        "expanded": lambda x: x[:1].expand(9, 40),
    }[layout]
    x = draw((9, 40), vesta.float32)
    for dim in (0, 1):
        close(vesta.softmax(change(x.cuda()), dim), vesta.softmax(change(x), dim), vesta.float32)


@pytest.mark.parametrize("n", [5, 100, 300])
def test_columns_do_not_depend_on_the_batch_or_on_packs(n):
    """A column has the bits that it has in an image alone, and where rows consist of no packs."""
    x, g = draw((3, n, 4096), vesta.float32).cuda(), draw((3, n, 4096), vesta.float32, 1).cuda()
    for op in (vesta.softmax, vesta.log_softmax):
        results = []
        for part in ((slice(None), slice(None)), (slice(1, 2), slice(None)), (slice(None), slice(4095))):
            images, columns = part
            t = x[images, :, columns].contiguous().requires_grad_()
            y = op(t, 1)
            y.backward(g[images, :, columns].contiguous())
            results.append((y.detach(), t.grad))
        for whole, alone, cut in zip(*results):
            assert vesta.equal(alone, whole[1:2]) and vesta.equal(cut, whole[..., :4095])
        strided = vesta.stack([x, x], 1)[:, 0]  # an image of it is contiguous, all together are not
        assert vesta.equal(op(strided, 1), results[0][0]) and vesta.equal(op(strided[1:2], 1), results[1][0])


@pytest.mark.parametrize("n", [4, 200, 2000, 13001])
def test_extremes(n):
    rows = np.zeros((6, n))
    rows[0] = -np.inf
    rows[1, 1:] = -np.inf
    rows[2, 2] = np.inf
    rows[3, 0] = np.nan
    rows[4] = 1e30 * np.arange(n) / n
    rows[5, : n // 2] = -np.inf
    x = vesta.tensor(rows).to(vesta.float32)
    for op in (vesta.softmax, vesta.log_softmax):
        close(op(x.cuda(), 1), op(x, 1), vesta.float32)
        columns = x.t().unsqueeze(-1).expand(n, 6, 8).contiguous()
        close(op(columns.cuda(), 0)[..., 0], op(x, 1).t(), vesta.float32)


def test_wrong_softmax():
    with pytest.raises(TypeError, match="softmax: expected a floating-point dtype, got int64"):
        vesta.softmax(vesta.arange(3).cuda(), 0)
    with pytest.raises(IndexError):
        vesta.softmax(vesta.ones(3).cuda(), 1)


OPTIONS = [{}, {"weight": True}, {"label_smoothing": 0.1}, {"weight": True, "label_smoothing": 0.3}]


@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("classes", [1, 5, 300, 1500, 13001])
def test_cross_entropy(classes, options, dtype):
    rows = 6
    target = np.random.default_rng(3).integers(0, classes, rows)
    target[2] = -100
    for reduction in ("none", "mean"):
        results = []
        for device in ("cpu", "cuda"):
            given = dict(options)
            if given.get("weight"):
                given["weight"] = (vesta.arange(classes) % 5 + 1).to(dtype).to(device)
            x = draw((rows, classes), dtype).to(device).requires_grad_()
            loss = F.cross_entropy(x, vesta.tensor(target).to(device), reduction=reduction, **given)
            loss.sum().backward()
            results.append((loss, x.grad))
        for want, got in zip(*results):
            close(got, want, dtype, 128)


def test_cross_entropy_of_images_and_of_nothing():
    x, t = draw((2, 5, 3, 4), vesta.float32), vesta.arange(24).view(2, 3, 4) % 5
    close(F.cross_entropy(x.cuda(), t.cuda()), F.cross_entropy(x, t), vesta.float32)
    none = F.cross_entropy(vesta.ones(0, 3).cuda(), vesta.zeros(0, dtype=vesta.int64).cuda(), reduction="none")
    assert none.shape == (0,)


def test_second_gradient_of_cross_entropy():
    results = []
    for device in ("cpu", "cuda"):
        x = draw((4, 7), vesta.float64).to(device).requires_grad_()
        loss = F.cross_entropy(x, (vesta.arange(4) + 1).to(device), label_smoothing=0.2)
        (g,) = vesta.autograd.grad(loss, x, create_graph=True)
        (g**2).sum().backward()
        results.append(x.grad)
    close(results[1], results[0], vesta.float64, 256)


@pytest.mark.parametrize("wrong", [5, -1, 1 << 40])
def test_a_class_out_of_range_is_raised_when_the_host_waits(wrong):
    x = vesta.ones(3, 5).cuda()
    loss = F.cross_entropy(x, vesta.tensor([0, wrong, 2]).cuda(), reduction="none")
    with pytest.raises(IndexError, match=rf"cross_entropy: Target {wrong} is out of bounds"):
        loss.cpu()
    assert x.sum().item() == 15  # the device stays usable


def test_operands_on_two_devices():
    with pytest.raises(
        RuntimeError, match=r"cross_entropy: expected all tensors on one device, got cuda:0 \(input\) and cpu"
    ):
        F.cross_entropy(vesta.ones(3, 5).cuda(), vesta.zeros(3, dtype=vesta.int64))
