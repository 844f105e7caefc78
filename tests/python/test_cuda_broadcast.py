"""Pointwise kernels on CUDA: rows in 16-byte accesses, what is left of a row, and strides of gigabytes."""

from __future__ import annotations

import itertools

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
@pytest.mark.parametrize("columns", [7, 24, 64])
def test_broadcast_operands(columns: int, dtype: vesta.dtype) -> None:
    pairs = zip(*(list(itertools.product(operands(columns, dtype, d), repeat=2)) for d in ("cpu", "cuda")))
    for number, ((a, b), (c, d)) in enumerate(pairs):
        assert vesta.equal((c + d).cpu(), a + b), number
        assert vesta.equal(vesta.where(c == d, c, d).cpu(), vesta.where(a == b, a, b)), number


@pytest.mark.parametrize("to", DTYPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversions_of_rows(dtype: vesta.dtype, to: vesta.dtype) -> None:
    for columns in (7, 24):
        for a, b in zip(operands(columns, dtype, "cpu"), operands(columns, dtype, "cuda")):
            a, b = (t.real if dtype.is_complex and not to.is_complex else t for t in (a, b))
            assert vesta.equal(b.to(to).cpu(), a.to(to))


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
