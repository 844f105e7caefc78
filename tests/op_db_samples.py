"""References that NumPy does not have under one name, and sample generators that need more than a line."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
from scipy import special

# ---- pointwise references ---------------------------------------------------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else special.expit(x)


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, np.zeros((), x.dtype))


def sign(x: np.ndarray) -> np.ndarray:
    """-1, 0 or 1 in x's dtype; 0 for NaN, as in PyTorch."""
    return x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x))


def leaky_relu(x: np.ndarray, negative_slope: float = 0.01) -> np.ndarray:
    return np.where(x > 0, x, x * negative_slope)


def gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    """x times the normal distribution function, or its tanh approximation (Hendrycks and Gimpel 2016)."""
    if approximate == "none":
        return 0.5 * x * special.erfc(-x * np.sqrt(0.5))
    return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))  # (1 + tanh z) / 2 = expit(2 z)


def clamp(x: np.ndarray, min: Any = None, max: Any = None) -> np.ndarray:
    return np.clip(x, min, max)


def add(x: np.ndarray, y: Any, alpha: Any = 1) -> np.ndarray:
    return np.add(x, y) if alpha == 1 else np.add(x, np.multiply(y, alpha)).astype(x.dtype)


def sub(x: np.ndarray, y: Any, alpha: Any = 1) -> np.ndarray:
    return np.subtract(x, np.multiply(y, alpha)) if alpha != 1 else np.subtract(x, y)


def div(x: np.ndarray, y: Any, rounding_mode: str | None = None) -> np.ndarray:
    quotient = np.true_divide(x, y)
    return {None: lambda q: q, "floor": np.floor, "trunc": np.trunc}[rounding_mode](quotient)


def power(x: np.ndarray, y: Any) -> np.ndarray:
    """np.power; for integers a negative exponent gives the truncated quotient 1 // x**-y (0 unless x is 1 or -1)."""
    if np.asarray(x).dtype.kind not in "iu":
        return np.power(x, y)
    y = np.asarray(y, dtype=np.asarray(x).dtype)
    positive = np.power(x, np.abs(y))
    return np.where(y >= 0, positive, np.where(np.abs(positive) == 1, positive, 0)).astype(x.dtype)


# ---- reductions -------------------------------------------------------------------------------------------------


def over(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a NumPy reduction PyTorch's arguments; a 0-d array has one dimension to reduce over, as in PyTorch."""

    def reference(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        return function(x, axis=None if x.ndim == 0 else dim, keepdims=keepdim)

    return reference


def extremum(value: Callable[..., Any], place: Callable[..., Any]) -> Callable[..., Any]:
    """The reference of max and min: values alone without a dim, (values, indices) with one."""

    def reference(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return over(value)(x)
        return over(value)(x, dim, keepdim), over(place)(x, dim, keepdim)

    return reference
