"""Each layer of ``layers_table.py`` in Python and in C++: the same names, the same printed text, the same bits."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
from layers_table import LAYERS, PYTHON_ONLY, Row
from vesta import Tensor, nn
from vesta.utils import _pytree

cpp_nn = vesta._C.cpp_nn

each_layer = pytest.mark.parametrize("row", LAYERS, ids=str)


def bits(t: Tensor | None) -> tuple | None:
    """Returns dtype, shape and bytes, which are equal only for equal bits."""
    return None if t is None else (t.dtype, tuple(t.shape), t.detach().contiguous().numpy().tobytes())


def all_bits(named: Any) -> dict[str, tuple | None]:
    return {name: bits(t) for name, t in dict(named).items()}


def pair(row: Row) -> tuple[Any, Any]:
    """Builds the layer in both languages from the same seed."""
    made = []
    for namespace in (nn, cpp_nn):
        vesta.manual_seed(7)
        made.append(row.build(namespace))
    return made[0], made[1]


def call(layer: Any, row: Row) -> dict[str, Any]:
    """Runs forward and backward once; returns the bits of the output and of all gradients."""
    vesta.manual_seed(11)
    inputs = _pytree.tree_map(lambda value: value() if callable(value) else value, list(row.inputs))
    tensors = [x for x in _pytree.tree_leaves(inputs) if isinstance(x, Tensor)]
    leaves = [x.requires_grad_() for x in tensors if x.is_floating_point() and x.is_leaf]
    results = [y for y in _pytree.tree_leaves(layer(*inputs)) if isinstance(y, Tensor)]
    with_gradient = [y for y in results if y.requires_grad]
    if with_gradient:
        vesta.autograd.backward(with_gradient, [vesta.randn_like(y) for y in with_gradient])
    parameters = dict(layer.named_parameters())
    result = {
        "outputs": [bits(y) for y in results],
        "input gradients": [bits(x.grad) for x in leaves],
        "parameter gradients": {name: bits(p.grad) for name, p in parameters.items()},
    }
    for parameter in parameters.values():
        parameter.grad = None
    return result


@each_layer
def test_initial_values_and_names(row: Row) -> None:
    python, cpp = pair(row)
    assert list(python.state_dict()) == list(cpp.state_dict())
    assert all_bits(python.state_dict()) == all_bits(cpp.state_dict())
    assert all_bits(python.named_parameters()) == all_bits(cpp.named_parameters())


@each_layer
def test_text(row: Row) -> None:
    python, cpp = pair(row)
    assert repr(python) == repr(cpp)


@each_layer
def test_outputs_and_gradients(row: Row) -> None:
    """Twice in training (running statistics change), then in evaluation."""
    python, cpp = pair(row)
    for training in (True, True, False):
        python.train(training)
        cpp.train(training)
        assert call(python, row) == call(cpp, row)
        assert all_bits(python.state_dict()) == all_bits(cpp.state_dict())


@each_layer
def test_checkpoints_go_either_way(row: Row) -> None:
    """A checkpoint of one language is loaded by the other: afterwards both compute the same."""
    python, cpp = pair(row)
    vesta.manual_seed(3)
    other = row.build(nn)
    cpp.load_state_dict(other.state_dict())
    python.load_state_dict(cpp.state_dict())
    assert all_bits(python.state_dict()) == all_bits(other.state_dict())
    assert call(python, row) == call(cpp, row)


@each_layer
def test_a_copy_says_the_same(row: Row) -> None:
    _, cpp = pair(row)
    cpp.eval()
    copy = cpp.clone()
    assert repr(copy) == repr(cpp)
    assert all_bits(copy.state_dict()) == all_bits(cpp.state_dict())
    assert call(copy, row) == call(cpp, row)


@pytest.mark.parametrize(
    ("name", "args", "fragment"),
    [
        ("Conv2d", (3, 4, 3, 1, 0, 1, 2), "in_channels must be divisible by groups"),
        ("Dropout", (1.5,), "dropout probability has to be between 0 and 1, but got 1.5"),
        ("Embedding", (3, 2, 3), "Padding_idx must be within num_embeddings"),
    ],
)
def test_wrong_arguments_say_the_same(name: str, args: tuple, fragment: str) -> None:
    for namespace in (nn, cpp_nn):
        with pytest.raises((ValueError, AssertionError, RuntimeError), match=fragment):
            getattr(namespace, name)(*args)


def test_every_layer_is_in_the_table() -> None:
    assert {row.name for row in LAYERS} == set(nn.modules.__all__) - PYTHON_ONLY
