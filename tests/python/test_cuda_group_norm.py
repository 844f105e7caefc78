"""Group normalization on CUDA, by a team for a small group and in three steps, against float64 on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

EPS = {vesta.float16: 2.0**-11, vesta.bfloat16: 2.0**-8, vesta.float32: 2.0**-24, vesta.float64: 2.0**-53}
# groups of one value, of channels alone, of a lane, of a warp and of a block; tiles that are full and that are not
SHAPES = [((2, 3, 1), 3), ((5, 6), 2), ((3, 8, 5), 4), ((2, 12, 4, 4), 3), ((2, 10, 9, 3), 2), ((2, 8, 20, 16), 1)]
SHAPES += [((40, 5, 30), 5), ((2, 4, 3, 2, 4), 2), ((2, 200, 9), 1)]
# in three steps: whole packs and not, groups that share a pack, pieces of a channel, fewer positions than accumulators
SHAPES += [((2, 16, 20, 16), 2), ((2, 12, 19, 15), 2), ((1, 6, 60, 50), 2), ((3, 40, 8, 8), 1), ((2, 140, 16), 2)]


def draw(shape, dtype, seed=0, mean=0.5):
    return vesta.tensor(mean + np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def results(device, shape, groups, dtype, weight_dtype, affine=True, wide=None, change=lambda t: t):
    """Returns y and the gradients by x, weight and bias; ``wide``: the dtype that everything is computed in."""
    x, g = (change(draw(shape, dtype, seed).to(device, wide or dtype)) for seed in (0, 3))
    x = x.detach().requires_grad_()
    w, b = (draw(x.shape[1], weight_dtype, seed).to(device, wide or weight_dtype).requires_grad_() for seed in (1, 2))
    y = F.group_norm(x, groups, w if affine else None, b if affine else None, 1e-5)
    y.backward(g)
    return [y, x.grad] + ([w.grad, b.grad] if affine else [])


def check(shape, groups, dtype, weight_dtype, device="cuda", **options):
    exact = results("cpu", shape, groups, dtype, weight_dtype, wide=vesta.float64, **options)
    for got, want in zip(results(device, shape, groups, dtype, weight_dtype, **options), exact):
        a, b = (t.detach().cpu().double().numpy() for t in (got, want))
        rounding = EPS[got.dtype]
        bound = 64 * min(EPS[dtype], 2.0**-24) * shape[0] * (np.abs(b).max() + 1) + 2 * rounding * np.abs(b)
        assert got.device.type == device and np.all(np.abs(a - b) <= bound), (got.dtype, np.max(np.abs(a - b) / bound))


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize(("shape", "groups"), SHAPES, ids=str)
def test_values_and_gradients(shape, groups, dtype, device):
    if dtype == vesta.float64 and device == "cpu":
        x = draw(shape, dtype).numpy().reshape(shape[0], groups, -1)
        y = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + 1e-5)
        np.testing.assert_allclose(
            F.group_norm(draw(shape, dtype), groups).numpy(), y.reshape(shape), rtol=1e-9, atol=1e-12
        )
        return
    check(shape, groups, dtype, dtype, device)
    check(shape, groups, dtype, dtype, device, affine=False)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_weights_of_another_dtype_and_layouts(device):
    check((3, 8, 5), 2, vesta.bfloat16, vesta.float32, device)
    last = lambda t: t.contiguous(memory_format=vesta.channels_last)
    for change in (last, lambda t: t.transpose(2, 3), lambda t: t[:, 2:], lambda t: t[:, :, 1:], lambda t: last(t)[1:]):
        check((4, 8, 6, 7), 2, vesta.float32, vesta.float32, device, change=change)
        check((2, 18, 20, 17), 2, vesta.bfloat16, vesta.float32, device, change=change)


# the last five in three steps, with whole packs and not
FORMS = [(8, (8, 6)), (6, (5, 3)), (8, (3, 4, 4)), (32, (16, 16)), (16, (21, 20)), (12, (19, 17)), (24, (47, 47))]
FORMS += [(8, (3, 20, 20))]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16], ids=str)
@pytest.mark.parametrize(("channels", "size"), FORMS, ids=str)
def test_equal_bits_in_every_memory_format_and_for_any_batch(channels, size, dtype, device):
    last = vesta.channels_last if len(size) == 2 else vesta.channels_last_3d
    w, b = draw(channels, vesta.float32, 1).to(device), draw(channels, vesta.float32, 2).to(device)
    found = []
    for form in (vesta.contiguous_format, last):
        x = draw((5, channels, *size), dtype).to(device).contiguous(memory_format=form).requires_grad_()
        weight = w.clone().requires_grad_()
        y = F.group_norm(x, 2, weight, b)
        y.backward(x.detach() * 3)
        assert y.is_contiguous(memory_format=form) and x.grad.is_contiguous(memory_format=form)
        found.append((y, x.grad, weight.grad))
        assert vesta.equal(F.group_norm(x[1:3], 2, w, b), y[1:3])
    for a, b in zip(*found):
        assert vesta.equal(a, b)


@pytest.mark.parametrize("positions", [150, 900])
def test_a_large_mean_costs_no_digits(positions):
    x = draw((2, 6, positions), vesta.float32, 5, 4096.0)
    exact = F.group_norm(x.double(), 2).numpy()
    assert np.max(np.abs(F.group_norm(x.cuda(), 2).cpu().numpy() - exact)) < 1e-5
    x[0, 0, 0] = 1e4  # nor does one number far from the others, though it is a channel's first
    exact = F.group_norm(x.double(), 2).numpy()
    assert np.max(np.abs(F.group_norm(x.cuda(), 2).cpu().numpy() - exact) / (1 + np.abs(exact))) < 1e-6


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_no_elements_and_the_native_call(device):
    x, w = vesta.zeros(0, 4, 3, device=device, requires_grad=True), vesta.ones(4, device=device, requires_grad=True)
    F.group_norm(x, 2, w).sum().backward()
    assert x.grad.shape == x.shape and w.grad.tolist() == [0.0] * 4
    vesta.native_group_norm(x, w, None, 0, 4, 3, 2, 1e-5)[2].sum().backward()
    x = draw((2, 6, 5), vesta.float32).to(device)
    y, mean, rstd = vesta.native_group_norm(x, None, None, 2, 6, 5, 3, 1e-5)
    rows = x.cpu().double().reshape(2, 3, 10)
    assert vesta.equal(y, F.group_norm(x, 3)) and mean.shape == rstd.shape == (2, 3)
    np.testing.assert_allclose(mean.cpu().numpy(), rows.mean(2).numpy(), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(rstd.cpu().numpy(), (rows.var(2, correction=0) + 1e-5).rsqrt().numpy(), rtol=1e-6)
    flat = vesta.native_group_norm(x.reshape(12, 5), None, None, 2, 6, 5, 3, 1e-5)[0]
    assert vesta.equal(flat.reshape(2, 6, 5), y)
    for bad in ((3, 6, 5, 3), (2, 6, 5, 4), (2, 6, 5, 0)):
        with pytest.raises(RuntimeError, match="native_group_norm"):
            vesta.native_group_norm(x, None, None, *bad, 1e-5)


def test_second_derivatives():
    found = []
    for device in ("cpu", "cuda"):
        x, g = (draw((2, 4, 3), vesta.float64, seed).to(device).requires_grad_() for seed in (0, 3))
        w, b = (draw(4, vesta.float64, seed).to(device).requires_grad_() for seed in (1, 2))
        call = lambda x, w, b: F.group_norm(x, 2, w, b, 1e-3)
        if device == "cpu":
            assert vesta.autograd.gradcheck(call, (x, w, b)) and vesta.autograd.gradgradcheck(call, (x, w, b))
        first = vesta.autograd.grad(call(x, w, b), (x, w, b), g, create_graph=True)
        second = vesta.autograd.grad(sum((t * t).sum() for t in first), (x, w, g))
        found.append([t.detach().cpu().numpy() for t in (*first, *second)])
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_gradients_of_the_statistics():
    x, w, b = (draw(shape, vesta.float64, seed).requires_grad_() for seed, shape in enumerate([(2, 4, 3), 4, 4]))
    call = lambda x, w, b: vesta.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-3)
    assert vesta.autograd.gradcheck(call, (x, w, b)) and vesta.autograd.gradgradcheck(call, (x, w, b))
    y = x.detach().cuda().requires_grad_()
    for t in (x, y):
        _, mean, rstd = vesta.native_group_norm(t, None, None, 2, 4, 3, 2, 1e-3)
        (mean.sum() + (rstd * 2).sum()).backward()
    np.testing.assert_allclose(y.grad.cpu().numpy(), x.grad.numpy(), rtol=1e-12)


@pytest.mark.parametrize("form", [vesta.contiguous_format, vesta.channels_last], ids=["contiguous", "channels_last"])
@pytest.mark.parametrize(("edge", "forward", "backward"), [(6, 1, 2), (20, 3, 3)])
def test_launches(form, edge, forward, backward):
    from vesta import _C_cuda

    def launches():
        return dict(_C_cuda.counters())["launches"]

    x = draw((4, 16, edge, edge), vesta.float32).cuda().contiguous(memory_format=form)
    w, b = draw(16, vesta.float32, 1).cuda(), draw(16, vesta.float32, 2).cuda()
    before = launches()
    y, mean, rstd = vesta.native_group_norm(x, w, b, 4, 16, edge * edge, 4, 1e-5)
    assert launches() - before == forward
    vesta._C._group_norm_backward(y, x, w, mean, rstd, 4, 16, edge * edge, 4)
    assert launches() - before == forward + backward
