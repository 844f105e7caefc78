"""Transposed convolutions with a bias and without places, and the gradients of convolutions as functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F
from op_db_check import DEVICES
from vesta import nn

HALVES = [vesta.bfloat16, vesta.float16]
TRANSPOSED = [
    # dimensions, input, weight, options
    (1, (2, 16, 30), (16, 8, 3), {}),
    (2, (2, 16, 9, 9), (16, 8, 3, 3), {"padding": 1}),
    (2, (2, 32, 12, 12), (32, 16, 2, 2), {"stride": 2}),
    (2, (1, 7, 9, 9), (7, 5, 1, 1), {}),
    (2, (2, 12, 8, 8), (12, 1, 3, 3), {"groups": 12, "stride": 2, "output_padding": 1}),
    (2, (2, 12, 8, 8), (12, 3, 3, 3), {"groups": 4, "dilation": 2}),
    (2, (1, 40, 12, 12), (40, 40, 3, 3), {"padding": 1}),
    (3, (1, 8, 5, 5, 5), (8, 4, 3, 3, 3), {"stride": 2}),
]


def made(seed, *shape):
    return vesta.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dims, x_shape, w_shape, options", TRANSPOSED)
def test_a_bias_is_added_before_the_result_is_rounded(dims, x_shape, w_shape, options, last, dtype):
    x, w = made(1, *x_shape).to(dtype), made(2, *w_shape).to(dtype)
    b = (10 * made(3, w_shape[1] * options.get("groups", 1))).to(dtype)
    if last and dims == 2:
        x = x.contiguous(memory_format=vesta.channels_last)
    convolve = getattr(F, f"conv_transpose{dims}d")
    exact = convolve(x.double(), w.double(), b.double(), **options)
    got = convolve(x, w, b, **options)
    once = exact.to(dtype)
    wrong = (got != once).double().mean().item()
    # Where sums end near the middle between two numbers float32's error decides; Winograd's is 4 times as large.
    assert wrong < 0.01
    assert got.stride() == once.stride()


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64], ids=str)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dims, x_shape, w_shape, options", TRANSPOSED)
def test_the_bias_of_every_path_and_its_gradient(dims, x_shape, w_shape, options, last, dtype):
    x, w = made(1, *x_shape).to(dtype), made(2, *w_shape).to(dtype)
    b = made(3, w_shape[1] * options.get("groups", 1)).to(dtype).requires_grad_()
    if last and dims == 2:
        x = x.contiguous(memory_format=vesta.channels_last)
    convolve = getattr(F, f"conv_transpose{dims}d")
    got = convolve(x, w, b, **options)
    want = convolve(x, w, None, **options) + b.detach().reshape(-1, *[1] * dims)
    assert vesta.allclose(got, want, rtol=1e-5, atol=1e-5)
    weights = made(4, *got.shape).to(dtype)
    (got * weights).sum().backward()
    assert vesta.allclose(b.grad, weights.sum([0, *range(2, dims + 2)]), rtol=1e-4, atol=1e-4)


def test_second_gradients_with_a_bias():
    x, w, b = (made(i, *s).double().requires_grad_() for i, s in enumerate([(2, 3, 4), (3, 2, 3), (2,)]))
    assert vesta.autograd.gradgradcheck(lambda *t: F.conv_transpose1d(*t, stride=2).pow(2), (x, w, b))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(
    "dims, x_shape, w_shape, padding, result",
    [
        (1, (2, 4, 1), (4, 3, 2), 1, (2, 3, 0)),
        (2, (2, 4, 1, 3), (4, 3, 2, 2), (1, 0), (2, 3, 0, 4)),
        (3, (1, 4, 1, 1, 2), (4, 3, 2, 2, 2), (1, 1, 0), (1, 3, 0, 0, 3)),
        (1, (4, 1), (4, 3, 2), 1, (3, 0)),
    ],
)
def test_a_result_without_places(dims, x_shape, w_shape, padding, result, bias, device):
    x, w, b = (vesta.ones(s).to(device).requires_grad_() for s in (x_shape, w_shape, (w_shape[1],)))
    y = getattr(F, f"conv_transpose{dims}d")(x, w, b if bias else None, padding=padding)
    assert tuple(y.shape) == result
    y.sum().backward()
    for t in (x, w, *([b] if bias else [])):
        assert t.grad.shape == t.shape and not t.grad.any()


def test_a_result_of_less_than_no_places_is_refused():
    with pytest.raises(RuntimeError, match="conv_transpose1d: Output size is too small"):
        F.conv_transpose1d(vesta.ones(2, 4, 1), vesta.ones(4, 3, 1), padding=1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_as_functions(dims, device):
    options = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    x, w = made(1, 2, 4, *[7] * dims).to(device).requires_grad_(), made(2, 6, 2, *[3] * dims).to(device)
    w.requires_grad_()
    y = getattr(F, f"conv{dims}d")(x, w, **options)
    g = made(3, *y.shape).to(device)
    of_x, of_w = vesta.autograd.grad(y, (x, w), g)
    assert vesta.equal(getattr(nn.grad, f"conv{dims}d_input")(x.shape, w, g, **options), of_x)
    assert vesta.equal(getattr(nn.grad, f"conv{dims}d_weight")(x, w.shape, g, **options), of_w)


def test_gradients_as_functions_have_gradients():
    w, g = made(1, 3, 2, 2).double().requires_grad_(), made(2, 1, 3, 4).double().requires_grad_()
    assert vesta.autograd.gradcheck(lambda w, g: nn.grad.conv1d_input((1, 2, 5), w, g), (w, g))
    x = made(3, 1, 2, 5).double().requires_grad_()
    assert vesta.autograd.gradcheck(lambda x, g: nn.grad.conv1d_weight(x, (3, 2, 2), g), (x, g))


def test_gradients_as_functions_refuse_what_does_not_fit():
    with pytest.raises(TypeError, match=r"conv1d_input.*weight"):
        nn.grad.conv1d_input((1, 1, 3), 3, vesta.ones(1, 1, 2))
    with pytest.raises(ValueError, match=r"nn.grad.conv2d_input: expected 4 dimensions, got 3 \(input_size\)"):
        nn.grad.conv2d_input((1, 1, 3), vesta.ones(1, 1, 2, 2), vesta.ones(1, 1, 2, 2))
    with pytest.raises(RuntimeError, match="nn.grad.conv1d_input: expected a grad of shape"):
        nn.grad.conv1d_input((1, 1, 3), vesta.ones(1, 1, 2), vesta.ones(1, 1, 3))
    x, w, g = vesta.ones(1, 2, 5, 5), vesta.ones(3, 2, 3, 3), vesta.ones(1, 3, 3, 3)
    for call, message in (
        (lambda: nn.grad.conv2d_weight(x, w.shape, g.double()), "an input of the grad's dtype float64, got float32"),
        (lambda: nn.grad.conv2d_input(x.shape, w, g.double()), "a weight of the grad's dtype float64, got float32"),
    ):
        with pytest.raises(RuntimeError, match=f"nn.grad.conv2d_[a-z]*: expected {message}"):
            call()
    with pytest.raises(TypeError, match="nn.grad.conv2d_input: argument 'stride' .* must be tuple of ints, not str"):
        nn.grad.conv2d_input(x.shape, w, g, stride="one")


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_complex_tensors_are_convolved(dims: int, transposed: bool) -> None:
    """As sums of products of complex numbers, with the gradients of one."""
    generator = np.random.RandomState(dims)

    def drawn(*shape: int) -> vesta.Tensor:
        return vesta.from_numpy(generator.standard_normal(shape) + 1j * generator.standard_normal(shape))

    x, bias = drawn(2, 2, *[5] * dims), drawn(4)
    weight = drawn(2, 4, *[3] * dims) if transposed else drawn(4, 2, *[3] * dims)
    name = f"conv_transpose{dims}d" if transposed else f"conv{dims}d"
    convolve = getattr(vesta.nn.functional, name)
    y = convolve(x, weight, bias, stride=2, padding=1)
    whole = vesta.zeros_like(y)
    rotations = [
        (1, x.real, weight.real),
        (-1, x.imag, weight.imag),
        (1j, x.real, weight.imag),
        (1j, x.imag, weight.real),
    ]
    for factor, a, b in rotations:
        whole = whole + factor * convolve(a.contiguous(), b.contiguous(), stride=2, padding=1)
    vesta.testing.assert_close(y, whole + bias.view(4, *[1] * dims))
    vesta.testing.assert_close(convolve(x[0], weight, bias, stride=2, padding=1), y[0])
    if dims == 1:
        operands = [t.requires_grad_() for t in (x, weight, bias)]
        assert vesta.autograd.gradcheck(lambda *args: convolve(*args, stride=2, padding=1), operands)
    with pytest.raises(RuntimeError):
        convolve(x, weight.real)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("kernel", [2, 4])
def test_windows_side_by_side_of_many_channels(kernel: int, dtype: vesta.dtype, last: bool) -> None:
    """Patches, and U-Net's way up: each output of the transposed one is a product with one tap's weights."""
    x, w = made(1, 2, 256, 4, 4).to(dtype), (made(2, 256, 130, kernel, kernel) / 16).to(dtype)
    if last:
        x = x.contiguous(memory_format=vesta.channels_last)
    exact = np.einsum("nchw,coab->nohawb", x.double().numpy(), w.double().numpy())
    exact = exact.reshape(2, 130, 4 * kernel, 4 * kernel)
    tolerance = {vesta.float32: 1e-6, vesta.float64: 1e-14, vesta.bfloat16: 4e-3}[dtype]
    up = F.conv_transpose2d(x, w, stride=kernel).double().numpy()
    assert np.linalg.norm(up - exact) < tolerance * np.linalg.norm(exact)
    image = vesta.zeros(2, 130, 4 * kernel, 4 * kernel, dtype=dtype, requires_grad=True)
    F.conv2d(image, w, stride=kernel).backward(x)
    assert np.linalg.norm(image.grad.double().numpy() - exact) < tolerance * np.linalg.norm(exact)


@pytest.mark.parametrize("output_padding", [(1, 0), (0, 2), (1, 1)])
def test_output_padding_of_one_by_one_kernels_is_the_bias(output_padding: tuple[int, int]) -> None:
    x, w, b = made(1, 2, 48, 2, 20), made(2, 48, 16, 1, 1), made(3, 16)
    options = {"dilation": 3, "output_padding": output_padding}
    y = F.conv_transpose2d(x.contiguous(memory_format=vesta.channels_last), w, b, **options)
    assert y.shape == (2, 16, 2 + output_padding[0], 20 + output_padding[1])
    inside = F.conv2d(x, w.transpose(0, 1), b)
    vesta.testing.assert_close(y[:, :, :2, :20], inside)
    outside = y.clone()
    outside[:, :, :2, :20] = b.view(-1, 1, 1)
    assert vesta.equal(outside, b.view(-1, 1, 1).expand(y.shape))
    assert vesta.equal(y, F.conv_transpose2d(x, w, b, **options))


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64], ids=str)
@pytest.mark.parametrize("stride, dilation", [((2, 3), (2, 1)), ((2, 2), (2, 2)), ((3, 2), (1, 2)), ((4, 4), (1, 1))])
def test_depthwise_gradients_of_inputs_that_no_tap_reaches(stride, dilation, dtype) -> None:
    """Where stride and dilation share a factor, whole rows of the gradient are zeros: as of a dense weight."""
    x = made(1, 2, 4, 7, 28).to(dtype).requires_grad_()
    weight = made(2, 4, 1, 7, 7).to(dtype).requires_grad_()
    dense = weight * vesta.eye(4, dtype=dtype).view(4, 4, 1, 1)
    options = {"stride": stride, "padding": (9, 8), "dilation": dilation}
    results = [F.conv2d(x, weight, groups=4, **options), F.conv2d(x, dense, **options)]
    g = made(3, *results[0].shape).to(dtype)
    gradients = [vesta.autograd.grad(y, (x, weight), g, retain_graph=True) for y in results]
    for mine, goal in zip(gradients[0], gradients[1]):
        vesta.testing.assert_close(mine, goal, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16], ids=str)
def test_strides_beyond_the_image(groups: int, dtype) -> None:
    """One output steps to no other: any stride from the image's size on gives the same gradients, in the same time."""
    x = made(1, 2, 4, 9, 7).to(dtype).requires_grad_()
    weight = made(2, 4, 4 // groups, 3, 2).to(dtype).requires_grad_()
    results = []
    for stride in (12, (2**40, 2**40)):
        options = {"stride": stride, "padding": 1, "dilation": (2, 3), "groups": groups}
        y = F.conv2d(x, weight, **options)
        assert y.shape[2:] == (1, 1)
        results.append((y, *vesta.autograd.grad(y, (x, weight), made(3, *y.shape).to(dtype))))
    for near, far in zip(*results):
        assert vesta.equal(near, far)


@pytest.mark.parametrize(
    "option", [{"stride": [2]}, {"padding": (1,)}, {"dilation": [2]}, {"stride": [2], "padding": [1]}]
)
@pytest.mark.parametrize("kind", [nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d])
def test_one_number_in_a_sequence_holds_for_all_dimensions(kind: Any, option: dict[str, Any]) -> None:
    vesta.manual_seed(0)
    layer = kind(2, 2, 3, **option)
    plain = kind(2, 2, 3, **{name: value[0] for name, value in option.items()})
    plain.load_state_dict(layer.state_dict())
    x = vesta.randn(1, 2, *[8] * (3 if kind is nn.Conv3d else 2))
    assert vesta.equal(layer(x), plain(x))
    name, value = next(iter(option.items()))
    assert getattr(layer, name) == tuple(value) and f"{name}=({value[0]},)" in repr(layer)
    if kind is nn.ConvTranspose2d:
        size = list(plain(x).shape[2:])
        assert layer(x, output_size=size).shape == plain(x, output_size=size).shape
    with pytest.raises(ValueError, match=r"expected an integer or \d of them, got \[3\] \(kernel_size\)"):
        kind(2, 2, [3])
