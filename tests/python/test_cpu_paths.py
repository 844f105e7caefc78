"""Ways that the CPU's kernels choose by layout or size: each gives the bits of the plain way."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
from op_db_check import assert_same, tensor_of
from op_db_check import random_tensor as random

F = vesta.nn.functional
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool"])
@pytest.mark.parametrize(("shape", "order"), [((130, 200), (1, 0)), ((40, 3, 70, 20), (2, 1, 3, 0))])
def test_transposed_operands(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    x = random(*shape, dtype=dtype)
    turned = x.permute(order)
    plain, other = turned.contiguous(), random(*turned.shape, dtype=dtype, seed=1)
    mask = random(*turned.shape, seed=2) > 0
    assert_same(
        other | turned if dtype == "bool" else other + turned, other | plain if dtype == "bool" else other + plain
    )
    assert_same(vesta.where(mask, other, turned), vesta.where(mask, other, plain), "where")
    assert_same(vesta.maximum(turned, other), vesta.maximum(plain, other), "maximum")
    assert_same(other.double() + turned, other.double() + plain, "promoted")
    out = other.clone()
    out[...] = vesta.maximum(out, turned)
    assert_same(out, vesta.maximum(other, plain), "assigned")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8"])
def test_integers_beside_a_number(dtype: str) -> None:
    x = random(1003, dtype=dtype)
    values, row = x.numpy(), x[:17].clone()
    np.testing.assert_array_equal((x > 3).numpy(), values > 3)
    np.testing.assert_array_equal((3 - x).numpy(), (np.array(3, values.dtype) - values))
    np.testing.assert_array_equal((x * 3).numpy(), values * np.array(3, values.dtype))
    np.testing.assert_array_equal((row.unsqueeze(1) < x).numpy(), values[:17, None] < values)


@pytest.mark.parametrize("exponent", [2, 3, -1, 0.5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_do_not_depend_on_their_neighbours(dtype: str, exponent: float) -> None:
    x = random(64, dtype=dtype)
    large = np.finfo(dtype).max
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        large,
        -large,
        large ** (1 / 3),
        large ** (1 / 3) * 1.001,
        large**0.5,
    ]
    x[5 : 5 + len(special)] = tensor_of(np.array(special, dtype), dtype)
    wanted = [(x[i : i + 1].repeat(16) ** exponent)[0].item() for i in range(64)]
    np.testing.assert_array_equal((x**exponent).numpy(), np.array(wanted, dtype))
    with np.errstate(all="ignore"):
        true = np.power(x.double().numpy(), np.full(64, exponent)).astype(dtype)
        np.testing.assert_allclose((x**exponent).numpy(), true, rtol=2e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("op", ["sum", "prod", "amax", "amin", "norm"])
def test_short_rows_are_reduced_alike_alone_and_together(op: str, dtype: str) -> None:
    for width in (1, 5, 16, 49, 64, 100, 128, 129):
        x = random(19, width, dtype=dtype)
        x[3, 0], x[7, -1] = float("nan"), float("inf")
        x[5] = -0.0
        rows = [getattr(row.clone(), op)(dim=0) for row in x]
        assert_same(getattr(x, op)(dim=1), vesta.stack(rows), f"{op} of {width}")
        strided = vesta.cat([x, x], 1)[:, :width]
        assert_same(getattr(strided, op)(dim=1), vesta.stack(rows), f"{op} of {width}, strided")


def test_products_along_a_dimension() -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, size=(70, 300, 3))
    for dim in range(3):
        np.testing.assert_allclose(vesta.tensor(x).prod(dim).numpy(), x.prod(dim), rtol=1e-12)
    assert vesta.tensor([3] * 50).prod(0).item() == int(np.prod(np.full(50, 3)))  # wraps
    assert vesta.tensor([True, True]).prod(0).dtype == vesta.int64
    assert vesta.tensor([0.6, 2.0]).prod(0, dtype=vesta.int64).item() == 0  # converted before, as in PyTorch
    assert vesta.zeros(2, 0).prod(1, keepdim=True).tolist() == [[1], [1]]


@pytest.mark.parametrize(
    ("line", "product", "running"),
    [
        ([0.0, INF, 2.0], [INF, 0.0, NAN], [INF, 0.0, 0.0]),
        ([0.0, NAN, 2.0], [NAN, 0.0, NAN], [NAN, 0.0, 0.0]),
        ([0.0, 0.0, INF], [NAN, NAN, 0.0], [1.0, 0.0, 0.0]),
        ([INF, 0.0, 2.0, 3.0], [0.0, INF, NAN, NAN], [NAN, INF, 0.0, 0.0]),
        ([0.0, -INF, INF], [-INF, NAN, NAN], [-INF, 0.0, 0.0]),
        ([2.0, 0.0, NAN, INF], [NAN] * 4, [1.0, NAN, 0.0, 0.0]),
        ([INF, 1.0, 2.0], [NAN, INF, INF], [NAN, INF, INF]),
        ([0.0, 1.0, 2.0], [2.0, 0.0, 0.0], [4.0, 0.0, 0.0]),
    ],
)
def test_gradients_of_products_of_a_zero_and_what_is_not_finite(line, product, running) -> None:
    """The product of the others, which is 0 if the only other factor that is not finite is the element itself."""
    for dtype in (vesta.float32, vesta.float64):
        x = vesta.tensor([line, [1.0] * len(line)], dtype=dtype, requires_grad=True)
        for call, want in ((lambda t: t.prod(1), product), (lambda t: t.cumprod(1), running)):
            (grad,) = vesta.autograd.grad(call(x)[0].sum(), x)
            np.testing.assert_array_equal(grad[0].numpy(), want)
            assert grad.dtype == dtype


@pytest.mark.parametrize("zeros", [(), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_gradients_of_products_with_zeros(zeros: tuple[int, ...], keepdim: bool) -> None:
    x = np.random.default_rng(0).uniform(0.5, 2, size=(3, 4))
    x[0, list(zeros)] = 0
    leaf = vesta.tensor(x, requires_grad=True)
    leaf.prod(1, keepdim).sum().backward()
    others = [[np.prod(np.delete(row, i)) for i in range(4)] for row in x]
    np.testing.assert_allclose(leaf.grad.numpy(), others, rtol=1e-12)
    assert vesta.autograd.gradcheck(lambda v: v.prod(1, keepdim), (leaf,))
    assert vesta.autograd.gradgradcheck(lambda v: v.prod(1, keepdim), (leaf,))


@pytest.mark.parametrize(
    ("mode", "size"), [("linear", 200), ("linear", 37), ("linear", 31), ("nearest", 150), ("linear", 5)]
)
@pytest.mark.parametrize(("dtype", "width"), [("float32", 100), ("float32", 9), ("float64", 70), ("float16", 40)])
def test_lines_are_resampled_alike_alone_and_together(mode: str, size: int, dtype: str, width: int) -> None:
    x = random(4, 8, width, dtype=dtype)
    x[0, 0, 3] = float("inf")  # stays where it is read

    def run(part):
        leaf = part.clone().requires_grad_()
        y = F.interpolate(leaf, size=size, mode=mode)
        y.backward(vesta.ones_like(y))
        return y.detach(), leaf.grad

    y, gradient = run(x)
    for sample in range(4):
        for channel in range(8):
            alone, alone_gradient = run(x[sample : sample + 1, channel : channel + 1])
            assert_same(y[sample, channel], alone[0, 0])
            assert_same(gradient[sample, channel], alone_gradient[0, 0], "gradient")


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 1, 1), (2, 1, 1), ((1, 3), 0, 2)])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_depthwise_convolutions_are_those_of_each_channel(dtype, stride, padding, dilation, layout) -> None:
    x, w, bias = (
        random(3, 5, 17, 30, dtype=dtype),
        random(5, 1, 3, 3, dtype=dtype, seed=1),
        random(5, dtype=dtype, seed=2),
    )
    if layout == "channels_last":
        x = x.to(memory_format=vesta.channels_last)

    def run(x, w, bias, groups):
        leaves = [t.clone().requires_grad_() for t in (x, w, bias)]
        y = F.conv2d(*leaves, stride=stride, padding=padding, dilation=dilation, groups=groups)
        y.backward(vesta.ones_like(y))
        return y.detach(), *(leaf.grad for leaf in leaves)

    whole = run(x, w, bias, 5)
    for c in range(5):
        one = run(x[:, c : c + 1], w[c : c + 1], bias[c : c + 1], 1)
        assert_same(whole[0][:, c], one[0][:, 0])
        assert_same(whole[1][:, c], one[1][:, 0], "gradient of x")
        tolerance = 2e-2 if dtype == "bfloat16" else 1e-4
        for i in (2, 3):  # summed in another order
            np.testing.assert_allclose(
                whole[i][c].double().numpy(), one[i][0].double().numpy(), rtol=tolerance, atol=1e-2
            )


@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_windows_pool_like_windows_alone(dtype: str, stride: int) -> None:
    x = (random(2, 3, 9, 50, dtype=dtype) / 4).round()  # with ties: the first wins
    x[0, 0, 4, 20:23] = float("nan")
    x[0, 1] = -float("inf")
    y, at = F.max_pool2d(x, 3, stride, return_indices=True)
    for j in range(y.shape[-1]):
        first = j * stride
        alone, place = F.max_pool2d(x[..., first : first + 3].contiguous(), 3, stride, return_indices=True)
        assert_same(y[..., j], alone[..., 0])
        assert_same(at[..., j], place[..., 0] // 3 * 50 + place[..., 0] % 3 + first, "places")


EXPONENTS = [2, 3, 4, 5, 6, 7, 8, -1, -2, -3, 0.5, -0.5]


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_number_as_exponent_gives_the_bits_of_a_tensor_of_it(dtype: str, exponent: float) -> None:
    x = random(1003, dtype=dtype)
    most = 15 if dtype == "float16" else np.log2(np.finfo(dtype).max) - 1
    edge = 2.0 ** (most / max(abs(exponent), 1))  # about where powers stop being finite
    x[:8] = vesta.tensor([0.0, -0.0, np.inf, -np.inf, np.nan, edge * 0.99, -edge * 1.01, 1 / edge], dtype=x.dtype)
    leaf, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    exponents = vesta.full_like(x, exponent)
    assert_same(x**exponent, x**exponents)
    assert_same((x[3:20] ** exponent)[1:], (x**exponent)[4:20], "at another address")
    (leaf**exponent).sum().backward()
    (other**exponents).sum().backward()
    assert_same(leaf.grad, other.grad, "gradient")


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_errors_of_powers(exponent: float) -> None:
    """Powers of a number as exponent are within 0.51 ulp of the true value (1 / sqrt as well), as logarithms and
    exponentials within 0.6, which compute them where products cannot be fused with sums."""
    bound = 0.6 if vesta.backends.cpu.get_cpu_capability() == "DEFAULT" else 0.51
    x = np.abs(random(4096).numpy()) + np.float32(0.01)
    got, true = (vesta.tensor(x) ** exponent).numpy(), x.astype(np.float64) ** exponent
    assert (np.abs(got - true) / np.spacing(true.astype(np.float32))).max() <= bound


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "float16", "complex64"])
def test_lines_are_scanned_in_order(dtype: str, op: str) -> None:
    """Running sums and products along any dimension: of one line, and of many together, the same bits."""
    x = random(37, 45, 41, dtype=dtype)
    if op == "cumprod":
        x = x / 8 if x.is_floating_point() or x.is_complex() else x
    for dim in range(3):
        together = getattr(x, op)(dim)
        for i, j in ((0, 0), (36, 1), (5, 40), (33, 33)):
            line = x.movedim(dim, -1)[i, j].contiguous()
            assert_same(getattr(line, op)(0), together.movedim(dim, -1)[i, j].contiguous(), f"dim {dim}, line {i}, {j}")
    line = random(1000, dtype="float32").numpy()
    np.testing.assert_array_equal(
        vesta.tensor(np.stack([line] * 19)).cumsum(1)[17].numpy(), line.astype(np.float64).cumsum().astype(np.float32)
    )


@pytest.mark.parametrize("width", [1, 3, 5, 17, 70, 2000])
@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex128", "float16"])
def test_rows_at_places(dtype: str, width: int) -> None:
    x, places = random(90, width, dtype=dtype), np.random.default_rng(1).integers(0, 90, 200)
    index, values = vesta.tensor(places), x.numpy()
    np.testing.assert_array_equal(x.index_select(0, index).numpy(), values[places])
    np.testing.assert_array_equal(x[index].numpy(), values[places])
    np.testing.assert_array_equal(x.t().index_select(1, index).numpy(), values[places].T)
    rows = random(200, width, dtype=dtype, seed=3)
    put = x.clone()
    put[index] = rows
    wanted = values.copy()
    wanted[places] = rows.numpy()  # of equal places, the last one
    np.testing.assert_array_equal(put.numpy(), wanted)
    added, summed = x.clone().index_add_(0, index, rows), values.copy()
    for k, place in enumerate(places):
        summed[place] = summed[place] + rows.numpy()[k]
    np.testing.assert_array_equal(added.numpy(), summed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(2, 2), (7, 9), (40, 70), (3, 37)])
def test_windows_of_two(dtype: str, size: tuple[int, int]) -> None:
    """2 x 2 maxima beside each other: values, places and gradients are those of windows taken one by one."""
    x = random(2, 3, *size, dtype=dtype).round()  # equal values among them
    x[0, 0, 0, 1] = float("nan")
    x[1, 2] = -float("inf")
    leaf = x.clone().requires_grad_()
    y, at = F.max_pool2d(leaf, 2, return_indices=True)
    y.sum().backward()
    wanted = np.zeros(x.shape, x.numpy().dtype)
    for n, c, i, j in np.ndindex(*y.shape):
        window = x.numpy()[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].ravel()
        best = int(np.argmax(window))  # the first NaN, or the first of the largest
        place = (2 * i + best // 2) * size[1] + 2 * j + best % 2
        np.testing.assert_array_equal(y.detach().numpy()[n, c, i, j], window[best])
        assert at[n, c, i, j].item() == place
        wanted[n, c].flat[place] += 1
    np.testing.assert_array_equal(leaf.grad.numpy(), wanted)


@pytest.mark.parametrize("shape", [(3, 2, 20), (3, 2, 2), (3, 2, 4, 5), (3, 2)], ids=str)
@pytest.mark.parametrize("last", [False, True])
def test_the_gradient_of_batch_norm_in_evaluation_does_not_look_at_the_input(shape, last) -> None:
    x, g = random(*shape), random(*shape, seed=1)
    if last and len(shape) == 4:
        x = x.contiguous(memory_format=vesta.channels_last)
    m, v, w = random(2, seed=2), random(2, seed=3).abs(), random(2, seed=4)

    def gradient(x, g):
        x = x.detach().requires_grad_()
        return vesta.autograd.grad(F.batch_norm(x, m, v, w), x, g)[0]

    wanted = gradient(x, g)
    x = x.clone()
    x[0, 0], x[1, 1] = float("nan"), float("inf")
    assert_same(gradient(x, g), wanted)
    g = g.clone()
    g[0, 0], g[1, 1] = float("nan"), float("-inf")
    got, sign = gradient(x, g), float(w[1].sign())
    assert got[0, 0].isnan().all() and (got[1, 1] == -sign * float("inf")).all()
    assert_same(got[2], wanted[2])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8", "bool", "complex128"])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.5, 1.0])
def test_a_mask_of_all_elements_takes_them_in_order(dtype: str, density: float) -> None:
    for shape in ((70_003,), (3, 5, 7), (0, 4)):
        x, mask = random(*shape, dtype=dtype), random(*shape, seed=1).sigmoid() < density * 2
        values = x.numpy()[mask.numpy()]
        np.testing.assert_array_equal(x[mask].numpy(), values)
        np.testing.assert_array_equal(vesta.masked_select(x, mask).numpy(), values)
        np.testing.assert_array_equal(mask.nonzero().numpy(), np.argwhere(mask.numpy()))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "uint8"])
@pytest.mark.parametrize("largest", [True, False])
def test_the_best_of_long_lines_are_those_of_a_sort(dtype: str, largest: bool) -> None:
    for n in (1000, 4099):
        x = random(6, n, dtype=dtype)
        if x.is_floating_point():
            x[1, 900:] = float("nan")
            x[2, ::3], x[3, 5], x[4, 990] = float("nan"), float("-inf"), float("inf")
        x[5] = x[5].sort(descending=not largest)[0]  # better and better
        values, places = x.topk(9, largest=largest)
        assert_same(values, x.sort(descending=largest, stable=True)[0][:, :9].contiguous(), "topk")
        assert_same(x.gather(1, places), values, "places")
        across = x.t().contiguous().topk(9, dim=0, largest=largest)[0]
        assert_same(across.t().contiguous(), values, "columns")


@pytest.mark.parametrize("spread", [1, 3000, 5000])
@pytest.mark.parametrize("expanded", [False, True])
def test_rows_at_equal_places_are_added_in_order(spread: int, expanded: bool) -> None:
    rows = random(1, 1).expand(4096, 96) if expanded else random(4096, 96)
    places = (random(4096, seed=1).abs() * 1e6).long() % spread
    start = random(5000, 96, seed=2)
    wanted = start.numpy().copy()
    np.add.at(wanted, places.numpy(), rows.numpy())
    put = start.numpy().copy()
    for place, row in zip(places.tolist(), rows.numpy()):
        put[place] = row
    threads = vesta.get_num_threads()
    try:
        for count in (1, 2, 3):
            vesta.set_num_threads(count)
            np.testing.assert_array_equal(start.index_add(0, places, rows).numpy(), wanted)
            every = places.view(-1, 1).expand(4096, 96)
            np.testing.assert_array_equal(start.scatter_add(0, every, rows).numpy(), wanted)
            np.testing.assert_array_equal(start.index_put((places,), rows).numpy(), put)
    finally:
        vesta.set_num_threads(threads)


def test_short_rows_are_copied_as_they_lie() -> None:
    for dtype in ("uint8", "float16", "float32", "complex128"):
        for width in (1, 2, 3, 5, 17, 63, 130):
            x, y = random(41, 7, 3, width + 2, dtype=dtype), random(41, 7, 5, width + 1, dtype=dtype, seed=1)
            wanted = y.numpy().copy()
            wanted[:, 1:6, 1:4, 1:] = x.numpy()[:, 2:, :, 1 : width + 1]
            y[:, 1:6, 1:4, 1:] = x[:, 2:, :, 1 : width + 1]
            np.testing.assert_array_equal(y.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "complex128", "bfloat16"])
@pytest.mark.parametrize(
    "pad",
    [(1, 2), (0, 0, 3, 1), (2, 1, 0, 0, 1, 1), (-1, 2, 1, -2), (-9, 3), (4, -60), (-1, -1), (0, 0, 0, 0, 0, 0, 5, 0)],
)
def test_padding_writes_borders_and_middle_at_once(dtype: str, pad: tuple[int, ...]) -> None:
    x = random(3, 8, 21, 57, dtype=dtype)
    value = 1
    for input in (x, x.contiguous(memory_format=vesta.channels_last), x.transpose(1, 3), x.flip(2)[..., ::2], x[0, 0]):
        if 2 * input.dim() < len(pad):
            continue
        expected = input.resolve_conj().to(vesta.complex128).numpy()
        for i in range(len(pad) // 2):
            d, (before, after) = input.dim() - 1 - i, pad[2 * i : 2 * i + 2]
            n = expected.shape[d]
            first = min(max(0, -before), n)
            expected = np.take(expected, range(first, max(first, n + min(0, after))), axis=d)
            size = max(0, n + before + after)
            sides = [(0, 0)] * input.dim()
            sides[d] = (min(max(0, before), size - expected.shape[d]), 0)
            expected = np.pad(expected, sides, constant_values=value)
            sides[d] = (0, size - expected.shape[d])
            expected = np.pad(expected, sides, constant_values=value)
        if any(n + pad[2 * i] + pad[2 * i + 1] < 0 for i, n in enumerate(reversed(input.shape[-(len(pad) // 2) :]))):
            with pytest.raises(RuntimeError, match="negative output size"):
                F.pad(input, pad, value=value)
            continue
        result = F.pad(input, pad, value=value)
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(result.to(vesta.complex128).numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_of_narrow_floats_are_alike_in_every_block(dtype: str) -> None:
    n, piece = 1300, 100
    x, g = random(n, dtype=dtype), random(n, dtype=dtype, seed=1)
    for f in (vesta.tanh, vesta.exp, vesta.sigmoid, F.gelu, F.silu, vesta.sin, lambda t: vesta.logaddexp(t, 2 * t)):
        leaf = x.clone().requires_grad_()
        (whole,) = vesta.autograd.grad(f(leaf), leaf, g)
        for i in range(0, n, piece):
            part = x[i : i + piece].clone().requires_grad_()
            (want,) = vesta.autograd.grad(f(part), part, g[i : i + piece])
            assert_same(whole[i : i + piece], want, str(i))


@pytest.mark.parametrize("spread", [40, 3000])
def test_long_rows_at_equal_places_are_added_in_order(spread: int) -> None:
    rows, start = random(700, 300), random(3000, 300, seed=2)
    places = (random(700, seed=1).abs() * 1e6).long() % spread
    wanted, put = start.numpy().copy(), start.numpy().copy()
    np.add.at(wanted, places.numpy(), rows.numpy())
    for place, row in zip(places.tolist(), rows.numpy()):
        put[place] = row
    threads = vesta.get_num_threads()
    try:
        for count in (1, 2, 3):
            vesta.set_num_threads(count)
            np.testing.assert_array_equal(start.index_add(0, places, rows).numpy(), wanted)
            np.testing.assert_array_equal(start.index_put((places,), rows).numpy(), put)
            apart = start.t().contiguous().t()[:, ::2]  # rows that are not dense
            np.testing.assert_array_equal(apart.index_add(0, places, rows[:, ::2]).numpy(), wanted[:, ::2])
    finally:
        vesta.set_num_threads(threads)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex128", "float16"])
def test_tensors_side_by_side(dtype: str) -> None:
    wide = random(6, 50, 37, dtype=dtype)
    families = [
        [random(6, n, 37, dtype=dtype, seed=n) for n in (1, 3, 200)],
        [wide[:, 1:], wide[:, :1], wide[:, :0]],
        [wide[:1].expand(6, 50, 37), wide],
        [random(50, 37, dtype=dtype).expand(6, 50, 37), wide],
        [random(6, 1, 37, dtype=dtype).expand(6, 50, 37), wide],
        [wide[::2], wide[1::2].flip(1), wide[:3]],
        [wide.transpose(0, 1).contiguous().transpose(0, 1), wide],
        [wide[..., 3:], wide[..., :3]],
        [wide, wide.to(vesta.complex128)],
    ]
    for tensors in families:
        for dim in range(3):
            if all(t.shape[d] == tensors[0].shape[d] for t in tensors for d in range(3) if d != dim):
                both = vesta.cat(tensors, dim)
                np.testing.assert_array_equal(both.numpy(), np.concatenate([t.numpy() for t in tensors], dim))
                out = vesta.empty(both.shape, dtype=both.dtype)
                assert_same(vesta.cat(tensors, dim, out=out), both, "out")
    np.testing.assert_array_equal(wide.roll(1, 1).numpy(), np.roll(wide.numpy(), 1, 1))
    np.testing.assert_array_equal(vesta.stack([wide, wide], 1).numpy(), np.stack([wide.numpy()] * 2, 1))


@pytest.mark.parametrize("count", [1, 5, 300, 3000])
def test_classes_become_rows_of_one_one(count: int) -> None:
    classes = (random(7, 301).abs() * 1e6).long() % count
    for x in (classes, classes.t(), classes[:, ::3], classes[0, 0]):
        made = F.one_hot(x, count)
        assert made.dtype == vesta.int64 and made.shape == (*x.shape, count)
        np.testing.assert_array_equal(made.numpy(), np.eye(count, dtype=np.int64)[x.numpy()])
    with pytest.raises(RuntimeError, match="must be smaller than num_classes, got .* for"):
        F.one_hot(classes + 1 if count == 1 else classes + count, count)
    with pytest.raises(RuntimeError, match="must be non-negative"):
        F.one_hot(classes - count, count)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 7, 255, 256, 257, 520, 1024])
def test_rows_times_a_vector_do_not_depend_on_their_number(dtype: str, length: int) -> None:
    rows, vector, bias = random(75, length, dtype=dtype), random(length, dtype=dtype, seed=1), random(1, dtype=dtype)
    alone = [(rows[i : i + 1] @ vector).item() for i in range(75)]
    for count in (75, 64, 33, 31):
        assert (rows[:count] @ vector).tolist() == alone[:count]
        assert F.linear(rows[:count], vector[None]).flatten().tolist() == alone[:count]
        assert F.linear(vector[None], rows[:count]).flatten().tolist() == alone[:count]
    wide = random(75, 1024, dtype=dtype)[:, :length] if length <= 1024 else rows
    assert (wide @ vector).tolist() == [(wide[i : i + 1] @ vector).item() for i in range(75)]
    assert_same(F.linear(rows, vector[None], bias), F.linear(rows, vector[None]) + bias, "bias")


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64", "complex128"])
@pytest.mark.parametrize("lines", [1, 2, 3, 4, 5, 7, 8])
def test_few_lines_are_copied_in_any_order(dtype: str, lines: int) -> None:
    """Pixels to planes and back, pixel_shuffle, stack along the last dimension: of one, few and many lines."""
    for side in (1, 13, 181, 700):
        planes = (random(2, lines, side, 3) * 100).to(getattr(vesta, dtype))
        array = planes.numpy()
        pixels = planes.permute(0, 2, 3, 1).contiguous()
        np.testing.assert_array_equal(pixels.numpy(), np.ascontiguousarray(array.transpose(0, 2, 3, 1)))
        np.testing.assert_array_equal(pixels.permute(0, 3, 1, 2).contiguous().numpy(), array)
        np.testing.assert_array_equal(pixels[:, 1:].permute(0, 3, 1, 2).contiguous().numpy(), array[:, :, 1:])
        np.testing.assert_array_equal(
            planes[..., 1:].permute(0, 2, 3, 1).contiguous().numpy(), pixels.numpy()[:, :, 1:]
        )
        np.testing.assert_array_equal(vesta.stack(list(planes[0]), -1).numpy(), pixels.numpy()[0])
        into = vesta.zeros(2, side, 3, lines + 1, dtype=planes.dtype)
        into[..., :lines] = planes.permute(0, 2, 3, 1)
        np.testing.assert_array_equal(into[..., :lines].numpy(), pixels.numpy())
        assert not into[..., lines].any()


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_pixels_are_shuffled_and_back(factor: int) -> None:
    x = random(2, 3 * factor * factor, 11, 37)
    blocks = x.numpy().reshape(2, 3, factor, factor, 11, 37).transpose(0, 1, 4, 2, 5, 3)
    y = F.pixel_shuffle(x, factor)
    np.testing.assert_array_equal(y.numpy(), blocks.reshape(2, 3, 11 * factor, 37 * factor))
    assert_same(F.pixel_unshuffle(y, factor), x, "back")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool", "complex128"])
@pytest.mark.parametrize("shape", [(70, 5), (5, 70), (300, 300), (3, 11, 6)])
def test_copies_that_repeat_or_skip(dtype: str, shape: tuple[int, ...]) -> None:
    """Rows of one item repeated, items apart from each other, in what is read and in what is written."""
    x = random(*shape, 4, dtype=dtype)
    values = x.numpy()
    one = x[..., :1]
    np.testing.assert_array_equal(one.expand(*shape, 37).contiguous().numpy(), np.repeat(values[..., :1], 37, -1))
    np.testing.assert_array_equal(x[..., ::2].contiguous().numpy(), values[..., ::2].copy())
    to = vesta.zeros(*shape, 9, dtype=x.dtype)
    to[..., 1::2] = x
    to[..., ::2] = one
    want = np.zeros_like(values, shape=(*shape, 9))
    want[..., 1::2], want[..., ::2] = values, values[..., :1]
    np.testing.assert_array_equal(to.numpy(), want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "complex128"])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_stacks_along_the_last_dimension(dtype: str, count: int) -> None:
    parts = [random(700, 13, dtype=dtype, seed=i) for i in range(count)]
    values = [p.numpy() for p in parts]
    np.testing.assert_array_equal(vesta.stack(parts, -1).numpy(), np.stack(values, -1))
    pairs = [p[:, :2] for p in parts[1:]] + [parts[0][:, 2:3]]
    np.testing.assert_array_equal(vesta.cat(pairs, -1).numpy(), np.concatenate([p.numpy() for p in pairs], -1))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
def test_operands_that_repeat_along_short_rows(dtype: str) -> None:
    x, bias = random(40, 30, 7, 7, dtype=dtype), random(30, 1, 1, dtype=dtype, seed=1)
    row = random(7, dtype=dtype, seed=2)
    whole = bias.expand(40, 30, 7, 7).contiguous()
    assert_same(x + bias, x + whole)
    assert_same(bias * row, bias.expand(30, 1, 7).contiguous() * row.expand(30, 1, 7).contiguous())
    assert_same(x[:, 3:, 1:6] - bias[3:], x[:, 3:, 1:6].contiguous() - whole[:, 3:, 1:6].contiguous())
    assert_same(vesta.where(x > 0, bias, row), vesta.where(x > 0, whole, row.expand(40, 30, 7, 7).contiguous()))


@pytest.mark.parametrize(("a", "b"), [((32, 32), (20, 20)), ((40, 3), (50, 7)), ((9, 4, 6), (40, 5)), ((5,), (6, 7))])
def test_kron_by_long_rows(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = random(*a, dtype="float64").requires_grad_(), random(*b, dtype="float64", seed=1).requires_grad_()
    product = vesta.kron(x, y)
    np.testing.assert_array_equal(product.detach().numpy(), np.kron(x.detach().numpy(), y.detach().numpy()))
    weight = random(*product.shape, dtype="float64", seed=2)
    (product * weight).sum().backward()
    assert x.grad is not None and y.grad is not None
    # <kron(x, y), w> is linear in each: its gradients times x and y are the sum itself
    want = (product.detach() * weight).sum().item()
    np.testing.assert_allclose([(x.grad * x).sum().item(), (y.grad * y).sum().item()], want, rtol=1e-9)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(200, 130), (0, 3), (7, 0)])
def test_padding_of_long_signals(mode: str, pad: tuple[int, int]) -> None:
    x = random(2, 3, 1000, dtype="float64").requires_grad_()
    padded = F.pad(x, pad, mode=mode)
    name = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    places = np.pad(np.arange(1000), pad, mode=name)
    np.testing.assert_array_equal(padded.detach().numpy(), x.detach().numpy()[..., places])
    weight = random(*padded.shape, dtype="float64", seed=1)
    padded.backward(weight)
    want = np.zeros(x.shape)
    np.add.at(want, (slice(None), slice(None), places), weight.numpy())
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-14)


def test_logcumsumexp_of_extremes() -> None:
    """Infinities, NaN, equal numbers and a maximum that comes late."""
    inf, nan = np.inf, np.nan
    x = vesta.tensor([[-inf, -inf, 1.0, 1.0], [inf, inf, 0.0, 1.0], [0.0, nan, 1.0, inf], [-800.0, -801.0, 800.0, 0.0]])
    want = np.array(
        [
            [-inf, -inf, 1, 1 + np.log(2)],
            [inf] * 4,
            [0, nan, nan, nan],
            [-800, -800 + np.log1p(np.exp(-1)), 800, 800],
        ]
    )
    np.testing.assert_allclose(x.double().logcumsumexp(1).numpy(), want, rtol=1e-15)
    np.testing.assert_allclose(x.t().contiguous().logcumsumexp(0).t().numpy(), want, rtol=1e-6)


def test_logcumsumexp_keeps_digits_near_zero() -> None:
    """Where the sum of the exponentials is almost 1, its distance from 1 is the result."""
    parts = [1 - 1e-12, 0.5e-12, 0.25e-12]
    got = vesta.tensor(parts, dtype=vesta.float64).log().logcumsumexp(0).numpy()
    np.testing.assert_allclose(got, [np.log1p(-1e-12), -0.5e-12, -0.25e-12], rtol=1e-3)
    got = vesta.tensor([0.0, -40.0], dtype=vesta.float64).logcumsumexp(0).numpy()
    np.testing.assert_allclose(got, [0.0, np.log1p(np.exp(-40.0))], rtol=1e-15)


@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss])
def test_second_derivatives_of_infinite_differences(loss) -> None:
    x = vesta.tensor([np.inf, 2.0, 0.25, -np.inf], requires_grad=True)
    weight = vesta.ones(4, requires_grad=True)
    first = vesta.autograd.grad(loss(x, vesta.zeros(4), reduction="none"), x, weight, create_graph=True)[0]
    second = vesta.autograd.grad(first.sum(), weight)[0]
    assert first.tolist() == second.tolist() == [1.0, 1.0, 0.25, -1.0]
