"""Pointwise kernels on CUDA: rows in 16-byte accesses, what is left of a row, and strides of gigabytes."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import vesta

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

# float32 takes packs of 4, bfloat16 of 8, uint8 of 16; 24 is a multiple of some, 7 of none
DTYPES = [vesta.uint8, vesta.bfloat16, vesta.float32, vesta.float64, vesta.complex128]


def operands(columns: int, dtype: vesta.dtype, device: str) -> list[vesta.Tensor]:
    """Returns operands of [6, columns] in every form: whole rows, one row, one column, padded rows, unaligned rows, a
    transposed matrix, one number."""
    x = (vesta.arange(6 * columns).reshape(6, columns) % 97).to(dtype).to(device)
    padded = vesta.zeros(6, columns + 16, dtype=dtype, device=device)
    padded[:, :columns] = x
    return [x, x[2], x[:, 1:2], padded[:, :columns], padded[:, 1 : columns + 1], x.t().contiguous().t(), x[3, 2]]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("columns", [7, 17, 24, 37, 64])
def test_broadcast_operands(columns: int, dtype: vesta.dtype) -> None:
    pairs = zip(*(list(itertools.product(operands(columns, dtype, d), repeat=2)) for d in ("cpu", "cuda")))
    for number, ((a, b), (c, d)) in enumerate(pairs):
        assert vesta.equal((c + d).cpu(), a + b), number
        assert vesta.equal(vesta.where(c == d, c, d).cpu(), vesta.where(a == b, a, b)), number


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions_of_rows(dtype: vesta.dtype, to: vesta.dtype) -> None:
    for columns in (7, 24, 37):
        for a, b in zip(operands(columns, dtype, "cpu"), operands(columns, dtype, "cuda")):
            a, b = (t.real if dtype.is_complex and not to.is_complex else t for t in (a, b))
            assert vesta.equal(b.to(to).cpu(), a.to(to))


def launches(function: Callable[[], vesta.Tensor]) -> tuple[vesta.Tensor, int]:
    """Returns what a function returns, and how many kernels it queued."""
    before = dict(vesta._C_cuda.counters())["launches"]
    return function(), dict(vesta._C_cuda.counters())["launches"] - before


BINARY: list[Callable[..., vesta.Tensor]] = [
    vesta.add, vesta.sub, vesta.mul, lambda a, b: vesta.add(a, b, alpha=0.3), lambda a, b: vesta.sub(a, b, alpha=-3),
]  # fmt: skip


@pytest.mark.parametrize("half", [vesta.float16, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("columns", [7, 24, 37, 64])
def test_float32_with_16_bit_floats_is_one_kernel(columns: int, half: vesta.dtype) -> None:
    """Of every form, either way round, with the bits of a copy in float32; numbers keep their own rules."""
    floats = [t * 1.1 - 3 for t in operands(columns, vesta.float32, "cuda")]
    halves = [t * 0.7 + 1 for t in operands(columns, half, "cuda")]
    for number, (a, b) in enumerate(itertools.product(floats, halves)):
        for f in BINARY:
            for x, y in ((a, b), (b, a)):
                got, count = launches(lambda f=f, x=x, y=y: f(x, y))
                if got.dtype is not vesta.float32:  # a number beside a tensor of 16 bits
                    continue
                assert vesta.equal(got, f(x.float(), y.float())), number
                assert count == 1 or x.dim() == 0 or y.dim() == 0, (number, count)
    x, y = floats[0].clone(), halves[0]
    want = x + y.float()
    _, count = launches(lambda: x.add_(y))
    assert count == 1 and vesta.equal(x, want)
    out = vesta.empty_like(x, dtype=vesta.float64)
    assert vesta.equal(vesta.sub(x, y, out=out), (x - y.float()).double())
    assert vesta.equal(vesta.maximum(x, y), vesta.maximum(x, y.float()))  # an op without such kernels


@pytest.mark.parametrize("half", [vesta.float16, vesta.bfloat16], ids=str)
def test_numbers_on_the_device_are_not_rounded_to_16_bits(half: vesta.dtype) -> None:
    """A 0-dimensional tensor of another dtype counts as on the CPU, forward and backward, and costs no copy."""
    ops: list[Callable[..., vesta.Tensor]] = [
        *BINARY, vesta.div, vesta.pow, vesta.maximum, vesta.atan2, vesta.lt, vesta.eq, lambda a, b: a.clone().mul_(b),
        lambda a, b: vesta.addcmul(a, a, b, value=0.3), lambda a, b: vesta.lerp(a, a * 2, b) if a.dim() else a + b,
        lambda a, b: vesta.where(a > 0, a, b), lambda a, b: a.clamp(min=b),
    ]  # fmt: skip
    for dtype in (vesta.float32, vesta.float64, vesta.int64):
        number = vesta.tensor(3.14159265).to(dtype) * (1 if dtype.is_floating_point else 100_003)
        for shape in ((5, 7), (3, 24), (64,), (1,)):
            whole = (vesta.arange(vesta.Size(shape).numel()) / 7 - 2).to(half).reshape(shape)
            for x in (whole, whole.t() if whole.dim() == 2 else whole[::3]):
                for i, f in enumerate(ops):
                    for swapped in (False, True):
                        try:
                            want = f(number, x) if swapped else f(x, number)
                        except (RuntimeError, TypeError):
                            continue  # an op that takes its operands in one order, or of one dtype
                        a, b = x.cuda(), number.cuda()
                        got = f(b, a) if swapped else f(a, b)
                        assert got.dtype is want.dtype
                        assert vesta.equal(got.cpu().nan_to_num(), want.nan_to_num()), (i, swapped, dtype, shape)
    x, number = vesta.randn(3, 8).to(half), vesta.tensor(3.14159265)
    _, count = launches(lambda: x.cuda() * number.cuda())
    assert count == 1
    sides = []
    for device in ("cpu", "cuda"):
        a, b = (t.to(device).requires_grad_() for t in (x, number))
        y = a * b
        sides.append([t.cpu() for t in (y.detach(), *vesta.autograd.grad(y, (a, b), vesta.ones_like(y)))])
    for want, got in zip(*sides):
        assert vesta.equal(got, want)


def test_residuals_under_autocast_are_one_kernel_each() -> None:
    vesta.manual_seed(0)
    x, layer = vesta.randn(4, 8).cuda().requires_grad_(), vesta.nn.Linear(8, 8).cuda()
    with vesta.autocast("cuda", dtype=vesta.bfloat16):
        branch = layer(x)
        y, count = launches(lambda: x + branch)
    assert branch.dtype is vesta.bfloat16 and y.dtype is vesta.float32 and count == 1
    assert vesta.equal(y, x + branch.float())
    gradients = vesta.autograd.grad(y.square().sum(), (x, branch))
    assert [g.dtype for g in gradients] == [vesta.float32, vesta.bfloat16]


@pytest.mark.parametrize("shape", [(2, 16, 3, 5), (3, 8, 4, 4), (1, 5, 7, 9)], ids=str)
def test_channels_last(shape: tuple[int, ...]) -> None:
    x = vesta.randn(shape).contiguous(memory_format=vesta.channels_last)
    scale = vesta.randn(shape[1]).view(-1, 1, 1)
    got = x.cuda() * scale.cuda()
    assert got.is_contiguous(memory_format=vesta.channels_last) and vesta.equal(got.cpu(), x * scale)
    assert vesta.equal((x.contiguous().cuda() * scale.cuda()).cpu(), x.contiguous() * scale)


@pytest.mark.campaign  # it takes 4 GB
def test_strides_of_gigabytes() -> None:
    far = 2**31 + 8
    x = vesta.empty(far + 8, dtype=vesta.uint8, device="cuda").as_strided((2, 8), (far, 1))
    x.copy_(vesta.arange(16, dtype=vesta.uint8).view(2, 8))
    assert (x + 1).tolist() == [list(range(1, 9)), list(range(9, 17))]
    assert (x.t() + x.t()[:, :1]).tolist() == [[2 * i, 2 * i + 8] for i in range(8)]
