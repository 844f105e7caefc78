"""Ops over images follow their input's layout, as PyTorch's do, and give the same bits in every layout.

`follows` is PyTorch's rule (c10/core/MemoryFormat.h, suggest_memory_format): which layout a tensor has where its
strides leave it open. The strides expected here were compared with those of PyTorch 2.15, op by op.
"""

import pytest
import vesta
from vesta import nn
from vesta.nn import functional as F

LAST = {4: vesta.channels_last, 5: vesta.channels_last_3d}
SHAPES = [
    (2, 8, 6, 5), (1, 8, 6, 5), (2, 1, 6, 5), (1, 1, 6, 5), (2, 8, 3, 1), (2, 8, 1, 5), (2, 40, 9, 9),
    (2, 8, 3, 6, 5), (1, 8, 3, 6, 5), (2, 1, 3, 6, 5),
]  # fmt: skip


def follows(x):
    """Whether an op that follows x gives channels last."""
    if x.dim() not in LAST or x.stride(1) == 0:
        return False
    least = 0
    for d in (1, *range(x.dim() - 1, 1, -1), 0):
        size, stride = x.size(d), x.stride(d)
        if size == 0 or stride < least or (d == 0 and least == x.stride(1)):
            return False
        least = stride * size if size > 1 else stride
    return True


def strides(x, exact=True):
    """The strides of x; if not exact, those of dimensions of size 1 do not count."""
    return tuple(s if exact or n > 1 else 1 for s, n in zip(x.stride(), x.shape))


def strides_of(sizes, last, exact=True):
    """The strides of a dense tensor."""
    order = (0, *range(2, len(sizes)), 1) if last else range(len(sizes))
    found, step = [0] * len(sizes), 1
    for d in reversed(list(order)):
        found[d], step = step, step * max(sizes[d], 1)
    return tuple(s if exact or n > 1 else 1 for s, n in zip(found, sizes))


def made(sizes, kind, seed=0):
    """A tensor of some sizes whose values do not depend on how it lies."""
    vesta.manual_seed(seed)
    x = vesta.randn(sizes)
    last = LAST[len(sizes)]
    if kind == "rows":
        return x
    if kind == "last":
        return x.contiguous(memory_format=last).as_strided(sizes, strides_of(sizes, True))
    if kind == "last, as images come":
        behind = x.permute(0, *range(2, x.dim()), 1).contiguous()
        return behind.permute(0, x.dim() - 1, *range(1, x.dim() - 1))
    wide = vesta.zeros((*sizes[:-1], sizes[-1] + 2))
    if kind == "a slice of last":
        wide = wide.contiguous(memory_format=last)
    part = wide[..., 1:-1]
    part.copy_(x)
    return part


KINDS = ["rows", "last", "last, as images come", "a slice of last", "a slice of rows"]


def dims_of(x):
    return x.dim() - 2


def conv(x, w, **options):
    return getattr(F, f"conv{dims_of(x)}d")(x, w, **options)


def conv_transpose(x, w, **options):
    return getattr(F, f"conv_transpose{dims_of(x)}d")(x, w, **options)


def statistics(x):
    return vesta.linspace(-1, 1, x.size(1), device=x.device), vesta.linspace(1, 2, x.size(1), device=x.device)


OPS = {
    "max_pool": lambda x: getattr(F, f"max_pool{dims_of(x)}d")(x, 3, 2, 1),
    "max_pool 2": lambda x: getattr(F, f"max_pool{dims_of(x)}d")(x, 2, 2, 1),
    "avg_pool": lambda x: getattr(F, f"avg_pool{dims_of(x)}d")(x, 3, 2, 1),
    "adaptive_avg_pool": lambda x: getattr(F, f"adaptive_avg_pool{dims_of(x)}d")(x, 2),
    "adaptive_avg_pool 1": lambda x: getattr(F, f"adaptive_avg_pool{dims_of(x)}d")(x, 1),
    "adaptive_max_pool": lambda x: getattr(F, f"adaptive_max_pool{dims_of(x)}d")(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, *statistics(x), training=True),
    "batch_norm, evaluation": lambda x: F.batch_norm(x, *statistics(x), *statistics(x)),
    "nearest": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
    "linear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear" if x.dim() == 4 else "trilinear"),
    "group_norm": lambda x: F.group_norm(x, 1),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[2:]),
    "pad": lambda x: F.pad(x, (1, 2)),
    "pad, replicate": lambda x: F.pad(x, (1, 1) * dims_of(x), mode="replicate"),
    "cat": lambda x: vesta.cat([x, x], 1),
    "relu": lambda x: F.relu(x),
    "add": lambda x: x + x,
    "dropout": lambda x: F.dropout(x, 0.5),
}


# Of three spatial dimensions these give rows, as PyTorch's do.
ROWS_OF_VOLUMES = ["avg_pool", "adaptive_avg_pool", "adaptive_max_pool"]


def bits(t):
    return t.detach().contiguous().numpy().tobytes()


def run(op, *tensors):
    """The result and the gradients of all tensors."""
    leaves = [t.detach().requires_grad_() for t in tensors]
    vesta.manual_seed(1)
    y = op(*leaves)
    vesta.manual_seed(2)
    weights = vesta.empty_like(y)
    weights.copy_(vesta.randn(y.shape))
    return y, vesta.autograd.grad(y, leaves, weights)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_an_op_follows_its_input(name, shape):
    expected = None
    for kind in KINDS:
        x = made(shape, kind)
        if name in ("relu", "add", "dropout") and kind == "a slice of rows":
            continue
        y, (gx,) = run(OPS[name], x)
        exact = name not in ("relu", "add", "dropout")  # PyTorch's elementwise ops give rows where both fit
        last = follows(x) and not (name in ROWS_OF_VOLUMES and len(shape) == 5)
        assert strides(y, exact) == strides_of(y.shape, last, exact), kind
        if name not in ("group_norm", "rms_norm", "adaptive_avg_pool 1"):  # those have the strides of their last step
            assert strides(gx, False) == strides_of(x.shape, last, False), kind
        expected = expected or (bits(y), bits(gx))
        assert (bits(y), bits(gx)) == expected, kind


@pytest.mark.parametrize("dtype", [vesta.complex64, vesta.int64], ids=str)
@pytest.mark.parametrize("mode", ["replicate", "reflect"])
@pytest.mark.parametrize("shape", SHAPES[:1] + SHAPES[7:8], ids=str)
def test_padding_follows_its_input_whatever_its_dtype(shape, mode, dtype):
    for kind in KINDS[:2]:
        x = made(shape, kind).to(dtype)
        y = F.pad(x, (1, 2, 0, 1), mode=mode) if len(shape) == 4 else F.pad(x, (1, 2, 0, 1, 1, 0), mode=mode)
        assert y.stride() == strides_of(y.shape, follows(x)), kind


CONVOLUTIONS = {
    "1x1": (16, 1, {}), "1x1, stride 2": (16, 1, {"stride": 2}), "3x3": (16, 3, {"padding": 1}),
    "3x3, stride 2": (20, 3, {"padding": 1, "stride": 2}), "3x3, few": (3, 3, {}),
    "depthwise": (0, 3, {"padding": 1}), "depthwise, stride 2": (0, 3, {"padding": 1, "stride": 2}),
    "1x1, padded": (5, 1, {"padding": 1}), "dilated": (16, 2, {"dilation": 2, "padding": 2}),
}  # fmt: skip


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("shape", [(2, 8, 6, 5), (1, 33, 9, 9), (3, 16, 3, 7), (2, 1, 6, 5), (1, 8, 3, 6, 5)], ids=str)
def test_a_convolution_follows_its_input_or_weight(name, shape, bias):
    outputs, size, options = CONVOLUTIONS[name]
    kernel = (size,) * (len(shape) - 2)
    if not outputs:
        outputs, options = shape[1], {**options, "groups": shape[1]}
    sizes = (outputs, shape[1] // options.get("groups", 1), *kernel)
    offsets = vesta.linspace(-1, 1, outputs) if bias else None
    backward_sizes = (shape[1], outputs // options.get("groups", 1), *kernel)
    for op, weight_sizes in ((conv, sizes), (conv_transpose, backward_sizes)):
        expected = None
        for kind in KINDS:
            for weight_kind in ("rows", "last"):
                x, w = made(shape, kind), made(weight_sizes, weight_kind, seed=3)
                y, (gx, gw) = run(lambda x, w, op=op: op(x, w, bias=offsets, **options), x, w)
                last = follows(x) or follows(w)
                assert y.stride() == strides_of(y.shape, last), (kind, weight_kind)
                assert gx.stride() == strides_of(gx.shape, last), (kind, weight_kind)
                assert gw.stride() == strides_of(gw.shape, last), (kind, weight_kind)
                expected = expected or (bits(y), bits(gx), bits(gw))
                assert (bits(y), bits(gx), bits(gw)) == expected, (kind, weight_kind)


@pytest.mark.parametrize("dtype", [vesta.bfloat16, vesta.float16])
@pytest.mark.parametrize("name", ["1x1", "3x3", "depthwise, stride 2"])
def test_narrow_floats(name, dtype):
    outputs, size, options = CONVOLUTIONS[name]
    x = made((2, 8, 6, 5), "rows").to(dtype)
    options = options if outputs else {**options, "groups": 8}
    w = made((outputs or 8, 8 // options.get("groups", 1), size, size), "rows", 3).to(dtype)
    rows = run(lambda x, w: conv(x, w, **options), x, w)
    last = run(lambda x, w: conv(x, w, **options), x.contiguous(memory_format=vesta.channels_last), w)
    assert last[0].stride() == strides_of(last[0].shape, True)
    for a, b in zip((rows[0], *rows[1]), (last[0], *last[1])):
        assert vesta.equal(a, b)


@pytest.mark.parametrize("name", ["max_pool", "batch_norm", "batch_norm, evaluation", "linear"])
@pytest.mark.parametrize("dtype", [vesta.float64, vesta.bfloat16])
def test_other_dtypes(name, dtype):
    x = made((2, 40, 9, 9), "rows").to(dtype)
    rows = run(OPS[name], x)
    last = run(OPS[name], x.contiguous(memory_format=vesta.channels_last))
    assert follows(last[0]) and follows(last[1][0])
    assert vesta.equal(rows[0], last[0]) and vesta.equal(rows[1][0], last[1][0])


@pytest.mark.parametrize("options", [{}, {"groups": 2}, {"dilation": 2}], ids=str)
def test_a_convolution_of_float64_follows_its_input_with_four_dimensions_only(options):
    """As PyTorch's does, which has no kernel of three spatial dimensions for it."""
    for shape, size in (((2, 8, 6, 5), 2), ((2, 8, 6, 5, 4), 2), ((2, 8, 6, 5), 1)):
        x = made(shape, "last").double()
        w = made((4, 8 // options.get("groups", 1), *(size,) * (len(shape) - 2)), "rows", 3).double()
        y, (gx, _) = run(lambda x, w: conv(x, w, **options), x, w)
        assert y.stride() == strides_of(y.shape, len(shape) == 4)
        assert gx.stride() == strides_of(gx.shape, len(shape) == 4)
        rows, (gx_of_rows, _) = run(lambda x, w: conv(x, w, **options), x.contiguous(), w)
        assert bits(rows) == bits(y) and bits(gx_of_rows) == bits(gx)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padding_same_gives_a_dense_result(dims):
    """An even kernel takes one more column or row on the far side; the result is no slice of a larger one."""
    vesta.manual_seed(0)
    f = getattr(F, f"conv{dims}d")
    x, w = vesta.randn(2, 3, 5, 4, 6)[..., 0, 0][..., None].expand(2, 3, 5, 5), vesta.randn(4, 3, 2, 4, 3)
    x, w = (x[..., 0], w[..., 0, 0]) if dims == 1 else (x, w[..., 0]) if dims == 2 else (vesta.randn(2, 3, 5, 4, 6), w)
    y = f(x, w, padding="same")
    assert y.shape == (2, 4, *x.shape[2:]) and y.is_contiguous()
    wide = F.pad(x, [n for k in reversed(w.shape[2:]) for n in ((k - 1) // 2, k // 2)])
    assert bits(y) == bits(f(wide, w))
    if dims > 1:
        assert follows(f(x.contiguous(memory_format=LAST[x.dim()]), w, padding="same"))


def test_what_gives_rows_whatever_its_input():
    """As in PyTorch: averages and adaptive poolings of three dimensions, and instance normalisation."""
    for shape in ((2, 8, 6, 5), (2, 8, 3, 6, 5)):
        x = made(shape, "last")
        for op in (lambda x: F.instance_norm(x), *(OPS[name] for name in ROWS_OF_VOLUMES if len(shape) == 5)):
            rows, last = run(op, x.contiguous()), run(op, x)
            assert last[0].is_contiguous()
            assert bits(last[0]) == bits(rows[0]) and bits(last[1][0]) == bits(rows[1][0])


def test_indices_of_a_pooling():
    x = made((2, 8, 6, 5), "rows")
    for pool in (lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
                 lambda x: F.adaptive_max_pool2d(x, 2, return_indices=True)):  # fmt: skip
        values, places = pool(x)
        last, last_places = pool(x.contiguous(memory_format=vesta.channels_last))
        assert last.stride() == last_places.stride() == strides_of(last.shape, True)
        assert vesta.equal(values, last) and vesta.equal(places, last_places)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_not_finite(value):
    """Weights that meet only padding show in the same places."""
    for name in ("1x1", "3x3", "depthwise", "3x3, stride 2"):
        outputs, size, options = CONVOLUTIONS[name]
        options = options if outputs else {**options, "groups": 8}
        w = made((outputs or 8, 8 // options.get("groups", 1), size, size), "rows", 3)
        w[0, 0, 0, 0] = value
        x = made((2, 8, 6, 5), "rows")
        x[0, 1, 2, 3] = value
        y = conv(x, w, **options)
        last = conv(x.contiguous(memory_format=vesta.channels_last), w, **options)
        assert bits(y) == bits(last), name
    pooled = F.max_pool2d(x, 3, 2, 1)
    assert bits(pooled) == bits(F.max_pool2d(x.contiguous(memory_format=vesta.channels_last), 3, 2, 1))


@pytest.mark.parametrize("name", OPS)
def test_the_meta_device_agrees(name):
    for shape in SHAPES:
        for kind in ("rows", "last", "a slice of last"):
            x = made(shape, kind)
            there = x.to("meta")
            if there.stride() == x.stride():  # a slice becomes dense
                assert OPS[name](there).stride() == OPS[name](x).stride(), (shape, kind)


class Block(nn.Module):
    """What residual networks are made of."""

    def __init__(self):
        super().__init__()
        first = nn.Conv2d(3, 16, 7, 2, 3, bias=False)
        self.stem = nn.Sequential(first, nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.body = nn.Sequential(nn.Conv2d(16, 16, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16))
        self.down = nn.Conv2d(16, 32, 1, 2)
        self.head = nn.Linear(32, 5)

    def forward(self, x):
        self.seen = [x]
        x = self.stem(x)
        self.seen.append(x)
        x = F.relu(x + self.body(x))
        self.seen.append(x)
        x = self.down(x)
        self.seen.append(x)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def test_a_network_keeps_its_layout_and_its_bits():
    x = made((2, 3, 37, 33), "rows")
    results = []
    for last in (False, True):
        vesta.manual_seed(0)
        model = Block()
        if last:
            model = model.to(memory_format=vesta.channels_last)
        y = model(x.contiguous(memory_format=vesta.channels_last) if last else x)
        y.square().sum().backward()
        assert all(follows(t) == last for t in model.seen)
        grads = [p.grad for p in model.parameters()]
        for p in model.parameters():
            assert p.grad.stride() == p.stride() or last and p.size(1) == 1
        results.append([bits(y), *map(bits, grads)])
    assert results[0] == results[1]


def test_a_result_follows_operands_that_broadcast():
    """Operands order the dimensions, the first before the second; where one broadcasts, the next ones do."""
    b = vesta.arange(30.0).view(2, 3, 5)
    s = vesta.arange(30.0).view(2, 5, 3).mT
    column = vesta.ones(3, 5).mT.contiguous().mT
    assert (b[0] / s).stride() == (b[0] < s).stride() == vesta.where(b[0] > 3, s, b[0]).stride() == (15, 5, 1)
    assert vesta.addcmul(b[0], s, b).stride() == vesta.lerp(b[0], s, b).stride() == (15, 5, 1)
    assert (s / b[0]).stride() == (column + b).stride() == (vesta.ones(5) + s).stride() == (15, 1, 3)
    assert (column + vesta.ones(4, 3, 5)).stride() == (vesta.ones(1, 1, 5).expand(2, 3, 5) + s).stride() == (15, 1, 3)
    last = vesta.ones(2, 5, 3, 4).to(memory_format=vesta.channels_last)
    assert (vesta.ones(5, 3, 4) + last).stride() == (vesta.ones(2, 5, 3, 1) + last).stride() == (60, 12, 4, 1)
    assert (vesta.ones(1, 5, 1, 1) + last).stride() == (last + vesta.ones(2, 5, 3, 1)).stride() == (60, 1, 20, 5)
    # The first operand does not have the dimension: the second places it outside of both.
    assert (vesta.ones(3, 4, 5).permute(2, 0, 1) + last).stride() == (60, 1, 20, 5)
