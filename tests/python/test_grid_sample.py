"""grid_sample: values and gradients in every layout, at the edges, and against the op's own body."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F
from op_db_check import DEVICES

MODES = [*itertools.product((0, 1), (0, 1, 2), (False, True))]  # interpolation, padding, align_corners
# images (batch, channels, height, width) and grids: one row or column, more channels than are computed together
SIZES = [((2, 3, 7, 9), (5, 8)), ((1, 70, 6, 5), (3, 50)), ((2, 16, 1, 6), (9, 31)), ((1, 5, 8, 1), (20, 7)),
         ((3, 1, 20, 33), (25, 29)), ((1, 2, 1, 1), (2, 3)), ((1, 129, 4, 4), (2, 2))]  # fmt: skip
EPS = {vesta.float16: 2.0**-10, vesta.bfloat16: 2.0**-7, vesta.float32: 2.0**-22, vesta.float64: 2.0**-50}


def draw(sizes, out, dtype, seed=0, reach=1.3):
    """Random operands; some places lie on elements, on edges, and far outside."""
    rng = np.random.default_rng(seed)
    x, g = rng.standard_normal(sizes), rng.standard_normal((*sizes[:2], *out))
    grid = rng.uniform(-reach, reach, (sizes[0], *out, 2))
    flat = grid.reshape(-1)
    flat[::7] = np.round(flat[::7])
    flat[3::11] *= 9
    return [vesta.tensor(t).to(dtype) for t in (x, grid, g)]


def results(x, grid, g, mode, padding, align, create_graph=False):
    """The values and both gradients."""
    x, grid = x.detach().requires_grad_(), grid.detach().requires_grad_()
    y = vesta.grid_sampler(x, grid, mode, padding, align)
    return y, *vesta.autograd.grad(y, (x, grid), g, create_graph=create_graph)


def as_numpy(t):
    return t.detach().cpu().double().numpy()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("sizes", "out"), SIZES, ids=str)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64], ids=str)
def test_layouts_have_the_same_bits(sizes, out, dtype, device):
    x, grid, g = (t.to(device) for t in draw(sizes, out, dtype))
    last = x.to(memory_format=vesta.channels_last)
    strided = vesta.zeros(*sizes[:3], 2 * sizes[3], dtype=dtype, device=device)[..., ::2].copy_(x)
    turned = grid.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0)
    for mode in MODES:
        want = results(x, grid, g, *mode)
        for other in (last, strided):
            for a, b in zip(results(other, turned, g.to(memory_format=vesta.channels_last), *mode), want):
                assert a.shape == b.shape and vesta.equal(a, b)
        assert want[0].is_contiguous() and results(last, grid, g, *mode)[0].is_contiguous()


@pytest.mark.parametrize("sizes", [(3, 5, 30, 30), (2, 96, 13, 17)], ids=str)
def test_threads_do_not_matter(sizes):
    x, grid, g = draw(sizes, (40, 37), vesta.float32)
    threads = vesta.get_num_threads()
    try:
        for layout in (vesta.contiguous_format, vesta.channels_last):
            found = []
            for n in (1, 3):
                vesta.set_num_threads(n)
                found.append(results(x.to(memory_format=layout), grid, g, 0, 0, False))
            assert all(vesta.equal(a, b) for a, b in zip(*found))
    finally:
        vesta.set_num_threads(threads)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize(("sizes", "out"), SIZES, ids=str)
def test_against_other_ops(sizes, out, dtype, device):
    """A recorded gradient is computed by other ops, in the type of computation."""
    operands = draw(sizes, out, dtype)
    exact = [t.double() for t in operands]
    for mode in MODES:
        got = results(*(t.to(device) for t in operands), *mode)
        want = results(*exact, *mode, create_graph=True)
        wide = results(*(t.to(device) for t in operands), *mode, create_graph=True)
        for a, b, c in zip(got, want, wide):
            assert a.dtype == dtype and a.shape == b.shape
            a, b, c = as_numpy(a), as_numpy(b), as_numpy(c)
            scale = np.abs(b).max() + 1
            # a place on an edge of an element may fall to either side in a narrower type: other ops decide there
            bound = np.abs(c - b) + 64 * EPS[dtype] * scale
            assert (np.abs(a - c) <= bound).all(), mode


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_second_gradients(mode):
    x, grid, _ = draw((1, 2, 4, 5), (3, 2), vesta.float64, reach=0.9)
    grid = grid.clamp(-0.93, 0.93) + 0.013  # away from where the slopes jump
    operands = [t.requires_grad_() for t in (x, grid)]
    call = lambda a, b: vesta.grid_sampler(a, b, *mode)
    assert vesta.autograd.gradcheck(call, operands) and vesta.autograd.gradgradcheck(call, operands)


@pytest.mark.parametrize("device", DEVICES)
def test_one_gradient_of_two(device):
    x, grid, g = (t.to(device) for t in draw((2, 4, 6, 6), (5, 5), vesta.float32))
    _, of_x, of_grid = results(x, grid, g, 0, 1, True)
    a, b = x.detach().requires_grad_(), grid.detach().requires_grad_()
    vesta.grid_sampler(a, grid, 0, 1, True).backward(g)
    vesta.grid_sampler(x, b, 0, 1, True).backward(g)
    assert vesta.equal(a.grad, of_x) and vesta.equal(b.grad, of_grid)


@pytest.mark.differs
@pytest.mark.parametrize("device", DEVICES)
def test_what_is_outside_is_not_read(device):
    """An infinity beside the image's edge reaches no place that lies outside; NaN and infinite places are outside."""
    inf, nan = float("inf"), float("nan")
    x = vesta.full((1, 1, 3, 3), inf)
    x[0, 0, 1, 1] = 2
    grid = vesta.tensor([[[[0.0, 0.0], [3.0, 0.0], [nan, 0.0], [0.0, -inf], [1e30, nan]]]])
    for layout in (vesta.contiguous_format, vesta.channels_last):
        wide = x.expand(1, 5, 3, 3).to(device).contiguous(memory_format=layout)
        y = F.grid_sample(wide, grid.to(device), mode="nearest", align_corners=True).cpu()
        assert y[0, 4, 0].tolist() == [2, 0, 0, 0, 0]
        y = F.grid_sample(wide[:, :, 1:2, 1:2], grid.to(device), align_corners=True).cpu()
        assert y[0, 4, 0].tolist() == [2, 2, 0, 0, 0]  # one element wide: every number is its place
    ends = vesta.arange(6.0).view(1, 1, 2, 3).to(device)
    for padding in ("border", "reflection"):
        y = F.grid_sample(ends, grid.to(device), padding_mode=padding, align_corners=False)
        assert y.isfinite().all() and y[0, 0, 0, 2] == 1.5  # NaN is place 0


@pytest.mark.parametrize("device", DEVICES)
def test_the_slope_on_a_border_is_0(device):
    x = vesta.arange(12.0).view(1, 1, 3, 4).to(device)
    grid = vesta.tensor([[[[-1.0, 0.5], [1.0, 0.5], [0.2, 1.0]]]]).to(device).requires_grad_()
    F.grid_sample(x, grid, padding_mode="border", align_corners=True).sum().backward()
    assert grid.grad[0, 0].cpu().tolist() == [[0, 4], [0, 4], [1.5, 0]]


@pytest.mark.parametrize("device", DEVICES)
def test_many_places_of_one_element(device):
    """Their sum has one order: that of the places."""
    x = vesta.zeros(1, 3, 5, 5, device=device).requires_grad_()
    grid = vesta.full((1, 60, 50, 2), 0.3).to(device)
    g = vesta.tensor(np.random.default_rng(5).standard_normal((1, 3, 60, 50))).float().to(device)
    first, second = (vesta.autograd.grad(F.grid_sample(x, grid, align_corners=True), x, g)[0] for _ in range(2))
    assert vesta.equal(first, second)
    np.testing.assert_allclose(as_numpy(first).sum((2, 3)), as_numpy(g).sum((2, 3)), atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_nothing(device):
    for sizes, out in (((0, 2, 3, 3), (2, 2)), ((1, 0, 3, 3), (2, 2)), ((1, 2, 3, 3), (0, 2))):
        x = vesta.ones(*sizes, device=device).requires_grad_()
        grid = vesta.zeros(sizes[0], *out, 2, device=device).requires_grad_()
        y = F.grid_sample(x, grid, align_corners=False)
        y.sum().backward()
        assert y.shape == (*sizes[:2], *out)
        assert x.grad.shape == x.shape and not x.grad.any() and grid.grad.shape == grid.shape and not grid.grad.any()


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_of_nothing_made_of_other_ops(device):
    """Bicubic and volumes, and the derivative of a gradient."""
    for mode, places in (("bicubic", 2), ("bilinear", 2), ("bilinear", 3)):
        x = vesta.ones(0, 2, *[3] * places, device=device).requires_grad_()
        grid = vesta.zeros(0, *[4] * places, places, device=device).requires_grad_()
        y = F.grid_sample(x, grid, mode=mode, align_corners=False)
        assert y.shape == (0, 2, *[4] * places)
        first = vesta.autograd.grad(y.sum(), (x, grid), create_graph=True)
        (first[0].sum() + first[1].sum()).backward()
        assert x.grad.shape == x.shape and grid.grad.shape == grid.shape


def test_wrong_operands():
    with pytest.raises(RuntimeError, match="same dtype"):
        vesta.grid_sampler(vesta.ones(1, 1, 2, 2), vesta.zeros(1, 1, 1, 2).double(), 0, 0, False)
    with pytest.raises(RuntimeError, match="non-empty spatial dimensions"):
        vesta.grid_sampler(vesta.ones(1, 1, 0, 2), vesta.zeros(1, 1, 1, 2), 0, 0, False)
    with pytest.raises(ValueError, match="expected modes 0 to 2"):
        vesta.grid_sampler(vesta.ones(1, 1, 2, 2), vesta.zeros(1, 1, 1, 2), 3, 0, False)
