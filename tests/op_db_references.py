"""References that NumPy does not have as one function, in float64 or complex128 arithmetic."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
from op_db_references_counts import (  # noqa: F401 (one name for all references)
    bincount,
    cumprod,
    cumulative_trapezoid,
    fill_diagonal,
    histc,
    logcumsumexp,
    mode,
    nanmedian,
    nanquantile,
    quantile,
    searchsorted,
    trapezoid,
)
from op_db_references_linalg import (  # noqa: F401 (one name for all references)
    adjoint,
    cholesky,
    cholesky_inverse,
    cholesky_solve,
    eig,
    eigh,
    householder,
    logdet,
    lu,
    matrix_exp,
    matrix_rank,
    matrix_sqrth,
    ormqr,
    polar,
    qr,
    solve,
    solve_triangular,
    svd,
    triangular_solve,
)
from scipy import special

# ---- pointwise references ---------------------------------------------------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else special.expit(x)


def logaddexp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not np.iscomplexobj(a):
        return np.logaddexp(a, b)
    large, small = np.where(a.real >= b.real, a, b), np.where(a.real >= b.real, b, a)
    return large + np.log1p(np.exp(small - large))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, np.zeros((), x.dtype))


def sign(x: np.ndarray) -> np.ndarray:
    """Computes -1, 0 or 1 in x's dtype; 0 for NaN, as in PyTorch."""
    return x if x.dtype == bool else np.where(np.isnan(x), 0, np.sign(x))


def sgn(x: np.ndarray) -> np.ndarray:
    """Computes sign, or x / abs(x) for complex numbers (0 for 0)."""
    if not np.iscomplexobj(x):
        return sign(x)
    size = np.abs(x)
    return np.where(size == 0, 0, x / np.where(size == 0, 1, size))


def sinc(x: np.ndarray) -> np.ndarray:
    """Computes sin(pi x) / (pi x) with pi x brought to a period first, where NumPy loses digits."""
    if np.iscomplexobj(x):
        return np.sinc(x)
    rest = x - np.rint(x)
    sine = np.where(np.rint(x) % 2 == 0, 1.0, -1.0) * np.sin(np.pi * rest)
    return np.where(x == 0, 1.0, sine / np.where(x == 0, 1.0, np.pi * x))


def lgamma(x: np.ndarray) -> np.ndarray:
    """Computes SciPy's; at the smallest numbers, where that overflows, -log |x|, and C's infinity at -infinity."""
    small = np.abs(x) < 1e-300
    made = np.where(small, -np.log(np.where(small, np.abs(x), 1.0)), special.gammaln(np.where(small, 1.0, x)))
    return np.where(np.isneginf(x), np.inf, made)


def logit(x: np.ndarray, eps: float | None = None) -> np.ndarray:
    return special.logit(x if eps is None else np.clip(x, eps, 1 - eps))


def elu(x: np.ndarray, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> np.ndarray:
    return np.where(x > 0, scale * x, scale * alpha * np.expm1(input_scale * np.minimum(x, 0)))


def celu(x: np.ndarray, alpha: float = 1) -> np.ndarray:
    return elu(x, alpha, 1, 1 / alpha)


def selu(x: np.ndarray) -> np.ndarray:
    return elu(x, 1.6732632423543772848, 1.0507009873554804934, 1)


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def mish(x: np.ndarray) -> np.ndarray:
    return x * np.tanh(np.logaddexp(0, x))


def hardtanh(x: np.ndarray, low: float = -1, high: float = 1) -> np.ndarray:
    return np.clip(x, low, high)


def hardsigmoid(x: np.ndarray) -> np.ndarray:
    return np.clip(x + 3, 0, 6) / 6


def hardswish(x: np.ndarray) -> np.ndarray:
    return x * hardsigmoid(x)


def softshrink(x: np.ndarray, lambd: float = 0.5) -> np.ndarray:
    return np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, np.where(np.isnan(x), x, 0)))


def hardshrink(x: np.ndarray, lambd: float = 0.5) -> np.ndarray:
    return np.where((x >= -lambd) & (x <= lambd), 0, x)


def threshold(x: np.ndarray, threshold: float, value: float) -> np.ndarray:
    return np.where(x <= threshold, np.asarray(value, x.dtype), x)


def heaviside(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.where(x == 0, values, np.asarray(x > 0, x.dtype))


def prelu(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    shape = [1] * x.ndim
    if weight.size > 1:
        shape[1 if x.ndim > 1 else 0] = weight.size
    return np.where(x > 0, x, x * weight.reshape(shape))


def glu(x: np.ndarray, dim: int = -1) -> np.ndarray:
    a, b = np.split(x, 2, dim)
    return a * sigmoid(b)


# ---- distances and products of vectors ----------------------------------------------------------------------------


def power_norm(x: np.ndarray, p: float = 2.0, axis: Any = None, keepdims: bool = False) -> np.ndarray:
    """Computes the p-norm over ``axis``, over everything without."""
    return np.sum(np.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)


def dist(x: np.ndarray, y: np.ndarray, p: float = 2.0) -> np.ndarray:
    return power_norm(x - y, p)


def cdist(x: np.ndarray, y: np.ndarray, p: float = 2.0, compute_mode: str = "") -> np.ndarray:
    return power_norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


def pdist(x: np.ndarray, p: float = 2.0) -> np.ndarray:
    return cdist(x, x, p)[np.triu_indices(len(x), 1)]


def pairwise_distance(
    x: np.ndarray, y: np.ndarray, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> np.ndarray:
    return power_norm(x - y + eps, p, -1, keepdim)


def cosine_similarity(x: np.ndarray, y: np.ndarray, dim: int = 1, eps: float = 1e-8) -> np.ndarray:
    x, y = np.broadcast_arrays(x, y)
    sizes = np.maximum(power_norm(x, 2, dim), eps) * np.maximum(power_norm(y, 2, dim), eps)
    return np.sum(x * y, dim) / sizes


def renorm(x: np.ndarray, p: float, dim: int, maxnorm: float) -> np.ndarray:
    others = tuple(d for d in range(x.ndim) if d != dim % x.ndim)
    size = power_norm(x, p, others, True)
    return x * np.where(size > maxnorm, maxnorm / (size + 1e-7), 1)


def linalg_cross(x: np.ndarray, y: np.ndarray, dim: int = -1) -> np.ndarray:
    return np.cross(x, y, axis=dim).astype(x.dtype)


def cross(x: np.ndarray, y: np.ndarray, dim: int | None = None) -> np.ndarray:
    return linalg_cross(x, y, x.shape.index(3) if dim is None else dim)


def new(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the reference of a factory that takes its dtype from a tensor."""
    return lambda x, *args: function(*args)


def leaky_relu(x: np.ndarray, negative_slope: float = 0.01) -> np.ndarray:
    return np.where(x > 0, x, x * negative_slope)


def gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    """Computes x times the normal distribution function, or its tanh approximation (Hendrycks and Gimpel 2016)."""
    if approximate == "none":
        return 0.5 * x * special.erfc(-x * np.sqrt(0.5))
    return x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))  # (1 + tanh z) / 2 = expit(2 z)


def softplus(x: np.ndarray, beta: float = 1.0, threshold: float = 20.0) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)


def logsigmoid(x: np.ndarray) -> np.ndarray:
    return np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x)))


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
    """Computes np.power; for integers a negative exponent gives the truncated 1 // x**-y (0 unless x is 1 or -1)."""
    if np.asarray(x).dtype.kind not in "iu":
        return np.power(x, y)
    y = np.asarray(y, dtype=np.asarray(x).dtype)
    positive = np.power(x, np.abs(y))
    return np.where(y >= 0, positive, np.where(np.abs(positive) == 1, positive, 0)).astype(x.dtype)


# ---- reductions -------------------------------------------------------------------------------------------------


def over(function: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a NumPy reduction PyTorch's arguments; a 0-d array has one dimension to reduce, as in PyTorch."""

    def reference(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        return function(x, axis=None if x.ndim == 0 else dim, keepdims=keepdim)

    return reference


def var(x: np.ndarray, dim: Any = None, unbiased: bool = True, keepdim: bool = False, correction: Any = None) -> Any:
    return np.var(x, axis=dim, keepdims=keepdim, ddof=int(unbiased) if correction is None else correction)


def norm(x: np.ndarray, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Any:
    p, a = 2.0 if p == "fro" else float(p), np.abs(x)
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(a, axis=dim, keepdims=keepdim)
    if p == 0:
        return np.sum(a != 0, axis=dim, keepdims=keepdim)
    return np.sum(a**p, axis=dim, keepdims=keepdim) ** (1 / p)


def cumsum(x: np.ndarray, dim: int) -> np.ndarray:
    return np.cumsum(x, dim) if x.ndim else x


def running_extremum(best: np.ufunc) -> Callable[..., Any]:
    """The reference of cummax and cummin: values, and the index of the last element that was as good."""

    def reference(x: np.ndarray, dim: int) -> Any:
        if x.ndim == 0:
            return x, np.zeros((), np.int64)
        values = best.accumulate(x, axis=dim)
        along = np.moveaxis(np.broadcast_to(np.arange(x.shape[dim]), np.moveaxis(x, dim, -1).shape), -1, dim)
        places = np.where((x == values) | np.isnan(x), along, 0)
        return values, np.maximum.accumulate(places, axis=dim)

    return reference


def sort(x: np.ndarray, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    """Values and indices in stable order; NaN is the largest."""
    if x.ndim == 0:
        return x, np.zeros((), np.int64)
    if descending:  # the last of equals in a reversed line is the first of them
        reverse = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
        places = np.flip(x.shape[dim] - 1 - reverse, dim)
    else:
        places = np.argsort(x, axis=dim, kind="stable")
    return np.take_along_axis(x, places, dim), places


def extremum(value: Callable[..., Any], place: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the reference of max or min: only values without a dim, (values, indices) with one."""

    def reference(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
        if dim is None:
            return over(value)(x)
        return over(value)(x, dim, keepdim), over(place)(x, dim, keepdim)

    return reference


# ---- views and indexing -----------------------------------------------------------------------------------------


def expand(x: np.ndarray, *size: int) -> np.ndarray:
    """Broadcasts to ``size``; -1 keeps a size."""
    lead = len(size) - x.ndim
    return np.broadcast_to(x, tuple(x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)))


def squeeze(x: np.ndarray, dim: Any = None) -> np.ndarray:
    """Removes the given dims of size 1 (all of them without a dim); other dims stay."""
    dims = range(x.ndim) if dim is None else [d % max(x.ndim, 1) for d in np.atleast_1d(dim)]
    return x.reshape([n for i, n in enumerate(x.shape) if i not in dims or n != 1])


def flatten(x: np.ndarray, start_dim: int = 0, end_dim: int = -1) -> np.ndarray:
    if x.ndim == 0:
        return x.reshape(1)
    start, end = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:start], int(np.prod(x.shape[start : end + 1])), *x.shape[end + 1 :])


def split(x: np.ndarray, size: Any, dim: int = 0) -> list[np.ndarray]:
    """Cuts into pieces of ``size`` (the last may be smaller) or of the listed sizes."""
    if isinstance(size, int):
        return np.split(x, range(size, x.shape[dim], size), axis=dim)
    return np.split(x, np.cumsum(size)[:-1], axis=dim)


def chunk(x: np.ndarray, chunks: int, dim: int = 0) -> list[np.ndarray]:
    """Cuts into at most ``chunks`` pieces of equal size, rounded up."""
    return split(x, max(1, -(-x.shape[dim] // chunks)), dim)


def as_strided(x: np.ndarray, size: tuple, stride: tuple, offset: int = 0) -> np.ndarray:
    """Reads the flat values of a contiguous x at offset + sum(index * stride)."""
    places = sum(
        (np.arange(n).reshape([-1] + [1] * (len(size) - 1 - i)) * s for i, (n, s) in enumerate(zip(size, stride))),
        np.int64(offset),
    )
    return x.reshape(-1)[np.broadcast_to(places, size)]


def put(x: np.ndarray, index: tuple, values: Any, accumulate: bool = False) -> np.ndarray:
    made = x.copy()
    if accumulate:
        np.add.at(made, tuple(index), values)
    else:
        made[tuple(index)] = values
    return made


def index_add(x: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, alpha: Any = 1) -> np.ndarray:
    made = x.copy()
    np.add.at(np.moveaxis(made, dim, 0), index, np.moveaxis(np.multiply(source, alpha).astype(x.dtype), dim, 0))
    return made


def index_fill(x: np.ndarray, dim: int, index: np.ndarray, value: Any) -> np.ndarray:
    made = x.reshape(x.shape or (1,)).copy()
    np.moveaxis(made, dim, 0)[index] = value
    return made.reshape(x.shape)


def _along(index: np.ndarray, dim: int) -> tuple:
    grid = list(np.indices(index.shape))
    grid[dim] = index
    return tuple(grid)


def gather(x: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    return x[_along(index, dim)]


def scatter_add(x: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray) -> np.ndarray:
    made = x.copy()
    np.add.at(made, _along(index, dim), src[tuple(slice(n) for n in index.shape)])
    return made


def sum_to_size(x: np.ndarray, *size: int) -> np.ndarray:
    lead = x.ndim - len(size)
    dims = tuple(i for i in range(x.ndim) if i < lead or (size[i - lead] == 1 and x.shape[i] != 1))
    return x.sum(axis=dims, keepdims=True).reshape(size)


def scatter(x: np.ndarray, dim: int, index: np.ndarray, src: Any) -> np.ndarray:
    made = x.copy()
    values = src[tuple(slice(n) for n in index.shape)] if isinstance(src, np.ndarray) else src
    made[_along(index, dim)] = values
    return made


def _combined(made: np.ndarray, used: np.ndarray, places: Any, values: np.ndarray, reduce: str) -> np.ndarray:
    """Combines ``values`` with ``made`` at ``places``; where ``used`` is 0, what was there takes no part."""
    start = {"sum": 0, "mean": 0, "prod": 1}
    if reduce in start:
        made[used == 0] = start[reduce]
    elif np.issubdtype(made.dtype, np.integer):
        bounds = np.iinfo(made.dtype)
        made[used == 0] = bounds.min if reduce == "amax" else bounds.max
    else:
        made[used == 0] = -np.inf if reduce == "amax" else np.inf
    at = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce].at
    at(made, places, values)
    if reduce == "mean":
        count = used.copy()
        np.add.at(count, places, 1)
        made = made // np.maximum(count, 1) if made.dtype.kind in "iu" else made / np.maximum(count, 1)
    return made


def scatter_reduce(
    x: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray, reduce: str, include_self: bool = True
) -> np.ndarray:
    used, places = np.ones(x.shape, np.int64), _along(index, dim)
    if not include_self:
        used[places] = 0
    values = src[tuple(slice(n) for n in index.shape)]
    return _combined(x.copy(), used, places, values, reduce).astype(x.dtype)


def index_copy(x: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    made = x.copy()
    np.moveaxis(made, dim, 0)[index] = np.moveaxis(source, dim, 0)
    return made


def index_reduce(
    x: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray, reduce: str, include_self: bool = True
) -> np.ndarray:
    shape = [1] * x.ndim
    shape[dim] = index.size
    return scatter_reduce(x, dim, np.broadcast_to(index.reshape(shape), source.shape), source, reduce, include_self)


def put_line(x: np.ndarray, index: np.ndarray, source: np.ndarray, accumulate: bool = False) -> np.ndarray:
    made = x.copy().reshape(-1)
    if accumulate:
        np.add.at(made, index.reshape(-1), source.reshape(-1))
    else:
        made[index.reshape(-1)] = source.reshape(-1)
    return made.reshape(x.shape)


def masked_scatter(x: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    made, places = x.copy(), np.broadcast_to(mask, x.shape)
    made[places] = source.reshape(-1)[: int(places.sum())]
    return made


def as_strided_scatter(x: np.ndarray, src: np.ndarray, size: tuple, stride: tuple, offset: int = 0) -> np.ndarray:
    y = x.copy().reshape(-1)
    for at in np.ndindex(size):
        y[offset + sum(i * s for i, s in zip(at, stride))] = src[at]
    return y.reshape(x.shape)


def select_scatter(x: np.ndarray, src: np.ndarray, dim: int, index: int) -> np.ndarray:
    made = x.copy()
    np.moveaxis(made, dim, 0)[index] = src
    return made


def slice_scatter(
    x: np.ndarray, src: np.ndarray, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> np.ndarray:
    made = x.copy()
    np.moveaxis(made, dim, 0)[start:end:step] = np.moveaxis(src, dim, 0)
    return made


def diagonal_scatter(x: np.ndarray, src: np.ndarray, offset: int = 0, dim1: int = 0, dim2: int = 1) -> np.ndarray:
    made = x.copy()
    part = np.diagonal(made, offset, dim1, dim2)
    part.flags.writeable = True
    part[...] = src
    return made


def one_hot(x: np.ndarray, num_classes: int = -1) -> np.ndarray:
    return np.eye(int(x.max()) + 1 if num_classes == -1 else num_classes, dtype=np.int64)[x]


# ---- products and networks --------------------------------------------------------------------------------------


def rfft2(x: np.ndarray, s: Any = None, dim: tuple = (-2, -1), norm: Any = None) -> np.ndarray:
    """NumPy's, which knows no size of -1 and no tensor without elements."""
    sizes = [x.shape[d] for d in dim] if s is None else [x.shape[d] if n == -1 else n for n, d in zip(s, dim)]
    if x.size == 0:
        shape = list(x.shape)
        for d, n in zip(dim, [*sizes[:-1], sizes[-1] // 2 + 1]):
            shape[d] = n
        return np.zeros(shape, np.complex128)
    return np.fft.rfftn(x, sizes, dim, norm)


def addmm(c: np.ndarray, a: np.ndarray, b: np.ndarray, beta: Any = 1, alpha: Any = 1) -> np.ndarray:
    return (beta * c + alpha * np.matmul(a, b)).astype(a.dtype)


def linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    product = np.matmul(x, weight.T)
    return product if bias is None else product + bias


def log_softmax(x: np.ndarray, dim: int) -> np.ndarray:
    return x - special.logsumexp(x, axis=dim, keepdims=True) if x.ndim else np.zeros_like(x)


def softmax(x: np.ndarray, dim: int) -> np.ndarray:
    return np.exp(log_softmax(x, dim))


def reduced(losses: np.ndarray, weights: Any, reduction: str) -> np.ndarray:
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / np.sum(np.broadcast_to(weights, losses.shape))


def nll_loss(
    x: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> np.ndarray:
    """Computes the loss of log-probabilities x [N, C] or [N, C, ...] for class numbers target [N, ...]."""
    chosen = np.where(target == ignore_index, 0, target)
    scale = (np.ones(x.shape[1]) if weight is None else weight)[chosen] * (target != ignore_index)
    return reduced(-np.take_along_axis(x, chosen[:, None], 1)[:, 0] * scale, scale, reduction)


def cross_entropy(
    x: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> np.ndarray:
    """Computes the loss of scores x [N, C, ...]; target has class numbers [N, ...] or probabilities of x's shape."""
    scores, classes = log_softmax(x, 1), x.shape[1]
    by_class = (np.ones(classes) if weight is None else weight).reshape([1, -1] + [1] * (x.ndim - 2))
    if target.shape == x.shape:
        smooth = target * (1 - label_smoothing) + label_smoothing / classes
        losses = -(scores * smooth * by_class).sum(axis=1)
        return reduced(losses, 1.0, reduction)
    kept = target != ignore_index
    scale = by_class.reshape(-1)[np.where(kept, target, 0)] * kept
    exact = nll_loss(scores, target, weight, ignore_index, "none")
    spread = -(scores * by_class).sum(axis=1) * kept / classes
    return reduced((1 - label_smoothing) * exact + label_smoothing * spread, scale, reduction)


def mse_loss(x: np.ndarray, target: np.ndarray, reduction: str = "mean") -> np.ndarray:
    return reduced((x - target) ** 2, 1.0, reduction)


def batch_norm(
    x: np.ndarray,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> np.ndarray:
    """Normalizes each channel (dimension 1) by the batch's moments, or by the running ones outside training."""
    shape = [1, -1] + [1] * (x.ndim - 2)
    dims = (0, *range(2, x.ndim))
    mean = x.mean(axis=dims) if training else running_mean
    variance = x.var(axis=dims) if training else running_var
    made = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + eps)
    made = made if weight is None else made * weight.reshape(shape)
    return made if bias is None else made + bias.reshape(shape)


def layer_norm(
    x: np.ndarray, normalized_shape: tuple, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> np.ndarray:
    """Normalizes the last dimensions by their moments (Ba et al. 2016)."""
    dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    made = (x - x.mean(axis=dims, keepdims=True)) / np.sqrt(x.var(axis=dims, keepdims=True) + eps)
    made = made if weight is None else made * weight
    return made if bias is None else made + bias


def normalize(x: np.ndarray, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> np.ndarray:
    return x / np.maximum(norm(x, p, dim, True), eps)


def binary_cross_entropy(
    x: np.ndarray, target: np.ndarray, weight: Any = None, reduction: str = "mean", pos_weight: Any = 1.0
) -> np.ndarray:
    losses = -(pos_weight * target * logsigmoid(x) + (1 - target) * logsigmoid(-x))
    return reduced(losses if weight is None else losses * weight, 1.0, reduction)


# ---- rearranging ------------------------------------------------------------------------------------------------


def repeat_interleave(x: np.ndarray, repeats: Any, dim: Any = None) -> np.ndarray:
    return np.repeat(x, repeats, axis=dim)


def roll(x: np.ndarray, shifts: Any, dims: Any = None) -> np.ndarray:
    return np.roll(x, shifts, axis=dims)


def unflatten(x: np.ndarray, dim: int, sizes: tuple) -> np.ndarray:
    dim %= x.ndim
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def unfold(x: np.ndarray, dim: int, size: int, step: int) -> np.ndarray:
    starts = range(0, x.shape[dim] - size + 1, step)
    parts = [np.moveaxis(np.take(x, range(start, start + size), axis=dim), dim, -1) for start in starts]
    return np.stack(parts, axis=dim % x.ndim)


def diag_embed(x: np.ndarray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> np.ndarray:
    n = x.shape[-1] + abs(offset)
    made = np.zeros((*x.shape[:-1], n, n), x.dtype)
    rows = np.arange(x.shape[-1]) + max(-offset, 0)
    made[..., rows, rows + offset] = x
    return np.moveaxis(made, (-2, -1), (dim1, dim2))


def tensor_split(x: np.ndarray, where: Any, dim: int = 0) -> list[np.ndarray]:
    if isinstance(where, int):
        return np.array_split(x, where, axis=dim)
    starts = [slice(begin, end) for begin, end in zip((0, *where), (*where, None))]
    return [np.moveaxis(np.moveaxis(x, dim, 0)[part], 0, dim) for part in starts]


def numpy_split(split: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, where: split(x, list(where) if isinstance(where, tuple) else where)


def column_stack(arrays: Any) -> np.ndarray:
    return np.concatenate([a.reshape(-1, 1) if a.ndim < 2 else a for a in arrays], axis=1)


def triangle(indices: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the reference of tril_indices or triu_indices."""
    return lambda row, col, offset=0, dtype=None: np.stack(indices(row, offset, col)).astype(dtype or np.int64)


# ---- order statistics -------------------------------------------------------------------------------------------


def topk(x: np.ndarray, k: int, dim: int = -1, largest: bool = True) -> Any:
    values, places = sort(x, dim, largest)
    return (values, places) if x.ndim == 0 else tuple(np.take(a, range(k), axis=dim) for a in (values, places))


def kthvalue(x: np.ndarray, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    values, places = sort(x, dim)
    if x.ndim == 0:
        return values, places
    return tuple(np.take(a, [k - 1] if keepdim else k - 1, axis=dim) for a in (values, places))


def median(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        return kthvalue(x.reshape(-1), (x.size + 1) // 2, 0)[0]
    return kthvalue(x, (x.shape[dim] + 1) // 2 if x.ndim else 1, dim, keepdim)


def logsumexp(x: np.ndarray, dim: Any, keepdim: bool = False) -> np.ndarray:
    return special.logsumexp(x, axis=dim if x.ndim else None, keepdims=keepdim)


def moments(spread: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the reference of var_mean or std_mean."""

    def reference(x: np.ndarray, *args: Any, **kwargs: Any) -> Any:
        dim = args[0] if args and not isinstance(args[0], bool) else kwargs.get("dim")
        keepdim = args[2] if len(args) > 2 else kwargs.get("keepdim", False)
        return spread(x, *args, **kwargs), np.mean(x, axis=dim, keepdims=keepdim)

    return reference


def aminmax(x: np.ndarray, dim: Any = None, keepdim: bool = False) -> Any:
    dim = dim if x.ndim else None
    return np.amin(x, axis=dim, keepdims=keepdim), np.amax(x, axis=dim, keepdims=keepdim)


def diff(x: np.ndarray, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> np.ndarray:
    parts = [a for a in (prepend, x, append) if a is not None]
    return np.diff(np.concatenate(parts, axis=dim), min(n, sum(a.shape[dim] for a in parts)), axis=dim)


def addmv(x: np.ndarray, mat: np.ndarray, vec: np.ndarray, beta: Any = 1, alpha: Any = 1) -> np.ndarray:
    product = alpha * (mat @ vec)
    return (product if beta == 0 else beta * x + product).astype(mat.dtype)


def vector_norm(x: np.ndarray, ord: float = 2, dim: Any = None, keepdim: bool = False) -> np.ndarray:
    size = np.abs(x)
    if ord == np.inf:
        return size.max(axis=dim, keepdims=keepdim)
    return power_norm(x, ord, dim, keepdim)


def places_by_rank(x: np.ndarray, first: int, count: int, dim: int, largest: bool) -> np.ndarray:
    order = sort(x, dim, largest)[1]
    return np.take(order, range(first, first + count), axis=dim)
