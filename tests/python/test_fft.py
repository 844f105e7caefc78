"""Fourier transforms beyond the table: the private transforms, their gradients, long lengths, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vesta
from vesta import _C
from vesta.autograd import gradcheck, gradgradcheck


def drawn(*shape: int, complex_: bool = False) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    x = rng.normal(size=shape)
    return x + 1j * rng.normal(size=shape) if complex_ else x


def close(have: Any, want: np.ndarray, tolerance: float = 1e-12) -> None:
    assert have.numpy().dtype == want.dtype and have.shape == want.shape
    np.testing.assert_allclose(have.numpy(), want, rtol=0, atol=tolerance * max(1, np.abs(want).max()))


#: Small factors, a prime that KissFFT takes, primes and products of them that go through Bluestein, powers of two, long
#: ones of even and of odd length.
LENGTHS = (1, 2, 3, 8, 30, 31, 37, 134, 77 * 13, 1009, 4096, 2 * 4099, 2 * 8192, 4 * 8192, 3**5 * 7**2, 11 * 13 * 250)


@pytest.mark.parametrize("n", LENGTHS)
def test_lengths(n: int) -> None:
    """Transforms of any length are NumPy's, in both directions, for one half of a spectrum as well as for all of it."""
    x, z = drawn(2, n), drawn(2, n, complex_=True)
    close(_C._fft_c2c(vesta.from_numpy(z), [1], 0, True), np.fft.fft(z))
    close(_C._fft_c2c(vesta.from_numpy(z), [1], 2, False), np.fft.ifft(z))
    close(_C._fft_r2c(vesta.from_numpy(x), [1], 0, True), np.fft.rfft(x))
    close(_C._fft_r2c(vesta.from_numpy(x), [1], 0, False), np.fft.fft(x))
    close(_C._fft_c2r(vesta.from_numpy(np.fft.rfft(x)), [1], 2, n), x)


@pytest.mark.parametrize("normalization, norm", [(0, "backward"), (1, "ortho"), (2, "forward")])
def test_normalization(normalization: int, norm: str) -> None:
    z = drawn(3, 4, 5, complex_=True)
    close(_C._fft_c2c(vesta.from_numpy(z), [0, 2], normalization, True), np.fft.fftn(z, axes=(0, 2), norm=norm))
    half = drawn(3, 4, 3, complex_=True)
    other = {"backward": "forward", "forward": "backward"}.get(norm, norm)  # of a backward transform
    for n in (4, 5):
        want = np.fft.irfftn(half, s=(3, n), axes=(0, 2), norm=other)
        close(_C._fft_c2r(vesta.from_numpy(half), [0, 2], normalization, n), want)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_gradients(n: int) -> None:
    real = vesta.from_numpy(drawn(2, n)).requires_grad_()
    whole = vesta.from_numpy(drawn(2, n, complex_=True)).requires_grad_()
    half = vesta.from_numpy(drawn(2, n // 2 + 1, complex_=True)).requires_grad_()
    for function, x in (
        (lambda x: _C._fft_r2c(x, [0, 1], 1, True), real),
        (lambda x: _C._fft_r2c(x, [0, 1], 1, False), real),
        (lambda x: _C._fft_c2c(x, [0, 1], 0, True), whole),
        (lambda x: _C._fft_c2c(x, [1], 2, False), whole),
        (lambda x: _C._fft_c2r(x, [0, 1], 1, n), half),
    ):
        assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))


@pytest.mark.parametrize("n", [8, 100, 400, 1000, 1024, 1225, 4096, 9216, 44100, 2**17])
def test_errors_of_float32(n: int) -> None:
    """In the mean an error is 5e-8 sqrt(log2 n) of the results at most, the largest 3e-7 of the largest result."""
    lines = max(2, 20000 // n)
    z = drawn(lines, n, complex_=True).astype(np.complex64)
    x, half = z.real.copy(), np.fft.rfft(z.real.astype(np.float64)).astype(np.complex64)
    for have, want in (
        (vesta.fft.fft(vesta.from_numpy(z)), np.fft.fft(z.astype(np.complex128))),
        (vesta.fft.ifft(vesta.from_numpy(z)), np.fft.ifft(z.astype(np.complex128))),
        (vesta.fft.rfft(vesta.from_numpy(x)), np.fft.rfft(x.astype(np.float64))),
        (vesta.fft.irfft(vesta.from_numpy(half), n), np.fft.irfft(half.astype(np.complex128), n)),
    ):
        error = np.abs(have.numpy() - want)
        assert np.sqrt((error**2).mean() / (np.abs(want) ** 2).mean()) < 5e-8 * np.sqrt(np.log2(n))
        assert error.max() < 3e-7 * np.abs(want).max()


@pytest.mark.parametrize("n", [1, 2, 9, 22, 26, 37, 96, 245, 20000, 6561 * 3])
def test_bits_do_not_depend_on_strides_or_batch(n: int) -> None:
    """A line has the same bits alone and among others, as a row and as a column, dense and with gaps."""
    z = drawn(11, n, complex_=True).astype(np.complex64)
    rows, columns = vesta.from_numpy(z), vesta.from_numpy(z.T.copy())
    gaps = vesta.from_numpy(np.repeat(z, 3, 1))[:, ::3]
    x, real_columns, real_gaps = rows.real.contiguous(), columns.real.contiguous(), gaps.real
    for f, of_rows, of_columns, of_gaps in (
        (vesta.fft.fft, rows, columns, gaps),
        (vesta.fft.ifft, rows, columns, gaps),
        (vesta.fft.rfft, x, real_columns, real_gaps),
        (lambda h, dim=1: vesta.fft.irfft(h, 2 * n - 1, dim), rows, columns, gaps),
        (lambda h, dim=1: vesta.fft.irfft(h, 2 * n, dim), rows, columns, gaps),
        (lambda x, dim=1: _C._fft_r2c(x, [dim], 0, False), x, real_columns, real_gaps),
    ):
        want = f(of_rows)
        deep = f(of_rows.unsqueeze(1), dim=2).squeeze(1)
        for have in (f(of_columns, dim=0).t(), f(of_gaps), f(of_columns.t()), deep):
            assert vesta.equal(vesta.view_as_real(have.cfloat()), vesta.view_as_real(want.cfloat()))
        assert vesta.equal(f(of_rows[3:4]), want[3:4])


def test_frames_that_overlap() -> None:
    """Lines may share memory: frames of a signal, and one line expanded to many."""
    signal = vesta.from_numpy(drawn(3, 300))
    close(vesta.fft.rfft(signal.unfold(1, 64, 10)), np.fft.rfft(signal.unfold(1, 64, 10).numpy()))
    line = vesta.from_numpy(drawn(50)).expand(9, 50)
    close(vesta.fft.rfft(line), np.fft.rfft(line.numpy()))
    close(vesta.fft.fft2(line), np.fft.fft2(line.numpy()))


def test_bits_do_not_depend_on_threads_or_neighbours() -> None:
    """A row has the same bits alone and in a batch, with one thread and with several."""
    x = vesta.from_numpy(drawn(64, 30, 77))
    before = vesta.get_num_threads()
    try:
        results = []
        for threads in (1, 4):
            vesta.set_num_threads(threads)
            results.append(vesta.fft.rfft2(x))
    finally:
        vesta.set_num_threads(before)
    assert bool((results[0] == results[1]).all())
    assert bool((results[0][5] == vesta.fft.rfft2(x[5])).all())


def test_wrong_calls_of_private_transforms() -> None:
    with pytest.raises(RuntimeError, match="_fft_c2r: expected the last of dim to have the size 3, got 4"):
        _C._fft_c2r(vesta.zeros(4, dtype=vesta.complex64), [0], 0, 4)
    with pytest.raises(RuntimeError, match="normalization"):
        _C._fft_c2c(vesta.zeros(4, dtype=vesta.complex64), [0], 3, True)
    with pytest.raises(TypeError, match="_fft_r2c: expected a float32 or float64 input, got complex64"):
        _C._fft_r2c(vesta.zeros(4, dtype=vesta.complex64), [0], 0, True)


def test_float32_reaches_the_whole_range() -> None:
    x = vesta.zeros(16)
    x[0] = 3e38
    assert (vesta.fft.rfft(x).real == vesta.tensor(3e38)).all()
