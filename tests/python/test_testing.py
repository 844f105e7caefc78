"""``vesta.testing``: what ``assert_close`` accepts, what its errors say, and what ``make_tensor`` makes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import vesta
from vesta.testing import assert_allclose, assert_close, make_tensor

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        (vesta.tensor([1.0, 2.0]), vesta.tensor([1.0, 2.000001]), {}),
        (vesta.tensor([1, 2]), vesta.tensor([1, 2]), {}),
        (vesta.tensor([1.0, 2.0], dtype=vesta.bfloat16), vesta.tensor([1.0, 2.015625], dtype=vesta.bfloat16), {}),
        (vesta.tensor([1 + 1j]), vesta.tensor([1 + 1.000001j]), {}),
        (vesta.tensor([NAN, INF]), vesta.tensor([NAN, INF]), {"equal_nan": True}),
        (vesta.ones(2), vesta.ones(2, dtype=vesta.float64), {"check_dtype": False}),
        (vesta.ones(2), vesta.zeros(2), {"rtol": 0, "atol": 1}),
        (1.0, 1.0 + 1e-9, {}),
        (1, 1.0, {"check_dtype": False}),
        ((1, [vesta.ones(1)]), [1, (vesta.ones(1),)], {}),
        ({"a": None, "b": {"c": 2}}, {"a": None, "b": {"c": 2}}, {}),
        (np.ones(2), np.ones(2), {}),
        (vesta.nn.Parameter(vesta.ones(2)), vesta.ones(2), {}),
        (vesta.ones(0), vesta.ones(0), {}),
        (vesta.ones(2, device="meta"), vesta.zeros(2, device="meta"), {}),
        ([vesta.ones(2, device="meta")], [vesta.ones(2)], {"check_device": False}),
    ],
)
def test_what_is_close(a: Any, b: Any, options: dict[str, Any]) -> None:
    assert_close(a, b, **options)


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (vesta.ones(2, device="meta"), vesta.ones(3, device="meta"), {}, "attribute 'shape' do not match"),
        (vesta.ones(2, device="meta"), vesta.ones(2).long().to("meta"), {}, "attribute 'dtype' do not match"),
        (
            vesta.tensor([[1.0, 2.0], [3.0, 4.0]]),
            vesta.tensor([[1.0, 2.0], [3.0, 5.0]]),
            {},
            "Tensor-likes are not close!\n\nMismatched elements: 1 / 4 (25.0%)\nGreatest absolute difference: 1.0 at "
            "index (1, 1) (up to 1e-05 allowed)\nGreatest relative difference: 0.2 at index (1, 1) (up to 1.3e-06 "
            "allowed)",
        ),
        (vesta.tensor([1, 2]), vesta.tensor([1, 4]), {}, "Tensor-likes are not equal!"),
        (vesta.tensor(2.0), vesta.tensor(1.0), {}, "Scalars are not close!\n\nExpected 1.0 but got 2.0."),
        (vesta.tensor([NAN]), vesta.tensor([NAN]), {}, "Greatest absolute difference: nan at index (0,)"),
        (vesta.ones(2), vesta.ones(3), {}, "attribute 'shape' do not match: vesta.Size([2]) != vesta.Size([3])"),
        (vesta.ones(2), vesta.ones(2).double(), {}, "'dtype' do not match: vesta.float32 != vesta.float64"),
        (vesta.ones(2, 3).t(), vesta.ones(3, 2), {"check_stride": True}, "'stride()' do not match: (1, 3) != (2, 1)"),
        (1.0, 1.5, {}, "Absolute difference: 0.5 (up to 1e-07 allowed)"),
        (1, 1.0, {}, "The (d)types do not match: <class 'int'> != <class 'float'>"),
        ([1, 2], [1], {}, "The length of the sequences mismatch: 2 != 1"),
        ({"a": 1}, {"b": 1}, {}, "Missing keys in the actual mapping: ['b']"),
        ({"a": [1, 2]}, {"a": [1, 3]}, {}, "The failure occurred for item ['a'][1]"),
        (vesta.ones(1), vesta.zeros(1), {"msg": "mine"}, "mine"),
        (vesta.ones(1), vesta.zeros(1), {"msg": lambda text: "before " + text}, "before Tensor-likes"),
    ],
)
def test_what_is_not(a: Any, b: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_close(a, b, **options)
    assert message in str(caught.value)


def test_what_cannot_be_compared() -> None:
    for a, b in (("a", "a"), (object(), object()), (vesta.ones(1), [1.0]), (None, 1), (vesta.ones(1), 1.0)):
        with pytest.raises(TypeError):
            assert_close(a, b)
    with pytest.raises(TypeError):
        assert_close(vesta.nn.Parameter(vesta.ones(1)), vesta.ones(1), allow_subclasses=False)
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1.0, 1.0, rtol=1.0)


def test_the_older_function_warns_and_compares_values_only() -> None:
    with pytest.warns(FutureWarning):
        assert_allclose(vesta.ones(2), [1.0, 1.0])
    with pytest.warns(FutureWarning), pytest.raises(AssertionError):
        assert_allclose(vesta.ones(2), 2.0)


DTYPES = [
    vesta.bool,
    vesta.uint8,
    vesta.int8,
    vesta.int64,
    vesta.float16,
    vesta.bfloat16,
    vesta.float64,
    vesta.complex64,
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_have_the_dtype_and_the_bounds(dtype: Any) -> None:
    x = make_tensor((50, 40), dtype=dtype, device="cpu")
    assert x.dtype == dtype and x.shape == (50, 40) and x.is_contiguous()
    if dtype == vesta.bool:
        assert x.any() and not x.all()
        return
    parts = [vesta.tensor([v.real for v in x.flatten().tolist()])] if dtype.is_complex else [x.double()]
    low, high = (0, 10) if dtype == vesta.uint8 else (-9, 9 if dtype.is_floating_point or dtype.is_complex else 10)
    for part in parts:
        assert low <= part.min() < low + 1 and high - 2 < part.max() <= high
    y = make_tensor(100, dtype=dtype, device="cpu", low=2, high=4)
    if not dtype.is_complex:
        assert y.min() >= 2 and y.max() <= 4


def test_layouts_gradients_and_zeros() -> None:
    x = make_tensor(3, 4, dtype=vesta.float32, device="cpu", noncontiguous=True, requires_grad=True)
    assert x.shape == (3, 4) and x.stride() == (8, 2) and x.requires_grad and x.is_leaf
    x = make_tensor(2, 3, 4, 4, dtype=vesta.float32, device="cpu", memory_format=vesta.channels_last)
    assert x.is_contiguous(memory_format=vesta.channels_last)
    x = make_tensor(1000, dtype=vesta.int64, device="cpu", low=0, high=2, exclude_zero=True)
    assert vesta.equal(x, vesta.ones_like(x))


def test_wrong_arguments_of_make_tensor() -> None:
    for options, message in (
        ({"dtype": vesta.int64, "low": 3, "high": 3}, "`low` must be less than `high`"),
        ({"dtype": vesta.float32, "low": NAN}, "cannot be NaN"),
        ({"dtype": vesta.int64, "requires_grad": True}, "not supported for boolean and integral dtypes"),
        (
            {"dtype": vesta.float32, "noncontiguous": True, "memory_format": vesta.channels_last},
            "mutually exclusive",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            make_tensor(2, device="cpu", **options)
