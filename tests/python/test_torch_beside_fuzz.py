"""Random calls of attention, convolutions, norms, poolings and scans beside PyTorch. Row 26 of EXCEPTIONS.md.

Each call is made by both libraries from the same numbers in the same layouts: values, gradients, dtypes, the strides of
results, and whether it raises are compared. Layouts are dense, transposed, sliced, expanded and channels last.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import vesta
from torch_beside import torch

pytestmark = [pytest.mark.campaign, pytest.mark.no_leak_check]  # PyTorch's tape keeps tensors until the collector runs

CALLS = 300
TOLERANCE = {"float64": 1e-9, "float32": 1e-3}


def laid_out(lib: Any, values: np.ndarray, dtype: str, layout: str) -> Any:
    """A tensor of these values that lies in memory in some way; ``expanded`` repeats the first."""
    t = lib.tensor(values.tolist(), dtype=lib.float64).reshape(values.shape).to(getattr(lib, dtype))
    if layout == "transposed" and t.dim() > 1:
        return t.transpose(-1, -2).contiguous().transpose(-1, -2)
    if layout == "heads inside" and t.dim() > 2:
        return t.transpose(-3, -2).contiguous().transpose(-3, -2)
    if layout == "sliced":
        wide = lib.zeros(*t.shape[:-1], 2 * t.shape[-1] + 1, dtype=t.dtype)
        wide[..., 1::2] = t
        return wide[..., 1::2]
    if layout == "expanded":
        return t[:1].expand(t.shape)
    if layout.startswith("channels last") and t.dim() in (4, 5):
        last = lib.channels_last if t.dim() == 4 else lib.channels_last_3d
        if layout == "channels last":
            return t.contiguous(memory_format=last)
        wide = lib.zeros(t.shape[0], t.shape[1] + 2, *t.shape[2:], dtype=t.dtype).contiguous(memory_format=last)
        wide[:, 1:-1] = t
        return wide[:, 1:-1]
    return t


LAYOUTS = [
    "dense",
    "dense",
    "transposed",
    "heads inside",
    "sliced",
    "expanded",
    "channels last",
    "channels last, slice",
]


class Draw(random.Random):
    """Draws of arguments, and of operands: (values, layout, whether a gradient is asked for)."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.normal = np.random.default_rng(seed).standard_normal

    def operand(self, *sizes: int) -> tuple[np.ndarray, str, bool]:
        return self.normal(sizes), self.choice(LAYOUTS), self.random() < 0.7

    def often(self, share: float) -> bool:
        return self.random() < share


def attention(d: Draw) -> Any:
    shared = d.choice([1, 2, 3])
    heads, batch = shared * d.choice([1, 2]), d.choice([1, 3])
    queries, keys = (d.choice([1, 2, 7, 33, 65, 130]) for _ in range(2))
    width, value_width = d.choice([1, 3, 8, 33]), d.choice([1, 8, 16])
    causal = d.often(0.3)
    operands = [
        d.operand(batch, heads, queries, width),
        d.operand(batch, shared, keys, width),
        d.operand(batch, shared, keys, value_width),
    ]
    options = {"is_causal": causal, "scale": d.choice([None, None, 0.5]), "enable_gqa": True}
    if not causal and d.often(0.6):
        sizes = [d.choice([1, n]) for n in (batch, heads, queries)] + [keys]
        mask = d.normal(sizes)
        mask[..., d.randrange(sizes[2]), :] = -np.inf  # a query that sees nothing
        operands.append((mask, "dense", d.often(0.3)))
    return lambda lib, *t: lib.nn.functional.scaled_dot_product_attention(*t, **options), operands


def convolution(d: Draw) -> Any:
    dims, transposed, groups = d.choice([1, 2, 2]), d.often(0.3), d.choice([1, 1, 2])
    inputs, outputs = groups * d.choice([1, 3, 64]), groups * d.choice([1, 4, 64])
    kernel = [1] * dims if d.often(0.5) else [d.choice([1, 2, 3]) for _ in range(dims)]
    stride, dilation = ([d.choice([1, 1, 2]) for _ in range(dims)] for _ in range(2))
    padding: Any = [d.choice([0, 1]) for _ in range(dims)]
    if not transposed and d.often(0.2):
        stride, padding = [1] * dims, "same"
    weight = [inputs, outputs // groups] if transposed else [outputs, inputs // groups]
    image, w = (
        d.operand(d.choice([1, 3]), inputs, *(d.choice([5, 7, 8]) for _ in range(dims))),
        d.normal(weight + kernel),
    )
    operands = [image, (w, d.choice(["dense", "channels last"]), True), d.operand(outputs)]

    def call(lib: Any, x: Any, w: Any, b: Any) -> Any:
        if transposed:
            f = getattr(lib.nn.functional, f"conv_transpose{dims}d")
            return f(x, w, b, stride, padding, groups=groups, dilation=dilation)
        return getattr(lib.nn.functional, f"conv{dims}d")(x, w, b, stride, padding, dilation, groups)

    return call, operands


def norm(d: Draw) -> Any:
    channels = d.choice([2, 4, 8])
    sizes = [d.choice([2, 3]), channels, *(d.choice([2, 3, 9]) for _ in range(d.choice([1, 2, 2, 3])))]
    kind, groups, training = d.choice(["batch", "layer", "rms", "group", "instance"]), d.choice([1, 2]), d.often(0.6)
    rows = sizes[-d.randint(1, len(sizes) - 1) :]
    shape = rows if kind in ("layer", "rms") else [channels]
    mean, variance = d.normal(channels), d.normal(channels) ** 2 + 0.1

    def call(lib: Any, x: Any, w: Any, b: Any) -> Any:
        f = lib.nn.functional
        if kind == "batch":
            statistics = [lib.tensor(v.tolist(), dtype=x.dtype) for v in (mean, variance)]
            return f.batch_norm(x, *statistics, w, b, training)
        if kind == "layer":
            return f.layer_norm(x, rows, w, b)
        if kind == "rms":
            return f.rms_norm(x, rows, w)
        return f.group_norm(x, groups, w, b) if kind == "group" else f.instance_norm(x, weight=w, bias=b)

    # PyTorch's batch norm takes a strided weight for a dense one.
    return call, [d.operand(*sizes), (d.normal(shape), "dense", True), (d.normal(shape), "dense", True)]


def pooling(d: Draw) -> Any:
    dims, kind = d.choice([2, 2, 3]), d.choice(["max", "avg", "adaptive_max", "adaptive_avg"])
    image = d.operand(d.choice([1, 3]), d.choice([2, 8]), *(d.choice([4, 5, 8]) for _ in range(dims)))
    kernel, out = ([d.choice([1, 2, 3]) for _ in range(dims)] for _ in range(2))
    stride, ceil = d.choice([None, [d.choice([1, 2]) for _ in range(dims)]]), d.often(0.3)
    padding = [k // 2 if d.often(0.5) else 0 for k in kernel]

    def call(lib: Any, x: Any) -> Any:
        f = getattr(lib.nn.functional, f"{kind}_pool{dims}d")
        return f(x, out) if kind.startswith("adaptive") else f(x, kernel, stride, padding, ceil_mode=ceil)

    return call, [image]


def scan_or_power(d: Draw) -> Any:
    sizes = [d.choice([1, 2, 5, 17, 40]) for _ in range(d.randint(1, 3))]
    dim, name = d.randrange(len(sizes)), d.choice(["cumsum", "cumprod", "logcumsumexp", "pow", "pow"])
    exponent = d.choice([2, 3, -1, -2, 0.5, 1.5, 0, 1, 7, 0.25])
    values, layout, grad = d.operand(*sizes)
    if name == "pow":
        return lambda lib, x: x**exponent, [(np.abs(values) + 0.1, layout, grad)]
    return lambda lib, x: getattr(lib, name)(x, dim), [(values / 2, layout, grad)]


def answers(lib: Any, call: Any, operands: Any, dtype: str, seed: int) -> Any:
    """What a library makes of a call: its result and gradients, or the exception."""
    tensors = [laid_out(lib, values, dtype, layout).detach() for values, layout, _ in operands]
    leaves = [t.requires_grad_() for t, (_, _, grad) in zip(tensors, operands) if grad]
    try:
        y = call(lib, *tensors)
    except (RuntimeError, ValueError) as error:
        return error
    weights = laid_out(lib, np.random.default_rng(seed).standard_normal(tuple(y.shape)), dtype, "dense")
    gradients = lib.autograd.grad(y, leaves, weights, allow_unused=True) if leaves and y.requires_grad else ()
    return y, gradients


def strides(t: Any) -> list[int]:
    """Those of dimensions that have several elements."""
    return [step for step, size in zip(t.stride(), t.shape) if size > 1]


@pytest.mark.parametrize("make", [attention, convolution, norm, pooling, scan_or_power])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_random_calls_agree(make: Any, dtype: str) -> None:
    for seed in range(CALLS):
        call, operands = make(Draw(seed))
        theirs, ours = (answers(lib, call, operands, dtype, seed) for lib in (torch, vesta))
        where = f"{make.__name__} {seed}: {[(v.shape, layout) for v, layout, _ in operands]}"
        if isinstance(theirs, NotImplementedError):
            continue  # a dtype that only Vesta has
        if isinstance(theirs, Exception) or isinstance(ours, Exception):
            assert isinstance(theirs, Exception) and isinstance(ours, Exception), f"{where}: {theirs!r}, {ours!r}"
            continue
        if make is not attention and ours[0].dim() == 4:
            assert strides(ours[0]) == strides(theirs[0]), where
        for a, b in zip((theirs[0], *theirs[1]), (ours[0], *ours[1])):
            assert (a is None) == (b is None), where
            if a is not None:
                x, y = a.detach().double().numpy(), b.detach().double().numpy()
                scale = max(1.0, float(np.abs(x[np.isfinite(x)]).max(initial=0)))
                np.testing.assert_allclose(y, x, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale, err_msg=where)
