"""Resampling and averages on CUDA: one pass over memory, with the CPU's bits in both memory formats."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

OPS: dict[str, Callable[[vesta.Tensor], vesta.Tensor]] = {
    "nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "nearest-exact": lambda x: F.interpolate(x, size=(5, 4), mode="nearest-exact"),
    "bilinear": lambda x: F.interpolate(x, scale_factor=(2, 1.5), mode="bilinear"),
    "bilinear, aligned": lambda x: F.interpolate(x, size=(4, 11), mode="bilinear", align_corners=True),
    "bicubic": lambda x: F.interpolate(x, size=(13, 3), mode="bicubic"),
    "antialiased": lambda x: F.interpolate(x, size=(3, 2), mode="bicubic", antialias=True),
    "area": lambda x: F.interpolate(x, size=(3, 2), mode="area"),
    "one dimension": lambda x: F.interpolate(x, size=(x.size(2), 9), mode="bilinear"),
    "the other": lambda x: F.interpolate(x, size=(9, x.size(3)), mode="bilinear"),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "avg_pool, counted": lambda x: F.avg_pool2d(x, (2, 3), 1, (1, 0), ceil_mode=True, count_include_pad=False),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
}
# Pixels of whole packs and of none, lines of whole packs and of none, planes of one line, several blocks.
SHAPES = [(2, 8, 7, 6), (2, 3, 8, 16), (1, 16, 12, 5), (3, 1, 6, 40), (1, 5, 9, 300)]


def sides(op: Callable[[vesta.Tensor], vesta.Tensor], x: vesta.Tensor) -> list[tuple[vesta.Tensor, ...]]:
    """Returns results and gradients of the CPU, and of CUDA in rows and in pixels."""
    found = []
    for device, format in (("cpu", vesta.contiguous_format), ("cuda", vesta.contiguous_format),
                           ("cuda", vesta.channels_last)):  # fmt: skip
        leaf = x.to(device).contiguous(memory_format=format).requires_grad_()
        y = op(leaf)
        g = vesta.tensor(np.random.default_rng(2).standard_normal(tuple(y.shape))).to(x.dtype).to(device)
        (gx,) = vesta.autograd.grad(y, leaf, g.contiguous(memory_format=format))
        found.append((y.detach().cpu(), gx.cpu()))
    return found


def assert_same_bits(found: list[tuple[vesta.Tensor, ...]]) -> None:
    for side in found[1:]:
        for got, want in zip(side, found[0]):
            np.testing.assert_array_equal(got.double().numpy(), want.double().numpy())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", OPS)
def test_bits_of_every_memory_format(name: str, dtype: str) -> None:
    for shape in SHAPES:
        x = vesta.tensor(np.random.default_rng(1).standard_normal(shape)).to(getattr(vesta, dtype))
        assert_same_bits(sides(OPS[name], x))


@pytest.mark.parametrize("shape", [(1, 2, 3, 13000), (2, 8, 90, 3), (1, 7, 64, 64)], ids=str)
def test_long_lines_and_large_windows(shape: tuple[int, ...]) -> None:
    x = vesta.tensor(np.random.default_rng(1).standard_normal(shape)).float()
    for op in (lambda x: F.interpolate(x, size=(2, 7), mode="bilinear", antialias=True),
               lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
               lambda x: F.interpolate(x, scale_factor=(2, 1), mode="bilinear")):  # fmt: skip
        assert_same_bits(sides(op, x))


def test_lines_and_volumes() -> None:
    rng = np.random.default_rng(1)
    for dtype in (vesta.float32, vesta.bfloat16):
        line = vesta.tensor(rng.standard_normal((2, 3, 31))).to(dtype)
        for op in (lambda x: F.interpolate(x, size=17, mode="linear"), lambda x: F.avg_pool1d(x, 4, 3, 2),
                   lambda x: F.pad(x, (5, 3), mode="reflect")):  # fmt: skip
            (y, gx), (got, ggx) = ([v.double().numpy() for v in side] for side in sides_of_any(op, line))
            np.testing.assert_array_equal(got, y)
            np.testing.assert_array_equal(ggx, gx)
        volume = vesta.tensor(rng.standard_normal((1, 2, 4, 5, 6))).to(dtype)
        for op in (lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), lambda x: F.avg_pool3d(x, 2, 1)):
            (y, gx), (got, ggx) = ([v.double().numpy() for v in side] for side in sides_of_any(op, volume))
            np.testing.assert_array_equal(got, y)
            np.testing.assert_array_equal(ggx, gx)


def sides_of_any(op: Callable[[vesta.Tensor], vesta.Tensor], x: vesta.Tensor) -> list[tuple[vesta.Tensor, ...]]:
    found = []
    for device in ("cpu", "cuda"):
        leaf = x.to(device).detach().requires_grad_()
        y = op(leaf)
        (gx,) = vesta.autograd.grad(y, leaf, vesta.ones_like(y) * 0.7)
        found.append((y.detach().cpu(), gx.cpu()))
    return found


def test_infinities_stay_where_they_are_and_zeros_keep_their_sign() -> None:
    x = vesta.tensor([[[[float("inf"), 1.0, -0.0, -0.0], [2.0, 3.0, -0.0, -0.0]]]])
    for format in (vesta.contiguous_format, vesta.channels_last):
        at = x.expand(1, 8, 2, 4).contiguous(memory_format=format)
        for op in (lambda x: F.avg_pool2d(x, (1, 2)), lambda x: F.interpolate(x, scale_factor=2, mode="nearest")):
            want, got = op(at).numpy(), op(at.cuda()).cpu().numpy()
            np.testing.assert_array_equal(got, want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_an_unaligned_image_is_read_element_by_element() -> None:
    flat = vesta.tensor(np.random.default_rng(1).standard_normal(1 + 2 * 8 * 6 * 8)).float()
    for device in ("cpu", "cuda"):
        x = flat.to(device)[1:].view(2, 8, 6, 8)
        pixels = flat.to(device)[1:].view(2, 6, 8, 8).permute(0, 3, 1, 2)
        y = F.avg_pool2d(x, 2), F.interpolate(pixels, scale_factor=2, mode="bilinear")
        if device == "cpu":
            want = y
        else:
            assert all(vesta.equal(a.cpu(), b) for a, b in zip(y, want))


def step(op: Callable[[vesta.Tensor], vesta.Tensor], x: vesta.Tensor) -> int:
    """Runs an op forward and backward; returns the number of copies that it made."""
    g = vesta.ones_like(op(x))
    before = dict(vesta._C_cuda.counters())["copies"]
    vesta.autograd.grad(op(x), x, g)
    return dict(vesta._C_cuda.counters())["copies"] - before


def test_warm_steps_copy_nothing_from_the_host() -> None:
    ops = {
        **OPS,
        "reflect": lambda x: F.pad(x, (2, 1, 1, 2), mode="reflect"),
        "circular": lambda x: F.pad(x, (2, 1), mode="circular") if x.dim() == 3 else x * 1,
        "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, (3, 2)),
        "fold": lambda x: F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1),
    }
    for format in (vesta.contiguous_format, vesta.channels_last):
        x = vesta.randn(2, 8, 7, 8).cuda().contiguous(memory_format=format).requires_grad_()
        for name, op in ops.items():
            step(op, x)
            assert step(op, x) == 0, name
    pixels = (x.detach() * 50).to(vesta.uint8)
    F.interpolate(pixels, size=(5, 4))
    before = dict(vesta._C_cuda.counters())["copies"]
    F.interpolate(pixels, size=(5, 4))
    assert dict(vesta._C_cuda.counters())["copies"] == before


def test_tables_belong_to_streams_and_are_let_go() -> None:
    x = vesta.randn(1, 2, 6, 5)
    want = F.interpolate(x, size=(9, 11), mode="bicubic")
    on_device = x.cuda()
    vesta.cuda.empty_cache()
    before = vesta.cuda.memory_allocated()
    for _ in range(2):
        for stream in (vesta.cuda.current_stream(), vesta.cuda.Stream(), vesta.cuda.Stream()):
            stream.wait_stream(vesta.cuda.current_stream())
            with vesta.cuda.stream(stream):
                y = F.interpolate(on_device, size=(9, 11), mode="bicubic")
                assert vesta.equal(y.cpu(), want)
    del y
    kept = vesta.cuda.memory_allocated()
    assert kept > before
    F.interpolate(on_device, size=(9, 11), mode="bicubic")
    assert vesta.cuda.memory_allocated() == kept
    vesta.cuda.empty_cache()
    assert vesta.cuda.memory_allocated() == before


def test_tables_take_no_more_than_their_share() -> None:
    """Lines of so many sizes that the first tables go; each result is right, the first one again as well."""
    x = vesta.randn(1, 1, 1000)
    on_device = x.cuda()
    sizes = [*range(200_000, 200_024), 200_000]
    vesta.cuda.empty_cache()
    before = vesta.cuda.memory_allocated()
    for size in sizes:
        y = F.interpolate(on_device, size=size, mode="nearest")
        assert y[0, 0, ::50_000].tolist() == F.interpolate(x, size=size, mode="nearest")[0, 0, ::50_000].tolist()
    del y
    assert vesta.cuda.memory_allocated() - before < 66 << 20
    vesta.cuda.empty_cache()
    assert vesta.cuda.memory_allocated() == before
