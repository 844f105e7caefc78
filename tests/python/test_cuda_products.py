"""Matrix products, convolutions and pooling on CUDA against the CPU, over dtypes, layouts and sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU, or the emulated device")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
COMPLEX = ["complex64", "complex128"]
TOLERANCE = {"float32": 2e-6, "float64": 1e-14, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 2e-6}


def made(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Returns a CPU tensor of small numbers, of any dtype."""
    rng = np.random.default_rng([seed, *shape])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)  # products wrap around
        return vesta.tensor(rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True))
    values = rng.standard_normal(shape)
    if dtype in COMPLEX:
        return vesta.tensor((values + 1j * rng.standard_normal(shape)).astype(dtype))
    return vesta.tensor(values).to(getattr(vesta, dtype))


def numbers(t: Any) -> np.ndarray:
    t = t.detach().cpu()
    return np.asarray((t.float() if t.dtype in (vesta.float16, vesta.bfloat16) else t).numpy())


def assert_same(got: Any, want: Any, terms: int = 1) -> None:
    """Compares a result on CUDA, sums of `terms` products, with the CPU's; integers must be equal."""
    assert got.device.type == "cuda" and got.shape == want.shape and got.dtype == want.dtype
    name = str(want.dtype).removeprefix("vesta.")
    if name in INTEGERS or name == "bool":
        np.testing.assert_array_equal(numbers(got), numbers(want))
        return
    rtol = TOLERANCE.get(name, 1e-14)
    np.testing.assert_allclose(numbers(got), numbers(want), rtol=rtol, atol=rtol * max(1, terms) ** 0.5)


MATMUL_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((3,), (3,)),
    ((3,), (3, 4)),
    ((2, 3), (3,)),
    ((5, 7), (7, 3)),
    ((1, 1), (1, 1)),
    ((17, 33), (33, 18)),
    ((65, 70), (70, 66)),
    ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 3)),
    ((3, 0), (0, 2)),
    ((0, 3), (3, 2)),
    ((2, 0, 3), (3, 4)),
    ((2, 2, 1, 2, 1, 2, 1, 2, 1, 2, 2, 3), (2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 3, 2)),  # ten batch dimensions
]


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS + COMPLEX)
def test_matmul_shapes(dtype: str) -> None:
    for a_shape, b_shape in MATMUL_SHAPES:
        a, b = made(a_shape, dtype, 1), made(b_shape, dtype, 2)
        assert_same(a.cuda() @ b.cuda(), a @ b, a_shape[-1])


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "bfloat16"])
def test_matmul_layouts(dtype: str) -> None:
    def layouts(shape: tuple[int, int], seed: int) -> list[Any]:
        m, n = shape
        wide = made((m * 2, n * 3), dtype, seed)
        return [
            made(shape, dtype, seed),
            made((n, m), dtype, seed).t(),
            wide[::2, 1::3],
            made((1, n), dtype, seed).expand(m, n),
            made((m, 1), dtype, seed).expand(m, n),
            made((m + 1, n), dtype, seed)[1:],
        ]

    for a, b in itertools.product(layouts((19, 35), 1), layouts((35, 21), 2)):
        moved = [t.contiguous().cuda() for t in (a, b)]
        assert_same(moved[0] @ moved[1], a @ b, 35)
    base = made((6, 40, 40), dtype, 3)
    on_device = base.cuda()
    for view in (
        lambda t: t.transpose(1, 2) @ t[:, ::2].transpose(1, 2),
        lambda t: t.transpose(0, 1) @ t.transpose(0, 1).transpose(1, 2),
        lambda t: t[:, :, 3] @ t[0, :, 1:7],
        lambda t: t[:1].expand(4, 40, 40) @ t[2],
        lambda t: t[::3, 1:, ::2] @ t[1::3, :20],
    ):
        assert_same(view(on_device), view(base), 40)


def test_linear_over_dtypes_and_layouts() -> None:
    for dtype in FLOATS + INTEGERS + COMPLEX:
        for shape in ((5,), (3, 5), (2, 3, 5), (0, 5)):
            x, w, b = made(shape, dtype, 1), made((4, 5), dtype, 2), made((4,), dtype, 3)
            for bias in (None, b):
                got = F.linear(x.cuda(), w.cuda(), None if bias is None else b.cuda())
                assert_same(got, F.linear(x, w, bias), 5)
    x, w = made((4, 6, 70), "float32", 1), made((70, 90), "float32", 2)
    for view in (lambda t: t, lambda t: t.transpose(0, 1), lambda t: t[:, ::2], lambda t: t[1:, :, :]):
        assert_same(F.linear(view(x.cuda()), w.cuda().t()), F.linear(view(x), w.t()), 70)
    x, w = made((3, 5), "float32"), made((5,), "float32")  # a weight of one dimension
    assert_same(F.linear(x.cuda(), w.cuda()), F.linear(x, w), 5)


CONVOLUTIONS = [  # input, weight, arguments
    ((2, 3, 7, 9), (4, 3, 3, 3), {}),
    ((2, 3, 7, 9), (4, 3, 3, 2), {"stride": (2, 3), "padding": (1, 2)}),
    ((1, 4, 8, 8), (6, 2, 3, 3), {"groups": 2, "padding": 1, "dilation": 2}),
    ((2, 5, 6, 5), (10, 1, 3, 3), {"groups": 5, "padding": 1}),  # depthwise
    ((3, 20, 9, 9), (24, 20, 1, 1), {}),
    ((2, 20, 10, 9), (30, 20, 3, 3), {"padding": 1, "stride": 2}),
    ((40, 3, 9, 9), (5, 3, 3, 3), {"padding": 1}),  # the weight's gradient in parts
    ((3, 7, 9), (4, 3, 3, 3), {"padding": 2}),  # no batch
    ((0, 3, 5, 5), (4, 3, 3, 3), {}),
    ((2, 3, 5, 5), (0, 3, 3, 3), {}),
    ((2, 3, 0, 5), (4, 3, 1, 1), {"padding": 1}),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("x_shape", "w_shape", "arguments"), CONVOLUTIONS)
def test_convolution(
    x_shape: tuple[int, ...], w_shape: tuple[int, ...], arguments: dict[str, Any], dtype: str, full_precision: None
) -> None:
    x, w, b = made(x_shape, dtype, 1), made(w_shape, dtype, 2), made(w_shape[:1], dtype, 3)
    terms = int(np.prod(w_shape[1:]))
    assert_same(F.conv2d(x.cuda(), w.cuda(), b.cuda(), **arguments), F.conv2d(x, w, b, **arguments), terms)
    sides = []
    for device in ("cpu", "cuda"):
        inputs = [x.to(device).requires_grad_(), w.to(device).requires_grad_()]
        y = F.conv2d(*inputs, **arguments)
        sides.append(vesta.autograd.grad(y, inputs, made(tuple(y.shape), dtype, 4).to(device)))
    places = int(np.prod(x_shape)) // max(1, x_shape[-3])
    assert_same(sides[1][0], sides[0][0], terms)
    assert_same(sides[1][1], sides[0][1], places)


def test_convolution_of_views() -> None:
    x, w = made((9, 8, 4, 3), "float32", 1), made((3, 3, 2, 6), "float32", 2)
    for view in (lambda t: t.permute(3, 2, 1, 0), lambda t: t.permute(2, 3, 0, 1)[:, :, ::2, 1:]):
        y = F.conv2d(view(x), w.permute(3, 1, 2, 0) if view(x).shape[1] == 3 else w[:, :1].expand(3, 4, 2, 6))
        weight = w.cuda().permute(3, 1, 2, 0) if view(x).shape[1] == 3 else w.cuda()[:, :1].expand(3, 4, 2, 6)
        assert_same(F.conv2d(view(x.cuda()), weight), y, 24)


@pytest.fixture
def full_precision() -> Iterator[None]:
    """Convolutions of float32 without TF32, which they may use by default, as in PyTorch."""
    with vesta.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def test_convolution_in_tf32() -> None:
    x, w = made((2, 20, 10, 9), "float32", 1), made((30, 20, 3, 3), "float32", 2)
    exact = F.conv2d(x.double(), w.double())
    error = (F.conv2d(x.cuda(), w.cuda()).cpu().double() - exact).norm() / exact.norm()
    assert error < 2e-3  # 10 bits of the operands: 5e-4


POOLS = [
    ((2, 3, 8, 8), {"kernel_size": 2}),
    ((2, 3, 9, 7), {"kernel_size": 3, "stride": 1, "padding": 1}),  # windows overlap: the gradient adds several terms
    ((2, 2, 9, 7), {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "ceil_mode": True}),
    ((1, 2, 40, 40), {"kernel_size": 5, "stride": 1, "padding": 2}),
    ((3, 9, 7), {"kernel_size": 3}),
    ((0, 3, 8, 8), {"kernel_size": 2}),
    ((1, 1, 1, 1), {"kernel_size": 2, "padding": 1, "dilation": 2, "stride": 1}),  # reads only padding
]


@pytest.mark.parametrize(("shape", "arguments"), POOLS)
def test_max_pool(shape: tuple[int, ...], arguments: dict[str, Any]) -> None:
    for dtype in FLOATS + INTEGERS:
        x = made(shape, dtype, 1)
        for layout in (x, x.transpose(-1, -2)):
            want = vesta._C._private.max_pool2d_with_indices(layout, **arguments)
            for got, expected in zip(vesta._C._private.max_pool2d_with_indices(layout.cuda(), **arguments), want):
                np.testing.assert_array_equal(numbers(got), numbers(expected))
            values = F.max_pool2d(layout.cuda(), **arguments)  # no places are written
            assert values.stride() == F.max_pool2d(layout, **arguments).stride()
            np.testing.assert_array_equal(numbers(values), numbers(want[0]))
        if dtype in INTEGERS:
            continue
        grads = []
        for device in ("cpu", "cuda"):
            at = x.to(device).requires_grad_()
            y = F.max_pool2d(at, **arguments)
            grads.append(vesta.autograd.grad(y, at, made(tuple(y.shape), dtype, 2).to(device))[0])
        np.testing.assert_array_equal(numbers(grads[1]), numbers(grads[0]))  # terms are added in the CPU's order


@pytest.mark.parametrize("width", [8, 9, 3])
@pytest.mark.parametrize("channels", [1, 3, 8, 16])
def test_gradient_of_max_pool_looks_once_at_each_window_of_a_run(width: int, channels: int) -> None:
    windows = [(2,), (3, 2, 1), (3, 1, 1), ((2, 3), (3, 2), (0, 1))]  # kernel, stride, padding
    for dtype in FLOATS:
        x = vesta.floor(made((2, channels, 7, width), "float64", 1) * 2).to(getattr(vesta, dtype))  # equal elements
        for window in windows:
            grads = []
            for device, format in (("cpu", vesta.contiguous_format), ("cuda", vesta.contiguous_format),
                                   ("cuda", vesta.channels_last)):  # fmt: skip
                at = x.to(device).contiguous(memory_format=format).requires_grad_()
                y = F.max_pool2d(at, *window)
                g = made(tuple(y.shape), dtype, 2).to(device).contiguous(memory_format=format)
                grads.append(numbers(vesta.autograd.grad(y, at, g)[0]))
            np.testing.assert_array_equal(grads[1], grads[0])
            np.testing.assert_array_equal(grads[2], grads[0])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 8, 7, 9), (1, 3, 5, 5), (1, 8, 2, 1), (1, 8, 1, 1)], ids=str)
def test_max_pool_of_special_numbers_at_the_edges(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(3)
    chosen = rng.choice([np.nan, -np.inf, -0.0, 0.0, 1.0, 2.0], shape, p=[0.1, 0.3, 0.1, 0.1, 0.2, 0.2])
    x = vesta.tensor(chosen).to(getattr(vesta, dtype))
    for kernel, stride, padding in ((2, 2, 0), (2, 2, 1), (3, 2, 1), (3, 1, 1), (2, 1, 1)):
        for ceil in (False, True):
            if min(shape[2:]) + 2 * padding < kernel:
                continue
            want = vesta._C._private.max_pool2d_with_indices(x, kernel, stride, padding, 1, ceil)
            for format in (vesta.contiguous_format, vesta.channels_last):
                image = x.cuda().contiguous(memory_format=format)
                got = vesta._C._private.max_pool2d_with_indices(image, kernel, stride, padding, 1, ceil)
                for a, b in zip(got, want):
                    np.testing.assert_array_equal(numbers(a), numbers(b))


def test_gradient_of_max_pool_over_volumes_and_lines() -> None:
    for shape, pool in (((2, 3, 5, 6, 7), F.max_pool3d), ((2, 3, 13), F.max_pool1d)):
        grads = []
        for device in ("cpu", "cuda"):
            at = made(shape, "float32", 1).to(device).requires_grad_()
            y = pool(at, 3, 2, 1)
            grads.append(numbers(vesta.autograd.grad(y, at, made(tuple(y.shape), "float32", 2).to(device))[0]))
        np.testing.assert_array_equal(grads[1], grads[0])


def test_max_pool_takes_the_last_nan_and_the_first_of_equals() -> None:
    x = vesta.tensor([[[1.0, float("nan"), 3.0, 3.0], [5.0, float("nan"), 3.0, 2.0]]])
    values, indices = vesta._C._private.max_pool2d_with_indices(x.cuda(), 2)
    assert numbers(indices).ravel().tolist() == [5, 2]
    assert np.isnan(numbers(values)[0, 0, 0]) and numbers(values)[0, 0, 1] == 3


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_gradients_of_products(dtype: str) -> None:
    for a_shape, b_shape in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,))):
        sides = []
        for device in ("cpu", "cuda"):
            inputs = [made(s, dtype, i).to(device).requires_grad_() for i, s in enumerate((a_shape, b_shape))]
            y = inputs[0] @ inputs[1]
            sides.append(vesta.autograd.grad(y, inputs, made(tuple(y.shape), dtype, 9).to(device)))
        for got, want in zip(sides[1], sides[0]):
            assert_same(got, want, 10)
    sides = []
    for device in ("cpu", "cuda"):
        inputs = [made(s, dtype, i).to(device).requires_grad_() for i, s in enumerate(((2, 3, 4), (5, 4)))]
        y = F.linear(*inputs)
        sides.append(vesta.autograd.grad(y, inputs, made(tuple(y.shape), dtype, 9).to(device)))
    for got, want in zip(sides[1], sides[0]):
        assert_same(got, want, 10)


def test_second_gradient_of_convolution() -> None:
    sides = []
    for device in ("cpu", "cuda"):
        x = made((2, 2, 5, 5), "float64", 1).to(device).requires_grad_()
        w = made((3, 2, 3, 3), "float64", 2).to(device).requires_grad_()
        y = F.conv2d(x, w, padding=1)
        first = vesta.autograd.grad(y * y, (x, w), made((2, 3, 5, 5), "float64", 3).to(device), create_graph=True)
        sides.append(vesta.autograd.grad(first[0] * first[0], (x, w), made((2, 2, 5, 5), "float64", 4).to(device)))
    for got, want in zip(sides[1], sides[0]):
        np.testing.assert_allclose(numbers(got), numbers(want), rtol=1e-11, atol=1e-10)


def test_same_bits_every_time() -> None:
    x, w, g = (made(s, "float32", i).cuda() for i, s in enumerate(((40, 4, 9, 9), (8, 4, 3, 3), (40, 8, 9, 9))))
    runs = [
        [
            numbers(t)
            for t in (
                F.conv2d(x, w, padding=1),
                vesta._C._convolution_backward_input(g, w, [40, 4, 9, 9], 1, 1, 1, 1),
                vesta._C._convolution_backward_weight(g, x, [8, 4, 3, 3], 1, 1, 1, 1),
                x[0, 0] @ x[0, 1],
            )
        ]
        for _ in range(3)
    ]
    for again in runs[1:]:
        for one, other in zip(runs[0], again):
            assert one.tobytes() == other.tobytes()


def test_bad_operands() -> None:
    a = made((2, 3), "float32").cuda()
    with pytest.raises(RuntimeError, match=r"matmul: expected all tensors on one device, got cuda:0 \(input\) and cpu"):
        a @ made((3, 2), "float32")
    with pytest.raises(RuntimeError, match=r"linear: expected all tensors on one device, got cpu \(input\)"):
        F.linear(made((2, 3), "float32"), a)
    with pytest.raises(RuntimeError, match="inner sizes must agree"):
        a @ a
    with pytest.raises(RuntimeError, match="same dtype"):
        a @ a.t().double()
    with pytest.raises(RuntimeError, match="expected a number dtype"):
        a.bool() @ a.t().bool()
    x = made((1, 2, 4, 4), "float32").cuda()
    with pytest.raises(RuntimeError, match="conv2d: expected a floating-point dtype"):
        F.conv2d(x.bool(), x.bool())
    with pytest.raises(RuntimeError, match="Kernel size can't be greater"):
        F.conv2d(x, made((1, 2, 9, 9), "float32").cuda())
    with pytest.raises(RuntimeError, match="expected all tensors on one device"):
        F.conv2d(x, made((1, 2, 3, 3), "float32"))
    with pytest.raises(RuntimeError, match="real dtype"):
        F.max_pool2d(made((1, 2, 4, 4), "complex64").cuda(), 2)
    indices = vesta.tensor(np.full((1, 2, 2, 2), 99)).cuda()
    with pytest.raises(IndexError, match="index 99 is out of bounds for dimension with size 16"):
        vesta._C._max_pool_backward(x[:, :, :2, :2].contiguous(), indices, [1, 2, 4, 4]).cpu()
    assert numbers(x @ x).shape == (1, 2, 4, 4)  # the device stays usable
