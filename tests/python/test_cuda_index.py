"""Indexing on a CUDA device gives the CPU's bits: every op, dtype and layout, repeated and bad indices, gradients."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import vesta
from vesta import Tensor

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

DTYPES = [
    vesta.bool, vesta.uint8, vesta.int8, vesta.int16, vesta.int32, vesta.int64, vesta.float16, vesta.bfloat16,
    vesta.float32, vesta.float64, vesta.complex64, vesta.complex128,
]  # fmt: skip
SOME = [vesta.bool, vesta.int16, vesta.int64, vesta.float32, vesta.float64, vesta.complex64]


def values(*shape: int, dtype: Any = vesta.float32, seed: int = 0) -> Tensor:
    """Returns small numbers whose sums are rounded in float types."""
    x = vesta.rand(shape, dtype=vesta.float64, generator=vesta.Generator().manual_seed(seed)) * 20 - 10
    return (
        (x.to(vesta.int64) > 0) if dtype == vesta.bool else x.abs().to(dtype) if dtype == vesta.uint8 else x.to(dtype)
    )


def whole(high: int, *shape: int, seed: int = 0) -> Tensor:
    return vesta.randint(0, high, shape, generator=vesta.Generator().manual_seed(seed))


def layouts(x: Tensor) -> dict[str, Tensor]:
    """Returns the same values in several layouts."""
    wide = vesta.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
    wide[..., ::2] = x
    return {"contiguous": x, "transposed": x.mT.contiguous().mT, "sliced": wide[..., ::2]}


def to_cuda(x: Tensor) -> Tensor:
    """Returns a copy on the device with the same strides, including gaps."""
    if x.is_contiguous():
        return x.cuda()
    size = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))
    memory = vesta.zeros(size, dtype=x.dtype, device="cuda")
    there = memory.as_strided(x.shape, x.stride())
    return there.copy_(x)


def same(got: Tensor, want: Tensor) -> None:
    assert got.device.type == "cuda" and got.dtype == want.dtype and got.shape == want.shape
    assert vesta.equal(got.cpu(), want)


def on(device: str, arguments: Any) -> Any:
    """Moves the tensors among arguments, lists included."""
    if isinstance(arguments, (list, tuple)):
        return type(arguments)(on(device, a) for a in arguments)
    return arguments.to(device) if isinstance(arguments, Tensor) else arguments


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reading_places(dtype: Any) -> None:
    for layout in layouts(values(6, 5, 8, dtype=dtype)).values():
        x, c = layout, to_cuda(layout)
        i, j, k = vesta.tensor([3, -1, 0, 0]), vesta.tensor([[1], [2], [-5]]), vesta.tensor([7, 0], dtype=vesta.int32)
        for index in (
            (i,), (slice(None), j), (i, slice(None), vesta.tensor(2)), (i, j), (slice(None), slice(None), k),
            (k - 2, slice(1, 4), k), (..., j, i), (whole(2, 6, 5) > 0,), (slice(None), whole(2, 5) > 0),
            (whole(2, 6) > 0, slice(2, None)), (vesta.zeros(0, dtype=vesta.int64),), (vesta.tensor(True), i),
        ):  # fmt: skip
            same(c[index], x[index])  # indices on the CPU
            same(c[on("cuda", index)], x[index])
        for dim in range(3):
            at = whole(x.shape[dim], 4)
            same(c.index_select(dim, at.cuda()), x.index_select(dim, at))
            same(c.index_select(dim, at[:0].cuda()), x.index_select(dim, at[:0]))
            g = whole(x.shape[dim], 6, 5, 8, seed=1)[:5, :4, :7]
            same(c.gather(dim, g.cuda()), x.gather(dim, g))
            same(c.gather(dim, g.mT.contiguous().mT.cuda()), x.gather(dim, g))
            g = whole(min(x.shape), 5, 4, 8, seed=2)  # four at a time
            same(c.gather(dim, g.cuda()), x.gather(dim, g))
        same(vesta.cat([c, c[:, :2], c], 1), vesta.cat([x, x[:, :2], x], 1))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_writing_places(dtype: Any) -> None:
    for name, layout in layouts(values(6, 5, 8, dtype=dtype)).items():
        x, c = layout.clone(), to_cuda(layout)
        if name == "sliced":
            x = layout
        i, j = vesta.tensor([3, -1, 0, 0, 3]), vesta.tensor([1, 2, -5, 0, 1])
        for index, shape in (
            ((i,), (5, 5, 8)), ((i,), (8,)), ((i, j), (5, 8)), ((slice(None), j), (6, 5, 8)),
            ((i, slice(None), j), (5, 5)), ((whole(2, 6, 5) > 0,), (8,)), ((whole(2, 6, 5, 8) > 0,), ()),
            ((slice(1, 3), slice(None), i), (2, 5, 5)),
        ):  # fmt: skip
            v = values(*shape, dtype=dtype, seed=3)
            x[index] = v
            c[on("cuda", index)] = v.cuda()
            same(c, x)
        x[i, 2] = 1
        c[i, 2] = 1
        same(c, x)


@pytest.mark.parametrize("dtype", SOME, ids=str)
@pytest.mark.parametrize("n", [3, 300, 5000])
def test_sums_add_in_the_order_of_the_indices(dtype: Any, n: int) -> None:
    x, at, v = values(7, 3, dtype=dtype), whole(7, n), values(n, 3, dtype=dtype, seed=1)
    alpha = 1 if dtype == vesta.bool else 2 if not (dtype.is_floating_point or dtype.is_complex) else 0.3
    same(x.cuda().index_add_(0, at.cuda(), v.cuda(), alpha=alpha), x.clone().index_add_(0, at, v, alpha=alpha))
    same(x.mT.cuda().index_add_(1, at.cuda(), v.cuda().mT), x.mT.clone().index_add_(1, at, v.mT))
    same(x.cuda().index_put_([at.cuda() - 7], v.cuda(), True), x.clone().index_put_([at], v, True))
    both = [at, whole(3, n, seed=2)]
    same(x.cuda().index_put_(on("cuda", both), v[:, 0].cuda(), True), x.clone().index_put_(both, v[:, 0], True))
    same(x.cuda().index_put_(on("cuda", both), v[:1, 0].cuda(), True), x.clone().index_put_(both, v[:1, 0], True))
    x8, v8 = values(7, 8, dtype=dtype), values(n, 16, dtype=dtype, seed=1)  # rows of whole units of 16 bytes
    same(
        x8.cuda().index_add_(0, at.cuda(), v8.cuda()[:, :8], alpha=alpha),
        x8.clone().index_add_(0, at, v8[:, :8], alpha=alpha),
    )
    g = whole(7, n, 3, seed=4)
    same(x.cuda().scatter_add_(0, g.cuda(), v.cuda()), x.clone().scatter_add_(0, g, v))
    line = x[:, 0].clone()
    same(line.cuda().scatter_add_(0, g[:, 1].cuda(), v[:, 1].cuda()), line.clone().scatter_add_(0, g[:, 1], v[:, 1]))
    wide = values(4000, 3, dtype=dtype)  # few of its elements change
    same(wide.cuda().scatter_add_(0, g.cuda(), v.cuda()), wide.clone().scatter_add_(0, g, v))
    few = whole(3, 7, 2, seed=5)
    same(x.cuda().scatter_add_(1, few.cuda(), x.cuda()), x.clone().scatter_add_(1, few, x))


@pytest.mark.parametrize("dtype", SOME, ids=str)
@pytest.mark.parametrize(("lines", "size", "length"), [(20, 70, 77), (3, 2500, 700), (70, 5, 300), (2, 3000, 20000)])
def test_scatter_along_lines(dtype: Any, lines: int, size: int, length: int) -> None:
    """Lines that a warp adds in shared memory, several to a block or one; the last ones are sorted."""
    x, at, v = values(lines, size, dtype=dtype), whole(size, lines, length), values(lines, length, dtype=dtype, seed=1)
    want = x.clone().scatter_add_(1, at, v)
    same(x.cuda().scatter_add_(1, at.cuda(), v.cuda()), want)
    same(x.mT.cuda().scatter_add_(0, at.mT.cuda(), v.mT.cuda()), want.mT)
    for n in (1, 20, length):  # a thread a line, and as above; of equal places the last stays
        same(x.cuda().scatter_(1, at[:, :n].cuda(), v.cuda()), x.clone().scatter_(1, at[:, :n], v))
        same(x.mT.cuda().scatter_(0, at[:, :n].mT.cuda(), 1), x.mT.clone().scatter_(0, at[:, :n].mT, 1))
    at[1, 7] = size
    for op in ("scatter_add_", "scatter_"):
        getattr(x.cuda(), op)(1, at.cuda(), v.cuda())
        with pytest.raises(RuntimeError, match=f"{op}: index {size} is out of bounds"):
            vesta.cuda.synchronize()
    x.cuda().scatter_(1, at[:, :20].cuda(), v.cuda())
    with pytest.raises(RuntimeError, match=f"scatter_: index {size} is out of bounds"):
        vesta.cuda.synchronize()


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16], ids=str)
def test_sums_of_narrow_floats_are_rounded_once(dtype: Any) -> None:
    v = vesta.full((4096, 2), 0.5, dtype=dtype)
    at = vesta.zeros(4096, dtype=vesta.int64)
    sums = vesta.zeros(3, 2, dtype=dtype, device="cuda").index_add_(0, at.cuda(), v.cuda())
    assert sums.tolist() == [[2048.0, 2048.0], [0.0, 0.0], [0.0, 0.0]]
    lines = vesta.zeros(3, 2, dtype=dtype, device="cuda").scatter_add_(0, at[:, None].expand(4096, 2).cuda(), v.cuda())
    assert vesta.equal(lines.cpu(), sums.cpu())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nonzero(dtype: Any) -> None:
    for shape in ((), (0,), (3, 0), (1,), (5000,), (7, 9, 33), (2, 1, 2, 3, 1, 65)):
        x = values(*shape, dtype=dtype)
        x = x * (values(*shape, seed=9) > 0).to(dtype) if dtype != vesta.bool else x
        same(x.cuda().nonzero(), x.nonzero())
        if x.dim() > 1:
            same(x.cuda().mT.nonzero(), x.mT.nonzero())
    x = values(40, 30, dtype=dtype)
    mask = values(40, 30) > 1
    same(x.cuda().masked_select(mask.cuda()), x.masked_select(mask))
    same(x.cuda().masked_fill(mask.cuda(), 1), x.masked_fill(mask, 1))
    same(x.cuda()[mask.cuda()], x[mask])
    for dtype in (vesta.bool, vesta.int16, vesta.float32, vesta.float64, vesta.complex128):
        y, chosen = values(5003, dtype=dtype), values(5003, seed=2) > 0.5
        for first in (0, 1, 8):  # aligned or not
            same(y.cuda()[first:][chosen.cuda()[first:]], y[first:][chosen[first:]])
        same(y.cuda()[(chosen | ~chosen).cuda()], y)
        same(y.cuda()[(chosen & ~chosen).cuda()], y[:0])
    same(vesta.where(mask.cuda(), x.cuda(), x.cuda()[:1]), vesta.where(mask, x, x[:1]))


@pytest.mark.parametrize("n", [2048, 32768, 32769, 100003])
def test_masks_that_several_blocks_count(n: int) -> None:
    y, chosen = values(n), values(n, seed=2) > 0.5
    for first in (0, 1, 16):
        mask = chosen[first:]
        same(y.cuda()[first:][chosen.cuda()[first:]], y[first:][mask])
        same(chosen.cuda()[first:].nonzero(), mask.nonzero())
    bytes_ = vesta.tensor([2, 0, 255, 128, 1, 0, 127, 64], dtype=vesta.uint8).repeat(n // 8)
    same(bytes_.cuda().view(vesta.bool).nonzero(), (bytes_ != 0).nonzero())  # any byte but 0 is true


def test_embedding() -> None:
    for columns in (1, 3, 8, 64):
        weight, at = values(11, columns), whole(11, 4, 5)
        same(vesta.embedding(weight.cuda(), at.cuda()), vesta.embedding(weight, at))
        same(vesta.embedding(weight.cuda(), at.to(vesta.int32).cuda()), vesta.embedding(weight, at))
        same(vesta.embedding(to_cuda(weight.T.contiguous()).T, at.cuda()), vesta.embedding(weight, at))
    same(vesta.embedding(values(3, 4).cuda(), whole(3, 0).cuda()), vesta.embedding(values(3, 4), whole(3, 0)))


def test_scalars() -> None:
    x, zero = vesta.tensor(3.0), vesta.tensor([0])
    same(x.cuda().index_select(0, zero.cuda()), x.index_select(0, zero))
    same(x.cuda().gather(0, vesta.tensor(0).cuda()), x.gather(0, vesta.tensor(0)))
    same(x.cuda().scatter_add_(0, vesta.tensor(0).cuda(), x.cuda()), vesta.tensor(6.0))
    same(x.cuda().index_add_(0, zero.cuda(), vesta.tensor(1.0).cuda()), vesta.tensor(4.0))
    same(x.cuda()[vesta.tensor(True)], x[vesta.tensor(True)])


def test_gradients() -> None:
    i, at, g = whole(6, 40), whole(6, 9), whole(6, 4, 5, seed=2)
    ops = {
        "index": lambda x, d: x[i.to(d)],
        "two indices": lambda x, d: x[i.to(d), (i % 5).to(d)],
        "mask": lambda x, d: x[(whole(2, 6, 5) > 0).to(d)],
        "select": lambda x, d: x.index_select(0, at.to(d)),
        "gather": lambda x, d: x.gather(0, g.to(d)),
        "embedding": lambda x, d: vesta.embedding(x, at.to(d), padding_idx=1),
        "cat": lambda x, d: vesta.cat([x, x * 2], 1),
        "put": lambda x, d: (x * 1).index_put_([at.to(d)], vesta.cat([x, x[:3]]) * 3),
        "accumulate": lambda x, d: (x * 1).index_put_([at.to(d)], vesta.cat([x, x[:3]]) * 3, True),
        "index_add": lambda x, d: (x * 1).index_add_(0, at.to(d), vesta.cat([x, x[:3]])),
        "scatter_add": lambda x, d: (x * 1).scatter_add_(0, g.to(d), x * x),
    }
    for name, op in ops.items():
        found = []
        for device in ("cpu", "cuda"):
            x = values(6, 5).to(device).requires_grad_()
            y = op(x, device)
            y.backward(values(*y.shape, seed=6).to(device))
            found.append(x.grad.cpu())
        assert vesta.allclose(found[0], found[1], rtol=1e-6, atol=1e-6), name


def raises_later(call: Any, error: type, text: str) -> None:
    """Checks that the error is raised when the host waits, at the latest, and that the device works afterwards."""
    with pytest.raises(error, match=text):
        call()
        vesta.cuda.synchronize()
    assert (vesta.ones(3, device="cuda") + 1).tolist() == [2.0, 2.0, 2.0]


def test_an_index_out_of_range_raises_when_the_host_waits() -> None:
    x, c = values(4, 3), values(4, 3).cuda()
    bad = vesta.tensor([0, 4])
    for call in (
        lambda t, i: t[i], lambda t, i: t[:, i], lambda t, i: t[i - 5], lambda t, i: t.index_select(0, i),
        lambda t, i: t.index_select(0, i - 1), lambda t, i: t.index_put_([i], t[:2]),
        lambda t, i: t.index_put_([i], t[:2], True), lambda t, i: t.index_add_(0, i, t[:2].clone()),
        lambda t, i: vesta.embedding(t, i), lambda t, i: t.gather(0, i[:, None]),
        lambda t, i: t.scatter_add_(0, i[:, None], t.clone()), lambda t, i: t.scatter_add_(1, i[None], t.clone()),
    ):  # fmt: skip
        with pytest.raises((IndexError, RuntimeError)) as expected:
            call(x.clone(), bad)
        text = str(expected.value).rstrip(".")
        raises_later(lambda: call(c.clone(), bad.cuda()), expected.type, text)  # noqa: B023
    # a bad index is skipped, the others are written
    t = c.clone()
    t[vesta.tensor([1, 7]).cuda()] = vesta.full((2, 3), 5.0).cuda()
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 4"):
        t.cpu()
    assert t[1].tolist() == [5.0] * 3 and vesta.equal(t[2:].cpu(), x[2:])


def test_devices_must_agree() -> None:
    x, c, i = values(4, 3), values(4, 3).cuda(), whole(4, 2)
    for call in (
        lambda: c.index_select(0, i), lambda: c.gather(0, i[:, None]), lambda: vesta.embedding(c, i),
        lambda: vesta.embedding(x, i.cuda()), lambda: c.index_add_(0, i.cuda(), x[:2]), lambda: vesta.cat([c, x]),
        lambda: c.scatter_add_(0, i[:, None].cuda(), x), lambda: c.index_put_([i], x[:2]),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=r"expected all tensors on one device, got .*(cuda:0|cpu)"):
            call()
    with pytest.raises(RuntimeError, match=r"index: expected indices on the CPU or on the indexed tensor's device cpu"):
        x[i.cuda()]
    c[i] = 7.0
    c[vesta.tensor(2)] = vesta.tensor(1.0)
    assert c[2].tolist() == [1.0] * 3


def test_overlapping_operands() -> None:
    x, i = values(6, 3), vesta.tensor([0, 2, 1])
    c = x.cuda()
    x[i] = x[1:4]
    c[i.cuda()] = c[1:4]
    same(c, x)
    x.index_add_(0, i, x[2:5])
    c.index_add_(0, i.cuda(), c[2:5])
    same(c, x)


@pytest.mark.skipif(vesta.cuda.device_count() < 2, reason="needs two devices")
def test_on_a_device_that_is_not_current() -> None:
    x, i = values(5000, 3), whole(5000, 6000)
    c, at = x.to("cuda:1"), i.to("cuda:1")
    for op in (
        lambda t, j: t[j], lambda t, j: t.nonzero(), lambda t, j: t.clone().index_add_(0, j[:5000], t),
        lambda t, j: t.gather(0, j[:, None]), lambda t, j: vesta.cat([t, t]), lambda t, j: t[t > 0],
    ):  # fmt: skip
        got = op(c, at)
        assert got.device == vesta.device("cuda:1")
        same(got, op(x, i))
    assert vesta.cuda.current_device() == 0
    with pytest.raises(IndexError, match="index 5000 is out of bounds .*found on cuda:1"):
        c[at * 0 + 5000]
        vesta.cuda.synchronize(1)


PROGRAM = """
import vesta
g = vesta.Generator().manual_seed(0)
x, v = vesta.rand(50, 3, generator=g).cuda(), vesta.rand(6000, 3, generator=g).cuda()
i = vesta.randint(0, 50, (6000,), generator=g).cuda()
x.index_add_(0, i, v, alpha=0.7)
x.index_put_([i], v, True)
x.scatter_add_(0, i[:, None].expand(6000, 3), v)
x[i[:70]] = v[:70]
y = vesta.randperm(5000, generator=vesta.Generator("cuda"), device="cuda")
print([t.cpu().flatten().tolist() for t in (x, x[x > 100], x.nonzero(), y)])
"""


@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.parametrize("op", ["scatter_", "scatter_add_"])
def test_scatter_into_lines_without_elements(op: str, length: int) -> None:
    index, source = vesta.zeros(2, length, dtype=vesta.int64, device="cuda"), vesta.ones(2, length, device="cuda")
    with pytest.raises((IndexError, RuntimeError), match="index 0 is out of bounds"):
        getattr(vesta.zeros(2, 0, device="cuda"), op)(1, index, source)
        vesta.cuda.synchronize()


def test_neither_threads_nor_streams_change_a_bit() -> None:
    def run(**environment: str) -> str:
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = run()
    assert run(VESTA_EMULATION_ORDER="descending", VESTA_EMULATION_SCHEDULE="lazy") == first
    assert run(VESTA_EMULATION_ORDER="shuffled", VESTA_EMULATION_SCHEDULE="random") == first


def test_fill_takes_a_value_from_any_device() -> None:
    x = values(6, 5, 4)
    index = vesta.tensor([0, -1, 2, 2])
    for value in (3, vesta.tensor(0.5), vesta.tensor(0.5).cuda()):
        want = x.index_fill(1, index, value if isinstance(value, int) else value.cpu())
        got = x.cuda().index_fill(1, index.cuda(), value)
        assert got.device.type == "cuda" and vesta.equal(got.cpu(), want)
    value = vesta.tensor(1.0, requires_grad=True)
    vesta.zeros(4, 3, device="cuda").index_fill(0, vesta.tensor([1, 1]).cuda(), value).sum().backward()
    assert value.grad.device.type == "cpu" and value.grad.item() == 3
    with pytest.raises(RuntimeError, match="device"):
        x.cuda().index_fill(1, index, 1)


def test_lines_with_an_index_for_sixteen_elements_are_not_sorted() -> None:
    from vesta import _C_cuda

    x, v = values(40, 500), values(40, 40)
    index = vesta.randint(0, 500, (40, 40), generator=vesta.Generator().manual_seed(1))
    for op in ("scatter_add", "scatter"):
        i = index if op == "scatter_add" else vesta.arange(40).expand(40, 40) * 7
        on_device = x.cuda(), i.cuda(), v.cuda()
        before = dict(_C_cuda.counters())["launches"]
        got = getattr(on_device[0], op)(1, on_device[1], on_device[2])
        assert dict(_C_cuda.counters())["launches"] - before <= 3
        assert vesta.allclose(got.cpu(), getattr(x, op)(1, i, v))


def test_keys_count_rows() -> None:
    """A sort of the rows' numbers takes as many passes for wide rows as for rows of one element."""
    from vesta import _C_cuda

    def launches(columns: int) -> int:
        index = vesta.arange(3000, device="cuda") % 200
        rows, source = (vesta.zeros(n, columns, device="cuda") for n in (200, 3000))
        before = dict(_C_cuda.counters())["launches"]
        rows.index_add_(0, index, source)
        return dict(_C_cuda.counters())["launches"] - before

    assert launches(1) == launches(96)


def test_sums_at_places_of_several_strides() -> None:
    x, v = vesta.zeros(4, 6, 10), vesta.arange(120).reshape(12, 10).float()
    i, j = vesta.arange(12) % 4, vesta.tensor([0, 5, 3, 2, 0, 5, -1, 2, 0, 1, 3, 3])
    columns = vesta.tensor([0, 9, 9, 4])
    for index, values in (((i, j), v), ((i, vesta.tensor([5])), v), ((i[:4], j[:4], columns), v[0, :4])):
        want, got = x.clone(), x.cuda()
        want.index_put_(index, values, accumulate=True)
        got.index_put_(tuple(k.cuda() for k in index), values.cuda(), accumulate=True)
        assert vesta.equal(got.cpu(), want), index
    one, single = vesta.zeros(1, 5, device="cuda"), vesta.tensor([0, -1, 0], device="cuda")
    one.index_put_((single,), vesta.ones(3, 5, device="cuda"), accumulate=True)
    assert one.tolist() == [[3.0] * 5]
