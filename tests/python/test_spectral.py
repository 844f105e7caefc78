"""Windows against SciPy's, and the short-time Fourier transform against sums written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vesta
from scipy import signal
from vesta.signal import windows

KINDS: dict[str, tuple[dict[str, Any], Any]] = {
    "hann": ({}, "hann"),
    "hamming": ({}, "hamming"),
    "blackman": ({}, "blackman"),
    "bartlett": ({}, "bartlett"),
    "nuttall": ({}, "nuttall"),
    "cosine": ({}, "cosine"),
    "gaussian": ({"std": 2.5}, ("gaussian", 2.5)),
    "kaiser": ({"beta": 5.0}, ("kaiser", 5.0)),
    "general_hamming": ({"alpha": 0.6}, ("general_hamming", 0.6)),
    "general_cosine": ({"a": [0.4, 0.5, 0.1]}, ("general_cosine", [0.4, 0.5, 0.1])),
    "exponential": ({"tau": 3.0}, ("exponential", None, 3.0)),
}


@pytest.mark.parametrize("length", [0, 1, 2, 7, 8])
@pytest.mark.parametrize("sym", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_windows(name: str, sym: bool, length: int) -> None:
    options, theirs = KINDS[name]
    made = getattr(windows, name)(length, sym=sym, dtype=vesta.float64, **options)
    want = signal.get_window(theirs, length, fftbins=not sym) if length else np.zeros(0)
    np.testing.assert_allclose(made.numpy(), want, atol=1e-14)
    assert getattr(windows, name)(length, sym=sym, **options).dtype == vesta.float32


def test_windows_of_older_programs() -> None:
    for name in ("hann", "blackman", "bartlett", "hamming"):
        for periodic in (True, False):
            made = getattr(vesta, name + "_window")(9, periodic, dtype=vesta.float64)
            np.testing.assert_allclose(made.numpy(), signal.get_window(name, 9, fftbins=periodic), atol=1e-14)
    made = vesta.kaiser_window(9, False, 3.0, dtype=vesta.float64)
    np.testing.assert_allclose(made.numpy(), signal.get_window(("kaiser", 3.0), 9, fftbins=False), atol=1e-14)


@pytest.mark.parametrize("wrong", [-1, 2.5, "4", None])
def test_wrong_lengths(wrong: Any) -> None:
    for function in (windows.hann, windows.kaiser, vesta.hann_window):
        negative = RuntimeError if function is vesta.hann_window else ValueError  # as PyTorch has them
        with pytest.raises(negative if wrong == -1 else TypeError):
            function(wrong)
    with pytest.raises(ValueError, match="expects float32 or float64 dtypes, got: vesta.int64"):
        windows.hann(4, dtype=vesta.int64)
    with pytest.raises(RuntimeError, match="hann_window expects floating point dtypes, got vesta.int64"):
        vesta.hann_window(4, dtype=vesta.int64)


@pytest.mark.parametrize("name", KINDS)
def test_16_bit_windows_are_refused_as_pytorch_does(name: str) -> None:
    for dtype in (vesta.float16, vesta.bfloat16):
        with pytest.raises(ValueError, match=f"expects float32 or float64 dtypes, got: {dtype}"):
            getattr(windows, name)(4, dtype=dtype, **KINDS[name][0])


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
def test_older_windows_are_made_in_16_bits_too(name: str) -> None:
    make = getattr(vesta, f"{name}_window")
    for dtype in (vesta.float16, vesta.bfloat16):
        made = make(9, dtype=dtype, requires_grad=True)
        assert made.requires_grad and vesta.equal(made.detach(), make(9, dtype=vesta.float64).to(dtype))


def transform(x: np.ndarray, n: int, hop: int, window: np.ndarray, center: bool, onesided: bool) -> np.ndarray:
    """The definition: each frame, its window, its sums."""
    if center:
        x = np.pad(x, n // 2, mode="reflect")
    frames = np.stack([x[t : t + n] * window for t in range(0, len(x) - n + 1, hop)], 1)
    turns = np.exp(-2j * np.pi * np.outer(np.arange(n // 2 + 1 if onesided else n), np.arange(n)) / n)
    return turns @ frames


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("kind", ["real", "twosided", "complex"])
@pytest.mark.parametrize("n, hop, length", [(8, 2, 8), (8, 3, 6), (9, 4, 9), (16, 16, 16)])
def test_stft(kind: str, n: int, hop: int, length: int, center: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(50) + (1j * rng.standard_normal(50) if kind == "complex" else 0)
    window = signal.get_window("hamming", length)
    padded = np.pad(window, ((n - length) // 2, n - length - (n - length) // 2))
    options: dict[str, Any] = {"center": center, "window": vesta.tensor(window), "win_length": length}
    onesided = kind == "real"
    made = vesta.stft(vesta.tensor(x), n, hop, onesided=onesided, return_complex=True, **options)
    want = transform(x, n, hop, padded, center, onesided)
    np.testing.assert_allclose(made.numpy(), want, atol=1e-12)
    batch = vesta.tensor(np.stack([x, 2 * x])).stft(n, hop, onesided=onesided, return_complex=True, **options)
    np.testing.assert_allclose(batch.numpy(), np.stack([want, 2 * want]), atol=1e-12)
    scaled = vesta.stft(vesta.tensor(x), n, hop, normalized=True, onesided=onesided, return_complex=True, **options)
    np.testing.assert_allclose(scaled.numpy(), want / np.sqrt(n), atol=1e-12)
    if kind == "real":
        pairs = vesta.stft(vesta.tensor(x), n, hop, return_complex=False, **options)
        np.testing.assert_allclose(pairs.numpy(), np.stack([want.real, want.imag], -1), atol=1e-12)
    if hop < n and (center or length == n):
        back = vesta.istft(made, n, hop, onesided=onesided, return_complex=kind == "complex", **options)
        np.testing.assert_allclose(back.numpy(), x[: back.size(-1)], atol=1e-10)
        whole = vesta.istft(batch, n, hop, length=40, onesided=onesided, return_complex=kind == "complex", **options)
        np.testing.assert_allclose(whole.numpy(), np.stack([x, 2 * x])[:, :40], atol=1e-10)


def test_gradients_of_transforms() -> None:
    x = vesta.randn(12, dtype=vesta.float64, requires_grad=True)
    window = vesta.hann_window(4, dtype=vesta.float64)
    function = lambda x: vesta.stft(x, 4, 2, window=window, return_complex=True).abs()
    assert vesta.autograd.gradcheck(function, (x,))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: vesta.stft(x, 8),
        lambda x: vesta.stft(x, 0, return_complex=True),
        lambda x: vesta.stft(x, 8, hop_length=0, return_complex=True),
        lambda x: vesta.stft(x, 8, win_length=9, return_complex=True),
        lambda x: vesta.stft(x, 8, window=vesta.ones(7), return_complex=True),
        lambda x: vesta.stft(x, 60, center=False, return_complex=True),
        lambda x: vesta.stft(x.long(), 8, return_complex=True),
        lambda x: vesta.stft(x.view(2, 5, 5), 8, return_complex=True),
        lambda x: vesta.stft(x + 0j, 8, onesided=True),
        lambda x: vesta.istft(x, 8),
        lambda x: vesta.istft(x.view(5, 10) + 0j, 6),
        lambda x: vesta.istft(x.view(5, 10) + 0j, 8, window=vesta.zeros(8)),
    ],
)
def test_wrong_transforms(call: Any) -> None:
    with pytest.raises(RuntimeError):
        call(vesta.randn(50))
    with pytest.raises(TypeError):
        vesta.stft(None, 8)  # type: ignore[arg-type]
