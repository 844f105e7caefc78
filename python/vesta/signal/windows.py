"""Windows for the analysis of signals: ``torch.signal.windows``.

A window of M points: ``sym=True`` gives a symmetric one, for the design of filters, ``sym=False`` one period of a
periodic one, for spectra. Formulas: Harris, "On the use of windows for harmonic analysis with the discrete Fourier
transform", 1978.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import expect, python_number
from vesta._names import listing
from vesta._types import Device, DType, Layout

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _points(op: str, M: int, sym: bool, dtype: Any, layout: Layout, device: Any) -> tuple[Tensor, float]:
    """Returns the numbers 0 to M - 1 as float64, and the length of the period."""
    M = python_number(M)
    if isinstance(M, bool) or not isinstance(M, int):
        raise TypeError(f"{op}: expected an integer, got {type(M).__name__} (M).")
    if M < 0:
        raise ValueError(f"{op} requires non-negative window length, got M={M}")
    dtype = vesta.get_default_dtype() if dtype is None else dtype
    if dtype not in (vesta.float32, vesta.float64):
        raise ValueError(f"{op} expects float32 or float64 dtypes, got: {dtype}")
    if layout is not vesta.strided:
        raise ValueError(f"{op} is implemented for strided tensors only, got: {layout}")
    return vesta.arange(M, dtype=vesta.float64, device=device), float(M - 1 if sym and M > 1 else max(M, 1))


def _made(values: Tensor, M: int, dtype: Any, requires_grad: bool) -> Tensor:
    if M == 1:
        values = vesta.ones_like(values)
    return values.to(vesta.get_default_dtype() if dtype is None else dtype).requires_grad_(requires_grad)


def general_cosine(
    M: int,
    *,
    a: Sequence[float],
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the sum over k of (-1)**k a[k] cos(2 pi k n / N) at n = 0 ... M - 1: ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    for value in a:
        expect("general_cosine", "a", value, (Real, Tensor), "numbers")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    n, period = _points("general_cosine", M, sym, dtype, layout, device)
    total = vesta.zeros_like(n)
    for k, factor in enumerate(a):
        total = total + (n * (2 * math.pi * k / period)).cos() * (factor * (-1) ** k)
    return _made(total, M, dtype, requires_grad)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns alpha - (1 - alpha) cos(2 pi n / N): ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.general_hamming(3, alpha=0.6)
        tensor([0.2000, 1.0000, 0.2000])
    """
    expect("general_hamming", "alpha", alpha, (Real, Tensor), "a number")
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns 0.54 - 0.46 cos(2 pi n / N): ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.hamming(3)
        tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns (1 - cos(2 pi n / N)) / 2: ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.hann(3)
        tensor([0., 1., 0.])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns 0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N): ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.blackman(3).round(decimals=4).abs()
        tensor([0., 1., 0.])
    """
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns the minimum 4-term Blackman-Harris window of Nuttall ("Some windows with very good sidelobe behavior",
    1981): ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.nuttall(3)
        tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    a = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns 1 - abs(2 n / N - 1): ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.bartlett(3)
        tensor([0., 1., 0.])
    """
    n, period = _points("bartlett", M, sym, dtype, layout, device)
    return _made(1 - (n * (2 / period) - 1).abs(), M, dtype, requires_grad)


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns sin(pi (n + 1 / 2) / N), N being M, and M + 1 for a periodic window: ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.cosine(3)
        tensor([0.5000, 1.0000, 0.5000])
    """
    n, _ = _points("cosine", M, sym, dtype, layout, device)
    values = ((n + 0.5) * (math.pi / max(M if sym or M < 2 else M + 1, 1))).sin()
    return _made(values, M, dtype, requires_grad)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns exp(-abs(n - center) / tau): ``[M]``; ``center`` is the middle unless a periodic window says otherwise.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    expect("exponential", "tau", tau, (Real, Tensor), "a number")
    expect("exponential", "center", center, (Real, Tensor, type(None)), "a number or None")
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    n, period = _points("exponential", M, sym, dtype, layout, device)
    middle = period / 2 if center is None else center
    return _made((-(n - middle).abs() / tau).exp(), M, dtype, requires_grad)


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns exp(-((n - N / 2) / std)**2 / 2): ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    expect("gaussian", "std", std, (Real, Tensor), "a number")
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    n, period = _points("gaussian", M, sym, dtype, layout, device)
    return _made((-(((n - period / 2) / std) ** 2) / 2).exp(), M, dtype, requires_grad)


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: DType | None = None,
    layout: Layout = vesta.strided,
    device: Device | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """Returns I0(beta sqrt(1 - (2 n / N - 1)**2)) / I0(beta): ``[M]``.

    Example::

        >>> import vesta
        >>> vesta.signal.windows.kaiser(3, beta=2.0)
        tensor([0.4387, 1.0000, 0.4387])
    """
    expect("kaiser", "beta", beta, (Real, Tensor), "a number")
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    n, period = _points("kaiser", M, sym, dtype, layout, device)
    inside = (1 - (n * (2 / period) - 1) ** 2).clamp(min=0).sqrt() * beta
    return _made(vesta.i0(inside) / vesta.i0(vesta.full_like(inside, beta)), M, dtype, requires_grad)


__dir__ = listing(globals())
