"""Messages of the mistakes that are made most often, and what they advise."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import vesta
from vesta.nn import functional as F


@pytest.mark.parametrize("convert", [float, int, complex])
@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3)])
def test_a_number_from_several_elements(convert: Any, shape: tuple[int, ...]) -> None:
    """A ValueError, which names the conversion that was called."""
    message = f"{convert.__name__}: only one element tensors can be converted to Python scalars, got shape"
    with pytest.raises(ValueError, match=message):
        convert(vesta.ones(shape))


def test_a_complex_number_from_one_element() -> None:
    """``complex`` works for every dtype and shape of one element."""
    assert complex(vesta.tensor(1 + 2j)) == 1 + 2j
    assert complex(vesta.tensor([[3]])) == 3 and complex(vesta.tensor(0.5, requires_grad=True)) == 0.5


def test_subtraction_of_bools_names_the_operator_to_use() -> None:
    a = vesta.tensor([True, False])
    for call in (lambda: a - a, lambda: a.sub_(a), lambda: vesta.sub(a, a)):
        with pytest.raises(NotImplementedError, match=r"sub_?: .* got bool. .* Use the `\^` or `logical_xor"):
            call()
    with pytest.raises(NotImplementedError, match="neg: .* Use the ~ operator"):
        vesta.neg(a)


X, NINE = vesta.ones(2, 3), vesta.tensor([[9]])


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("reshape", lambda: X.reshape(4, -1)),
        ("view_as", lambda: X.view_as(vesta.ones(4))),
        ("multi_margin_loss", lambda: F.multi_margin_loss(X, vesta.tensor([5, 1]))),
        ("take_along_dim", lambda: vesta.take_along_dim(X, NINE, 1)),
        ("scatter", lambda: X.scatter(1, NINE, 1.0)),
        ("scatter_reduce", lambda: X.scatter_reduce(1, NINE, vesta.ones(1, 1), "sum")),
        ("smooth_l1_loss", lambda: F.smooth_l1_loss(vesta.ones(2), vesta.ones(3))),
        ("cosine_embedding_loss", lambda: F.cosine_embedding_loss(X, X, vesta.ones(3))),
        ("hstack", lambda: vesta.hstack([X, vesta.ones(3, 3)])),
        ("broadcast_to", lambda: vesta.broadcast_to(X, (4, 4))),
        ("pad", lambda: F.pad(vesta.ones(2), (1, 1, 1, 1))),
        ("embedding", lambda: F.embedding(NINE, X)),
        ("embedding_bag", lambda: F.embedding_bag(NINE, X)),
        ("fold", lambda: F.fold(vesta.ones(1, 4, 3), (4, 4), (2, 2))),
        ("unfold", lambda: F.unfold(vesta.ones(1, 1, 2, 2), (4, 4))),
        ("broadcast_tensors", lambda: vesta.broadcast_tensors(vesta.ones(2), vesta.ones(3))),
        ("normal", lambda: vesta.normal(0.0, -1.0, (2,))),
        ("index_select", lambda: X.index_select(0, NINE[0])),
        ("index_add", lambda: X.index_add(0, NINE[0], vesta.ones(1, 3))),
        ("take", lambda: X.take(NINE)),
        ("std", lambda: X.std(4)),
        ("clip", lambda: X.clip(vesta.ones(2))),
        ("true_divide", lambda: vesta.true_divide(X, vesta.ones(2))),
        ("zero_", lambda: X.clone().requires_grad_().zero_()),
        ("floor_divide", lambda: NINE // vesta.tensor(0)),
        ("remainder", lambda: NINE % vesta.tensor(0)),
        ("polar", lambda: vesta.polar(X, X.double())),
        ("__setitem__", lambda: X.clone().__setitem__(0, vesta.ones(5))),
        ("linalg.inv", lambda: vesta.linalg.inv(X)),
        ("interpolate", lambda: F.interpolate(vesta.ones(1, 2, 5, 5), size=0)),
        ("interpolate", lambda: F.interpolate(vesta.ones(1, 2, 5, 5).long(), size=4)),
        ("interpolate", lambda: F.interpolate(vesta.ones(1, 2, 5, 5), size=(1 << 70, 4))),
    ],
)
def test_an_error_names_the_op_that_was_called(name: str, call: Any) -> None:
    """Not one of those that it is made of."""
    with pytest.raises((RuntimeError, IndexError), match=f"^{name.replace('.', '[.]')}: "):
        call()


def test_an_inference_tensor_on_the_tape_says_what_to_do() -> None:
    with vesta.inference_mode():
        x = vesta.ones(2)
    with pytest.raises(RuntimeError, match=r"make it under no_grad\(\) in place of inference_mode\(\)"):
        vesta.ones(2, requires_grad=True) * x


@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss"])
def test_targets_of_classes(loss: str) -> None:
    """A wrong dtype or shape of a target is named, with what to write."""
    function, scores = getattr(F, loss), vesta.randn(3, 4)
    for dtype in (vesta.int32, vesta.float32, vesta.bool):
        with pytest.raises(TypeError, match=f"{loss}: expected target of int64 class numbers, got .*Use target.long"):
            function(scores, vesta.ones(3, dtype=dtype))
    with pytest.raises(ValueError, match=r"of dtype float32. Use target.squeeze\(1\)"):
        function(scores, vesta.ones(3, 1))
    advice = "target.float" if loss == "cross_entropy" else "argmax"
    with pytest.raises(ValueError, match=f"of dtype int64. .*{advice}"):
        function(scores, vesta.ones(3, 4, dtype=vesta.int64))
    numbers = vesta.tensor([0, 3, 1])
    assert function(scores, numbers.to(vesta.uint8)).item() == function(scores, numbers).item()


ARRAYS = [
    (np.array("a"), "an array of text"),
    (np.array(["a", "bb"]), "Tensors hold numbers"),
    (np.array([b"a"]), "an array of text"),
    (np.array([1, None]), "Python objects"),
    (np.array([1], np.uint16), r"a uint16 array .*astype\('int32'\)"),
    (np.array([1], np.uint32), r"a uint32 array .*astype\('int64'\)"),
    (np.array([1], np.uint64), "a uint64 array .*2"),
    (np.array([1], np.longdouble), r"a longdouble array .*astype\('float64'\)"),
    (np.array([1], ">f4"), "byte order.*newbyteorder"),
    (np.array([(1, 2.0)], "i4,f4"), "records"),
    (np.array(["2020-01-01"], "M8[D]"), r"datetime64\[D\]. .*astype\('int64'\)"),
]


@pytest.mark.parametrize("function", [vesta.tensor, vesta.from_numpy, vesta.as_tensor])
@pytest.mark.parametrize(("array", "message"), ARRAYS, ids=[str(array.dtype) for array, _ in ARRAYS])
def test_arrays_that_are_no_numbers(function: Any, array: np.ndarray, message: str) -> None:
    with pytest.raises(TypeError, match=f"{function.__name__}: .*{message}"):
        function(array)


class Table:
    """What a DataFrame is to ``vesta.tensor``: an object with ``__array__``."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


def test_a_tensor_of_what_has_an_array() -> None:
    """Tables and images become tensors by ``__array__``; a table of texts is refused with a reason."""
    t = vesta.tensor(Table([[1.0, 2.0]]))
    assert t.tolist() == [[1, 2]] and t.dtype == vesta.float64
    assert vesta.tensor(Table([1]), dtype=vesta.float32).dtype == vesta.float32
    with pytest.raises(TypeError, match="tensor: .*text"):
        vesta.tensor(Table(["a"]))


def test_the_gradient_of_a_result_warns() -> None:
    """``.grad`` of a non-leaf warns, as PyTorch's; of a leaf, after retain_grad() and of plain tensors it does not."""
    x = vesta.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="not a leaf Tensor"):
        assert (x * 2).grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = x * 2
        y.retain_grad()
        assert y.grad is None and x.grad is None and vesta.ones(1).grad is None
        y.sum().backward()
        assert y.grad.tolist() == [1, 1]
        assert (x.detach() * 2).grad is None


def test_a_result_is_pickled_as_a_leaf() -> None:
    """As in PyTorch, a non-leaf loses its history and keeps that it requires grad."""
    again = pickle.loads(pickle.dumps(vesta.ones(2, requires_grad=True) * 2))
    assert again.tolist() == [2, 2] and again.requires_grad and again.is_leaf
    sparse = pickle.loads(pickle.dumps(vesta.eye(2, requires_grad=True).to_sparse()))
    assert sparse.is_leaf and sparse.requires_grad and sparse.to_dense().tolist() == [[1, 0], [0, 1]]


def test_a_wrong_shape_does_not_advise_strict_false() -> None:
    """It would not help: only names may differ then."""
    layer = vesta.nn.Linear(2, 3)
    for state in (
        {"weight": vesta.ones(2, 2)},
        {"weight": vesta.ones(2, 2), "bias": vesta.ones(3), "x": vesta.ones(1)},
    ):
        with pytest.raises(RuntimeError, match="size mismatch for weight") as raised:
            layer.load_state_dict(state)
        assert "strict" not in str(raised.value)
    with pytest.raises(RuntimeError, match="strict=False"):
        layer.load_state_dict({"weight": vesta.ones(3, 2)})
