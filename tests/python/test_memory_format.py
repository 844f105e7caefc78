"""Memory formats: channels last and the others change strides, never values."""

import pytest
import vesta
from vesta import nn

LAST = vesta.channels_last
LAST_3D = vesta.channels_last_3d


def images():
    return vesta.arange(24.0).view(1, 2, 3, 4)


MAKERS = {
    "to": lambda x: x.to(memory_format=LAST),
    "to a dtype": lambda x: x.to(vesta.float64, memory_format=LAST),
    "contiguous": lambda x: x.contiguous(memory_format=LAST),
    "clone": lambda x: x.clone(memory_format=LAST),
    "double": lambda x: x.double(memory_format=LAST),
    "cpu": lambda x: x.cpu(memory_format=LAST),
    "zeros_like": lambda x: vesta.zeros_like(x, memory_format=LAST),
    "rand_like": lambda x: vesta.rand_like(x, memory_format=LAST),
    "empty": lambda x: vesta.empty(1, 2, 3, 4, memory_format=LAST),
}


@pytest.mark.parametrize("name", MAKERS)
def test_it_lies_in_the_format(name):
    x = images()
    made = MAKERS[name](x)
    assert made.stride() == (24, 1, 8, 2)
    assert made.shape == x.shape
    assert made.is_contiguous(memory_format=LAST) and not made.is_contiguous()


def test_values_are_the_same():
    x = images()
    last = x.to(memory_format=LAST)
    assert vesta.equal(last, x)
    assert vesta.equal(last.contiguous(), x) and last.contiguous().is_contiguous()
    assert last.clone(memory_format=vesta.contiguous_format).stride() == (24, 12, 4, 1)


def test_what_lies_so_is_not_copied():
    x = images()
    last = x.to(memory_format=LAST)
    assert last.contiguous(memory_format=LAST).data_ptr() == last.data_ptr()
    assert last.to(memory_format=LAST).data_ptr() == last.data_ptr()


@pytest.mark.parametrize("op", [lambda x: x + 1, lambda x: x.relu(), vesta.zeros_like, lambda x: x.clone()])
def test_elementwise_results_keep_it(op):
    x = images()
    assert op(x.to(memory_format=LAST)).stride() == (24, 1, 8, 2)


def test_copies_keep_strides_of_dimensions_of_size_1():
    # they tell the format of [N, C, 1, 1], so a copy or an optimizer's state has the format of its tensor
    x = vesta.randn(8, 4, 1, 1).to(memory_format=vesta.channels_last)
    copies = [x.clone(), x.to(vesta.float64), vesta.zeros_like(x), vesta.empty_like(x), vesta.rand_like(x)]
    assert [c.stride() for c in copies] == [(4, 1, 4, 4)] * len(copies)
    assert vesta.randn(8, 4, 1, 1).clone().stride() == (4, 1, 1, 1)
    assert vesta.empty_strided((3, 1, 2), (2, 17, 1)).clone().stride() == (2, 17, 1)
    assert vesta.zeros_like(vesta.empty_strided((0, 4, 1, 1), (4, 1, 4, 4))).stride() == (4, 1, 4, 4)


def test_five_dimensions():
    x = vesta.arange(120.0).view(1, 2, 3, 4, 5)
    last = x.to(memory_format=LAST_3D)
    assert last.stride() == (120, 1, 40, 10, 2) and vesta.equal(last, x)
    assert last.is_contiguous(memory_format=LAST_3D) and not x.is_contiguous(memory_format=LAST_3D)


def test_gradients_pass():
    x, weights = images().requires_grad_(), images()
    (x.contiguous(memory_format=LAST) * weights).sum().backward()
    assert vesta.equal(x.grad, weights)


def test_a_module_lays_out_parameters_of_four_dimensions():
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(8, 2))
    x = vesta.randn(2, 2, 3, 4)
    before = model(x)
    model = model.to(memory_format=LAST)
    assert model[0].weight.is_contiguous(memory_format=LAST) and model[3].weight.is_contiguous()
    after = model(x.to(memory_format=LAST))
    assert vesta.equal(before, after)
    after.sum().backward()
    assert model[0].weight.grad.shape == (4, 2, 3, 3)


@pytest.mark.parametrize("op", ["to", "contiguous", "clone", "zeros_like"])
def test_wrong_numbers_of_dimensions(op):
    call = getattr(vesta.ones(3), op, None) or (lambda **k: vesta.zeros_like(vesta.ones(3), **k))
    with pytest.raises(RuntimeError, match=f"{op}: expected a tensor of 4 dimensions for channels_last, got one of 1"):
        call(memory_format=LAST)


@pytest.mark.parametrize("value", [3, "channels_last"])
def test_wrong_types(value):
    x = images()
    for call in (x.contiguous, x.to, x.float, x.is_contiguous):
        with pytest.raises(TypeError, match="memory_format"):
            call(memory_format=value)


def test_a_convolution_follows_its_input():
    x = images()
    weight = vesta.ones(4, 2, 1, 1)
    y = nn.functional.conv2d(x.to(memory_format=LAST), weight)
    assert y.stride() == (48, 1, 16, 4)
    assert vesta.equal(y, nn.functional.conv2d(x, weight))


def rows(*shape):
    return vesta.arange(1.0, 1 + vesta.Size(shape).numel()).reshape(shape)


# What an op gives for an image [2, 4, 6, 8] with channels last: strides as PyTorch 2.15 has them on the CPU.
ROWS, CHANNELS = (192, 48, 8, 1), (192, 1, 32, 4)
INDEX = vesta.zeros(2, 4, 6, 8, dtype=vesta.int64)
FOLLOWERS = {
    "masked_fill": (lambda x: x.masked_fill(x > 3, 0.0), ROWS),
    "masked_fill by rows": (lambda x: x.masked_fill(rows(2, 4, 6, 8) > 3, 0.0), ROWS),
    "masked_scatter": (lambda x: x.masked_scatter(x > 3, rows(2, 4, 6, 8)), ROWS),
    "tril": (lambda x: x.tril(), ROWS),
    "scatter": (lambda x: x.scatter(1, INDEX, rows(2, 4, 6, 8)), ROWS),
    "scatter a number": (lambda x: x.scatter(1, INDEX, 5.0), ROWS),
    "scatter_add": (lambda x: x.scatter_add(1, INDEX, x), ROWS),
    "scatter_reduce": (lambda x: x.scatter_reduce(1, INDEX, x, "amax"), ROWS),
    "index_add": (lambda x: x.index_add(1, vesta.tensor([0, 1]), x[:, :2]), ROWS),
    "index_copy": (lambda x: x.index_copy(1, vesta.tensor([0, 1]), x[:, :2]), ROWS),
    "index_fill": (lambda x: x.index_fill(1, vesta.tensor([0, 1]), 1.0), CHANNELS),
    "put": (lambda x: x.put(vesta.tensor([0]), vesta.tensor([1.0])), CHANNELS),
    "stack 0": (lambda x: vesta.stack([x, x + 1]), (384, 192, 1, 32, 4)),
    "stack 1": (lambda x: vesta.stack([x, x + 1], 1), (384, 4, 1, 64, 8)),
    "stack 2": (lambda x: vesta.stack([x, x + 1, x], 2), (576, 1, 192, 32, 4)),
    "stack 3": (lambda x: vesta.stack([x, x + 1], 3), (384, 1, 64, 32, 4)),
    "stack at the end": (lambda x: vesta.stack([x, x + 1], -1), (384, 96, 16, 2, 1)),
    "stack with rows": (lambda x: vesta.stack([x, rows(2, 4, 6, 8)]), (384, 192, 48, 8, 1)),
    "pixel_shuffle": (lambda x: nn.functional.pixel_shuffle(x, 2), (192, 1, 16, 1)),
    "pixel_unshuffle": (lambda x: nn.functional.pixel_unshuffle(x, 2), (192, 1, 64, 16)),
    "channel_shuffle": (lambda x: nn.functional.channel_shuffle(x, 2), CHANNELS),
    "circular padding": (lambda x: nn.functional.pad(x, (1, 1, 1, 1), mode="circular"), (320, 80, 10, 1)),
    "renorm": (lambda x: x.renorm(2, 1, 5.0), ROWS),
    "max_unpool": (
        lambda x: nn.functional.max_unpool2d(*nn.functional.max_pool2d(x, 2, return_indices=True), 2),
        CHANNELS,
    ),
}


@pytest.mark.parametrize("name", FOLLOWERS)
def test_the_layout_of_a_result_is_pytorchs(name):
    call, strides = FOLLOWERS[name]
    x = rows(2, 4, 6, 8)
    last = x.contiguous(memory_format=LAST).requires_grad_()
    y = call(last)
    assert y.stride() == strides and vesta.equal(y, call(x))
    weights = rows(*y.shape).sin()
    (y * weights).sum().backward()
    x.requires_grad_()
    (call(x) * weights).sum().backward()
    assert last.grad.stride() == CHANNELS and vesta.equal(last.grad, x.grad)


#: A tensor [2, 4, 3, 5] and one [5, 4, 3, 2] that lie densely in another order, and what PyTorch 2.15 makes of them.
ROTATED = (lambda: rows(2, 3, 4, 5).permute(0, 2, 1, 3), (60, 5, 20, 1), (60, 15, 5, 1))
REVERSED = (lambda: rows(2, 3, 4, 5).permute(3, 2, 1, 0), (1, 5, 20, 60), (24, 6, 2, 1))
PRESERVES = {
    "sort": lambda x: x.sort(1)[0],
    "indices of sort": lambda x: x.sort(-1).indices,
    "stable sort": lambda x: x.sort(dim=0, stable=True, descending=True)[0],
    "argsort": lambda x: x.argsort(1),
    "msort": lambda x: x.msort(),
    "put": lambda x: x.put(vesta.tensor([0, 7]), vesta.tensor([1.0, 2.0], dtype=x.dtype)),
    "no padding": lambda x: nn.functional.pad(x, (0, 0)),
}
MAKES_ROWS = {
    **{f"interpolate {mode}": lambda x, mode=mode: nn.functional.interpolate(x, scale_factor=1.0, mode=mode)
       for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")},
    "avg_pool2d": lambda x: nn.functional.avg_pool2d(x, 1),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16])
@pytest.mark.parametrize("make, own, dense", [ROTATED, REVERSED])
@pytest.mark.parametrize("name", [*PRESERVES, *MAKES_ROWS])
def test_results_of_other_dense_layouts_lie_as_pytorchs(name, make, own, dense, dtype, device):
    x = make().to(dtype)
    call, want = (PRESERVES[name], own) if name in PRESERVES else (MAKES_ROWS[name], dense)
    y = call(x.to(device)) if device == "cpu" or name != "put" else call(x).to(device)
    assert y.stride() == want and y.data_ptr() != x.data_ptr()
    if device == "cpu":
        assert vesta.equal(y, call(x.contiguous()))


def test_a_crop_keeps_the_order_of_strides():
    x = rows(2, 3, 4, 5).permute(0, 2, 1, 3)
    y = nn.functional.pad(x, (-1, 0, -1, -1))
    assert y.stride() == (16, 4, 16, 1) and vesta.equal(y, x[:, :, 1:-1, 1:])
    y = nn.functional.pad(x, (0, 0, 0, 0, -1, 0))
    assert y.stride() == (45, 5, 15, 1) and vesta.equal(y, x[:, 1:])
    sliced = rows(2, 4, 6, 8).contiguous(memory_format=LAST)[:, 1:]
    assert nn.functional.pad(sliced, (-1, -1)).stride() == (108, 1, 18, 3)
    assert sliced.put(vesta.tensor([0]), vesta.tensor([1.0])).stride() == (144, 1, 24, 3)


@pytest.mark.parametrize("make", [ROTATED[0], REVERSED[0], lambda: rows(2, 4, 6, 8).contiguous(memory_format=LAST)])
def test_sorting_passes_gradients_in_any_layout(make):
    x = make().sin().requires_grad_()
    plain = x.detach().contiguous().requires_grad_()
    for t in (x, plain):
        values = t.sort(1).values
        (values * rows(*values.shape)).sum().backward()
    assert vesta.equal(x.grad, plain.grad)
    out = vesta.empty(x.shape), vesta.empty(x.shape, dtype=vesta.int64)
    vesta.sort(x.detach(), 1, out=out)
    assert vesta.equal(out[0], plain.detach().sort(1).values) and out[0].is_contiguous()
