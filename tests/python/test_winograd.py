"""Convolutions of 3 x 3 kernels, which are computed with fewer products (core/cpu/conv_winograd.h): their error beside
that of sums, values that are not finite, and bits that depend on nothing but the sample and the weights."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
import vesta.nn.functional as F

# batch, channels, height, width, output channels, padding
SHAPES = [
    (2, 64, 14, 14, 64, 1),
    (1, 33, 13, 21, 47, 1),
    (3, 32, 8, 8, 40, 0),
    (1, 160, 10, 12, 32, 2),
    (2, 32, 30, 70, 32, 1),
]


def gradients(x: vesta.Tensor, w: vesta.Tensor, g: vesta.Tensor, padding: int, convolve: Any) -> list[vesta.Tensor]:
    """Returns a convolution and the gradients of its input and weight."""
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    y = convolve(x, w, padding)
    return [y.detach(), *vesta.autograd.grad(y, (x, w), g)]


def by_sums(x: vesta.Tensor, w: vesta.Tensor, padding: int) -> vesta.Tensor:
    """A convolution as a product of matrices: every result is one sum of products."""
    columns = F.unfold(x, 3, padding=padding)
    return (w.flatten(1) @ columns).reshape(x.shape[0], w.shape[0], x.shape[2] + 2 * padding - 2, -1)


def convolve(x: vesta.Tensor, w: vesta.Tensor, padding: int) -> vesta.Tensor:
    return F.conv2d(x, w, padding=padding)


def operands(shape: tuple[int, ...]) -> tuple[vesta.Tensor, vesta.Tensor, vesta.Tensor, int]:
    n, c, h, w, k, padding = shape
    x, weight = vesta.randn(n, c, h, w), vesta.randn(k, c, 3, 3)
    return x, weight, vesta.randn(n, k, h + 2 * padding - 2, w + 2 * padding - 2), padding


@pytest.mark.parametrize("shape", SHAPES)
def test_the_error_is_near_that_of_sums(shape: tuple[int, ...]) -> None:
    vesta.manual_seed(0)
    x, w, g, padding = operands(shape)
    true = gradients(x.double(), w.double(), g.double(), padding, convolve)
    got, sums = gradients(x, w, g, padding, convolve), gradients(x, w, g, padding, by_sums)
    sums[1] = by_sums(g, w.flip(2, 3).transpose(0, 1).contiguous(), 2 - padding)
    for name, t, a, b in zip(("result", "input", "weight"), true, got, sums, strict=True):
        error, of_sums = (a - t).square().mean().sqrt(), (b - t).square().mean().sqrt()
        assert error < 5 * of_sums, name
        assert error < 1.5e-6 * t.std(), name
        assert (a - t).abs().max() < 10 * (b - t).abs().max(), name


@pytest.mark.parametrize("dtype", [vesta.bfloat16, vesta.float16])
def test_16_bit_floats_are_computed_in_float32_and_rounded_once(dtype: Any) -> None:
    """bfloat16 may be summed in another order, by pairs: half a unit from float32's results, and what sums differ."""
    x, w, g, padding = (t.to(dtype) if isinstance(t, vesta.Tensor) else t for t in operands(SHAPES[1]))
    wide = gradients(x.float(), w.float(), g.float(), padding, convolve)
    for got, want in zip(gradients(x, w, g, padding, convolve), wide, strict=True):
        if dtype == vesta.float16:
            assert got.equal(want.to(dtype))
        else:
            assert (got.float() - want).abs().le(2**-8 * want.abs() + 1e-5 * want.abs().max()).all()


def test_what_is_not_finite_spreads_no_further_than_the_kernel() -> None:
    x, w, g, padding = operands((3, 32, 12, 16, 32, 1))
    clean = gradients(x, w, g, padding, convolve)
    for value in (float("inf"), float("nan")):
        dirty = x.clone()
        dirty[1, 5, 6, 7] = value
        y = F.conv2d(dirty, w, padding=1)
        reached = vesta.zeros(3, 32, 12, 16, dtype=vesta.bool)
        reached[1, :, 5:8, 6:9] = True
        assert (~y.isfinite()).equal(reached)
        assert y[0].equal(clean[0][0]) and y[2].equal(clean[0][2])  # bit for bit
        true = F.conv2d(dirty.double(), w.double(), padding=1)
        assert vesta.allclose(y[~reached], true[~reached].float(), rtol=1e-4, atol=1e-4)
        bad_g = g.clone()
        bad_g[2, 0, 0, 0] = value
        _, of_x, of_w = gradients(x, w, bad_g, padding, convolve)
        assert (~of_x.isfinite()).any((1, 2, 3)).tolist() == [False, False, True]
        assert of_w[0].isnan().any() == (value != value)
        assert not of_w[0].isfinite()[:, 1, 1].any() and of_w[1:].isfinite().all()


def test_what_overflows_on_the_way_is_computed_again() -> None:
    x, w = vesta.full((1, 32, 12, 12), 3e38), vesta.full((32, 32, 3, 3), 1e-4)
    y = F.conv2d(x, w, padding=1)
    assert vesta.allclose(y, F.conv2d(x.double(), w.double(), padding=1).float(), rtol=1e-5)
    assert y.isfinite().all()


@pytest.mark.parametrize("shape", SHAPES[:3])
def test_bits_depend_on_the_sample_and_the_weights_alone(shape: tuple[int, ...]) -> None:
    x, w, g, padding = operands(shape)
    want = gradients(x, w, g, padding, convolve)
    threads = vesta.get_num_threads()
    try:
        for count in (1, 3):
            vesta.set_num_threads(count)
            for a, b in zip(gradients(x, w, g, padding, convolve), want, strict=True):
                assert a.equal(b)
    finally:
        vesta.set_num_threads(threads)
    last = vesta.channels_last
    apart = vesta.zeros(*x.shape[:3], 2 * x.shape[3])[..., ::2].copy_(x)
    for other, grad in ((x.contiguous(memory_format=last), g.contiguous(memory_format=last)), (apart, g)):
        for a, b in zip(gradients(other, w, grad, padding, convolve), want, strict=True):
            assert a.equal(b)
    alone = gradients(x[:1], w, g[:1], padding, convolve)
    assert alone[0].equal(want[0][:1]) and alone[1].equal(want[1][:1])


def test_transposed_convolutions_with_bias() -> None:
    x, w, b = vesta.randn(2, 48, 9, 11), vesta.randn(48, 32, 3, 3), vesta.randn(32)
    got = F.conv_transpose2d(x, w, b, padding=1)
    want = F.conv_transpose2d(x.double(), w.double(), b.double(), padding=1)
    assert vesta.allclose(got, want.float(), rtol=1e-4, atol=1e-4)
    x, w, b = vesta.randn(2, 48, 9, 11), vesta.randn(35, 48, 3, 3), vesta.randn(35)
    assert vesta.allclose(F.conv2d(x, w, b), F.conv2d(x.double(), w.double(), b.double()).float(), rtol=1e-4, atol=1e-4)
