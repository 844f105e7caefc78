"""cat and stack on a CUDA device: the CPU's values for every layout, and one launch for up to 64 tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import vesta
from vesta import Tensor

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")


def values(*shape: int, dtype: Any = vesta.float32, seed: int = 0) -> Tensor:
    x = vesta.randint(0, 100, shape, generator=vesta.Generator().manual_seed(seed))
    return x > 50 if dtype == vesta.bool else x.to(dtype)


def launches(run: Callable[[], Tensor]) -> tuple[int, Tensor]:
    before = dict(vesta._C_cuda.counters())["launches"]
    result = run()
    return dict(vesta._C_cuda.counters())["launches"] - before, result


def same(got: Tensor, want: Tensor) -> None:
    assert got.device.type == "cuda" and got.dtype == want.dtype and got.shape == want.shape
    assert vesta.equal(got.cpu(), want)


@pytest.mark.parametrize("dtype", [vesta.bool, vesta.float16, vesta.int32, vesta.float64, vesta.complex128], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_many_tensors_are_one_launch(dim: int, dtype: Any) -> None:
    shapes = [[3, 4, 5] for _ in range(64)]
    for i, shape in enumerate(shapes):
        shape[dim] = i % 7  # some are empty
    here = [values(*shape, dtype=dtype, seed=i) for i, shape in enumerate(shapes)]
    there = [t.cuda() for t in here]
    count, result = launches(lambda: vesta.cat(there, dim))
    assert count == 1
    same(result, vesta.cat(here, dim))


@pytest.mark.parametrize(("n", "expected"), [(1, 1), (64, 1), (65, 2), (200, 4)])
def test_stack_launches_once_for_64_tensors(n: int, expected: int) -> None:
    for shape in [(), (6,), (2, 3)]:
        here = [values(*shape, seed=i) for i in range(n)]
        there = [t.cuda() for t in here]
        for dim in {0, len(shape)}:
            count, result = launches(lambda tensors=there, at=dim: vesta.stack(tensors, at))
            assert count == expected
            same(result, vesta.stack(here, dim))


@pytest.mark.parametrize("shift", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("length", [1, 2, 3, 8, 1024, 5003])
def test_runs_of_any_length_and_alignment(length: int, shift: int) -> None:
    base = values(3, length + 16, dtype=vesta.uint8)
    there = base.cuda()
    parts = [
        (slice(None), slice(shift, shift + length)),
        (slice(1), slice(0, length)),
        (slice(2, 3), slice(3, 3 + length)),
    ]
    same(vesta.cat([there[p] for p in parts]), vesta.cat([base[p] for p in parts]))
    same(vesta.cat([there[:, :shift], there[:, shift:]], 1), base)


def test_other_layouts_and_dtypes_join_in() -> None:
    def tensors(move: Callable[[Tensor], Tensor]) -> list[Tensor]:
        x, y = move(values(4, 6, 8)), move(values(8, 6, 4, seed=1))
        return [
            x, y.permute(2, 1, 0), x[:, 1:4], x[:, ::2], x[:, :1].expand(4, 5, 8), x.half(), x.to(vesta.int64),
            move(vesta.zeros(0)), x[[0, 2, 1, 3]][:, 5:],
        ]  # fmt: skip

    same(vesta.cat(tensors(lambda t: t.cuda()), 1), vesta.cat(tensors(lambda t: t), 1))
    # slices along dimensions outside `dim`, and expanded ones, are rows of runs as well
    x, c = values(4, 6, 8), values(4, 6, 8).cuda()
    count, result = launches(lambda: vesta.cat([c[::2], c[1::2], c[:1].expand(2, 6, 8)], 1))
    assert count == 1
    same(result, vesta.cat([x[::2], x[1::2], x[:1].expand(2, 6, 8)], 1))


def test_gradients_and_empty_results() -> None:
    a, b = values(2, 3).cuda().requires_grad_(), values(2, 2, seed=1).cuda().requires_grad_()
    weight = values(2, 5, seed=2).cuda()
    (vesta.cat([a, b], 1) * weight).sum().backward()
    assert a.grad is not None and b.grad is not None
    same(a.grad, weight[:, :3].cpu())
    same(b.grad, weight[:, 3:].cpu())
    assert vesta.cat([a[:0], a[:0]]).shape == (0, 3)


@pytest.mark.parametrize("dtype", [vesta.bool, vesta.float16, vesta.float32, vesta.int64, vesta.complex128], ids=str)
def test_triangles_are_one_launch(dtype: Any) -> None:
    for shape in ((5, 16), (16, 5), (3, 7, 32), (2, 3, 1, 9), (1, 1)):
        x = values(*shape, dtype=dtype)
        padded = vesta.cat([values(1, dtype=dtype), x.flatten()]).cuda()[1:].view(shape)  # packs are not aligned
        for diagonal in (-100, -2, -1, 0, 1, 3, 2**62):
            for op in (vesta.tril, vesta.triu):
                for there in (x.cuda(), padded):
                    count, result = launches(lambda: op(there, diagonal))  # noqa: B023
                    assert count == 1
                    same(result, op(x, diagonal))
    x = values(6, 4, dtype=dtype)
    same(x.cuda().t().triu(1), x.t().triu(1))
    assert x.cuda()[:0].tril().shape == (0, 4)
