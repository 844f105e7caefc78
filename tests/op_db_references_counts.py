"""References of counts, integrals and searches."""

from __future__ import annotations

from typing import Any

import numpy as np


def cumprod(x: np.ndarray, dim: int) -> np.ndarray:
    if x.dtype.kind in "biu":
        x = x.astype(np.int64)
    return np.cumprod(x, axis=dim) if x.ndim else x


def logcumsumexp(x: np.ndarray, dim: int) -> np.ndarray:
    if not np.iscomplexobj(x):
        return np.logaddexp.accumulate(x, axis=dim) if x.ndim and x.size else x
    r = np.moveaxis(np.atleast_1d(x).copy(), dim, 0)
    for i in range(1, len(r)):
        large, small = np.where(r[i].real >= r[i - 1].real, (r[i], r[i - 1]), (r[i - 1], r[i]))
        r[i] = large + np.log1p(np.exp(small - large))
    return np.moveaxis(r, 0, dim).reshape(x.shape)


def histc(x: np.ndarray, bins: int = 100, min: float = 0, max: float = 0) -> np.ndarray:
    if min == max:
        min, max = (x.min(), x.max()) if x.size else (min, max)
    if min == max:
        min, max = min - 1, max + 1
    return np.histogram(x.reshape(-1), bins, (min, max))[0].astype(x.dtype)


def bincount(x: np.ndarray, weights: Any = None, minlength: int = 0) -> np.ndarray:
    if x.size == 0:
        return np.zeros(minlength, np.int64)
    return np.bincount(x, weights, minlength)


def _parts(y: np.ndarray, x: Any, dx: float, dim: int) -> np.ndarray:
    y = np.moveaxis(y if y.dtype.kind in "fc" else y.astype(np.float64), dim, -1)
    widths = dx if x is None else np.diff(x if x.ndim == 1 else np.moveaxis(x, dim, -1), axis=-1)
    return np.moveaxis((y[..., 1:] + y[..., :-1]) * widths / 2, -1, dim)


def trapezoid(y: np.ndarray, x: Any = None, *, dx: float = 1, dim: int = -1) -> np.ndarray:
    return _parts(y, x, dx, dim).sum(dim)


def cumulative_trapezoid(y: np.ndarray, x: Any = None, *, dx: float = 1, dim: int = -1) -> np.ndarray:
    return np.cumsum(_parts(y, x, dx, dim), dim)


def nanmedian(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
    """Computes the lower median of the numbers, and where it is told a dimension, its place in a stable order."""
    if dim is None:
        return nanmedian(x.reshape(-1), 0)[0]
    order = np.argsort(x, axis=dim, kind="stable")
    count = np.sum(x == x, axis=dim, keepdims=True)
    places = np.take_along_axis(order, np.maximum(count - 1, 0) // 2, dim)
    values = np.take_along_axis(x, places, dim)
    return (values, places) if keepdim else (values.squeeze(dim), places.squeeze(dim))


def mode(x: np.ndarray, dim: int = -1, keepdim: bool = False) -> tuple:
    def of_line(line: np.ndarray) -> tuple:
        values, counts = np.unique(line, return_counts=True)
        best = values[np.argmax(counts)]
        return best, int(np.flatnonzero(line == best)[-1])

    lines = np.moveaxis(x, dim, -1)
    found = [of_line(line) for line in lines.reshape(-1, lines.shape[-1])]
    shape = lines.shape[:-1]
    values = np.array([v for v, _ in found], x.dtype).reshape(shape)
    places = np.array([p for _, p in found], np.int64).reshape(shape)
    return (np.expand_dims(values, dim), np.expand_dims(places, dim)) if keepdim else (values, places)


def searchsorted(lines: np.ndarray, x: np.ndarray, right: bool = False, side: Any = None, sorter: Any = None) -> Any:
    side = "right" if right or side == "right" else "left"
    if lines.ndim == 1:
        return np.searchsorted(lines, x, side, sorter)
    flat, values = lines.reshape(-1, lines.shape[-1]), x.reshape(-1, x.shape[-1])
    return np.stack([np.searchsorted(a, v, side) for a, v in zip(flat, values)]).reshape(x.shape)


def nanquantile(
    x: np.ndarray, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> np.ndarray:
    return np.nanquantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)


def fill_diagonal(x: np.ndarray, value: Any, wrap: bool = False) -> np.ndarray:
    x = np.array(x)
    np.fill_diagonal(x, value, wrap)
    return x


def quantile(
    x: np.ndarray, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> np.ndarray:
    return np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation)
