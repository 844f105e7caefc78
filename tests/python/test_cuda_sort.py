"""Sorts and running extrema on a CUDA device give the CPU's bits, for lines within a tile and beyond it."""

from __future__ import annotations

import numpy as np
import pytest
import vesta

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

INTEGERS = [vesta.bool, vesta.uint8, vesta.int8, vesta.int16, vesta.int32, vesta.int64]
FLOATS = [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64]
SHAPES = [((), 0), ((0, 3), 0), ((1,), 0), ((2048,), 0), ((3, 700), 1), ((90, 7), 0), ((5, 40, 6), 1), ((2, 0, 3), 1)]
LONG = [((2049,), 0), ((3, 2500), 1), ((4100, 2), 0), ((1, 3000, 2), 1)]
PIECES = [((8193,), 0), ((2, 9000), 1), ((17000, 2), 0)]


def draw(shape, dtype):
    """Few different values, NaN and zeros of both signs among them."""
    values = np.random.default_rng(len(shape)).integers(-40, 40, shape)
    if dtype in INTEGERS:
        return vesta.tensor(np.abs(values)).to(dtype) if dtype is vesta.uint8 else vesta.tensor(values).to(dtype)
    x = np.asarray(values / 4.0)
    x[values == 3], x[values == -3] = np.nan, -0.0
    return vesta.tensor(x).to(dtype)


def same(got, want) -> None:
    for a, b in zip(got, want):
        assert a.device.type == "cuda" and a.dtype == b.dtype and a.shape == b.shape
    assert vesta.equal(got[1].cpu(), want[1])
    a, b = got[0].cpu().to(vesta.float64), want[0].to(vesta.float64)
    assert ((a == b) | (a.isnan() & b.isnan())).all()


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize(("shape", "dim"), [*SHAPES, *LONG], ids=str)
def test_sort(shape, dim, dtype) -> None:
    x = draw(shape, dtype)
    for descending in (False, True):
        same(x.cuda().sort(dim, descending), x.sort(dim, descending))


@pytest.mark.parametrize(
    ("n", "dtype"), [(100_000, vesta.int32), ((1 << 20) + 77, vesta.int16), ((1 << 19) + 77, vesta.int64)]
)
def test_sort_of_many(n, dtype) -> None:
    """Several tiles, of both sizes, of keys that differ in all bits."""
    bits = np.random.default_rng(n).integers(-(1 << 62), 1 << 62, n)
    x = vesta.tensor(bits).to(dtype)
    same(x.cuda().sort(), x.sort())
    if n == 100_000:
        same(x.cuda()[1:].sort(0, True), x[1:].sort(0, True))  # not aligned to 16 bytes


@pytest.mark.parametrize("shift", [0, 8, 24, 40, 56])
def test_sort_of_keys_that_differ_in_few_bits(shift) -> None:
    """Passes over digits that are all equal are skipped: some, none, or all but the first and last."""
    x = vesta.tensor(np.random.default_rng(shift).integers(0, 100, 5000) << shift)
    same(x.cuda().sort(), x.sort())
    same((x + 7).to(vesta.float64).cuda().sort(0, True), (x + 7).to(vesta.float64).sort(0, True))


@pytest.mark.parametrize("dtype", [vesta.int64, vesta.float32], ids=str)
def test_sort_of_strided_tensors(dtype) -> None:
    x = draw((30, 40), dtype)
    there = x.cuda()
    same(there.mT.sort(0), x.mT.sort(0))
    same(there[::2, 1::3].sort(1), x[::2, 1::3].sort(1))
    same(there[:1].expand(5, 40).sort(0), x[:1].expand(5, 40).sort(0))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize(("shape", "dim"), [*SHAPES, *PIECES], ids=str)
def test_running_extrema(shape, dim, dtype) -> None:
    x = draw(shape, dtype)
    same(x.cuda().cummax(dim), x.cummax(dim))
    same(x.cuda().cummin(dim), x.cummin(dim))


def test_gradients() -> None:
    x = vesta.rand(7, 30)
    here, there = x.clone().requires_grad_(), x.cuda().requires_grad_()
    weight = vesta.rand(7, 30)
    for t, w in ((here, weight), (there, weight.cuda())):
        ((t.sort(1).values + t.cummax(0).values) * w).sum().backward()
    assert vesta.equal(there.grad.cpu(), here.grad)


# Lines whose first elements are found without a sort of the rest, one block a line or several, and others.
RANKS = [
    ((3000,), 0),
    ((3, 5000), 1),
    ((4, 300), 1),
    ((3, 5003), 1),
    ((3000, 3), 0),
    ((2, 700, 5), 1),
    ((2, 40000), 1),
    ((70001,), 0),
]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize(("shape", "dim"), RANKS, ids=str)
def test_first_ranks(shape, dim, dtype) -> None:
    x = draw(shape, dtype)
    there = x.cuda()
    for first, count, largest in ((0, 1, True), (0, 40, False), (0, 200, True), (37, 1, False)):
        want = vesta._C._private._places_by_rank(x, first, count, dim, largest)
        assert vesta.equal(vesta._C._private._places_by_rank(there, first, count, dim, largest).cpu(), want)


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("count", [1, 17, 900, 1024, 1025])
def test_topk_of_sorted_lines(rising, count) -> None:
    """The order in which nothing, or every element, is better than those before."""
    x = vesta.arange(9000).to(vesta.float64).reshape(1, -1).repeat(2, 1) * (1 if rising else -1)
    same(x.cuda().topk(count), x.topk(count))


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS], ids=str)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 64, 1000])
def test_searches_are_one_launch(n: int, dtype) -> None:
    lines, values = draw((3, n), dtype).sort(-1)[0], draw((3, 401), dtype)
    for line, value in ((lines, values), (lines[1].contiguous(), values), (lines[1].contiguous(), values[0, 5])):
        for right in (False, True):
            want = vesta.searchsorted(line, value, right=right)
            line_there, value_there = line.cuda(), value.cuda()
            before = dict(vesta._C_cuda.counters())["launches"]
            got = vesta.searchsorted(line_there, value_there, right=right)
            assert dict(vesta._C_cuda.counters())["launches"] - before == 1
            assert got.device.type == "cuda" and got.shape == want.shape and vesta.equal(got.cpu(), want)


def test_searches_for_numbers_and_on_several_devices() -> None:
    line = vesta.tensor([1.0, 2.0, 2.0, 5.0]).cuda()
    for right in (False, True):
        assert vesta.searchsorted(line, 2, right=right).item() == (3 if right else 1)
        assert vesta.bucketize(2.5, line, right=right).item() == 3
    for lines, values in ((line, vesta.ones(3)), (line.cpu(), vesta.ones(3).cuda()), (line, vesta.tensor(1.0))):
        with pytest.raises(RuntimeError, match="device"):
            vesta.searchsorted(lines, values)
