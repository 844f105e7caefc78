"""The cases of a GPU run except the models, written once for both libraries; families are in the order they run.

Sizes are chosen so that a kernel runs much longer than its launch takes and its data is several times the L2 cache.
Smaller data is rotated over several preparations (worker.py). Data is random: zeros run faster than real numbers.
"""

from __future__ import annotations

from work import Gpu, Work, case, size_of

MANY = 1 << 26  # elements of one large tensor: 256 MiB of float32
FLOATS = ("float32", "bfloat16")

# ---- ceilings: the best that this machine can do ----


@case("ceilings", "copy, 1 GiB")
def _(gpu: Gpu) -> Work:
    x = gpu.normal(gpu.size(1 << 28, 1000))
    y = gpu.lib.empty_like(x)
    return Work(lambda: y.copy_(x), moves=2 * size_of(x))


def _ceiling_of_products(dtype: str) -> None:
    @case("ceilings", f"matmul 8192, {dtype}")
    def _(gpu: Gpu) -> Work:
        n = gpu.size(8192)
        a, b = gpu.normal(n, n, dtype=dtype), gpu.normal(n, n, dtype=dtype)
        return Work(lambda: a @ b, moves=3 * size_of(a), flops=2 * n**3, unit=dtype)


for _dtype in ("bfloat16", "float16", "float32"):
    _ceiling_of_products(_dtype)


# ---- host: the cost of one call before the device has anything to do ----


def _host(name: str, make) -> None:
    @case("host", name)
    def _(gpu: Gpu) -> Work:
        return Work(make(gpu), on_host=True)


def _backward(gpu: Gpu):
    w, x = gpu.normal(1).requires_grad_(), gpu.normal(1)

    def run():
        w.grad = None
        (w * x).sum().backward()

    return run


def _adds(gpu: Gpu, recorded: bool):
    a, b = gpu.normal(1).requires_grad_(recorded), gpu.normal(1)
    return lambda: a + b


def _linear(gpu: Gpu):
    layer, x = gpu.lib.nn.Linear(8, 8).to(gpu.device), gpu.normal(4, 8)
    return lambda: layer(x)


def _method(name: str, *arguments):
    def make(gpu: Gpu):
        x = gpu.normal(8)
        return lambda: getattr(x, name)(*arguments)

    return make


_host("a + b, 1 element", lambda gpu: _adds(gpu, False))
_host("a + b, 1 element, recorded", lambda gpu: _adds(gpu, True))
_host("(w * x).sum().backward(), 1 element", _backward)
_host("x.exp(), 8 elements", _method("exp"))
_host("x.sum(), 8 elements", _method("sum"))
_host("x.view(2, 4)", _method("view", 2, 4))
_host("nn.Linear(8, 8)(x), recorded", _linear)


# ---- allocator: allocation and release of memory ----


def _held(gpu: Gpu):
    sizes = [1 << (10 + i) for i in range(16)]  # 4 KiB to 128 MiB
    empty, device = gpu.lib.empty, gpu.device
    return lambda: [empty(n, device=device) for n in sizes]


def _one(gpu: Gpu):
    empty, device = gpu.lib.empty, gpu.device
    return lambda: empty(1 << 18, device=device)


for _name, _make in (("empty of 1 MiB, dropped", _one), ("16 sizes of 4 KiB to 128 MiB, held, then dropped", _held)):

    @case("allocator", _name)
    def _(gpu: Gpu, make=_make) -> Work:
        return Work(make(gpu), on_host=True)


# ---- elementwise: `passes` counts how many elements, in units of the input's, are read and written per element ----


def _elementwise(name: str, run, passes: float, dtypes=FLOATS, count: int = MANY) -> None:
    for dtype in dtypes:

        @case("elementwise", f"{name}, {dtype}")
        def _(gpu: Gpu, dtype=dtype) -> Work:
            n = gpu.size(count, 1000)
            x, y = gpu.normal(n, dtype=dtype), gpu.normal(n, dtype=dtype)
            return Work(lambda: run(gpu, x, y), moves=int(passes * size_of(x)))


_elementwise("x + y", lambda gpu, x, y: x + y, 3)


@case("elementwise", "x + y, float32 and bfloat16")
def _(gpu: Gpu) -> Work:
    n = gpu.size(MANY, 1000)
    x, y = gpu.normal(n), gpu.normal(n, dtype="bfloat16")
    return Work(lambda: x + y, moves=2 * size_of(x) + size_of(y))


_elementwise("x + y", lambda gpu, x, y: x + y, 3, ("float64", "complex64", "int64"), MANY // 2)
_elementwise("x + y, 1M", lambda gpu, x, y: x + y, 3, count=1 << 20)
_elementwise("x.add_(y)", lambda gpu, x, y: x.add_(y), 3)
_elementwise("x * 2", lambda gpu, x, y: x * 2.0, 2)
_elementwise("exp", lambda gpu, x, y: x.exp(), 2)
_elementwise("tanh", lambda gpu, x, y: x.tanh(), 2)
_elementwise("relu", lambda gpu, x, y: x.relu(), 2)
_elementwise("gelu", lambda gpu, x, y: gpu.lib.nn.functional.gelu(x), 2)
_elementwise("where(x > 0, x, y)", lambda gpu, x, y: gpu.lib.where(x > 0, x, y), 3 + 2 * 0.25 + 1, ("float32",))
_elementwise("x.to(bfloat16)", lambda gpu, x, y: x.to(gpu.lib.bfloat16), 1.5, ("float32",))
_elementwise("x.to(float32)", lambda gpu, x, y: x.to(gpu.lib.float32), 3, ("bfloat16",))
_elementwise("x.copy_(y)", lambda gpu, x, y: x.copy_(y), 2, ("float32",))


@case("elementwise", "x + row, 16384x4096, float32")
def _(gpu: Gpu) -> Work:
    x, row = gpu.normal(gpu.size(16384), gpu.size(4096, 40)), gpu.normal(gpu.size(4096, 40))
    return Work(lambda: x + row, moves=2 * size_of(x) + size_of(row))


@case("elementwise", "x.t().contiguous(), 8192x8192, float32")
def _(gpu: Gpu) -> Work:
    x = gpu.normal(gpu.size(8192), gpu.size(8192, 40))
    return Work(lambda: x.t().contiguous(), moves=2 * size_of(x))


@case("elementwise", "gelu, forward and backward, float32")
def _(gpu: Gpu) -> Work:
    x = gpu.normal(gpu.size(MANY // 2, 1000)).requires_grad_()
    g = gpu.normal(gpu.size(MANY // 2, 1000))

    def run():
        x.grad = None
        gpu.lib.nn.functional.gelu(x).backward(g)

    return Work(run, moves=5 * size_of(x))


def _ordered(name: str, run) -> None:
    """A copy between two orders of a batch of 64 images, or of attention's heads."""

    @case("elementwise", name)
    def _(gpu: Gpu) -> Work:
        x = gpu.normal(gpu.size(64, 2), gpu.size(256, 12), gpu.size(56, 7), gpu.size(56, 7), dtype="bfloat16")
        return Work(lambda: run(x), moves=2 * size_of(x))


_ordered("64x256x56x56 to channels last, bfloat16", lambda x: x.permute(0, 2, 3, 1).contiguous())
_ordered("64x256x56x56, transpose(1, 2), bfloat16", lambda x: x.transpose(1, 2).contiguous())


# ---- reductions ----


def _reduction(name: str, run, dtypes=FLOATS, passes: int = 1) -> None:
    for dtype in dtypes:

        @case("reductions", f"{name}, 16384x8192, {dtype}")
        def _(gpu: Gpu, dtype=dtype) -> Work:
            x = gpu.normal(gpu.size(16384), gpu.size(8192, 40), dtype=dtype)
            return Work(lambda: run(x), moves=passes * size_of(x))


_reduction("sum", lambda x: x.sum())
_reduction("sum(0)", lambda x: x.sum(0))
_reduction("sum(1)", lambda x: x.sum(1))
_reduction("mean(1)", lambda x: x.mean(1), ("bfloat16",))
_reduction("amax(1)", lambda x: x.amax(1), ("float32",))
_reduction("argmax(1)", lambda x: x.argmax(1), ("float32",))
_reduction("var(1)", lambda x: x.var(1), ("float32",))
_reduction("sum(1)", lambda x: x.sum(1), ("float64",))
_reduction("norm", lambda x: x.norm(), ("float32",))
_reduction("logsumexp(1)", lambda x: x.logsumexp(1), ("float32",))
_reduction("cumsum(1)", lambda x: x.cumsum(1), ("float32",), passes=2)


# ---- rows: softmax, losses and norms over the last dimension ----


def _rows(name: str, run, dtypes=FLOATS, passes: int = 2) -> None:
    for dtype in dtypes:

        @case("rows", f"{name}, 16384x4096, {dtype}")
        def _(gpu: Gpu, dtype=dtype) -> Work:
            x = gpu.normal(gpu.size(16384), gpu.size(4096, 40), dtype=dtype)
            return Work(lambda: run(gpu, x), moves=passes * size_of(x))


_rows("softmax", lambda gpu, x: x.softmax(-1))
_rows("log_softmax", lambda gpu, x: x.log_softmax(-1), ("float32",))
_rows("layer_norm", lambda gpu, x: gpu.lib.nn.functional.layer_norm(x, (x.shape[-1],)))
_rows("rms_norm", lambda gpu, x: gpu.lib.nn.functional.rms_norm(x, (x.shape[-1],)))


_rows("softmax", lambda gpu, x: x.softmax(-1), ("float64",))


def _rows_backward(name: str, run, columns: int, passes: int, dtype: str) -> None:
    @case("rows", f"{name}, forward and backward, 16384x{columns}, {dtype}")
    def _(gpu: Gpu) -> Work:
        x = gpu.normal(gpu.size(16384), gpu.size(columns, 40), dtype=dtype).requires_grad_()
        g, weight = gpu.normal(*x.shape, dtype=dtype), gpu.normal(x.shape[1], dtype=dtype).requires_grad_()

        def both():
            x.grad = weight.grad = None
            run(gpu, x, weight).backward(g)

        return Work(both, moves=passes * size_of(x))


_rows_backward("softmax", lambda gpu, x, w: x.softmax(-1), 4096, 5, "float32")
for _dtype in FLOATS:
    _rows_backward("layer_norm", lambda gpu, x, w: gpu.lib.nn.functional.layer_norm(x, w.shape, w, w), 1024, 5, _dtype)
    _rows_backward("rms_norm", lambda gpu, x, w: gpu.lib.nn.functional.rms_norm(x, w.shape, w), 4096, 5, _dtype)


def _cross_entropy(dtype: str, count: int = 4096, kinds: int = 50304, smoothing: float = 0.0) -> None:
    smoothed = f", label_smoothing={smoothing}" if smoothing else ""

    @case("rows", f"cross entropy, forward and backward, {count}x{kinds}{smoothed}, {dtype}")
    def _(gpu: Gpu) -> Work:
        rows, classes = gpu.size(count), gpu.size(kinds, 100)
        x, target = gpu.normal(rows, classes, dtype=dtype).requires_grad_(), gpu.integers(classes, rows)

        def run():
            x.grad = None
            gpu.lib.nn.functional.cross_entropy(x, target, label_smoothing=smoothing).backward()

        return Work(run, moves=3 * size_of(x))


for _dtype in FLOATS:
    _cross_entropy(_dtype)
    _cross_entropy(_dtype, 65536, 1000, 0.1)


def _norm_backward(name: str, make, channels_last: bool, dtype: str, passes: int = 6) -> None:
    """A norm of 64 images, forward and backward: both read what they need twice."""
    order = ", channels last" if channels_last else ""

    @case("rows", f"{name} 64x256x56x56{order}, forward and backward, {dtype}")
    def _(gpu: Gpu) -> Work:
        layer = make(gpu).to(gpu.device)
        x = gpu.normal(gpu.size(64, 2), 256, gpu.size(56, 3), gpu.size(56, 3), dtype=dtype)
        g = gpu.normal(*x.shape, dtype=dtype)
        if channels_last:
            x, g = (t.to(memory_format=gpu.lib.channels_last) for t in (x, g))
        layer = layer.to(x.dtype) if name == "group_norm" else layer
        x.requires_grad_()

        def run():
            x.grad = None
            layer(x).backward(g)

        return Work(run, moves=(passes + 2) * size_of(x))


_norm_backward("batch_norm", lambda gpu: gpu.lib.nn.BatchNorm2d(256), True, "bfloat16")
_norm_backward("batch_norm", lambda gpu: gpu.lib.nn.BatchNorm2d(256), False, "float32")
_norm_backward("group_norm", lambda gpu: gpu.lib.nn.GroupNorm(32, 256), False, "bfloat16")
_norm_backward("group_norm", lambda gpu: gpu.lib.nn.GroupNorm(32, 256), True, "bfloat16")


def _columns(name: str, run, dtype: str) -> None:
    @case("rows", f"{name} of 8x21x512x512 along 1, forward and backward, {dtype}")
    def _(gpu: Gpu) -> Work:
        side = gpu.size(512, 6)
        x = gpu.normal(gpu.size(8, 2), 21, side, side, dtype=dtype).requires_grad_()
        target = gpu.integers(21, x.shape[0], side, side)
        g = gpu.normal(*x.shape, dtype=dtype)

        def both():
            x.grad = None
            run(gpu, x, target, g)

        return Work(both, moves=5 * size_of(x))


_columns("softmax", lambda gpu, x, t, g: x.softmax(1).backward(g), "float32")
_columns("log_softmax", lambda gpu, x, t, g: x.log_softmax(1).backward(g), "bfloat16")
_columns("cross entropy", lambda gpu, x, t, g: gpu.lib.nn.functional.cross_entropy(x, t).backward(), "float32")


@case("rows", "batch_norm 64x256x56x56, training, float32")
def _(gpu: Gpu) -> Work:
    side = gpu.size(56, 3)
    layer, x = gpu.lib.nn.BatchNorm2d(256).to(gpu.device), gpu.normal(gpu.size(64, 2), 256, side, side)
    with gpu.lib.no_grad():
        layer(x)

    def run():
        with gpu.lib.no_grad():
            layer(x)

    return Work(run, moves=3 * size_of(x))  # the values are needed twice: for the mean, and for the scaling


# ---- indexing ----


def _table(gpu: Gpu):
    """Returns a table, and random row numbers, half as many as it has rows."""
    rows, width = gpu.size(1 << 17, 50), gpu.size(1024, 8)
    return gpu.normal(rows, width), gpu.integers(rows, rows // 2)


def _indexing(name: str, make) -> None:
    @case("indexing", name)
    def _(gpu: Gpu) -> Work:
        table, index = _table(gpu)
        return make(gpu, table, index)


def _taken(table, index) -> int:
    """Returns the bytes of the rows that an index selects, and of the index."""
    return index.numel() * table.shape[1] * table.element_size() + size_of(index)


_indexing(
    "index_select, rows of 4 KiB",
    lambda gpu, t, i: Work(lambda: t.index_select(0, i), moves=2 * _taken(t, i) - size_of(i)),
)
_indexing("table[index]", lambda gpu, t, i: Work(lambda: t[i], moves=2 * _taken(t, i) - size_of(i)))
_indexing(
    "embedding",
    lambda gpu, t, i: Work(lambda: gpu.lib.nn.functional.embedding(i, t), moves=2 * _taken(t, i) - size_of(i)),
)


def _embedding_backward(gpu: Gpu, t, i) -> Work:
    t.requires_grad_()
    g = gpu.normal(i.numel(), t.shape[1])

    def run():
        t.grad = None
        gpu.lib.nn.functional.embedding(i, t).backward(g)

    return Work(run, moves=3 * _taken(t, i) + size_of(t))


def _gather(gpu: Gpu, t, i) -> Work:
    index = gpu.integers(t.shape[1], *t.shape)
    return Work(lambda: t.gather(1, index), moves=2 * size_of(t) + size_of(index))


def _scatter_add(gpu: Gpu, t, i) -> Work:
    index, zero = gpu.integers(t.shape[1], *t.shape), gpu.lib.zeros_like(t)
    return Work(lambda: zero.scatter_add_(1, index, t), moves=3 * size_of(t) + size_of(index))


def _index_add(gpu: Gpu, t, i) -> Work:
    source = gpu.normal(i.numel(), t.shape[1])
    return Work(lambda: t.index_add_(0, i, source), moves=3 * size_of(source) + size_of(i))


def _masked_fill(gpu: Gpu, t, i) -> Work:
    mask = t > 0
    return Work(lambda: t.masked_fill(mask, 1.0), moves=2 * size_of(t) + size_of(mask))


def _masked_select(gpu: Gpu, t, i) -> Work:
    mask = t > 0
    return Work(lambda: t[mask], moves=2 * size_of(t) + size_of(mask))


_indexing("embedding, forward and backward", _embedding_backward)
_indexing("gather(1)", _gather)
_indexing("scatter_add_(1)", _scatter_add)
_indexing("index_add_(0)", _index_add)


def _index_put(gpu: Gpu, t, i) -> Work:
    source = gpu.normal(i.numel(), t.shape[1])
    return Work(lambda: t.index_put_((i,), source, accumulate=True), moves=3 * size_of(source) + size_of(i))


_indexing("index_put_, accumulate", _index_put)
_indexing("masked_fill", _masked_fill)
_indexing("table[mask]", _masked_select)
_indexing("cat", lambda gpu, t, i: Work(lambda: gpu.lib.cat([t, t]), moves=4 * size_of(t)))


@case("indexing", "sort, 10M, float32")
def _(gpu: Gpu) -> Work:
    x = gpu.normal(gpu.size(10_000_000, 1000))
    return Work(lambda: x.sort(), moves=2 * size_of(x) + 8 * x.numel())


@case("indexing", "topk(16), 4096x32768, float32")
def _(gpu: Gpu) -> Work:
    x = gpu.normal(gpu.size(4096), gpu.size(32768, 100))
    return Work(lambda: x.topk(16), moves=size_of(x))


# ---- random ----


def _random(name: str, draw, bytes_each: float = 4) -> None:
    @case("random", f"{name}, 64M")
    def _(gpu: Gpu) -> Work:
        n = gpu.size(MANY, 1000)
        return Work(lambda: draw(gpu, n), moves=int(bytes_each * n))


_random("rand", lambda gpu, n: gpu.lib.rand(n, device=gpu.device))
_random("randn", lambda gpu, n: gpu.lib.randn(n, device=gpu.device))
_random("randint, int64", lambda gpu, n: gpu.lib.randint(0, 1000, (n,), device=gpu.device), 8)


@case("random", "dropout(0.1), training, 64M")
def _(gpu: Gpu) -> Work:
    x = gpu.normal(gpu.size(MANY, 1000))
    return Work(lambda: gpu.lib.nn.functional.dropout(x, 0.1, True), moves=2 * size_of(x))


@case("random", "randperm, 10M")
def _(gpu: Gpu) -> Work:
    n = gpu.size(10_000_000, 1000)
    return Work(lambda: gpu.lib.randperm(n, device=gpu.device), moves=8 * n)


# ---- optimizers: one step over GPT-2's 124 million parameters in 148 tensors ----


def _parameters(gpu: Gpu) -> list:
    c = gpu.size(768, 8)
    block = [(3 * c, c), (3 * c,), (c, c), (c,), (4 * c, c), (4 * c,), (c, 4 * c), (c,), (c,), (c,), (c,), (c,)]
    shapes = [(gpu.size(50304, 64), c), (gpu.size(1024, 16), c), (c,), (c,)] + gpu.size(12, 1) * block
    parameters = [gpu.normal(*shape).requires_grad_() for shape in shapes]
    for p in parameters:
        p.grad = gpu.normal(*p.shape)
    return parameters


def _optimizer(name: str, kind: str, passes: int, **options) -> None:
    @case("optimizers", name)
    def _(gpu: Gpu) -> Work:
        parameters = _parameters(gpu)
        optimizer = getattr(gpu.lib.optim, kind)(parameters, lr=1e-4, **options)
        return Work(optimizer.step, moves=passes * size_of(*parameters))


_optimizer("SGD, momentum", "SGD", 5, momentum=0.9)
_optimizer("Adam", "Adam", 7)
_optimizer("AdamW", "AdamW", 7, weight_decay=0.1)
_optimizer("AdamW, fused=True", "AdamW", 7, weight_decay=0.1, fused=True)


# ---- products: shapes of GPT-2 (16,384 tokens), of Llama, and small ones ----


def _product(m: int, k: int, n: int, dtype: str) -> None:
    @case("products", f"{m}x{k} @ {k}x{n}, {dtype}")
    def _(gpu: Gpu) -> Work:
        rows, inner, columns = (gpu.size(s, 17 + i) for i, s in enumerate((m, k, n)))
        a, b = gpu.normal(rows, inner, dtype=dtype), gpu.normal(inner, columns, dtype=dtype)
        moves = size_of(a, b) + rows * columns * a.element_size()
        return Work(lambda: a @ b, moves=moves, flops=2 * rows * inner * columns, unit=dtype)


for _m, _k, _n in ((16384, 768, 2304), (16384, 3072, 768), (16384, 768, 50304), (4096, 4096, 14336), (512, 512, 512)):
    _product(_m, _k, _n, "bfloat16")
for _m, _k, _n in ((4096, 4096, 4096), (16384, 768, 2304), (512, 512, 512)):
    _product(_m, _k, _n, "float32")


@case("products", "bmm 192x1024x64 @ 192x64x1024, bfloat16")
def _(gpu: Gpu) -> Work:
    heads, tokens, width = gpu.size(192, 2), gpu.size(1024), gpu.size(64, 16)
    a, b = gpu.normal(heads, tokens, width, dtype="bfloat16"), gpu.normal(heads, width, tokens, dtype="bfloat16")
    flops, out = 2 * heads * tokens * tokens * width, heads * tokens * tokens * a.element_size()
    return Work(lambda: a @ b, moves=size_of(a, b) + out, flops=flops, unit="bfloat16")


@case("products", "linear with bias, forward and backward, 16384x768 -> 3072, bfloat16")
def _(gpu: Gpu) -> Work:
    rows, inner, outer = gpu.size(16384), gpu.size(768), gpu.size(3072, 40)
    layer = gpu.lib.nn.Linear(inner, outer).to(gpu.device).to(gpu.lib.bfloat16)
    x, g = gpu.normal(rows, inner, dtype="bfloat16").requires_grad_(), gpu.normal(rows, outer, dtype="bfloat16")

    def run():
        x.grad = layer.weight.grad = layer.bias.grad = None
        layer(x).backward(g)

    return Work(run, moves=size_of(x, g), flops=6 * rows * inner * outer, unit="bfloat16")


def _feed_forward(gpu: Gpu, apart: bool) -> Work:
    """The middle of a transformer's layer, backward; ``apart``: a hook keeps gelu's gradient out of the product."""
    rows, width = gpu.size(16384), gpu.size(768)
    up, down = (
        gpu.lib.nn.Linear(*s).to(gpu.device).to(gpu.lib.bfloat16) for s in ((width, 4 * width), (4 * width, width))
    )
    x, g = (gpu.normal(rows, width, dtype="bfloat16") for _ in range(2))
    leaves = [x.requires_grad_(), *up.parameters(), *down.parameters()]
    h = gpu.lib.nn.functional.gelu(up(x), approximate="tanh")
    if apart:
        h.register_hook(lambda _: None)
    y = down(h)

    def run():
        gpu.lib.autograd.grad(y, leaves, g, retain_graph=True)

    return Work(run, moves=size_of(x, g), flops=4 * 2 * rows * width * 4 * width, unit="bfloat16")


@case("products", "768 -> 3072, gelu with tanh, -> 768, backward of 16384 rows, bfloat16")
def _(gpu: Gpu) -> Work:
    return _feed_forward(gpu, False)


@case("products", "the same with a hook on what lies between")
def _(gpu: Gpu) -> Work:
    return _feed_forward(gpu, True)


# ---- convolutions: layers of ResNet-50, as a user writes them (NCHW) ----


def _convolution(channels: int, out: int, kernel: int, side: int, dtype: str, backward: bool, stride: int = 1) -> None:
    name = f"{kernel}x{kernel}/{stride}, {channels} -> {out}, 64x{side}x{side}{', and backward' if backward else ''}"

    @case("convolutions", f"{name}, {dtype}")
    def _(gpu: Gpu) -> Work:
        batch, edge = gpu.size(64, 2), gpu.size(side, 9)
        c, o = (channels, out) if channels == 3 else (gpu.size(channels, 8), gpu.size(out, 8))
        layer = gpu.lib.nn.Conv2d(c, o, kernel, stride=stride, padding=kernel // 2, bias=False).to(gpu.device)
        layer = layer.to(gpu.dtype(dtype))
        x = gpu.normal(batch, c, edge, edge, dtype=dtype)
        result = (edge + stride - 1) // stride
        flops = 2 * batch * o * c * kernel * kernel * result * result
        unit = "bfloat16" if dtype == "bfloat16" else ""  # float32 may run as TF32: neither ceiling applies
        if not backward:
            layer.weight.requires_grad_(False)
            return Work(lambda: layer(x), moves=size_of(x), flops=flops, unit=unit)
        x.requires_grad_()
        g = gpu.normal(batch, o, result, result, dtype=dtype)

        def run():
            x.grad = layer.weight.grad = None
            layer(x).backward(g)

        return Work(run, moves=size_of(x, g), flops=3 * flops, unit=unit)


for _dtype in FLOATS:
    _convolution(64, 64, 3, 56, _dtype, False)
    _convolution(64, 64, 3, 56, _dtype, True)
    _convolution(256, 256, 3, 14, _dtype, True)
    _convolution(256, 64, 1, 56, _dtype, True)
    _convolution(3, 64, 7, 224, _dtype, False, stride=2)


@case("convolutions", "max_pool2d(2), 64x64x112x112, float32")
def _(gpu: Gpu) -> Work:
    side = gpu.size(112, 8)
    x = gpu.normal(gpu.size(64, 2), gpu.size(64, 3), side, side)
    return Work(lambda: gpu.lib.nn.functional.max_pool2d(x, 2), moves=size_of(x) * 5 // 4)


def _images(name: str, make, passes: float, dtype: str = "float32", channels_last: bool = False) -> None:
    """An op over 64 images, forward and backward; `passes`: tensors of the input's size that are moved."""
    order = ", channels last" if channels_last else ""

    @case("convolutions", f"{name}, 64x64x112x112{order}, forward and backward, {dtype}")
    def _(gpu: Gpu) -> Work:
        side = gpu.size(112, 8)
        x = gpu.normal(gpu.size(64, 2), 64, side, side, dtype=dtype)
        if channels_last:
            x = x.to(memory_format=gpu.lib.channels_last)
        x.requires_grad_()
        function = make(gpu)
        g = gpu.lib.randn_like(function(x).detach())

        def run():
            x.grad = None
            function(x).backward(g)

        return Work(run, moves=int(passes * size_of(x)))


def _depthwise(gpu: Gpu):
    return gpu.lib.nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False).to(gpu.device)


_images("max_pool2d(3, 2, 1)", lambda gpu: lambda x: gpu.lib.nn.functional.max_pool2d(x, 3, 2, 1), 4)
_images("avg_pool2d(2)", lambda gpu: lambda x: gpu.lib.nn.functional.avg_pool2d(x, 2), 2.5)
_images("interpolate by 2, bilinear", lambda gpu: lambda x: gpu.lib.nn.functional.interpolate(
    x, scale_factor=2, mode="bilinear"), 10)  # fmt: skip
_images("interpolate by 2, nearest", lambda gpu: lambda x: gpu.lib.nn.functional.interpolate(
    x, scale_factor=2), 10, "bfloat16", True)  # fmt: skip
_images("3x3, depthwise", _depthwise, 5)
_images("3x3, depthwise", lambda gpu: _depthwise(gpu).to(gpu.lib.bfloat16), 5, "bfloat16", True)
_images("2x2/2, transposed, 64 -> 64", lambda gpu: gpu.lib.nn.ConvTranspose2d(64, 64, 2, 2).to(gpu.device), 14)


# ---- attention: GPT-2 small, 8 sequences of 1024; the last ones are what cuDNN does not compute ----


def _attention(
    dtype: str, causal: bool, backward: bool, *, head: int = 64, queries: int = 1024, keys: int = 1024, extra: str = ""
) -> None:
    side = f"{keys}" if queries == keys else f"{queries} of {keys}"
    words = [
        f"8x12x{side}x{head}",
        "causal" if causal else "",
        extra,
        "forward and backward" if backward else "",
        dtype,
    ]

    @case("attention", ", ".join(word for word in words if word))
    def _(gpu: Gpu) -> Work:
        lead, size = (gpu.size(8, 1), gpu.size(12, 2)), gpu.size(head, 16)
        rows, columns = gpu.size(queries, min(queries, 40)), gpu.size(keys, 40)
        q = gpu.normal(*lead, rows, size, dtype=dtype).requires_grad_(backward)
        k, v = (gpu.normal(*lead, columns, size, dtype=dtype).requires_grad_(backward) for _ in range(2))
        g = gpu.normal(*lead, rows, size, dtype=dtype)
        options: dict[str, object] = {"is_causal": causal}
        if extra == "mask":  # of the keys of each sequence, as of padding
            options["attn_mask"] = gpu.normal(lead[0], 1, rows, columns) > -1.5
        if extra == "dropout":
            options["dropout_p"] = 0.1
        attend = gpu.lib.nn.functional.scaled_dot_product_attention
        flops = 4 * lead[0] * lead[1] * rows * columns * size // (2 if causal else 1)
        moves = 2 * size_of(q, k)
        if not backward:
            return Work(lambda: attend(q, k, v, **options), moves=moves, flops=flops, unit=dtype)

        def run():
            q.grad = k.grad = v.grad = None
            attend(q, k, v, **options).backward(g)

        return Work(run, moves=9 * moves // 4, flops=7 * flops // 2, unit=dtype)


for _dtype, _causal, _both in (
    ("bfloat16", True, False), ("bfloat16", True, True), ("bfloat16", False, True), ("float32", True, True),
):  # fmt: skip
    _attention(_dtype, _causal, _both)
_attention("float32", True, False)
_attention("float32", True, True, head=128)
_attention("float32", True, True, extra="dropout")
for _both in (False, True):
    _attention("bfloat16", False, _both, extra="mask")
_attention("float32", False, False, queries=1, keys=4096)
_attention("bfloat16", False, False, queries=1, keys=4096, extra="mask")


# ---- recurrence ----


@case("recurrent", "LSTM 2 layers, 512 wide, 64 steps, batch 64, forward and backward, float32")
def _(gpu: Gpu) -> Work:
    width, steps, batch = gpu.size(512, 8), gpu.size(64, 3), gpu.size(64, 2)
    layer = gpu.lib.nn.LSTM(width, width, 2).to(gpu.device)
    x, g = gpu.normal(steps, batch, width), gpu.normal(steps, batch, width)
    # inputs and weights of both layers; 8 * width^2 multiply-adds a step, three times with the backward
    flops = 2 * 2 * 8 * width * width * steps * batch * 3

    def run():
        for p in layer.parameters():
            p.grad = None
        layer(x)[0].backward(g)

    return Work(run, moves=2 * size_of(x), flops=flops)
