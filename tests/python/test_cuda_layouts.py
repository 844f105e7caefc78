"""Ops over images on CUDA follow their input's layout as on the CPU, with the CPU's values."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

OPS = {
    "conv": lambda x: F.conv2d(x, vesta.ones(4, x.size(1), 3, 3, device=x.device), padding=1),
    "conv_transpose": lambda x: F.conv_transpose2d(x, vesta.ones(x.size(1), 4, 3, 3, device=x.device), stride=2),
    "max_pool": lambda x: F.max_pool2d(x, 3, 2, 1),
    "avg_pool": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "adaptive_avg_pool": lambda x: F.adaptive_avg_pool2d(x, 1),
    "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "group_norm": lambda x: F.group_norm(x, 1),
    "cat": lambda x: vesta.cat([x, x], 1),
    "pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "dropout": lambda x: F.dropout(x, 0.5),
}


def results(op, x, last):
    if last:
        x = x.contiguous(memory_format=vesta.channels_last)
    x = x.detach().requires_grad_()
    vesta.manual_seed(1)
    y = op(x)
    (y * y).sum().backward()
    return y, x.grad


@pytest.mark.parametrize("shape", [(2, 8, 7, 6), (1, 5, 6, 9)], ids=str)
@pytest.mark.parametrize("name", OPS)
def test_strides_and_values(name: str, shape: tuple[int, ...]) -> None:
    x = vesta.tensor(np.random.default_rng(0).standard_normal(shape)).float()
    for last in (False, True):
        with vesta.backends.cudnn.flags(enabled=True, allow_tf32=False):
            given = results(OPS[name], x.cuda(), last)
        for want, got in zip(results(OPS[name], x, last), given):
            assert got.stride() == want.stride(), last
            a, b = got.detach().cpu().numpy(), want.detach().numpy()
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_indices_of_a_pooling() -> None:
    x = vesta.tensor(np.random.default_rng(0).standard_normal((2, 8, 7, 6))).float().cuda()
    rows = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    last = F.max_pool2d(x.contiguous(memory_format=vesta.channels_last), 3, 2, 1, return_indices=True)
    for a, b in zip(rows, last):
        assert vesta.equal(a, b) and b.is_contiguous(memory_format=vesta.channels_last)


# Narrow sides, sides that fill squares and that do not, odd ones, several matrices, tiles at an edge.
MATRICES = [
    (2, 3, 700),
    (700, 3),
    (2, 1024, 2),
    (3, 49, 64),
    (2, 64, 3136),
    (1, 80, 81),
    (130, 196),
    (2, 17, 33),
    (64, 66),
    (2, 16, 1024),
    (1000, 16),
    (1, 130, 32),
    (24, 258),
]


@pytest.mark.parametrize("shape", MATRICES, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "float64", "complex128"])
def test_copies_between_orders(dtype: str, shape: tuple[int, ...]) -> None:
    x = (vesta.arange(vesta.Size(shape).numel()).reshape(shape) % 251).to(getattr(vesta, dtype))
    want = x.transpose(-1, -2).contiguous()
    assert vesta.equal(x.cuda().transpose(-1, -2).contiguous().cpu(), want)
    for first in (0, 1):  # of results and operands that begin anywhere, with a gap behind each row
        wide = vesta.zeros(*want.shape[:-1], want.shape[-1] + 3, dtype=x.dtype).cuda()
        wide[..., first : first + want.shape[-1]] = x.cuda().transpose(-1, -2)
        assert vesta.equal(wide[..., first : first + want.shape[-1]].cpu(), want)
        assert (wide[..., first + want.shape[-1] :] == 0).all().item() and (wide[..., :first] == 0).all().item()
        part = x.cuda()[..., first:].transpose(-1, -2).contiguous()
        assert vesta.equal(part.cpu(), want[..., first:, :])


@pytest.mark.parametrize("shape", [(2, 3, 20, 20), (2, 64, 7, 7), (1, 66, 14, 14), (2, 1, 24, 24)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_images_become_pixels_and_images_again(dtype: str, shape: tuple[int, ...]) -> None:
    x = (vesta.arange(vesta.Size(shape).numel()).reshape(shape) % 251).to(getattr(vesta, dtype))
    pixels = x.cuda().contiguous(memory_format=vesta.channels_last)
    assert pixels.is_contiguous(memory_format=vesta.channels_last) and vesta.equal(pixels.cpu(), x)
    assert vesta.equal(pixels.contiguous().cpu(), x)
    assert vesta.equal(x.cuda().permute(2, 3, 1, 0).contiguous().cpu(), x.permute(2, 3, 1, 0).contiguous())
