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
