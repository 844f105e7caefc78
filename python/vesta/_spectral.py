"""The short-time Fourier transform and its inverse, and the windows of older programs (``vesta.hann_window``)."""

from __future__ import annotations

from typing import Any

import vesta
from vesta._types import Device, DType, Layout

from . import _C
from ._arguments import checked, expect, python_number
from ._C import Tensor
from .signal import windows

__all__ = [
    "bartlett_window",
    "blackman_window",
    "hamming_window",
    "hann_window",
    "istft",
    "kaiser_window",
    "stft",
]


def _older(
    op: str, make: Any, length: int, periodic: bool, dtype: Any, device: Any, requires_grad: bool, **options: Any
) -> Tensor:
    """Makes a window, in the 16-bit dtypes too, which those of ``signal.windows`` refuse."""
    dtype = vesta.get_default_dtype() if dtype is None else dtype
    length = python_number(length)
    expect(op, "window_length", length, int, "int")
    expect(op, "periodic", periodic, bool, "bool")
    if length < 0:
        raise RuntimeError(f"{op} requires non-negative window_length, got window_length={length}")
    if not (isinstance(dtype, vesta.dtype) and dtype.is_floating_point):
        raise RuntimeError(f"{op} expects floating point dtypes, got {dtype} (dtype).")
    narrow = dtype in (vesta.float16, vesta.bfloat16)
    made = make(length, sym=not periodic, dtype=vesta.float64 if narrow else dtype, device=device, **options)
    return made.to(dtype).requires_grad_(requires_grad)


def hann_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Returns ``signal.windows.hann``, periodic unless said otherwise.

    Example::

        >>> import vesta
        >>> vesta.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _older("hann_window", windows.hann, window_length, periodic, dtype, device, requires_grad)


def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Returns alpha - beta cos(2 pi n / N), periodic unless said otherwise.

    Example::

        >>> import vesta
        >>> vesta.hamming_window(2)
        tensor([0.0800, 1.0000])
    """
    return _older(
        "hamming_window", windows.general_cosine, window_length, periodic, dtype, device, requires_grad, a=[alpha, beta]
    )


def blackman_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Returns ``signal.windows.blackman``, periodic unless said otherwise.

    Example::

        >>> import vesta
        >>> vesta.blackman_window(2).abs().round(decimals=4)
        tensor([0., 1.])
    """
    return _older("blackman_window", windows.blackman, window_length, periodic, dtype, device, requires_grad)


def bartlett_window(
    window_length: int,
    periodic: bool = True,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Returns ``signal.windows.bartlett``, periodic unless said otherwise.

    Example::

        >>> import vesta
        >>> vesta.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _older("bartlett_window", windows.bartlett, window_length, periodic, dtype, device, requires_grad)


def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Returns ``signal.windows.kaiser``, periodic unless said otherwise.

    Example::

        >>> import vesta
        >>> vesta.kaiser_window(3, periodic=False, beta=2.0)
        tensor([0.4387, 1.0000, 0.4387])
    """
    return _older("kaiser_window", windows.kaiser, window_length, periodic, dtype, device, requires_grad, beta=beta)


def _lengths(op: str, n_fft: int, hop_length: int | None, win_length: int | None) -> tuple[int, int]:
    """Returns hop and window length, with their defaults."""
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    if n_fft <= 0 or hop <= 0 or not 0 < length <= n_fft:
        raise RuntimeError(
            f"{op}: expected n_fft > 0, hop_length > 0 and 0 < win_length <= n_fft, got n_fft={n_fft}, "
            f"hop_length={hop}, win_length={length}"
        )
    return hop, length


def _window(op: str, window: Tensor | None, n_fft: int, length: int, dtype: Any, device: Any) -> Tensor:
    """Returns the window, or ones, in the middle of n_fft zeros."""
    if window is None:
        window = vesta.ones(length, dtype=dtype, device=device)
    elif window.dim() != 1 or window.size(0) != length:
        raise RuntimeError(
            f"{op}: expected a 1D window tensor of size equal to win_length={length}, but got window "
            f"with size {list(window.shape)}"
        )
    left = (n_fft - length) // 2
    return vesta.nn.functional.pad(window, (left, n_fft - length - left)) if length < n_fft else window


@checked
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Returns the Fourier transforms of windowed frames of a signal: ``[*, F, T]``.

    Args:
        input: ``[T0]`` or ``[B, T0]``, real or complex.
        n_fft: the length of a frame.
        hop_length: the distance between frames; ``n_fft // 4`` if not given.
        win_length: the length of the window, ``n_fft`` if not given; it stands in the middle of the frame.
        window: ``[win_length]``; ones if not given.
        center: pad the signal by ``n_fft // 2`` at both ends, as ``pad_mode`` says, so that frame t is centered at
            ``t * hop_length``.
        normalized: divide by ``sqrt(n_fft)``.
        onesided: of a real signal, only frequencies 0 to ``n_fft // 2``; the default where signal and window are real.
        return_complex: must be given for real signals; ``False`` gives pairs of real numbers ``[*, F, T, 2]``.
        align_to_window: accepted only as None or False.

    Raises:
        RuntimeError: sizes that do not fit, a signal shorter than a frame.

    Example::

        >>> import vesta
        >>> vesta.stft(vesta.ones(16), 8, window=vesta.hann_window(8), return_complex=True).shape
        vesta.Size([5, 9])
    """
    if align_to_window:
        raise NotImplementedError("stft: align_to_window is not available.")
    if return_complex is None:
        if not input.is_complex() and (window is None or not window.is_complex()):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further "
                "require that return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not input.is_floating_point() and not input.is_complex():
        raise RuntimeError(f"stft: expected a tensor of floating point or complex values, got {input.dtype} (input).")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {input.dim()}D tensor")
    hop, length = _lengths("stft", n_fft, hop_length, win_length)
    signal = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        half = n_fft // 2
        signal = vesta.nn.functional.pad(signal.unsqueeze(1), (half, half), mode=pad_mode).squeeze(1)
    if signal.size(1) < n_fft:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {signal.size(1)}, but got n_fft={n_fft}")
    weights = _window("stft", window, n_fft, length, signal.dtype, signal.device)
    frames = signal.unfold(1, n_fft, hop) * weights
    half_only = not frames.is_complex() if onesided is None else onesided
    if half_only and frames.is_complex():
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    norm = "ortho" if normalized else None
    spectrum = vesta.fft.rfft(frames, norm=norm) if half_only else vesta.fft.fft(frames, norm=norm)
    result = spectrum.transpose(1, 2)
    result = result if input.dim() == 2 else result.squeeze(0)
    return result if return_complex else vesta.view_as_real(result.contiguous())


@checked
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Returns the signal whose ``stft`` is nearest to ``input`` (Griffin and Lim, "Signal estimation from modified
    short-time Fourier transform", 1984): ``[*, T0]``.

    Args:
        input: ``[F, T]`` or ``[B, F, T]``, complex.
        length: of the result, which is cut or padded with zeros to it.
        n_fft, hop_length, win_length, window, center, normalized, onesided, return_complex: as for ``stft``.

    Raises:
        RuntimeError: sizes that do not fit, or windows that leave a part of the signal out.

    Example::

        >>> import vesta
        >>> x, window = vesta.arange(16.0), vesta.hann_window(8)
        >>> vesta.istft(vesta.stft(x, 8, window=window, return_complex=True), 8, window=window).allclose(x, atol=1e-5)
        True
    """
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with " "return_complex=True."
        )
    if input.numel() == 0 or input.dim() not in (2, 3):
        raise RuntimeError(f"istft: expected a tensor with 2 or 3 dimensions and elements, got {list(input.shape)}")
    hop, window_length = _lengths("istft", n_fft, hop_length, win_length)
    half_only = input.size(-2) != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if half_only else n_fft
    if input.size(-2) != expected:
        raise RuntimeError(
            f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match "
            f"n_fft: {expected}, but got {input.size(-2)}"
        )
    if return_complex and half_only:
        raise RuntimeError("istft: cannot return complex values of a onesided transform")
    spectrum = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    norm = "ortho" if normalized else None
    if half_only:
        frames = vesta.fft.irfft(spectrum, n_fft, norm=norm)
    elif return_complex:
        frames = vesta.fft.ifft(spectrum, norm=norm)
    else:  # real values: the other half is not read
        frames = vesta.fft.irfft(spectrum[..., : n_fft // 2 + 1], n_fft, norm=norm)
    real = _C.float64 if input.dtype == _C.complex128 else _C.float32
    weights = _window("istft", window, n_fft, window_length, real, input.device)
    batch, count = frames.size(0), frames.size(1)
    total = n_fft + hop * (count - 1)
    places = vesta.arange(count, device=input.device).unsqueeze(1) * hop + vesta.arange(n_fft, device=input.device)
    places = places.reshape(-1)
    sums = frames.new_zeros((batch, total)).index_add(1, places, (frames * weights).reshape(batch, -1))
    power = (weights * weights).expand(count, n_fft).reshape(-1)
    envelope = power.new_zeros((total,)).index_add(0, places, power)
    start = n_fft // 2 if center else 0
    end = total if length is None else start + length
    end = total - n_fft // 2 if length is None and center else min(end, total)
    sums, envelope = sums[:, start:end], envelope[start:end]
    if envelope.numel() and float(envelope.abs().min()) <= 1e-11:
        raise RuntimeError("istft: window overlap add min: 1, some points of the signal lie under no window")
    result = sums / envelope
    if length is not None and length > result.size(1):
        result = vesta.nn.functional.pad(result, (0, length - result.size(1)))
    return result if input.dim() == 3 else result.squeeze(0)
