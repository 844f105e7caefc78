"""Rows of the table of ops for windows over images and what resizes them: convolution, pooling, padding, patches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, Callable

import numpy as np
import vesta
from op_db_row import Constant, Maker, Row, Sample, call, structured

Array = np.ndarray
Samples = Callable[[Maker], Iterator[Sample]]


def many(value: Any, dims: int) -> tuple[int, ...]:
    """Returns one number per dimension."""
    return (value,) * dims if isinstance(value, int) else tuple(value) * (dims if len(value) == 1 else 1)


# ---- References ----


def windows(x: Array, kernel: Any, stride: Any, padding: Any, dilation: Any, fill: Any) -> Array:
    """Returns the windows [N, C, out..., kernel...] of x [N, C, ...]."""
    dims = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)], constant_values=fill)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    views = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, 2 + dims)))
    return views[(..., *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))]


def batched(dims: int) -> Callable[[Callable[..., Array]], Callable[..., Array]]:
    """Lets a reference for [N, C, ...] take [C, ...] too."""

    def decorate(f: Callable[..., Array]) -> Callable[..., Array]:
        return lambda x, *args, **kwargs: (
            f(x, *args, **kwargs) if x.ndim == dims + 2 else f(x[None], *args, **kwargs)[0]
        )

    return decorate


def convolution(dims: int) -> Callable[..., Array]:
    @batched(dims)
    def reference(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Array:
        step = many(dilation, dims)
        if isinstance(padding, str):
            total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(step, weight.shape[2:])]
            x = np.pad(x, [(0, 0), (0, 0), *((t // 2, t - t // 2) for t in total)])
            padding = 0
        inputs, outputs = x.shape[1] // groups, weight.shape[0] // groups
        made = []
        for g in range(groups):
            part = x[:, g * inputs : (g + 1) * inputs]
            seen = windows(part, weight.shape[2:], many(stride, dims), many(padding, dims), step, 0)
            flat = seen.reshape(*seen.shape[: 2 + dims], int(np.prod(weight.shape[2:])))
            rows = weight[g * outputs : (g + 1) * outputs].reshape(outputs, inputs, -1)
            made.append(np.einsum("nc...k,ock->no...", flat, rows))
        result = np.concatenate(made, axis=1)
        return result if bias is None else result + bias.reshape(-1, *(1,) * dims)

    return reference


def transposed_convolution(dims: int) -> Callable[..., Array]:
    @batched(dims)
    def reference(
        x: Array,
        weight: Array,
        bias: Array | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Array:
        stride, padding, more, step = (many(v, dims) for v in (stride, padding, output_padding, dilation))
        kernel, inputs, outputs = weight.shape[2:], x.shape[1] // groups, weight.shape[1]
        full = [
            (n - 1) * s + d * (k - 1) + 1 + max(m, 0) for n, s, d, k, m in zip(x.shape[2:], stride, step, kernel, more)
        ]
        result = np.zeros((x.shape[0], outputs * groups, *full), x.dtype)
        for g in range(groups):
            for tap in itertools.product(*(range(k) for k in kernel)):
                part = weight[g * inputs : (g + 1) * inputs][(slice(None), slice(None), *tap)]
                at = tuple(
                    slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, step, x.shape[2:], stride)
                )
                term = np.einsum("nc...,co->no...", x[:, g * inputs : (g + 1) * inputs], part)
                result[(slice(None), slice(g * outputs, (g + 1) * outputs), *at)] += term
        result = result[(..., *(slice(p, n - p) for p, n in zip(padding, full)))]
        return result if bias is None else result + bias.reshape(-1, *(1,) * dims)

    return reference


def max_pool(dims: int) -> Callable[..., Array]:
    @batched(dims)
    def reference(x: Array, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1) -> Array:
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        kernel = many(kernel_size, dims)
        step = kernel if stride is None else many(stride, dims)
        seen = windows(x, kernel, step, many(padding, dims), many(dilation, dims), lowest)
        return seen.max(axis=tuple(range(-dims, 0)))

    return reference


def fractional_max_pool(x: Array, u: Array, outputs: tuple[int, ...], kernel: tuple[int, ...]) -> Array:
    starts = []
    number = float(u.flat[0]) if u.size else 0.0
    for size, output, k in zip(x.shape[2:], outputs, kernel):
        alpha = (size - k) / max(output - 1, 1)
        starts.append([int((i + number) * alpha) - int(number * alpha) for i in range(output - 1)] + [size - k])
    result = np.empty((*x.shape[:2], *outputs), x.dtype)
    for place in np.ndindex(*outputs):
        corner = [of[i] for of, i in zip(starts, place)]
        seen = x[(..., *(slice(at, at + k) for at, k in zip(corner, kernel)))]
        result[(..., *place)] = seen.max(axis=tuple(range(2, x.ndim)))
    return result


def fractional(make: Maker) -> Iterator[Sample]:
    """Images and volumes, and equal numbers for all channels, which no dtype rounds."""
    for shape, outputs, kernel in (
        ((1, 2, 6, 7), (3, 2), (2, 3)),
        ((2, 1, 4, 5, 6), (2, 2, 3), (1, 2, 2)),
        ((0, 2, 3, 3), (1, 2), (1, 1)),
    ):
        yield call(make.distinct(*shape), Constant(np.full((*shape[:2], len(outputs)), 0.25)), outputs, kernel)


def avg_pool(dims: int) -> Callable[..., Array]:
    @batched(dims)
    def reference(
        x: Array,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Array:
        kernel, pad = many(kernel_size, dims), many(padding, dims)
        step = kernel if stride is None else many(stride, dims)
        outs = []
        for n, k, s, p in zip(x.shape[2:], kernel, step, pad):
            room = n + 2 * p - k
            count = -(-room // s) + 1 if ceil_mode else room // s + 1
            outs.append(count - (ceil_mode and (count - 1) * s >= n + p))
        result = np.empty((*x.shape[:2], *outs), x.dtype)
        for place in itertools.product(*(range(o) for o in outs)):
            starts = [i * s - p for i, s, p in zip(place, step, pad)]
            ends = [min(a + k, n + p) for a, k, n, p in zip(starts, kernel, x.shape[2:], pad)]
            inside = tuple(slice(max(a, 0), min(e, n)) for a, e, n in zip(starts, ends, x.shape[2:]))
            sums = x[(..., *inside)].sum(axis=tuple(range(-dims, 0)))
            size = np.prod([e - a for a, e in zip(starts, ends)]) if count_include_pad else 0
            valid = np.prod([s.stop - s.start for s in inside])
            result[(..., *place)] = sums / (divisor_override or size or valid)
        return result

    return reference


def adaptive(dims: int, reduce: Callable[..., Array]) -> Callable[..., Array]:
    @batched(dims)
    def reference(x: Array, output_size: Any) -> Array:
        outs = many(output_size, dims)
        result = np.empty((*x.shape[:2], *outs), x.dtype)
        for place in itertools.product(*(range(o) for o in outs)):
            at = tuple(slice(i * n // o, -(-(i + 1) * n // o)) for i, n, o in zip(place, x.shape[2:], outs))
            result[(..., *place)] = reduce(x[(..., *at)], axis=tuple(range(-dims, 0)))
        return result

    return reference


def pad(x: Array, sizes: Any, mode: str = "constant", value: float | None = None) -> Array:
    sides = [(0, 0)] * x.ndim
    for i in range(len(sizes) // 2):
        sides[-1 - i] = (sizes[2 * i], sizes[2 * i + 1])
    for d, (before, after) in enumerate(sides):  # negative sizes cut
        x = np.take(x, range(max(0, -before), x.shape[d] - max(0, -after)), axis=d)
    sides = [(max(0, a), max(0, b)) for a, b in sides]
    if mode == "constant":
        return np.pad(x, sides, constant_values=0 if value is None else value)
    return np.pad(x, sides, mode={"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


def keys(x: float, a: float) -> float:
    """Returns the weight of cubic convolution at a distance (Keys 1981)."""
    x = abs(x)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def resizer(n: int, out: int, mode: str, align: bool, antialias: bool, scale: float | None) -> Array:
    """Returns the matrix [out, n] of an interpolation along one dimension."""
    step = ((n - 1) / (out - 1) if out > 1 else 0.0) if align else (1 / scale if scale else n / out)
    m = np.zeros((out, n))
    for o in range(out):
        middle = step * (o + 0.5)
        source = step * o if align else middle - 0.5
        if mode == "nearest":
            m[o, min(int(o * step), n - 1)] = 1
        elif mode == "nearest-exact":
            m[o, min(int(middle), n - 1)] = 1
        elif antialias:
            wide, cubic = max(step, 1.0), mode == "bicubic"
            places = np.arange(n)
            d = (places - middle + 0.5) / wide
            half = (2 if cubic else 1) * wide
            near = (places >= int(max(middle - half + 0.5, 0))) & (places < min(int(middle + half + 0.5), n))
            m[o] = near * ([keys(v, -0.5) for v in d] if cubic else np.maximum(0, 1 - np.abs(d)))
            m[o] /= m[o].sum()
        elif mode == "bicubic":
            for k in range(-1, 3):
                m[o, min(max(int(np.floor(source)) + k, 0), n - 1)] += keys(source - np.floor(source) - k, -0.75)
        else:
            source = max(source, 0)
            low = min(int(source), n - 1)
            m[o, low] += 1 - min(source - low, 1.0)
            m[o, min(low + 1, n - 1)] += min(source - low, 1.0)
    return m


def interpolate(x: Array, size: Any, mode: str, align: bool, antialias: bool, *scales: float | None) -> Array:
    dims = x.ndim - 2
    for d in range(dims):
        m = resizer(x.shape[d + 2], size[d], mode, align, antialias, scales[3 - dims + d])
        x = np.moveaxis(np.tensordot(m, x, (1, d + 2)), 0, d + 2)
    return x


def unfold(x: Array, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    one = x[None] if x.ndim == 3 else x
    seen = windows(one, many(kernel, 2), many(stride, 2), many(padding, 2), many(dilation, 2), 0)
    n, c, oh, ow, kh, kw = seen.shape
    r = seen.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * kh * kw, oh * ow)
    return r[0] if x.ndim == 3 else r


def fold(x: Array, output: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Array:
    one = x[None] if x.ndim == 2 else x
    (h, w), (kh, kw), (ph, pw) = many(output, 2), many(kernel, 2), many(padding, 2)
    (dh, dw), (sh, sw) = many(dilation, 2), many(stride, 2)
    oh, ow = (h + 2 * ph - dh * (kh - 1) - 1) // sh + 1, (w + 2 * pw - dw * (kw - 1) - 1) // sw + 1
    n, c = one.shape[0], one.shape[1] // (kh * kw)
    cols, r = one.reshape(n, c, kh, kw, oh, ow), np.zeros((n, c, h + 2 * ph, w + 2 * pw), x.dtype)
    for a, b in itertools.product(range(kh), range(kw)):
        rows, columns = slice(a * dh, a * dh + (oh - 1) * sh + 1, sh), slice(b * dw, b * dw + (ow - 1) * sw + 1, sw)
        r[:, :, rows, columns] += cols[:, :, a, b]
    r = r[:, :, ph : ph + h, pw : pw + w]
    return r[0] if x.ndim == 2 else r


def grid_sampler(x: Array, grid: Array, mode: int, padding: int, align: bool) -> Array:
    """Reads x at the places of a grid, place by place."""
    dims = x.ndim - 2
    plane = x.shape[2:]
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]), np.result_type(x, grid))

    def fit(at: float, n: int) -> float:
        if padding == 0:
            return at
        if padding == 2:
            low, high = (0.0, n - 1.0) if align else (-0.5, n - 0.5)
            span = high - low
            rest = (at - low) % (2 * span) if span else 0.0
            at = low + (rest if rest <= span else 2 * span - rest)
        return min(max(at, 0.0), n - 1.0)

    for place in itertools.product(*(range(n) for n in (x.shape[0], *grid.shape[1:-1]))):
        axes = []
        for d in range(dims):
            n, g = plane[d], float(grid[place][dims - 1 - d])
            at = (g + 1) / 2 * (n - 1) if align else ((g + 1) * n - 1) / 2
            if mode == 1:
                axes.append([(int(np.rint(fit(at, n))), 1.0)])
            elif mode == 0:
                at = fit(at, n)
                low = int(np.floor(at))
                axes.append([(low, 1 - (at - low)), (low + 1, at - low)])
            else:
                low = int(np.floor(at))
                axes.append([(int(fit(low + k, n)), keys(at - low - k, -0.75)) for k in range(-1, 3)])
        for taps in itertools.product(*axes):
            if all(0 <= t[0] < n for t, n in zip(taps, plane)):
                value = x[(place[0], slice(None), *(t[0] for t in taps))]
                result[(place[0], slice(None), *place[1:])] += value * np.prod([t[1] for t in taps])
    return result


def affine_grid(theta: Array, size: Any, align: bool) -> Array:
    axes = []
    for n in size[2:]:
        at = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        axes.append(at if align else at * (n - 1) / n)
    mesh = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(size[2:])], axis=-1)
    return np.einsum("...j,nij->n...i", mesh, theta)


def pixel_shuffle(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    split = x.reshape(*lead, c // r**2, r, r, h, w)
    return np.moveaxis(split, (-4, -3), (-3, -1)).reshape(*lead, c // r**2, h * r, w * r)


def pixel_unshuffle(x: Array, r: int) -> Array:
    *lead, c, h, w = x.shape
    split = x.reshape(*lead, c, h // r, r, w // r, r)
    return np.moveaxis(split, (-3, -1), (-4, -3)).reshape(*lead, c * r**2, h // r, w // r)


def channel_shuffle(x: Array, groups: int) -> Array:
    n, c, *rest = x.shape
    return x.reshape(n, groups, c // groups, *rest).swapaxes(1, 2).reshape(x.shape)


# ---- Samples ----


def sized(*cases: tuple[tuple[int, ...], tuple[Any, ...]], distinct: bool = False, **options: Any) -> Samples:
    """Returns samples of one tensor each, with further arguments."""

    def samples(make: Maker) -> Iterator[Sample]:
        for shape, args in cases:
            yield call(make.distinct(*shape) if distinct else make(*shape, low=-2, high=2), *args, **options)

    return samples


def conv_grad(dims: int) -> Samples:
    more = (1,) * (dims - 1)

    def samples(make: Maker) -> Iterator[Sample]:
        draw = lambda *shape: make(*shape, low=-1, high=1)
        yield call(draw(1, 1, 3, *more), draw(1, 1, 2, *more))
        yield call(draw(2, 2, 4, *more), draw(2, 2, 3, *more), draw(2), stride=2, padding=1)
        yield call(draw(1, 2, 4, *more), draw(2, 1, 2, *more), draw(2), groups=2, padding=(1, *(0,) * (dims - 1)))
        yield call(draw(1, 1, 5, *more), draw(1, 1, 2, *more), None, 1, 0, 2)

    return samples


def conv(dims: int) -> Samples:
    def samples(make: Maker) -> Iterator[Sample]:
        draw = lambda *shape: make(*shape, low=-1, high=1)
        n = (6, 5, 4)[:dims]
        yield from conv_grad(dims)(make)
        yield call(draw(2, 3, *n), draw(5, 3, *(3, 2, 3)[:dims]), draw(5), stride=(2, 1, 1)[:dims], padding=1)
        yield call(draw(2, 4, *n), draw(6, 2, *(3,) * dims), draw(6), 1, 1, (2, 1, 1)[:dims], 2)
        yield call(draw(3, *n), draw(2, 3, *(2, 4, 1)[:dims]), draw(2), padding="same")
        yield call(draw(1, 3, *n), draw(2, 3, *(2,) * dims), padding="valid")
        yield call(draw(0, 3, *n), draw(2, 3, *(3,) * dims), draw(2))

    return samples


def transposed_grad(dims: int) -> Samples:
    more = (1,) * (dims - 1)

    def samples(make: Maker) -> Iterator[Sample]:
        draw = lambda *shape: make(*shape, low=-1, high=1)
        yield call(draw(1, 1, 3, *more), draw(1, 1, 2, *more))
        first = lambda n, rest: (n, *(rest,) * (dims - 1))
        yield call(draw(2, 2, 3, *more), draw(2, 2, 3, *more), draw(2), first(2, 1), first(1, 0), first(1, 0))
        yield call(draw(1, 2, 2, *more), draw(2, 1, 2, *more), draw(2), groups=2)
        yield call(draw(1, 1, 3, *more), draw(1, 2, 2, *more), None, 1, 0, first(1, 0), 1, 2)

    return samples


def transposed(dims: int) -> Samples:
    def samples(make: Maker) -> Iterator[Sample]:
        draw = lambda *shape: make(*shape, low=-1, high=1)
        n = (4, 3, 3)[:dims]
        yield from transposed_grad(dims)(make)
        yield call(draw(2, 4, *n), draw(4, 3, *(3, 2, 3)[:dims]), draw(6), (2, 1, 3)[:dims], 1, (1, 0, 2)[:dims], 2)
        yield call(draw(3, *n), draw(3, 5, *(2,) * dims), draw(5), stride=2, dilation=(2, 1, 1)[:dims])
        yield call(draw(0, 3, *n), draw(3, 2, *(3,) * dims), draw(2))

    return samples


def grids(*cases: tuple[tuple[int, ...], tuple[int, ...]], modes: tuple[int, ...] = (0, 1, 2)) -> Samples:
    def samples(make: Maker) -> Iterator[Sample]:
        for (image, places), mode, padding, align in itertools.product(cases, modes, (0, 1, 2), (False, True)):
            if mode < 2 or len(image) == 4:
                yield call(make(*image, low=-1, high=1), make(*places, low=-1.4, high=1.4), mode, padding, align)

    return samples


def resizes(*cases: tuple[Any, ...]) -> Samples:
    """Returns samples of (shape, size, mode, align_corners, antialias, scales...)."""

    def samples(make: Maker) -> Iterator[Sample]:
        for shape, size, mode, align, antialias, *scales in cases:
            yield call(make(*shape, low=-2, high=2), size, mode, align, antialias, *(scales or (None, None, None)))

    return samples


RESIZES = (
    ((1, 2, 5), (8,), "nearest", False, False),
    ((1, 2, 5), (3,), "nearest-exact", False, False),
    ((2, 1, 5), (8,), "linear", False, False),
    ((1, 1, 4, 3), (7, 2), "bilinear", False, False),
    ((1, 1, 4, 3), (7, 5), "bilinear", True, False),
    ((1, 1, 4, 3), (6, 5), "bicubic", False, False),
    ((1, 1, 4, 3), (3, 5), "bicubic", True, False),
    ((1, 1, 7, 6), (3, 4), "bilinear", False, True),
    ((1, 1, 7, 6), (3, 9), "bicubic", False, True),
    ((1, 1, 2, 3, 2), (3, 4, 5), "trilinear", False, False),
    ((1, 1, 2, 3, 2), (3, 4, 1), "nearest", False, False),
    ((1, 1, 5, 4), (7, 6), "bilinear", False, False, None, 1.5, 1.6),
    ((1, 1, 4, 4), (4, 4), "bilinear", False, False),
)


def convolutions_with(
    residual: bool, image: tuple[int, ...] = (2, 4, 5, 4), out: int = 6, kernel: tuple[int, int] = (3, 2)
) -> Callable[[Maker], Iterator[Sample]]:
    """Samples of a convolution with relu, and with a residual before it, of ``out`` channels."""
    n, channels, *size = image

    def samples(make: Maker) -> Iterator[Sample]:
        draw = lambda *shape: make(*shape, low=-1, high=1)
        for alpha, bias, stride, groups in ((None, True, [1, 1], 1), (1, False, [2, 1], 2), (-2, True, [1, 1], 1)):
            places = [(s + 2 - k) // step + 1 for s, k, step in zip(size, kernel, stride)]
            x, w = draw(*image), draw(out, channels // groups, *kernel)
            z = (draw(n, out, *places), alpha) if residual else ()
            yield call(x, w, *z, draw(out) if bias else None, stride, [1, 1], [1, 1], groups)

    return samples


# ---- Rows ----


def rows() -> Iterator[Row]:
    """Makes the rows, for 1 to 3 dimensions where there are so many functions."""
    inexact: dict[str, Any] = {"method": False, "ulp": 0, "bitwise": False}
    made = convolution(2)
    small = ((1, 2, 3, 2), 2, (2, 2))
    yield structured("cudnn_convolution_relu", lambda *a: np.maximum(made(*a), 0), convolutions_with(False),
                     grad_samples=convolutions_with(False, *small), repeats=False, dtypes="hf", may="uic",
                     **inexact)  # fmt: skip
    yield structured("cudnn_convolution_add_relu",
                     lambda x, w, z, alpha, *a: np.maximum(made(x, w, *a) + (1 if alpha is None else alpha) * z, 0),
                     convolutions_with(True), grad_samples=convolutions_with(True, *small), repeats=False,
                     dtypes="hf", may="uic", **inexact)  # fmt: skip
    for n in (1, 2, 3):
        fn = getattr(vesta, f"conv{n}d")
        parts = ("_convolution", "_convolution_backward_input", "_convolution_backward_weight")
        covers = (f"conv{n}d", *(parts if n == 2 else ()))
        yield structured(f"conv{n}d", convolution(n), conv(n), grad_samples=conv_grad(n), fn=fn, dtypes="hf",
                         may="uic", covers=covers, **inexact)  # fmt: skip
        name = f"conv_transpose{n}d"
        yield structured(name, transposed_convolution(n), transposed(n), grad_samples=transposed_grad(n), dtypes="hf",
                         may="uic", covers=(name, "convolution") if n == 2 else (name,), **inexact)  # fmt: skip
        more = (3,) * (n - 1)
        cases = (((1, 1, 4, *more), (2,)), ((2, 2, 5, *more), (2, 1)), ((1, 2, 5, *more), (3, 2, 1)),
                 ((1, 1, 7, *(5,) * (n - 1)), (2, 1, 0, 2)), ((2, 4, *more), (2,)),
                 ((0, 2, 4, *more), (2,)))  # fmt: skip
        parts = ("_max_pool", "_max_pool_values", "_max_pool_backward")
        covers = (f"max_pool{n}d", f"max_pool{n}d_with_indices", *(parts if n == 2 else ()))
        yield structured(f"max_pool{n}d", max_pool(n), sized(*cases, distinct=True), fn=getattr(vesta, f"max_pool{n}d"),
                         dtypes="hf", may="ui", method=False, ulp=0.5, covers=covers)  # fmt: skip
        cases = (((1, 1, 4, *more), (2,)), ((2, 2, 5, *more), (2, 1)), ((1, 2, 5, *more), (3, 2, 1)),
                 ((1, 1, 6, *more), (3, 2, 1, True)), ((2, 6, *more), (3, 2, 1, True, False)))  # fmt: skip
        override = (((1, 1, 5, *more), (2, 2, 1, False, True, 3)),) if n > 1 else ()
        covers = {1: ("avg_pool1d", "_resample"), 2: ("avg_pool2d", "_resample_planes")}.get(n, ())
        yield structured(f"avg_pool{n}d", avg_pool(n), sized(*cases, *override),
                         fn=vesta.avg_pool1d if n == 1 else getattr(vesta._C._nn, f"avg_pool{n}d"), dtypes="hf",
                         may="ui", covers=covers, **inexact)  # fmt: skip
        cases = (((1, 2, 5, *more), (3,)), ((2, 4, *more), (1,)), ((1, 1, 4, *more), ((6, 2, 4)[:n],)))
        place = vesta if n == 1 else vesta._C._private
        yield structured(f"adaptive_avg_pool{n}d", adaptive(n, np.mean), sized(*cases), dtypes="hf",
                         fn=getattr(place, f"adaptive_avg_pool{n}d"), **inexact)  # fmt: skip
        largest = getattr(place, f"adaptive_max_pool{n}d")
        yield structured(f"adaptive_max_pool{n}d", adaptive(n, np.max), sized(*cases, distinct=True), dtypes="hf",
                         may="ui", fn=lambda x, size, f=largest: f(x, size)[0], method=False, ulp=0.5)  # fmt: skip
    yield structured("_fractional_max_pool", fractional_max_pool, fractional, dtypes="hf", method=False, ulp=0.5,
                     fn=lambda *args: vesta._C._private._fractional_max_pool(*args)[0],
                     covers=("_fractional_max_pool",))  # fmt: skip
    yield structured("constant_pad_nd", lambda x, p, v=0: pad(x, p, "constant", v),
                     sized(((3,), ((1, 2),)), ((2, 3), ((1, 0, 0, 2), 1)), ((4, 3), ((-1, 1, 2, -3), 1)),
                           ((0, 2), ((1, 1),)), ((2, 3, 2), ((),))),
                     dtypes="buihfc", method=False, ulp=0.5)  # fmt: skip
    pads = (((1, 2, 4), ((1, 2), "reflect")), ((2, 4), ((3, 0), "replicate")),
            ((1, 1, 3, 4), ((2, 1, 1, 2), "circular")), ((1, 1, 3, 4), ((2, 1, 1, 2), "reflect")),
            ((1, 2, 3, 2), ((1, 1, 1, 0, 1, 1), "replicate")),
            ((1, 2, 4), ((-1, 2), "reflect")), ((2, 3), ((1, 1), "constant", 1.0)))  # fmt: skip
    yield structured("pad", pad, sized(*pads), fn=vesta._C._nn.pad, dtypes="hf", may="buic", method=False, ulp=0.5)
    yield structured("_interpolate", interpolate, resizes(*RESIZES), fn=vesta._C._private._interpolate, dtypes="hf",
                     may="u", **inexact)  # fmt: skip
    yield structured("im2col", unfold, sized(((1, 2, 4, 3), ((2, 2), (1, 1), (0, 0), (1, 1))),
                     ((2, 5, 4), ((2, 3), (2, 1), (1, 1), (1, 2)))), fn=vesta._C._private.im2col, dtypes="hf",
                     may="buic", **inexact)  # fmt: skip
    yield structured("col2im", fold, sized(((1, 8, 6), ((4, 3), (2, 2), (1, 1), (0, 0), (1, 1))),
                     ((12, 10), ((5, 4), (2, 3), (2, 1), (1, 1), (1, 2)))), fn=vesta._C._private.col2im, dtypes="hfc",
                     **inexact)  # fmt: skip
    yield structured("grid_sampler", grid_sampler,
                     grids(((2, 2, 3, 4), (2, 3, 2, 2)), ((1, 1, 3, 2, 4), (1, 2, 2, 2, 3))),
                     grad_samples=grids(((1, 2, 3, 4), (1, 2, 2, 2)), modes=(0, 2)), dtypes="hf",
                     covers=("grid_sampler", "_grid_sampler_2d", "_grid_sampler_2d_backward"), **inexact)  # fmt: skip
    yield structured("grid_sampler_2d", grid_sampler, grids(((1, 2, 3, 4), (1, 2, 2, 2)), modes=(0, 2)), dtypes="hf",
                     **inexact)  # fmt: skip
    yield structured("grid_sampler_3d", grid_sampler, grids(((1, 1, 3, 2, 4), (1, 2, 2, 2, 3)), modes=(0, 1)),
                     dtypes="hf", **inexact)  # fmt: skip
    yield structured("affine_grid_generator", affine_grid,
                     sized(((2, 2, 3), ((2, 1, 3, 4), False)), ((1, 2, 3), ((1, 1, 2, 1), True)),
                           ((1, 3, 4), ((1, 1, 2, 3, 2), True))), dtypes="hf", **inexact)  # fmt: skip
    shuffles: dict[str, Any] = {"dtypes": "buihfc", "method": False, "ulp": 0.5}
    yield structured("pixel_shuffle", pixel_shuffle, sized(((2, 8, 2, 3), (2,)), ((9, 1, 2), (3,))), **shuffles)
    yield structured("pixel_unshuffle", pixel_unshuffle, sized(((2, 2, 4, 6), (2,)), ((1, 3, 3), (3,))), **shuffles)
    yield structured("channel_shuffle", channel_shuffle, sized(((2, 6, 3), (2,)), ((1, 4, 2, 2), (4,))), **shuffles)


OPS = list(rows())
