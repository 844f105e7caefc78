"""unfold copies windows, and fold adds them up: each is the gradient of the other."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

CASES = [  # kernel, dilation, padding, stride
    (3, 1, 0, 1),
    (3, 1, 1, 2),
    ((2, 3), (2, 1), (1, 2), (1, 3)),
    (2, 1, 0, 2),
    ((2, 1), 1, (0, 1), (3, 2)),
]


def pair(value) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def windows(x: np.ndarray, kernel, dilation, padding, stride) -> np.ndarray:
    """Returns what unfold gives, window by window."""
    (kh, kw), (dh, dw), (ph, pw), (sh, sw) = map(pair, (kernel, dilation, padding, stride))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))
    rows, columns = (x.shape[2] - (kh - 1) * dh - 1) // sh + 1, (x.shape[3] - (kw - 1) * dw - 1) // sw + 1
    out = [
        x[:, :, i * sh : i * sh + (kh - 1) * dh + 1 : dh, j * sw : j * sw + (kw - 1) * dw + 1 : dw]
        for i in range(rows)
        for j in range(columns)
    ]
    return np.stack(out, -1).reshape(x.shape[0], -1, rows * columns)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_unfold_copies_windows_of_any_layout(case, dtype: str) -> None:
    """Of a part of a tensor, of every dtype and layout, bit by bit: -0.0 stays what it is."""
    values = np.random.default_rng(1).integers(-3, 4, (3, 4, 7, 9)).astype(dtype)
    if dtype.startswith("float"):
        values[values == 1] = -0.0
    x = vesta.tensor(values)[1:, 1:]
    want = windows(values[1:, 1:], *case)
    for laid in (x, x.contiguous(memory_format=vesta.channels_last), x.transpose(2, 3).contiguous().transpose(2, 3)):
        got = F.unfold(laid, *case).numpy()
        np.testing.assert_array_equal(got, want)
        assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fold_is_the_gradient_of_unfold(case) -> None:
    x = vesta.randn(2, 3, 7, 9, dtype=vesta.float64, requires_grad=True)
    patches = F.unfold(x, *case)
    g = vesta.randn(*patches.shape, dtype=vesta.float64, requires_grad=True)
    (gradient,) = vesta.autograd.grad(patches, x, g, create_graph=True)
    np.testing.assert_allclose(gradient.detach().numpy(), F.fold(g, (7, 9), *case).detach().numpy())
    v = vesta.randn(2, 3, 7, 9, dtype=vesta.float64)
    (second,) = vesta.autograd.grad(gradient, g, v)  # linear in g, by the transpose: unfold again
    np.testing.assert_array_equal(second.numpy(), F.unfold(v, *case).numpy())
    assert vesta.autograd.gradcheck(lambda t: F.fold(t, (7, 9), *case), [g])


def test_unfold_of_one_pixel_is_a_copy() -> None:
    """Windows of one pixel are the image, but not its memory."""
    x = vesta.randn(1, 2, 3, 4)
    patches = F.unfold(x, 1)
    patches.zero_()
    assert (x != 0).all()
    assert patches.shape == (1, 2, 12)
