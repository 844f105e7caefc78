"""The cases of compare_torch.py, written once for both libraries: `lib` is `vesta` or `torch`.

A case is a function of `lib` that prepares its data and returns the function to be timed. Cases of one family are
grouped together; the name says what is measured.
"""

from __future__ import annotations

from typing import Any, Callable

Case = Callable[..., Callable[[], Any]]
CASES: dict[str, dict[str, Case]] = {}


def case(family: str, name: str) -> Callable[[Case], Case]:
    """Registers a case in the table."""

    def enter(function: Case) -> Case:
        CASES.setdefault(family, {})[name] = function
        return function

    return enter


# ---- small: the cost of one call on 8 floats ----


@case("small", "a + b")
def _(lib):
    a, b = lib.rand(8), lib.rand(8)
    return lambda: a + b


@case("small", "a + b, recorded")
def _(lib):
    a, b = lib.rand(8).requires_grad_(), lib.rand(8)
    return lambda: a + b


@case("small", "(w * x).sum().backward()")
def _(lib):
    w, x = lib.rand(8).requires_grad_(), lib.rand(8)

    def run():
        w.grad = None
        (w * x).sum().backward()

    return run


@case("small", "x * 2.0")
def _(lib):
    x = lib.rand(8)
    return lambda: x * 2.0


@case("small", "x.exp()")
def _(lib):
    x = lib.rand(8)
    return lambda: x.exp()


@case("small", "x.view(2, 4)")
def _(lib):
    x = lib.rand(8)
    return lambda: x.view(2, 4)


@case("small", "x[3]")
def _(lib):
    x = lib.rand(8)
    return lambda: x[3]


@case("small", "8x8 @ 8x8")
def _(lib):
    a, b = lib.rand(8, 8), lib.rand(8, 8)
    return lambda: a @ b


@case("small", "x.sum()")
def _(lib):
    x = lib.rand(8)
    return lambda: x.sum()


@case("small", "zeros(8)")
def _(lib):
    zeros = lib.zeros
    return lambda: zeros(8)


@case("small", "nn.Linear(8, 8)(x)")
def _(lib):
    layer, x = lib.nn.Linear(8, 8), lib.rand(4, 8)
    return lambda: layer(x)


@case("small", "nn.Linear(8, 8)(x), no_grad")
def _(lib):
    layer, x = lib.nn.Linear(8, 8), lib.rand(4, 8)
    for p in layer.parameters():
        p.requires_grad_(False)
    return lambda: layer(x)


# ---- large: element-wise ops and sums ----

MILLION = 1 << 20


def _elementwise(name: str, make: Callable[[Any, Any, Any], Any]) -> None:
    for label, n in (("1M", MILLION), ("16M", 16 * MILLION)):

        def prepare(lib, n=n, make=make):
            x, y = lib.rand(n), lib.rand(n)
            return lambda: make(lib, x, y)

        case("large", f"{name}, {label} floats")(prepare)


_elementwise("x + y", lambda lib, x, y: x + y)
_elementwise("x * 2", lambda lib, x, y: x * 2.0)
_elementwise("exp", lambda lib, x, y: x.exp())
_elementwise("tanh", lambda lib, x, y: x.tanh())
_elementwise("sigmoid", lambda lib, x, y: x.sigmoid())
_elementwise("gelu", lambda lib, x, y: lib.nn.functional.gelu(x))
_elementwise("relu", lambda lib, x, y: x.relu())
_elementwise("x < y", lambda lib, x, y: x < y)
_elementwise("sum", lambda lib, x, y: x.sum())


@case("large", "sum(0), 4096x4096")
def _(lib):
    x = lib.rand(4096, 4096)
    return lambda: x.sum(0)


@case("large", "sum(1), 4096x4096")
def _(lib):
    x = lib.rand(4096, 4096)
    return lambda: x.sum(1)


@case("large", "x.t().contiguous(), 4096x4096")
def _(lib):
    x = lib.rand(4096, 4096)
    return lambda: x.t().contiguous()


@case("large", "softmax(-1), 4096x1024")
def _(lib):
    x = lib.rand(4096, 1024)
    return lambda: x.softmax(-1)


# ---- dense: products and convolutions ----


@case("dense", "matmul 1024")
def _(lib):
    a, b = lib.rand(1024, 1024), lib.rand(1024, 1024)
    return lambda: a @ b


@case("dense", "matmul 128")
def _(lib):
    a, b = lib.rand(128, 128), lib.rand(128, 128)
    return lambda: a @ b


@case("dense", "conv 3x3, 64 -> 64, 16x56x56")
def _(lib):
    x, layer = lib.rand(16, 64, 56, 56), lib.nn.Conv2d(64, 64, 3, padding=1)
    for p in layer.parameters():
        p.requires_grad_(False)
    return lambda: layer(x)


@case("dense", "conv 5x5, 6 -> 16, 64x12x12")
def _(lib):
    x, layer = lib.rand(64, 6, 12, 12), lib.nn.Conv2d(6, 16, 5)
    for p in layer.parameters():
        p.requires_grad_(False)
    return lambda: layer(x)


# ---- ops: what programs call most, at the sizes they call it with ----


def _backward(lib, function, *inputs):
    """Returns a call that computes function(*inputs).sum() and its gradients."""
    for x in inputs:
        x.requires_grad_()

    def run():
        for x in inputs:
            x.grad = None
        function(*inputs).sum().backward()

    return run


# name: (shapes of random inputs, function of (lib, *inputs), whether it is timed with backward)
_OPS = {
    "x ** 3, 1M": ([(MILLION,)], lambda lib, x: x**3, False),
    "x + y.t(), 1024x1024": ([(1024, 1024)] * 2, lambda lib, x, y: x + y.t(), False),
    "where(x > y, x, y), 1M": ([(MILLION,)] * 2, lambda lib, x, y: lib.where(x > y, x, y), False),
    "cumsum(1), 1024x1024": ([(1024, 1024)], lambda lib, x: x.cumsum(1), False),
    "flip(1), 1024x1024": ([(1024, 1024)], lambda lib, x: x.flip(1), False),
    "roll(1, 1), 1024x1024": ([(1024, 1024)], lambda lib, x: x.roll(1, 1), False),
    "y[:, 1:] = x[:, :-1], 1024x1024": ([(1024, 1024)] * 2, lambda lib, x, y: y[:, 1:].copy_(x[:, :-1]), False),
    "masked_fill, 1M": ([(MILLION,)] * 2, lambda lib, x, y: x.masked_fill(y > 0.5, 0.0), False),
    "x[x > 0.5], 1M": ([(MILLION,)], lambda lib, x: x[x > 0.5], False),
    "tril, 1024x1024": ([(1024, 1024)], lambda lib, x: x.tril(), False),
    "half, 1M": ([(MILLION,)], lambda lib, x: x.half(), False),
    "prod(1), 1024x1024": ([(1024, 1024)], lambda lib, x: x.prod(1), False),
    "sum(1), 1024x1024": ([(1024, 1024)], lambda lib, x: x.sum(1), False),
    "sort, 256x4096": ([(256, 4096)], lambda lib, x: x.sort(), False),
    "topk(10), 256x4096": ([(256, 4096)], lambda lib, x: x.topk(10), False),
    "max(1), 1024x1024": ([(1024, 1024)], lambda lib, x: x.max(1), False),
    "cat of 4, 256x1024": ([(256, 1024)] * 4, lambda lib, *xs: lib.cat(xs, 1), False),
    "stack of 4, 256x1024": ([(256, 1024)] * 4, lambda lib, *xs: lib.stack(xs, 1), False),
    "pad 1, 16x64x56x56": ([(16, 64, 56, 56)], lambda lib, x: lib.nn.functional.pad(x, (1, 1, 1, 1)), False),
    "interpolate x2, bilinear, 8x32x56x56": (
        [(8, 32, 56, 56)],
        lambda lib, x: lib.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
        False,
    ),
    "gelu with backward, 1M": ([(MILLION,)], lambda lib, x: lib.nn.functional.gelu(x), True),
    "layer_norm with backward, 1024x512": (
        [(1024, 512), (512,), (512,)],
        lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (512,), w, b),
        True,
    ),
    "max_pool2d with backward, 16x64x56x56": (
        [(16, 64, 56, 56)],
        lambda lib, x: lib.nn.functional.max_pool2d(x, 2),
        True,
    ),
    "avg_pool2d with backward, 16x64x56x56": (
        [(16, 64, 56, 56)],
        lambda lib, x: lib.nn.functional.avg_pool2d(x, 2),
        True,
    ),
    "log_softmax with backward, 512x1000": ([(512, 1000)], lambda lib, x: x.log_softmax(1), True),
    "attention, 4x8x256x64": (
        [(4, 8, 256, 64)] * 3,
        lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v),
        False,
    ),
    "attention, causal, with backward, 4x8x256x64": (
        [(4, 8, 256, 64)] * 3,
        lambda lib, q, k, v: lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        True,
    ),
    "einsum bij,bjk->bik, 64x64x64": ([(64, 64, 64)] * 2, lambda lib, x, y: lib.einsum("bij,bjk->bik", x, y), False),
    "bmm, 512x16x16": ([(512, 16, 16)] * 2, lambda lib, x, y: lib.bmm(x, y), False),
    "bmm, 4096x3x3": ([(4096, 3, 3)] * 2, lambda lib, x, y: lib.bmm(x, y), False),
    "einsum bi,bi->b, 4096x64": ([(4096, 64)] * 2, lambda lib, x, y: lib.einsum("bi,bi->b", x, y), False),
    "dot 65536": ([(65536,)] * 2, lambda lib, x, y: lib.dot(x, y), False),
    "rows x matrix, 16x512 @ 512x512": ([(16, 512), (512, 512)], lambda lib, x, y: x @ y, False),
    "rows x matrix, 32x784 @ 784x128": ([(32, 784), (784, 128)], lambda lib, x, y: x @ y, False),
    "linear with backward, 32x784 -> 256": (
        [(32, 784), (256, 784)],
        lambda lib, x, w: lib.nn.functional.linear(x, w),
        True,
    ),
    "log_softmax, 256x100": ([(256, 100)], lambda lib, x: x.log_softmax(1), False),
    "to int64, 256k": ([(1 << 18,)], lambda lib, x: x.to(lib.int64), False),
    "mv 1024": ([(1024, 1024), (1024,)], lambda lib, x, y: x @ y, False),
    "mm 2708x300 @ 300x16": ([(2708, 300), (300, 16)], lambda lib, x, y: x @ y, False),
    "linear 1x1024 -> 1024": ([(1, 1024), (1024, 1024)], lambda lib, x, w: lib.nn.functional.linear(x, w), False),
    "linear 8x1536 -> 1536": ([(8, 1536), (1536, 1536)], lambda lib, x, w: lib.nn.functional.linear(x, w), False),
    "linear 128x400 -> 1": ([(128, 400), (1, 400)], lambda lib, x, w: lib.nn.functional.linear(x, w), False),
    "linear with backward, 128x400 -> 400": (
        [(128, 400), (400, 400)],
        lambda lib, x, w: lib.nn.functional.linear(x, w),
        True,
    ),
    "conv1d with backward, 16x64x256": (
        [(16, 64, 256), (64, 64, 3)],
        lambda lib, x, w: lib.nn.functional.conv1d(x, w, padding=1),
        True,
    ),
    "conv2d depthwise with backward, 8x64x56x56": (
        [(8, 64, 56, 56), (64, 1, 3, 3)],
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1, groups=64),
        True,
    ),
    "conv_transpose2d with backward, 8x64x14x14": (
        [(8, 64, 14, 14), (64, 32, 4, 4)],
        lambda lib, x, w: lib.nn.functional.conv_transpose2d(x, w, stride=2, padding=1),
        True,
    ),
}


# The same in float32 and bfloat16: what autocast gains. name: as above.
_BOTH = {
    "linear 1024x1024 -> 1024": ([(1024, 1024), (1024, 1024)], lambda lib, x, w: lib.nn.functional.linear(x, w), False),
    "linear with backward, 1024x1024 -> 1024": (
        [(1024, 1024), (1024, 1024)],
        lambda lib, x, w: lib.nn.functional.linear(x, w),
        True,
    ),
    "linear 128x768 -> 768": ([(128, 768), (768, 768)], lambda lib, x, w: lib.nn.functional.linear(x, w), False),
    "linear 1x1024 -> 1024": ([(1, 1024), (1024, 1024)], lambda lib, x, w: lib.nn.functional.linear(x, w), False),
    "conv 1x1 with backward, 256 -> 64, 2x56x56": (
        [(2, 256, 56, 56), (64, 256, 1, 1)],
        lambda lib, x, w: lib.nn.functional.conv2d(x, w),
        True,
    ),
    "conv 3x3 with stride 2 and backward, 128 -> 128, 2x56x56": (
        [(2, 128, 56, 56), (128, 128, 3, 3)],
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, stride=2, padding=1),
        True,
    ),
    "conv 3x3 with backward, 64 -> 64, 2x56x56": (
        [(2, 64, 56, 56), (64, 64, 3, 3)],
        lambda lib, x, w: lib.nn.functional.conv2d(x, w, padding=1),
        True,
    ),
}


def _op(shapes, function, backward, dtype="float32"):
    def prepare(lib):
        inputs = [lib.rand(*shape).to(getattr(lib, dtype)) for shape in shapes]
        if backward:
            return _backward(lib, lambda *xs: function(lib, *xs), *inputs)
        return lambda: function(lib, *inputs)

    return prepare


for _name, _row in _OPS.items():
    case("ops", _name)(_op(*_row))
for _name, _row in _BOTH.items():
    for _dtype in ("float32", "bfloat16"):
        case("bfloat16", f"{_name}, {_dtype}")(_op(*_row, _dtype))


def _indexed(name: str, function: Callable[[Any, Any, Any], Any]) -> None:
    """Enters a case of rows [4096, 256] and 4096 random row numbers."""

    def prepare(lib):
        x, index = lib.rand(4096, 256), lib.randint(0, 4096, (4096,))
        return lambda: function(lib, x, index)

    case("ops", name)(prepare)


_indexed("index_select, 4096x256", lambda lib, x, i: x.index_select(0, i))
_indexed("x[index], 4096x256", lambda lib, x, i: x[i])
_indexed("gather, 4096x256", lambda lib, x, i: x.gather(0, i.view(-1, 1).expand(4096, 256)))
_indexed("scatter_add, 4096x256", lambda lib, x, i: x.scatter_add(0, i.view(-1, 1).expand(4096, 256), x))
_indexed("unique, 4096", lambda lib, x, i: lib.unique(i))
_indexed("one_hot, 4096x256", lambda lib, x, i: lib.nn.functional.one_hot(i % 256, 256))
_indexed("cross_entropy, 4096x256", lambda lib, x, i: lib.nn.functional.cross_entropy(x, i % 256))


@case("ops", "batch_norm in training with backward, 16x64x56x56")
def _(lib):
    layer = lib.nn.BatchNorm2d(64)
    return _backward(lib, layer, lib.rand(16, 64, 56, 56))


@case("ops", "embedding with backward, 10000x128, 4096 of them")
def _(lib):
    index = lib.randint(0, 10000, (4096,))
    return _backward(lib, lambda w: lib.nn.functional.embedding(index, w), lib.rand(10000, 128))


@case("ops", "lstm with backward, 32x64x128")
def _(lib):
    layer = lib.nn.LSTM(128, 128, batch_first=True)
    return _backward(lib, lambda x: layer(x)[0], lib.rand(32, 64, 128))


# ---- optimizers ----


def _adam(lib, count, size):
    parameters = [lib.rand(size).requires_grad_() for _ in range(count)]
    for p in parameters:
        p.grad = lib.rand(size)
    return lib.optim.Adam(parameters, lr=1e-3, fused=True).step


@case("optimizers", "Adam, fused, 400 tensors of 64 elements")
def _(lib):
    return _adam(lib, 400, 64)


@case("optimizers", "Adam, fused, 25 million elements")
def _(lib):
    return _adam(lib, 10, 2_500_000)
