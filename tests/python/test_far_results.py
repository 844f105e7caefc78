"""Results that no cache holds are written past the caches: with the bits of small ones, wherever their lines begin."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
from op_db_check import assert_same
from op_db_check import random_tensor as random

F = vesta.nn.functional
LENGTH = 4320  # with ROWS, more bytes of float32 than a last level of 32 MiB
ROWS = 2000


@pytest.mark.parametrize("offset", [0, 1, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_copies(dtype: str, offset: int) -> None:
    values = np.arange(ROWS * LENGTH, dtype=np.int32)
    x = vesta.from_numpy(values)
    kept = vesta.full((values.size + 2 * offset,), 77.0).to(getattr(vesta, dtype))
    to = kept[offset : offset + values.size]
    to.copy_(x % 2039)
    np.testing.assert_array_equal(to.numpy(), (values % 2039).astype(dtype))
    assert (kept[:offset] == 77).all() and (kept[offset + values.size :] == 77).all()
    np.testing.assert_array_equal(to.clone().numpy(), to.numpy())


@pytest.mark.parametrize("first", [0, 3])
def test_copies_of_rows(first: int) -> None:
    x = vesta.arange(ROWS * (LENGTH + 8)).view(ROWS, LENGTH + 8)
    part = x[:, first : first + LENGTH]
    np.testing.assert_array_equal(part.contiguous().numpy(), x.numpy()[:, first : first + LENGTH])
    np.testing.assert_array_equal(part.double().numpy(), x.numpy()[:, first : first + LENGTH].astype("float64"))


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize(("dtype", "length"), [("float32", LENGTH), ("float32", LENGTH + 1), ("float64", LENGTH // 2)])
def test_running_sums(dtype: str, length: int, op: str) -> None:
    x = random(ROWS + 3, length, dtype=dtype).mul_(0.1).add_(1.0)
    y = getattr(x, op)(1)
    for row in (0, 1, 7, 8, 15, 16, 998, ROWS - 1, ROWS, ROWS + 2):
        assert_same(y[row], getattr(x[row].clone(), op)(0), f"row {row}")
    out = vesta.empty(ROWS + 3, length, dtype=x.dtype)
    getattr(vesta, op)(x, 1, out=out)
    assert_same(out, y, "out")


@pytest.mark.parametrize("length", [LENGTH, LENGTH + 1])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_of_rows(length: int, log: bool) -> None:
    function = F.log_softmax if log else F.softmax
    x = random(ROWS, length).mul_(30)
    x[1, :7] = float("-inf")
    x[2, 5] = float("nan")
    y = function(x, 1)
    for row in (0, 1, 2, ROWS - 1):
        assert_same(y[row], function(x[row].clone(), 0), f"row {row}")


@pytest.mark.parametrize("width", [LENGTH, LENGTH + 1])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_of_columns(width: int, log: bool) -> None:
    function = F.log_softmax if log else F.softmax
    x = random(ROWS, width).mul_(30)
    y = function(x, 0)
    for column in (0, 1, 17, 511, 512, width - 1):
        assert_same(y[:, column].clone(), function(x[:, column].clone(), 0), f"column {column}")


@pytest.mark.parametrize("length", [LENGTH, LENGTH + 1])
def test_norms_of_rows(length: int) -> None:
    x, weight, bias = random(ROWS, length), random(length, seed=1), random(length, seed=2)
    layer, root = F.layer_norm(x, (length,), weight, bias), F.rms_norm(x, (length,), weight)
    for row in (0, 1, 999, ROWS - 1):
        assert_same(layer[row], F.layer_norm(x[row].clone(), (length,), weight, bias), f"row {row}")
        assert_same(root[row], F.rms_norm(x[row].clone(), (length,), weight), f"row {row}")


@pytest.mark.parametrize("inner", [64, 72, 3])
@pytest.mark.parametrize("training", [False, True])
def test_batch_norm(inner: int, training: bool) -> None:
    channels = 8
    x = random(ROWS * LENGTH // (channels * inner), channels, inner)
    x.requires_grad_()
    mean, variance = random(channels, seed=1), random(channels, seed=2).abs() + 1
    y = F.batch_norm(x, None if training else mean, None if training else variance, training=training)
    (gradient,) = vesta.autograd.grad(y, x, x.detach() * 0.5)
    last = slice(x.shape[0] - 5, None)
    if training:
        wide = x.detach().double()
        wanted = (wide - wide.mean((0, 2), True)) / (wide.var((0, 2), unbiased=False, keepdim=True) + 1e-5).sqrt()
        vesta.testing.assert_close(y[last].detach(), wanted[last].float(), rtol=1e-5, atol=1e-5)
        vesta.testing.assert_close(gradient[last], vesta.zeros_like(gradient[last]), rtol=0, atol=1e-4)
    else:
        part = x.detach()[last].clone().requires_grad_()
        few = F.batch_norm(part, mean, variance)
        assert_same(y[last].detach().clone(), few.detach(), "result")
        (of_few,) = vesta.autograd.grad(few, part, part.detach() * 0.5)
        assert_same(gradient[last].clone(), of_few, "gradient")


@pytest.mark.parametrize("width", [64, 60])
def test_windows_of_three(width: int) -> None:
    x = random(ROWS * LENGTH // (64 * width), 64, width)
    y = F.max_pool2d(x, 3, 1, 1)
    for plane in (0, 1, x.shape[0] // 2, x.shape[0] - 1):
        assert_same(y[plane], F.max_pool2d(x[plane : plane + 1].clone(), 3, 1, 1)[0], f"plane {plane}")


@pytest.mark.parametrize("width", [64, 60])
@pytest.mark.parametrize(
    "op",
    [
        lambda x: F.avg_pool2d(x, 3, 1, 1),
        lambda x: F.interpolate(x[:, :32, :30], size=(64, x.shape[3]), mode="bilinear"),
        lambda x: F.interpolate(x.flatten(1, 2), scale_factor=2, mode="linear"),
    ],
    ids=["average", "bilinear", "linear"],
)
def test_resampled_lines(op, width: int) -> None:
    x = random(ROWS * LENGTH // (64 * width), 2, 32, width)
    x = vesta.cat([x, x.flip(2)], 2)
    y = op(x)
    for plane in (0, 1, x.shape[0] // 2, x.shape[0] - 1):
        assert_same(y[plane], op(x[plane : plane + 1].clone())[0], f"plane {plane}")


@pytest.mark.parametrize("length", [LENGTH, LENGTH + 1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "float16", "complex128"])
def test_flips(dtype: str, length: int) -> None:
    rows = ROWS * 4 // getattr(vesta, dtype).itemsize
    x = (vesta.arange(rows * length) % 251).view(rows, length).to(getattr(vesta, dtype))
    for dims in ((0,), (1,), (0, 1)):
        np.testing.assert_array_equal(x.flip(dims).numpy(), np.flip(x.numpy(), dims))


def test_batch_norm_of_pixels() -> None:
    x = random(3, 64, 210, 225)
    mean, variance = random(64, seed=1), random(64, seed=2).abs() + 1
    pixels = x.to(memory_format=vesta.channels_last)
    for training in (False, True):
        results = []
        for each in (x, pixels):
            each = each.clone().requires_grad_()
            y = F.batch_norm(each, None if training else mean, None if training else variance, training=training)
            results.append((y.detach(), *vesta.autograd.grad(y, each, each.detach() * 0.5)))
        for rows, of_pixels in zip(*results):
            assert_same(rows, of_pixels.contiguous(), f"training {training}")


@pytest.mark.parametrize("count", [700, 3000])  # classes of a row that is put together in the first cache, and longer
def test_classes(count: int) -> None:
    classes = vesta.arange(2 * ROWS * LENGTH // count) * 7 % count
    made = F.one_hot(classes, count)
    assert int(made.sum()) == classes.numel()
    np.testing.assert_array_equal(made.argmax(1).numpy(), classes.numpy())


@pytest.mark.parametrize("first", [LENGTH, 10])
def test_tensors_side_by_side(first: int) -> None:
    x = vesta.arange(ROWS * (LENGTH + 8)).view(ROWS, LENGTH + 8)
    both = vesta.cat([x[:, first:], x[:, :first]], 1)
    np.testing.assert_array_equal(both.numpy(), np.roll(x.numpy(), -first, 1))
