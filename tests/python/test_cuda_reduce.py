"""Reductions on CUDA against the CPU: every dtype and layout, any set of dimensions, gradients, errors.

Extrema, their indices, any, all and sums of integers must be equal. Sums of floats may differ in the order of
additions: by ``8 * eps * sum(|x|)``, with the accumulator's eps, plus the rounding to a 16-bit result.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
import vesta

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

INTEGERS = [vesta.bool, vesta.uint8, vesta.int8, vesta.int16, vesta.int32, vesta.int64]
FLOATS = [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64]
COMPLEX = [vesta.complex64, vesta.complex128]
EPS = {
    vesta.float16: 2.0**-11,
    vesta.bfloat16: 2.0**-8,
    vesta.float32: 2.0**-24,
    vesta.float64: 2.0**-53,
    vesta.complex64: 2.0**-24,
    vesta.complex128: 2.0**-53,
}
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, -1),
    "sliced": lambda x: x[..., 1::2],
    "shifted": lambda x: x[1:, 1:] if x.dim() > 1 else x[1:],
    "expanded": lambda x: x[:1].expand(x.shape),
}


def draw(shape, dtype, seed=0, span=9):
    r = np.random.default_rng(seed)
    whole = r.integers(-span, span, shape)
    if dtype is vesta.bool:
        return vesta.tensor(whole % 3 == 0)
    if dtype is vesta.uint8:
        return vesta.tensor(np.abs(whole)).to(dtype)
    x = vesta.tensor(whole if dtype in INTEGERS else r.standard_normal(shape)).to(dtype)
    if dtype in COMPLEX:
        return x + 1j * vesta.tensor(r.standard_normal(shape)).to(dtype)
    return x


def exact(got, want):
    assert got.device.type == "cuda"
    assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
    np.testing.assert_array_equal(as_numpy(got.cpu()), as_numpy(want))


def as_numpy(t):
    return (t.to(vesta.float32) if t.dtype in (vesta.float16, vesta.bfloat16) else t).numpy()


def close(got, want, size):
    """Compares sums; ``size`` is their magnitude, sum(|x|)."""
    assert got.device.type == "cuda" and got.dtype == want.dtype and got.shape == want.shape
    a, b = as_numpy(got.cpu()), as_numpy(want)
    bound = 8 * min(EPS[got.dtype], 2.0**-24) * size + 1e-300
    if got.dtype in (vesta.float16, vesta.bfloat16):
        bound = bound + 2 * EPS[got.dtype] * np.abs(b)
    assert np.all(np.abs(a - b) <= bound), np.max(np.abs(a - b) / bound)


def sizes_of(x, dim, keepdim):
    kind = vesta.complex128 if x.dtype in COMPLEX else vesta.float64
    return as_numpy(x.to(kind).abs().sum(dim, keepdim))


def subsets(n):
    return [list(c) for k in range(1, n + 1) for c in itertools.combinations(range(n), k)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS + COMPLEX, ids=str)
def test_every_set_of_dimensions(dtype, layout):
    x = LAYOUTS[layout](draw((5, 6, 37), dtype))
    y = LAYOUTS[layout](draw((5, 6, 37), dtype).cuda())
    for dim in [None, *subsets(3)]:
        if dtype in INTEGERS:
            exact(y.sum(dim), x.sum(dim))
        else:
            close(y.sum(dim), x.sum(dim), sizes_of(x, dim, False))
            close(y.mean(dim, True), x.mean(dim, True), sizes_of(x, dim, True))
        exact(y.any(dim), x.any(dim))
        exact(y.all(dim, True), x.all(dim, True))
        if dtype not in COMPLEX:
            exact(y.amax(dim), x.amax(dim))
            exact(y.amin(dim, True), x.amin(dim, True))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS, ids=str)
def test_places(dtype, layout):
    x = LAYOUTS[layout](draw((5, 6, 37), dtype, span=4))
    y = LAYOUTS[layout](draw((5, 6, 37), dtype, span=4).cuda())
    for dim, op in itertools.product((0, 1, -1), ("max", "min")):
        for got, want in zip(getattr(y, op)(dim), getattr(x, op)(dim)):
            exact(got, want)
        if dtype != vesta.bool:
            exact(getattr(y, "arg" + op)(dim, True), getattr(x, "arg" + op)(dim, True))
    if dtype == vesta.bool:
        with pytest.raises(NotImplementedError, match="argmax: does not support bool"):
            y.argmax()
        return
    exact(y.argmax(), x.argmax())
    exact(y.argmin(keepdim=True), x.argmin(keepdim=True))


SHAPES = [
    # (shape, dimension): a row per lane, per warp, per block, in parts; columns, columns in parts
    ((33, 1), 1),
    ((7, 3), 1),
    ((9, 31), 1),
    ((3, 1000), 1),
    ((2, 1025), 1),
    ((2, 9001), 1),
    ((70001,), 0),
    ((3, 70), 0),
    ((65, 3), 0),
    ((200, 67), 0),
    ((1500, 33), 0),
    ((300, 132), 0),
    ((2, 300, 3), 1),
    ((2, 90, 1028), 1),
    ((40, 2, 5), 1),
]


@pytest.mark.parametrize(("shape", "dim"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [vesta.int8, vesta.float16, vesta.float32, vesta.float64, vesta.complex128], ids=str)
def test_every_path(dtype, shape, dim):
    x = draw(shape, dtype, 1)
    y = x.cuda()
    if dtype in INTEGERS:
        exact(y.sum(dim), x.sum(dim))
    else:
        close(y.sum(dim), x.sum(dim), sizes_of(x, dim, False))
        close(y.mean(dim), x.mean(dim), sizes_of(x, dim, False))
    exact((y != 0).all(dim), (x != 0).all(dim))
    if dtype in COMPLEX:
        return
    exact(y.amin(dim), x.amin(dim))
    exact(y.argmax(dim), x.argmax(dim))
    exact(y.min(dim)[1], x.min(dim)[1])


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.float32, vesta.float64], ids=str)
@pytest.mark.parametrize("n", [3, 40, 5000])
def test_nan_and_infinity(dtype, n):
    for at in ({}, {0: "nan"}, {n - 1: "nan"}, {1: "nan", 2: "nan"}, {0: "inf", 2: "-inf"}):
        values = np.full(n, -np.inf) if not at else np.arange(n) % 7.0
        for i, v in at.items():
            values[i] = float(v)
        x = vesta.tensor(values).to(dtype)
        y = x.cuda()
        for op in ("amax", "amin", "argmax", "argmin", "any", "all", "sum"):
            exact(getattr(y, op)(), getattr(x, op)())
    zeros = vesta.tensor([0.0, -0.0]).to(dtype)
    exact(zeros.cuda().any(), zeros.any())
    exact(zeros.cuda().argmin(), zeros.argmin())


@pytest.mark.parametrize("dtype", [vesta.int32, vesta.float16, vesta.float32], ids=str)
def test_result_dtypes(dtype):
    x = draw((4, 50), dtype, 2)
    for to in (vesta.float32, vesta.float64, vesta.bfloat16, vesta.complex64):
        got, want = x.cuda().sum(1, dtype=to), x.sum(1, dtype=to)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(as_numpy(got.cpu()), as_numpy(want), rtol=2.0**-7 if to is vesta.bfloat16 else 1e-5)
    assert x.cuda().sum(dtype=vesta.int32).dtype == vesta.int32


def test_empty_and_zero_dimensional():
    for shape, dim in [((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1), ((), None)]:
        x = vesta.ones(shape)
        for op in ("sum", "mean", "any", "all"):
            exact(getattr(x.cuda(), op)(dim), getattr(x, op)(dim))
    x = vesta.tensor(3.0)
    for got, want in zip(x.cuda().max(0), x.max(0)):
        exact(got, want)
    exact(x.cuda().argmax(), x.argmax())
    exact(vesta.ones(3, 0).cuda().amax(0), vesta.ones(3, 0).amax(0))


def test_many_axes():
    """More than eight kept and eight reduced dimensions are copied first."""
    x = vesta.tensor(np.arange(2.0**17)).reshape([2] * 17)
    exact(x.cuda().sum(list(range(0, 17, 2))), x.sum(list(range(0, 17, 2))))


@pytest.mark.parametrize("keepdim", [False, True])
def test_results_side_by_side_in_another_order(keepdim):
    """A large input is reduced in the order of its memory, and the results are permuted."""
    x = draw((30, 40, 1, 60), vesta.float32, 6)
    for order in ((3, 0, 1, 2), (2, 3, 1, 0)):
        a, b = x.permute(order), x.cuda().permute(order)
        dim = order.index(0)
        exact(b.amax(dim, keepdim), a.amax(dim, keepdim))
        exact(b.argmin(dim, keepdim), a.argmin(dim, keepdim))
        for got, want in zip(b.max(dim, keepdim), a.max(dim, keepdim)):
            exact(got, want)
        close(b.sum(dim, keepdim), a.sum(dim, keepdim), sizes_of(a, dim, keepdim))
        exact(b.amin([0, 1], keepdim), a.amin([0, 1], keepdim))


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.float32, vesta.float64, vesta.complex64], ids=str)
@pytest.mark.parametrize(("shape", "dim"), [((3, 5001), 1), ((1500, 132), 0), ((200, 8), 0), ((1100, 6), 0)], ids=str)
def test_equal_bits_wherever_the_memory_begins(shape, dim, dtype):
    """With packs of 16 bytes or single elements the order of additions is the same."""
    whole = draw(shape, dtype, 3).cuda()
    for width, first in ((shape[1] + 3, 1), (shape[1] + 8, 8), (shape[1] + 4, 0)):
        padded = vesta.zeros(shape[0], width, dtype=dtype).cuda()
        padded[:, first : first + shape[1]] = whole
        assert vesta.equal(padded[:, first : first + shape[1]].sum(dim), whole.sum(dim))


def log_sum_exp(x, dims):
    top = np.max(x, axis=dims, keepdims=True)
    shift = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        return np.squeeze(np.log(np.sum(np.exp(x - shift), axis=dims, keepdims=True)) + shift, axis=dims)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_norms_and_logsumexp_are_sums_in_one_pass(dtype):
    """Rows of one or several pieces, columns, several dimensions, against NumPy in float64; strides give equal bits."""
    cases = [((3,), (0,)), ((70001,), (0,)), ((5, 7), (1,)), ((16, 8193), (1,)), ((3, 1500, 33), (1,)),
             ((3, 1500, 32), (1,)), ((7, 30, 9), (0, 2)), ((2000, 64), (0,)), ((17, 1), (1,))]  # fmt: skip
    eps = EPS[vesta.float32 if dtype in (vesta.float16, vesta.bfloat16) else dtype]
    for shape, dims in cases:
        wide = vesta.tensor(np.random.default_rng(3).standard_normal(shape) * 10).to(dtype)
        x, device = wide.double().numpy(), wide.cuda()
        norm, total = vesta.linalg.vector_norm(device, dim=dims), vesta.logsumexp(device, dims)
        assert norm.dtype == total.dtype == dtype
        for got, want in ((norm, np.sqrt(np.sum(x * x, axis=dims))), (total, log_sum_exp(x, dims))):
            bound = (32 * eps + EPS[dtype]) * (1 + np.abs(want))
            assert np.all(np.abs(got.cpu().double().numpy() - want) <= bound), (shape, dims)
        if len(shape) == 2 and dims == (1,):
            padded = vesta.zeros(shape[0], shape[1] + 3, dtype=dtype).cuda()
            padded[:, 1:-2] = device
            assert vesta.equal(padded[:, 1:-2].norm(dim=1), norm)
            assert vesta.equal(padded[:, 1:-2].logsumexp(1), total)


@pytest.mark.parametrize("n", [65, 9000, 20000])
def test_variances_do_not_depend_on_the_batch_or_on_strides(n):
    x = draw((70, 2, n), vesta.float32).cuda()[:, 0] / 7
    for dense in (x.contiguous(), x):
        whole = dense.var(1), dense.std(1), *vesta.var_mean(dense, 1)
        alone = dense[3:4].var(1), dense[3:4].std(1), *vesta.var_mean(dense[3:4], 1)
        for a, b, c in zip(whole, alone, (x.var(1), x.std(1), *vesta.var_mean(x, 1))):
            assert vesta.equal(a[3:4], b) and vesta.equal(a, c)


def test_logsumexp_of_infinities():
    inf, nan = float("inf"), float("nan")
    rows = [[inf, 1, 2], [-inf, -inf, -inf], [-inf, inf, 3], [nan, inf, 1], [-3e38, 3e38, 1e38], [-3e38, -3e38, -2e38]]
    for repeats in (1, 7, 12000):
        x = vesta.tensor(rows).repeat(1, repeats)
        for t, dim in ((x, 1), (x.t().contiguous(), 0)):
            want, got = t.logsumexp(dim).numpy(), t.cuda().logsumexp(dim).cpu().numpy()
            np.testing.assert_allclose(got, want, rtol=1e-6)
    assert vesta.zeros(0, 3).cuda().logsumexp(0).cpu().tolist() == [-inf] * 3
    assert vesta.zeros(0, 3).cuda().logsumexp(1).shape == (0,)


def test_gradients_of_norms_and_logsumexp():
    for f in (lambda t: t.logsumexp((0, 2)), lambda t: t.logsumexp(1), lambda t: t.norm(dim=1), lambda t: t.norm()):
        grads = []
        for device in ("cpu", "cuda"):
            x = draw((4, 5, 6), vesta.float64, 4).to(device).requires_grad_()
            f(x).square().sum().backward()
            grads.append(x.grad.cpu().numpy())
        np.testing.assert_allclose(grads[1], grads[0], rtol=1e-12, atol=1e-14)


DIGEST = """
import hashlib, numpy as np, vesta, vesta.nn.functional as F
bits = hashlib.sha256()
def put(*tensors):
    for t in tensors:
        bits.update(t.detach().cpu().numpy().tobytes())
for shape in ((3, 50), (2, 1200), (3, 9001), (70, 40), (1500, 3), (300, 132)):
    x = vesta.tensor(np.random.default_rng(1).standard_normal(shape)).float().cuda().requires_grad_()
    for dim in (0, 1, None):
        put(x.sum(dim), x.mean(dim), x.amax(dim), x.argmin(dim), (x > 2).any(dim), x.norm(dim=dim))
        put(x.logsumexp((0, 1) if dim is None else dim))
    t = (vesta.arange(shape[0]) % shape[1]).cuda()
    y = F.log_softmax(x, 1), F.softmax(x, 0), F.cross_entropy(x, t, label_smoothing=0.1)
    part = x[:, :50]
    mean, var = vesta.zeros(part.shape[1]).cuda(), vesta.ones(part.shape[1]).cuda()
    z = F.batch_norm(part, mean, var, training=True)
    (sum((v * v).sum() for v in y) + (z**3).sum()).backward()
    put(*y, z, mean, var, x.grad)
print(bits.hexdigest())
"""


@pytest.mark.skipif("VESTA_CUDA_LIBRARY" not in os.environ, reason="needs the emulated device")
def test_equal_bits_in_any_order_of_threads_and_streams():
    """Reductions and row ops give the same bits in any order of execution."""
    orders = [{}, {"ORDER": "descending"}, {"ORDER": "shuffled", "SEED": "3", "SCHEDULE": "random"}]
    digests = set()
    for order in orders:
        variables = {f"VESTA_EMULATION_{k}": v for k, v in order.items()}
        program = [sys.executable, "-c", DIGEST]
        done = subprocess.run(program, env={**os.environ, **variables}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        digests.add(done.stdout)
    assert len(digests) == 1, digests


@pytest.mark.parametrize("op", ["max", "min"])
def test_gradients_go_to_the_place(op):
    grads = []
    for device in ("cpu", "cuda"):
        x = draw((4, 5, 6), vesta.float64, 4).to(device).requires_grad_()
        (getattr(x, op)(1)[0] ** 2).sum().backward()
        grads.append(x.grad)
    exact(grads[1], grads[0])


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin"])
def test_gradients(op):
    for dim, keepdim in ((None, False), (1, False), ([0, 2], True)):
        grads = []
        for device in ("cpu", "cuda"):
            x = draw((4, 5, 6), vesta.float64, 4).to(device).requires_grad_()
            (getattr(x, op)(dim, keepdim) ** 2).sum().backward()
            grads.append(x.grad)
        np.testing.assert_allclose(grads[1].cpu().numpy(), grads[0].numpy(), rtol=1e-13)


def test_errors_are_those_of_the_cpu():
    calls = [
        (vesta.ones(3, 0), lambda x: x.amax(1)),
        (vesta.ones(0), lambda x: x.argmax()),
        (vesta.ones(0, 2), lambda x: x.max(0)),
        (vesta.ones(3), lambda x: x.sum(1)),
        (vesta.ones(3, 3), lambda x: x.sum((0, 0))),
        (vesta.ones(3, dtype=vesta.complex64), lambda x: x.amin()),
        (vesta.ones(3, dtype=vesta.int64), lambda x: x.mean()),
    ]
    for x, call in calls:
        with pytest.raises((IndexError, RuntimeError, TypeError, ValueError)) as cpu:
            call(x)
        with pytest.raises(type(cpu.value)) as cuda:
            call(x.cuda())
        assert str(cuda.value) == str(cpu.value)


SCANS = [
    ((7,), 0),
    ((3, 40), 1),
    ((40, 3), 0),
    ((5, 100), -1),
    ((40, 4100), 0),
    ((9000,), 0),
    ((2, 8200, 3), 1),
    ((3, 16400), 1),
    ((), 0),
]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX], ids=str)
@pytest.mark.parametrize(("shape", "dim"), SCANS, ids=str)
def test_running_sums(shape, dim, dtype):
    """A thread per line, a block per line, and lines in parts: exact for integers, else close to the CPU's values."""
    x = draw(shape, dtype)
    want, got = x.cumsum(dim), x.cuda().cumsum(dim)
    if dtype in INTEGERS:
        return exact(got, want)
    assert got.device.type == "cuda" and got.dtype == want.dtype and got.shape == want.shape
    size = np.cumsum(np.abs(as_numpy(x)), axis=dim) if x.dim() else np.abs(as_numpy(x))
    bound = 64 * min(EPS[dtype], 2.0**-24) * size + 2 * EPS[dtype] * np.abs(as_numpy(want))
    assert (np.abs(as_numpy(got.cpu()) - as_numpy(want)) <= bound).all()


def test_running_sums_do_not_depend_on_the_layout():
    x = draw((2, 8200), vesta.float32).cuda()
    assert vesta.equal(x.cumsum(1), x.mT.contiguous().cumsum(0).mT)
    assert vesta.equal(x[:, :4999].cumsum(1), x.cumsum(1)[:, :4999])  # loaded one by one, or four at a time


def test_running_sums_keep_infinities_where_they_are():
    x = vesta.ones(600)
    x[300] = float("inf")
    got = x.cuda().cumsum(0).cpu()
    assert got[:300].isfinite().all() and (got[300:] == float("inf")).all()
    mixed = vesta.ones(300, 300).cuda().cumsum(0, dtype=vesta.float64)
    assert mixed.dtype == vesta.float64 and (mixed[-1] == 300).all()


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16])
def test_variances_of_long_rows_are_joined(dtype: vesta.dtype) -> None:
    """Rows beyond a block are read once, in pieces, and their moments joined."""
    from vesta import _C_cuda

    for shape, dims in (((16385,), 0), ((3, 40000), 1), ((3, 5, 20001), (1, 2)), ((130, 150), None), ((2, 16384), 1)):
        x = (draw(shape, vesta.float64) / 7 + 1000 * (dtype != vesta.bfloat16)).to(dtype)
        wide = x.double()
        for got, want in zip(vesta.var_mean(x.cuda(), dims), vesta.var_mean(wide, dims)):
            limit = {vesta.float64: 1e-12, vesta.float32: 1e-5}.get(dtype, 1e-2)
            assert got.dtype == dtype and vesta.allclose(got.cpu().double(), want, rtol=limit, atol=limit), (
                shape,
                dims,
            )
    x = vesta.ones(2, 32768).cuda()
    before = dict(_C_cuda.counters())["launches"]
    x.var()
    assert dict(_C_cuda.counters())["launches"] - before <= 4
    x[1, 20000] = float("inf")
    assert vesta.var_mean(x, 1)[1].tolist()[1] == float("inf") and x.var(1).isnan().tolist() == [False, True]
    x[1, 20000] = float("nan")
    assert x.var(1).isnan().tolist() == x.mean(1).isnan().tolist() == [False, True]
    x[1, 20000] = 1e30
    assert x.var(1)[1].item() == float("inf") and x.var(1)[0].isfinite()
    x = vesta.full((16385,), 1e35)
    x[3] = 2e35
    assert x.cuda().var(0).item() == float("inf")
    x = 1000 + (vesta.arange(16385 * 3) % 2).view(3, -1) * 2.0**-14  # the means of pieces differ by less than a digit
    assert vesta.allclose(x.cuda().var(1).cpu(), x.double().var(1).float(), rtol=1e-5, atol=0)


def test_variance_beyond_the_range_of_float32_is_infinite() -> None:
    x = vesta.tensor([[1e38, 2e38, 3e38] * 2, [1.0, 2.0, 3.0] * 2]).cuda()
    assert x.var(1).tolist() == [float("inf"), pytest.approx(0.8)]
