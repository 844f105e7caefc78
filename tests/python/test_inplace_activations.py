"""Activations in place: where the result says what the gradient is, no copy of the input is kept."""

import pytest
import vesta
from vesta.nn import functional as F

VALUES = [-vesta.inf, -7, -1.5, -1, -1e-30, -0.0, 0.0, 1e-30, 0.1, 0.5, 1, 2, 5.99, 6, 6.5, vesta.inf, vesta.nan]
WITHOUT_COPY = {
    "leaky_relu": (F.leaky_relu, (0.01,)),
    "leaky_relu, flat": (F.leaky_relu, (0.0,)),
    "hardtanh": (F.hardtanh, (-1.0, 1.0)),
    "relu6": (F.relu6, ()),
    "threshold": (F.threshold, (0.1, -20.0)),
}
WITH_COPY = {
    "leaky_relu, a fall": (F.leaky_relu, (-0.5,)),
    "hardtanh, bounds that bfloat16 rounds": (F.hardtanh, (-0.1, 0.1)),
    "threshold, a value above it": (F.threshold, (0.1, 20.0)),
    "silu": (F.silu, ()),
}


def saved_by(fn, x, args):
    """Returns the result in place of a copy of x, and the addresses of what was saved."""
    y = x * 1
    kept = []

    def pack(t):
        kept.append(t.data_ptr())
        return t

    with vesta.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        fn(y, *args, inplace=True)
    return y, kept


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16, vesta.float16])
@pytest.mark.parametrize("name", [*WITHOUT_COPY, *WITH_COPY])
def test_gradients_are_those_of_the_form_that_is_not_in_place(name, dtype):
    fn, args = {**WITHOUT_COPY, **WITH_COPY}[name]
    x = vesta.tensor(VALUES, dtype=dtype, requires_grad=True)
    y, kept = saved_by(fn, x, args)
    assert (y.data_ptr() in kept) == (name in WITHOUT_COPY)
    g = vesta.arange(1, len(VALUES) + 1, dtype=dtype)
    expected = vesta.autograd.grad(fn(x, *args), x, g)[0]
    assert vesta.equal(vesta.autograd.grad(y, x, g)[0].nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("name", WITHOUT_COPY)
def test_second_derivatives(name):
    fn, args = WITHOUT_COPY[name]
    x = vesta.randn(7, dtype=vesta.float64, requires_grad=True)
    assert vesta.autograd.gradgradcheck(lambda x: fn(x * x * 3 - 2, *args, inplace=True) ** 2, (x,))


def test_what_is_written_afterwards_is_noticed():
    y = F.leaky_relu(vesta.randn(3, requires_grad=True) * 1, 0.1, inplace=True)
    y += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_dropout_in_place_names_itself_and_leaves_alone_what_it_need_not_write() -> None:
    leaf = vesta.ones(2, 3, 4, requires_grad=True)
    functional = vesta.nn.functional
    for name, op in (
        ("dropout_", functional.dropout), ("feature_dropout_", functional.dropout1d),
        ("alpha_dropout_", functional.alpha_dropout),
        ("feature_alpha_dropout_", functional.feature_alpha_dropout),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=f"^{name}: a leaf Variable that requires grad is being used"):
            op(leaf, 0.5, True, True)
        assert op(leaf, 0.5, False, True) is leaf
        assert op(leaf, 0.0, True, True) is leaf
    assert vesta.nn.Dropout(0.5, inplace=True).eval()(leaf) is leaf
