"""Tensors and NumPy scalars where an integer or a number is asked for, as PyTorch takes them.

A 0-d tensor of an integer is an integer: as a size, a dimension, a window, one of a list. A vector of one element is
one only as a size that stands alone or in a list. Where PyTorch's parser refuses a call, it is refused here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F
from vesta import nn
from vesta import tensor as t

#: What makes an integer into what stands for it.
KINDS: dict[str, Callable[[int], Any]] = {
    "tensor": t,
    "int32 tensor": lambda n: t(n, dtype=vesta.int32),
    "numpy": np.int64,
    "small numpy": np.int16,
}

#: Calls of an integer-like maker `n` and x = [[0, 1, 2], [3, 4, 5]]; the result with plain integers is expected.
CALLS: dict[str, Callable[[Any, vesta.Tensor], Any]] = {
    "zeros": lambda n, x: vesta.zeros(n(3)),
    "zeros spread": lambda n, x: vesta.zeros(n(3), 2),
    "zeros spread, second": lambda n, x: vesta.zeros(3, n(2)),
    "zeros of a tuple": lambda n, x: vesta.zeros((n(3), 2)),
    "ones of a list": lambda n, x: vesta.ones([2, n(3)], dtype=vesta.int64),
    "full": lambda n, x: vesta.full((n(2), 3), 1.5),
    "new_zeros": lambda n, x: x.new_zeros(n(2), 3),
    "new_full": lambda n, x: x.new_full((n(2),), 7.0),
    "view": lambda n, x: x.view(n(3), -1),
    "view, one size": lambda n, x: x.view(n(6)),
    "reshape": lambda n, x: x.reshape(n(3), n(2)),
    "expand": lambda n, x: x.expand(n(4), 2, 3),
    "repeat": lambda n, x: x.repeat(n(2), 1),
    "repeat of a tuple": lambda n, x: x.repeat((1, n(2))),
    "tile": lambda n, x: x.tile(n(2)),
    "permute": lambda n, x: x.permute(n(1), n(0)),
    "flip": lambda n, x: x.flip(n(1)),
    "roll": lambda n, x: vesta.roll(x, n(1), n(1)),
    "sum": lambda n, x: vesta.sum(x, n(0)),
    "mean": lambda n, x: x.mean(n(1), keepdim=True),
    "var": lambda n, x: x.var(n(1)),
    "amax": lambda n, x: x.amax((n(0), n(1))),
    "logsumexp": lambda n, x: x.logsumexp(n(0)),
    "softmax": lambda n, x: x.softmax(n(0)),
    "movedim": lambda n, x: x.movedim(n(0), n(1)),
    "split": lambda n, x: x.split(n(1)),
    "split by sizes": lambda n, x: x.split((n(1), 2), 1),
    "chunk": lambda n, x: x.chunk(n(2)),
    "unflatten": lambda n, x: x.unflatten(1, (n(3), 1)),
    "as_strided": lambda n, x: x.as_strided((n(2),), (n(3),)),
    "broadcast_to": lambda n, x: vesta.broadcast_to(x, (n(2), 2, 3)),
    "narrow": lambda n, x: x.narrow(n(1), n(0), n(2)),
    "unfold": lambda n, x: x.unfold(n(1), n(2), n(1)),
    "slice": lambda n, x: x[: n(1), n(0) : n(3) : n(2)],
    "arange": lambda n, x: vesta.arange(n(1), n(9), n(3)),
    "eye": lambda n, x: vesta.eye(n(2), n(3)),
    "tril": lambda n, x: x.tril(n(-1)),
    "topk": lambda n, x: x.topk(n(2), n(1)).values,
    "cat": lambda n, x: vesta.cat([x, x], n(1)),
    "one_hot": lambda n, x: F.one_hot(x.long(), n(7)),
    "pad": lambda n, x: F.pad(x, (n(1), n(0))),
    "avg_pool1d": lambda n, x: F.avg_pool1d(x, n(2), n(1)),
    "max_pool1d": lambda n, x: F.max_pool1d(x, n(2), n(1)),
    "max_pool2d of a tuple": lambda n, x: F.max_pool2d(x[None], (n(2), n(1))),
    "adaptive_avg_pool1d": lambda n, x: F.adaptive_avg_pool1d(x, n(2)),
    "adaptive_avg_pool2d": lambda n, x: F.adaptive_avg_pool2d(x[None], (n(1), n(3))),
    "adaptive_max_pool2d": lambda n, x: F.adaptive_max_pool2d(x[None], (n(1), None)),
    "lp_pool1d": lambda n, x: F.lp_pool1d(x, n(2), n(2)),
    "conv1d": lambda n, x: F.conv1d(x[None], vesta.ones(1, 2, 1), stride=n(2), padding=(n(1),)),
    "unfold 2d": lambda n, x: F.unfold(x[None, None], (n(1), n(2))),
    "interpolate": lambda n, x: F.interpolate(x[None], n(6)),
    "interpolate of a tuple": lambda n, x: F.interpolate(x[None], size=(n(5),), mode="linear"),
    "interpolate by a factor": lambda n, x: F.interpolate(x[None], scale_factor=n(2)),
    "group_norm": lambda n, x: F.group_norm(x.reshape(1, 2, 3), n(2)),
    "layer_norm": lambda n, x: F.layer_norm(x, (n(3),)),
    "normalize": lambda n, x: F.normalize(x, dim=n(1)),
    "embedding": lambda n, x: F.embedding(x.long(), x.T.repeat(2, 1), padding_idx=n(0)),
    "cross_entropy": lambda n, x: F.cross_entropy(x, t([0, 1]), ignore_index=n(1)),
    "local_response_norm": lambda n, x: F.local_response_norm(x[None], n(2)),
    "Linear": lambda n, x: nn.Linear(n(3), n(4)).weight.shape,
    "Embedding": lambda n, x: nn.Embedding(n(3), n(4)).weight.shape,
    "LayerNorm": lambda n, x: nn.LayerNorm((n(3),))(x),
    "BatchNorm1d": lambda n, x: nn.BatchNorm1d(n(3))(x),
    "Upsample": lambda n, x: nn.Upsample(scale_factor=n(2))(x[None]),
    "PReLU": lambda n, x: nn.PReLU(n(2)).weight,
    "linalg.norm": lambda n, x: vesta.linalg.norm(x, dim=n(1)),
    "fold": lambda n, x: F.fold(x.reshape(1, 2, 3)[..., :2], (n(1), n(3)), (1, n(2))),
    "combinations": lambda n, x: vesta.combinations(x[0], n(2)),
    "square mask": lambda n, x: nn.Transformer.generate_square_subsequent_mask(n(3)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_an_integer_from_elsewhere_is_an_integer(name: str, kind: str) -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    vesta.testing.assert_close(CALLS[name](KINDS[kind], x), CALLS[name](int, x), rtol=0, atol=0)


def test_a_vector_of_one_element_is_a_size() -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    assert vesta.zeros(t([3])).shape == (3,)
    assert vesta.zeros((t([3]), 2)).shape == (3, 2)
    assert vesta.sum(x, t([0])).tolist() == [3.0, 5.0, 7.0]
    assert vesta.zeros(*t([3, 2])).shape == (3, 2)
    assert x.view((t([2]), 3)).shape == (2, 3) and x.std(t([1])).shape == (2,)
    assert x.topk(t([2]))[0].shape == (2, 2) and nn.Linear(t([3]), 4).weight.shape == (4, 3)
    assert F.conv1d(x[None], vesta.ones(1, 2, 1), stride=t([2])).shape == (1, 1, 2)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: vesta.zeros(t(3.0)),
        lambda x: vesta.zeros(t([3, 2])),
        lambda x: vesta.zeros((2, t(3.0))),
        lambda x: vesta.zeros(t(True)),
        lambda x: x.repeat(t([2, 1])),
        lambda x: x.softmax(t(True)),
        lambda x: vesta.zeros((t(True), 2)),
        lambda x: vesta.zeros(2, t(True)),
        lambda x: vesta.eye(t(True)),
        lambda x: vesta.arange(t([3])),
        lambda x: vesta.add(x, x, alpha=t([2.0])),
        lambda x: vesta.nan_to_num(x, 0.0, t([1.0])),
        lambda x: vesta.full((2,), t([3.0])),
        lambda x: nn.Linear(t(3.0), 4),
        lambda x: F.interpolate(x[None], t([1.0, 2.0])),
        lambda x: F.dropout(x, t([0.5])),
    ],
)
def test_what_is_no_integer_is_refused(call: Callable[[vesta.Tensor], Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        call(vesta.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: vesta.ones(),
        lambda x: vesta.zeros(),
        lambda x: vesta.empty(),
        lambda x: vesta.rand(),
        lambda x: vesta.randn(),
        lambda x: x.new_zeros(),
        lambda x: vesta.flip(x),
        lambda x: x.flip(),
        lambda x: x.tile(),
        lambda x: x.view(),
        lambda x: x.reshape(),
        lambda x: x.expand(),
        lambda x: x.repeat(),
        lambda x: x.permute(),
    ],
)
def test_sizes_are_not_left_out(call: Callable[[vesta.Tensor], Any]) -> None:
    with pytest.raises(TypeError):
        call(vesta.arange(6.0).reshape(2, 3))


def test_no_sizes_are_an_empty_tuple() -> None:
    assert vesta.zeros(()).shape == vesta.ones([]).shape == vesta.ones(size=()).shape == ()
    assert vesta.tensor([1.0]).view(()).item() == vesta.tensor(1.0).expand(()).item() == 1.0


def test_a_probability_may_be_a_tensor() -> None:
    x = vesta.ones(4)
    assert F.dropout(x, t(0.0)).tolist() == x.tolist() and F.dropout(x, np.float32(1.0)).tolist() == [0.0] * 4
    assert F.alpha_dropout(x, t(0.5), training=False).tolist() == x.tolist()
    assert nn.Dropout(t(0.5)).eval()(x).tolist() == x.tolist()


def test_a_number_divided_with_a_rounding_mode() -> None:
    i = t([1, 2, 3])
    assert vesta.div(7, i, rounding_mode="floor").tolist() == [7, 3, 2]
    assert vesta.div(-7.0, i, rounding_mode="trunc").tolist() == [-7.0, -3.0, -2.0]
    assert vesta.divide(7, i, rounding_mode="floor").dtype == vesta.int64
    assert vesta.div(7, 3, rounding_mode="trunc").item() == 2


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i, b: 1 - b,
        lambda x, i, b: b - 1,
        lambda x, i, b: b - True,
        lambda x, i, b: b - b,
        lambda x, i, b: x - b,
        lambda x, i, b: x - True,
        lambda x, i, b: True - x,
        lambda x, i, b: i.sub_(True),
        lambda x, i, b: x.sub_(b),
        lambda x, i, b: vesta.sub(i, b),
        lambda x, i, b: vesta.rsub(b, 1),
        lambda x, i, b: vesta.rsub(x, b),
        lambda x, i, b: vesta.subtract(x.double(), b[:1]),
    ],
)
def test_flags_are_not_subtracted(call: Callable[..., Any]) -> None:
    x, i, b = t([1.0, 2.0, 3.0]), t([1, 2, 3]), t([True, False, True])
    with pytest.raises(NotImplementedError, match=r"Subtraction, the `-` operator, with (a|two) bool tensors?"):
        call(x, i, b)
    assert x.tolist() == [1.0, 2.0, 3.0] and i.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (RuntimeError, lambda x, i: vesta.isneginf(x, out=vesta.empty(3))),
        (RuntimeError, lambda x, i: vesta.signbit(x, out=vesta.empty(3, dtype=vesta.uint8))),
        (RuntimeError, lambda x, i: vesta.abs(x, out=vesta.empty(3, dtype=vesta.float64))),
        (RuntimeError, lambda x, i: x.float_power_(2)),
        (RuntimeError, lambda x, i: x.cumsum_(0, dtype=vesta.float64)),
        (RuntimeError, lambda x, i: x.cumprod_(0, dtype=vesta.float64)),
        (NotImplementedError, lambda x, i: vesta.argmax(x > 0)),
        (NotImplementedError, lambda x, i: vesta.argmin(x > 0, 0)),
        (NotImplementedError, lambda x, i: vesta.lerp(i, i, 0.5)),
        (RuntimeError, lambda x, i: vesta.lerp(x, x.double(), 0.5)),
        (RuntimeError, lambda x, i: vesta.lerp(x, x, x.double())),
        (RuntimeError, lambda x, i: vesta.heaviside(x, t(1))),
        (RuntimeError, lambda x, i: vesta.linalg.cross(x, x.double())),
        (RuntimeError, lambda x, i: vesta.linalg.vecdot(x, i)),
        (NotImplementedError, lambda x, i: vesta.bincount(x)),
        (NotImplementedError, lambda x, i: vesta.complex(x, i)),
        (TypeError, lambda x, i: vesta.imag(x)),
        (ValueError, lambda x, i: vesta.cat([])),
    ],
)
def test_dtypes_that_pytorch_refuses(error: type[Exception], call: Callable[..., Any]) -> None:
    x, i = t([1.0, 2.0, 3.0]), t([1, 2, 3])
    with pytest.raises(error):
        call(x, i)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_what_pytorch_takes() -> None:
    x = t([3.0 + 4.0j])
    assert vesta.abs(x, out=vesta.empty(1, dtype=vesta.complex64)).tolist() == [5.0]
    assert vesta.abs(x, out=vesta.empty(1, dtype=vesta.float64)).tolist() == [5.0]
    assert t([2.0], dtype=vesta.float64).float_power_(3).tolist() == [8.0]
    assert vesta.float_power(t([2]), 3, out=vesta.empty(1, dtype=vesta.float64)).tolist() == [8.0]
    assert vesta.lerp(t([0.0, 0.0]), t([1.0, 1.0]), t(0.5, dtype=vesta.float64)).tolist() == [0.5, 0.5]
    assert vesta.all(t([True]), out=vesta.empty((), dtype=vesta.uint8)).item() == 1
    assert vesta.ldexp(t([1, 3]), t([True, False])).tolist() == [2.0, 3.0]
    assert t([1.0, 2.0]).cumsum_(0, dtype=vesta.float32).tolist() == [1.0, 3.0]
    assert vesta.multinomial(t([0.0, 1.0]), 2).tolist() == [1, 0]
    assert vesta.multinomial(t([[0.0, 1.0], [1.0, 0.0]]), 2).tolist() == [[1, 0], [0, 1]]
    assert vesta.binomial(t([float("inf"), 7.0]), t([0.0, 1.0])).tolist() == [0.0, 7.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: vesta.full(2, 1),
        lambda x: vesta.zeros(size=2),
        lambda x: vesta.empty(size=2),
        lambda x: vesta.rand(size=2),
        lambda x: vesta.randint(5, 2),
        lambda x: vesta.randint(0, 5, 2),
        lambda x: vesta.normal(0.0, 1.0, 2),
        lambda x: vesta.empty_strided(2, 1),
        lambda x: vesta.empty_permuted(2, 0),
        lambda x: vesta.broadcast_to(x[0], 3),
        lambda x: vesta.constant_pad_nd(x, 1),
        lambda x: vesta.permute(x[0], 0),
        lambda x: vesta.flip(x, 0),
        lambda x: vesta.tile(x, 2),
        lambda x: vesta.reshape(x, 6),
        lambda x: vesta.rot90(x, 1, 0),
        lambda x: vesta.unflatten(x, 1, 3),
        lambda x: vesta.split_with_sizes(x, 2),
        lambda x: vesta.movedim(x, (0,), 1),
        lambda x: vesta.tensor_split(x, indices=2),
        lambda x: vesta.layer_norm(x, 3),
        lambda x: vesta.convolution(x[None], vesta.ones(1, 2, 1), None, 1, 0, 1, False, 0, 1),
        lambda x: x.new_full(2, 1),
        lambda x: x.new_ones(size=2),
        lambda x: x.as_strided((2,), 1),
        lambda x: x.expand(size=3),
        lambda x: x.flip(dims=0),
        lambda x: x.repeat(repeats=2),
        lambda x: x.view(size=6),
        lambda x: x.resize_(size=2),
        lambda x: x.sum_to_size(size=1),
        lambda x: x.unsafe_split_with_sizes(2),
        lambda x: F.pad(x, 1),
        lambda x: F.layer_norm(x, 3),
        lambda x: F.rms_norm(x, 3),
        lambda x: vesta.linalg.matrix_norm(x, "fro", 0),
    ],
)
def test_one_int_is_no_tuple(call: Callable[[vesta.Tensor], Any]) -> None:
    """Where PyTorch has ``int[]``, one int stands for a list only if it is spread: ``zeros(2)``, not ``full(2, 1)``."""
    with pytest.raises(TypeError, match=r"must be (a )?tuple of ints, not int|combination|expected a tuple of ints"):
        call(vesta.arange(6.0).reshape(2, 3))


def test_one_int_is_a_list_where_it_is_spread_or_taken_for_all() -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    assert vesta.zeros(2).shape == x.new_zeros(2).shape == (2,) and x.view(6).shape == x.reshape(6).shape == (6,)
    assert x.flip(0)[0].tolist() == [3.0, 4.0, 5.0] and x[0].permute(0).shape == x[0].expand(3).shape == (3,)
    assert vesta.roll(x, 1, 0)[0].tolist() == [3.0, 4.0, 5.0] and vesta.movedim(x, 0, 1).shape == (3, 2)
    assert F.conv1d(x[None], vesta.ones(1, 2, 1), stride=2).shape == (1, 1, 2)


#: Calls of numbers that are tensors, and the same calls of Python numbers.
NUMBERS: dict[str, Callable[[Any, vesta.Tensor], Any]] = {
    "unique": lambda n, x: vesta.unique(x, dim=n(1)),
    "unique_consecutive": lambda n, x: vesta.unique_consecutive(x, dim=n(0)),
    "gradient by a spacing": lambda n, x: vesta.gradient(x, spacing=n(2)),
    "gradient along one": lambda n, x: vesta.gradient(x, dim=n(1)),
    "gradient along two": lambda n, x: vesta.gradient(x, dim=(n(0), n(1))),
    "tensordot": lambda n, x: vesta.tensordot(x, x, ([n(0)], [n(0)])),
    "hann_window": lambda n, x: vesta.hann_window(n(4)),
    "hamming_window": lambda n, x: vesta.hamming_window(n(4), True, 0.5),
    "blackman_window": lambda n, x: vesta.blackman_window(n(4)),
    "bartlett_window": lambda n, x: vesta.bartlett_window(n(4)),
    "kaiser_window": lambda n, x: vesta.kaiser_window(n(4)),
    "windows.hann": lambda n, x: vesta.signal.windows.hann(n(4)),
    "matrix_norm": lambda n, x: vesta.linalg.matrix_norm(x, n(1), (n(0), n(1))),
    "cond": lambda n, x: vesta.linalg.cond(x[:, :2] + vesta.eye(2), n(1)),
    "pca_lowrank": lambda n, x: vesta.pca_lowrank(x, n(2))[1].shape,
    "pad_sequence": lambda n, x: nn.utils.rnn.pad_sequence([x[0], x[1, :2]], padding_value=n(1)),
    "einsum": lambda n, x: vesta.einsum(x, [n(0), n(1)], x, [n(0), n(2)]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_tensor_stands_for_a_number_in_functions_of_python(name: str) -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    for kind in (t, np.int64):
        vesta.testing.assert_close(NUMBERS[name](kind, x), NUMBERS[name](int, x), rtol=0, atol=0)
    assert vesta.equal(vesta.tensordot(x, x.mT, t([1])), x @ x.mT)


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (TypeError, lambda x: vesta.unique(x, dim=t(0.0))),
        (TypeError, lambda x: vesta.gradient(x, spacing=t([2.0, 1.0]))),
        (TypeError, lambda x: vesta.gradient(x, spacing=(2, t(1.0)))),
        (RuntimeError, lambda x: vesta.gradient(x, spacing=(t(2.0), t(1.0)))),
        (TypeError, lambda x: vesta.gradient(x, dim=t([1]))),
        (TypeError, lambda x: vesta.gradient(x, dim=t(1.0))),
        (TypeError, lambda x: vesta.tensordot(x, x, (0, 1))),
        (TypeError, lambda x: vesta.tensordot(x, x, t([0, 1]))),
        (RuntimeError, lambda x: vesta.tensordot(x, x, None)),
        (RuntimeError, lambda x: vesta.tensordot(x, x, 1.0)),
        (TypeError, lambda x: vesta.hann_window(4, t(True))),
        (TypeError, lambda x: vesta.hann_window(4.0)),
        (RuntimeError, lambda x: vesta.hann_window(-1)),
        (RuntimeError, lambda x: vesta.kaiser_window(4, dtype=vesta.int64)),
        (TypeError, lambda x: vesta.linalg.matrix_norm(x, 1, t([0, 1]))),
        (RuntimeError, lambda x: vesta.linalg.matrix_norm(x, 1j)),
        (RuntimeError, lambda x: vesta.cartesian_prod(x[0], t(1.0))),
        (TypeError, lambda x: F.grid_sample(x[None, None], vesta.zeros(1, 1, 1, 2), align_corners=t(False))),
        (RuntimeError, lambda x: vesta.backends.cuda.cufft_plan_cache[4096]),
        (RuntimeError, lambda x: vesta.backends.cuda.cufft_plan_cache[-1]),
    ],
)
def test_what_functions_of_python_refuse(error: type[Exception], call: Callable[[vesta.Tensor], Any]) -> None:
    with pytest.raises(error):
        call(vesta.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    ("message", "call"),
    [
        ("floating point", lambda i, x, b: vesta.add(i, i, alpha=2.0)),
        ("floating point", lambda i, x, b: vesta.add(b, b, alpha=2.0)),
        ("floating point", lambda i, x, b: vesta.add(i, i, alpha=t(2.0))),
        ("floating point", lambda i, x, b: vesta.sub(i, i, alpha=np.float32(2))),
        ("floating point", lambda i, x, b: vesta.rsub(i, 3, alpha=2.0)),
        ("floating point", lambda i, x, b: i.add_(3, alpha=2.0)),
        ("Boolean alpha", lambda i, x, b: vesta.add(x, x, alpha=True)),
        ("Boolean alpha", lambda i, x, b: i.sub_(i, alpha=True)),
        ("Boolean alpha", lambda i, x, b: vesta.add(i, b, alpha=t(True))),
        ("complex number", lambda i, x, b: vesta.add(x, x, alpha=1j)),
        ("complex number", lambda i, x, b: vesta.sub(i, x, alpha=np.complex64(1j))),
        ("complex number", lambda i, x, b: x.sub_(x, alpha=1j)),
        ("complex number", lambda i, x, b: vesta.rsub(x, 2, alpha=1j)),
        ("complex number", lambda i, x, b: vesta.addcmul(x, x, x, value=1j)),
        ("complex number", lambda i, x, b: x.addcdiv_(x, x, value=1j)),
        ("complex number", lambda i, x, b: vesta.addr(vesta.ones(2, 2), x, x, alpha=1j)),
        ("complex number", lambda i, x, b: vesta.addmm(vesta.ones(2, 2), vesta.ones(2, 2), vesta.ones(2, 2), beta=1j)),
        ("argument beta", lambda i, x, b: vesta.addr(vesta.ones(2, 2).long(), i, i, beta=1.5)),
        ("argument alpha", lambda i, x, b: vesta.addr(vesta.ones(2, 2).bool(), b, b, alpha=1.5)),
    ],
)
def test_a_factor_is_of_the_kind_of_the_operands(message: str, call: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match=message):
        call(t([1, 2]), t([1.0, 2.0]), t([True, False]))


def test_factors_that_fit() -> None:
    i, x, b = t([1, 2]), t([1.0, 2.0]), t([True, False])
    assert vesta.add(i, x, alpha=2.5).tolist() == [3.5, 7.0] and vesta.add(x, i, alpha=t(2)).tolist() == [3.0, 6.0]
    assert vesta.add(b, b, alpha=True).tolist() == vesta.add(b, b, alpha=2).tolist() == [True, False]
    assert vesta.add(i, 2.0, alpha=0.5).tolist() == [2.0, 3.0] and vesta.rsub(x, 3, alpha=0.5).tolist() == [2.5, 2.0]


def sums_of_products(x: Any, beta: Any, alpha: Any) -> list[tuple[str, tuple[Any, ...], Any]]:
    """Returns name, operands and what comes out, by NumPy, of each sum of a product."""
    m, v = x.numpy(), x[0].numpy()
    return [
        ("addmm", (x, x, x), beta * m + alpha * (m @ m)),
        ("addmv", (x[0], x, x[0]), beta * v + alpha * (m @ v)),
        ("addr", (x, x[0], x[0]), beta * m + alpha * np.outer(v, v)),
        ("addbmm", (x, x[None], x[None]), beta * m + alpha * (m @ m)),
        ("baddbmm", (x[None], x[None], x[None]), (beta * m + alpha * (m @ m))[None]),
    ]


@pytest.mark.parametrize(("beta", "alpha"), [(1j, 2j), (0.5, 1 + 2j), (1 - 1j, 1), (0, 2j), (2j, 0), (1 + 0j, 3)])
def test_complex_factors_of_complex_operands(beta: complex, alpha: complex) -> None:
    x = t([[1.0 + 1j, 2.0], [-3j, 0.5]], dtype=vesta.complex128)
    for name, operands, want in sums_of_products(x, beta, alpha):
        np.testing.assert_allclose(getattr(vesta, name)(*operands, beta=beta, alpha=alpha).numpy(), want, rtol=1e-14)
        first = operands[0].clone()
        assert getattr(first, f"{name}_")(*operands[1:], beta=beta, alpha=alpha) is first
        np.testing.assert_allclose(first.numpy(), want, rtol=1e-14)
        out = vesta.empty(0, dtype=x.dtype)
        assert getattr(vesta, name)(*operands, beta=beta, alpha=alpha, out=out) is out
        np.testing.assert_allclose(out.numpy(), want, rtol=1e-14)
    n, y = x.numpy(), x.mT
    for got, want in [
        (vesta.add(x, y, alpha=alpha), n + alpha * n.T),
        (vesta.sub(x, 2, alpha=alpha), n - alpha * 2),
        (vesta.rsub(x, y, alpha=alpha), n.T - alpha * n),
        (vesta.add(vesta.ones(2, 2), x, alpha=alpha), 1 + alpha * n),
        (x.clone().add_(y, alpha=alpha), n + alpha * n.T),
        (x.clone().sub_(y, alpha=t(alpha)), n - alpha * n.T),
        (vesta.addcmul(x, y, x, value=alpha), n + alpha * n.T * n),
        (x.clone().addcdiv_(y, y + 1, value=alpha), n + alpha * n.T / (n.T + 1)),
    ]:
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-14)
    hidden = vesta.full((2, 2), complex("nan"), dtype=vesta.complex128)
    assert vesta.addmm(hidden, x, x, beta=0, alpha=1j).isfinite().all()
    for f in (vesta.addmm, lambda *a, **k: a[0].clone().addmm_(*a[1:], **k)):
        assert vesta.equal(f(x, x, hidden, beta=1j, alpha=0), 1j * x)
    assert vesta.sub(1, x, alpha=1j).allclose(1 - 1j * x) and vesta.add(2.0, x, alpha=1j).allclose(2 + 1j * x)


def test_gradients_of_complex_factors() -> None:
    def of(*sizes: int) -> vesta.Tensor:
        return vesta.randn(*sizes, dtype=vesta.complex128, requires_grad=True)

    gradcheck = vesta.autograd.gradcheck
    assert gradcheck(lambda *a: vesta.addmm(*a, beta=1j, alpha=2 - 1j), (of(2, 2), of(2, 3), of(3, 2)))
    assert gradcheck(lambda *a: vesta.add(*a, alpha=2j), (of(3), of(3)))
    assert gradcheck(lambda a, b: (a * 1).sub_(b, alpha=2j), (of(3), of(3)))
    assert gradcheck(lambda a, b: (a * 1).addmm_(b, b, beta=2j, alpha=1j), (of(2, 2), of(2, 2)))


def test_fractions_of_factors_of_integer_products_are_cut_off() -> None:
    x = t([[1, 2], [3, 4]])
    for beta, alpha in [(1.5, 1), (1, -2.5), (2.0, 3.0), (0.5, 1)]:
        for name, operands, want in sums_of_products(x, int(beta), int(alpha)):
            if name == "addr":
                continue
            got = getattr(vesta, name)(*operands, beta=beta, alpha=alpha)
            assert got.dtype == vesta.int64 and got.tolist() == want.tolist()
    for factor in (math.nan, math.inf, 1e30, 2.0**60):
        for name in ("beta", "alpha"):
            with pytest.raises(RuntimeError, match=rf"addmm: value .* without overflow \({name}\)"):
                vesta.addmm(x, x, x, **{name: factor})
    with pytest.raises(RuntimeError, match=r"addr: value .* without overflow \(alpha\)"):
        vesta.addr(x, x[0], x[1], alpha=1e30)
    v = t([1, 2])
    for first in (vesta.ones(2, 2), vesta.ones(2, 2, dtype=vesta.float64)):
        got = vesta.addr(first, v, v, beta=1.5, alpha=0.5)
        assert got.dtype == first.dtype and got.tolist() == [[2.0, 2.5], [2.5, 3.5]]


@pytest.mark.parametrize(
    "name", ["int8", "uint8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64"]
)
def test_lists_of_scalars_of_numpy_have_their_dtype(name: str) -> None:
    one, dtype = getattr(np, name)(1), getattr(vesta, name)
    for data in ([one, one], [[one], [one]], (one,)):
        assert vesta.tensor(data).dtype == vesta.as_tensor(data).dtype == dtype
        assert vesta.tensor(data).sum() == np.size(data)
    assert vesta.tensor([one, 2]).dtype == vesta.promote_types(dtype, vesta.int64)
    assert vesta.tensor([one], dtype=vesta.float64).tolist() == [1.0]


def test_arguments_that_are_arrays_and_scalars_of_numpy() -> None:
    x = vesta.arange(24.0).reshape(2, 3, 4)
    packed = nn.utils.rnn.pack_padded_sequence(x, np.array([2, 1, 1]))
    assert packed.batch_sizes.tolist() == [3, 1]
    assert nn.utils.rnn.pack_padded_sequence(x, (2, 1, 1)).batch_sizes.tolist() == [3, 1]
    padded = nn.utils.rnn.pad_packed_sequence(packed, total_length=np.int64(3), padding_value=np.float32(-1))[0]
    assert padded.shape == (3, 3, 4) and padded[2].max() == -1
    with pytest.raises(RuntimeError, match="greater than 0"):
        nn.utils.rnn.pack_padded_sequence(x, range(2, -1, -1))
    with pytest.raises(TypeError, match="a list of integers or a Tensor"):
        nn.utils.rnn.pack_padded_sequence(x, 2)  # type: ignore[arg-type]
    assert nn.AdaptiveLogSoftmaxWithLoss(4, 10, list(np.array([3, 6]))).cutoffs == [3, 6, 10]
    weight = nn.Parameter(vesta.ones(2))
    weight.grad = vesta.ones(2)
    for optimizer in (vesta.optim.Adam([weight], betas=np.array([0.9, 0.99])), vesta.optim.Adam([weight])):
        schedules = [
            vesta.optim.lr_scheduler.ConstantLR(optimizer),
            vesta.optim.lr_scheduler.ExponentialLR(optimizer, 0.9),
        ]
        vesta.optim.lr_scheduler.SequentialLR(optimizer, schedules, milestones=np.array([2])).step()
        optimizer.step()
    with pytest.raises(ValueError, match="expected two numbers, got 3"):
        vesta.optim.Adam([weight], betas=np.array([0.9, 0.99, 1.0]))
