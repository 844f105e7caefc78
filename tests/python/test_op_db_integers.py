"""Integer arithmetic at its limits: each case has a defined result or raises, in vector loop, tail and in place."""

from __future__ import annotations

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db_row import DTYPES

SIGNED = ["int8", "int16", "int32", "int64"]
INTEGERS = ["uint8", *SIGNED]
SIZES = (1, 7, 64, 1023)


def filled(dtype: str, value: int, size: int):
    return vesta.full((size,), value, dtype=check.vdtype(dtype))


@pytest.mark.differs
@pytest.mark.parametrize("dtype", SIGNED)
@pytest.mark.parametrize("size", SIZES)
def test_lowest_by_minus_one(dtype: str, size: int) -> None:
    """lowest // -1 wraps to lowest and lowest % -1 is 0, as in two's complement; never a signal."""
    lowest = np.iinfo(dtype).min
    x = filled(dtype, lowest, size)
    for divisor in (-1, filled(dtype, -1, size), filled(dtype, -1, 1)):
        assert bool((vesta.div(x, divisor, rounding_mode="floor") == lowest).all())
        assert bool((vesta.div(x, divisor, rounding_mode="trunc") == lowest).all())
        assert bool((x // divisor == lowest).all()) and bool((x % divisor == 0).all())
    y = x.clone()
    y //= -1
    y %= -1
    assert bool((y == 0).all())


@pytest.mark.differs
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("size", SIZES)
def test_division_by_zero_raises(dtype: str, size: int) -> None:
    """Integer division by zero has no value: it raises, wherever the zero is, and changes nothing."""
    x = filled(dtype, 5, size)
    zeros = vesta.ones(size, dtype=x.dtype)
    zeros[-1] = 0
    for divisor in (0, zeros, False, zeros.bool()):
        for call in (
            lambda d=divisor: x // d,
            lambda d=divisor: x % d,
            lambda d=divisor: vesta.div(x, d, rounding_mode="trunc"),
            lambda d=divisor: x.remainder_(d),
        ):
            with pytest.raises((RuntimeError, ZeroDivisionError), match="(?i)zero"):
                call()
    assert bool((x == 5).all())
    assert bool((x / 0 == float("inf")).all()), "true division is floating point"


@pytest.mark.parametrize("dtype", SIGNED)
def test_floor_and_trunc_division(dtype: str) -> None:
    """Floor division rounds down, trunc toward zero, remainder takes the divisor's sign: Python's rules."""
    a, b = (v.reshape(-1) for v in np.meshgrid(np.arange(-9, 10), [-4, -3, -1, 1, 2, 5]))
    x, y = (check.tensor_of(v.astype(dtype), dtype) for v in (a, b))
    np.testing.assert_array_equal((x // y).numpy(), a // b)
    np.testing.assert_array_equal((x % y).numpy(), a % b)
    np.testing.assert_array_equal(vesta.div(x, y, rounding_mode="trunc").numpy(), np.trunc(a / b))
    assert (x // y).dtype == (x % y).dtype == x.dtype
    floats = x.to(vesta.float64)
    np.testing.assert_array_equal((floats // y).numpy(), a // b)
    np.testing.assert_array_equal((floats % y).numpy(), a % b)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_arithmetic_wraps(dtype: str) -> None:
    """Sums, products, negation and abs wrap around as two's complement does."""
    info = np.iinfo(dtype)
    for size in SIZES:
        top, bottom = filled(dtype, int(info.max), size), filled(dtype, int(info.min), size)
        assert bool((top + 1 == bottom).all()) and bool((bottom - 1 == top).all())
        assert bool((top * 2 == filled(dtype, 254 if dtype == "uint8" else -2, size)).all())
        assert bool((-bottom == bottom).all()) and bool((bottom.abs() == bottom).all())


@pytest.mark.parametrize("dtype", SIGNED)
def test_integer_powers(dtype: str) -> None:
    """Powers wrap; a negative exponent in a tensor gives 0 except for bases 1 and -1; a negative number raises."""
    x = vesta.tensor([-2, -1, 1, 2, 3], dtype=check.vdtype(dtype))
    assert (x**3).tolist() == [-8, -1, 1, 8, 27] and (x**0).tolist() == [1] * 5
    exponents = vesta.full((5,), -1, dtype=x.dtype)
    assert (x**exponents).tolist() == [0, -1, 1, 0, 0]
    with pytest.raises(RuntimeError, match="(?i)negative"):
        x**-1


@pytest.mark.differs
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("source", ["float32", "float64", "float16"])
def test_float_to_integer_casts_saturate(source: str, dtype: str, size: int) -> None:
    """Values outside the target's range are clamped to it, NaN becomes 0, everything else rounds toward zero."""
    info = np.iinfo(dtype)
    cases = {np.nan: 0, np.inf: info.max, -np.inf: info.min, 1.9: 1, 3.0: 3, 60000.0: min(60000, info.max)}
    if dtype != "uint8":
        cases[-1.9] = -1
    for value, want in cases.items():
        x = vesta.full((size,), value, dtype=check.vdtype(source))
        got = x.to(check.vdtype(dtype))
        assert got.tolist() == [int(want)] * size, f"{value} as {dtype}"


@pytest.mark.differs
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("source", ["float32", "float64", "float16", "bfloat16"])
def test_a_value_is_cast_the_same_whatever_lies_beside_it(source: str, dtype: str) -> None:
    """Vectors in which some numbers are beyond the target's range, all at its ends, and in every place."""
    info = np.iinfo(dtype)
    ends = [float(end) + by for end in (info.min, info.max) for by in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    values = vesta.tensor([*ends, *np.linspace(-300, 300, 41), np.nan, np.inf, -np.inf, 2.0**31, -(2.0**63)])
    values = values.double().to(check.vdtype(source))
    alone = [values[k : k + 1].to(check.vdtype(dtype)).item() for k in range(len(values))]
    for value, got in zip(values.tolist(), alone):
        assert got == (0 if np.isnan(value) else int(np.clip(value, info.min, info.max)) if abs(value) < 2**53 else got)
    for turn in range(17):
        order = [(k * 7 + turn) % len(values) for k in range(len(values))]
        assert values[order].to(check.vdtype(dtype)).tolist() == [alone[k] for k in order]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("source", [*INTEGERS, "float64", "float16", "bfloat16"])
def test_casts_to_narrow_floats_go_by_way_of_float32(source: str, dtype: str) -> None:
    numbers = np.arange(-130, 131).repeat(3) * 211 % 65521 - 30000
    x = vesta.from_numpy(numbers.copy()).to(check.vdtype(source))
    assert x.to(check.vdtype(dtype)).tolist() == x.float().to(check.vdtype(dtype)).tolist()
    assert x[::2].to(check.vdtype(dtype)).tolist() == x.to(check.vdtype(dtype))[::2].tolist()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_casts_between_integers_wrap(dtype: str) -> None:
    values = np.array([-(2**40) - 3, -129, -1, 0, 127, 128, 255, 256, 2**33 + 5], dtype=np.int64)
    got = vesta.from_numpy(values.copy()).to(check.vdtype(dtype))
    np.testing.assert_array_equal(got.numpy(), values.astype(DTYPES[dtype].carrier))


def test_casts_to_bool() -> None:
    """Everything but zero is True, NaN included."""
    for values in ([0.0, -0.0, 1e-45, float("nan")], [0, 0, 256, -1], [0j, -0j, 1j, 1 + 0j]):
        assert vesta.tensor(values).to(vesta.bool).tolist() == [False, False, True, True]


@pytest.mark.parametrize("dtype", SIGNED)
def test_sums_of_integers_do_not_overflow_early(dtype: str) -> None:
    x = filled(dtype, int(np.iinfo(dtype).max) if dtype != "int64" else 1 << 50, 1000)
    assert int(x.sum()) == 1000 * int(x[0])


def test_bools_take_part_as_in_pytorch() -> None:
    """square promotes them to integers, clamp_min and clamp_max order them, and a sum to no dimension is a number."""
    x = vesta.tensor([True, False, True] * 30)
    assert vesta.square(x).dtype is vesta.int64 and vesta.square(x).tolist() == [1, 0, 1] * 30
    assert vesta.clamp_max(x, vesta.tensor(False)).tolist() == [False] * 90
    assert x.clamp_min(vesta.tensor(True)).tolist() == [True] * 90
    assert x.clamp_min(2).dtype is vesta.int64 and x.clamp_min(2).tolist() == [2] * 90
    assert vesta.tensor(True).sum_to_size(()).dtype is vesta.int64
    with pytest.raises(vesta.Error, match="clamp: expected a dtype of .* got bool"):
        x.clamp(min=x, max=x)


def test_integer_arange_counts_before_it_truncates() -> None:
    """The number of values comes from the bounds as given, the values from the truncated bounds."""
    for dtype in (vesta.int32, vesta.int64):
        assert vesta.arange(0, -8.000001, -4.0, dtype=dtype).tolist() == [0, -4, -8]
        assert vesta.arange(0.5, 3.7, 1, dtype=dtype).tolist() == [0, 1, 2, 3]
    assert vesta.arange(2**62, 2**62 + 3).tolist() == [2**62, 2**62 + 1, 2**62 + 2]


@pytest.mark.differs
def test_a_sequence_that_stands_still_raises() -> None:
    for dtype in (vesta.int32, vesta.int64):
        with pytest.raises(vesta.Error, match="arange: step must be nonzero"):
            vesta.arange(0, 3, 0.5, dtype=dtype)


@pytest.mark.parametrize("op", [vesta.add, vesta.sub])
def test_alpha_of_integers_is_an_integer(op) -> None:
    """A float, even 2.0, or a number out of the dtype's range raises instead of being truncated silently."""
    x = vesta.arange(4, dtype=vesta.int8)
    for alpha in (0.5, 2.0, float("nan"), float("inf"), 300, 2**60):
        for call in (lambda a: op(x, x, alpha=a), lambda a: op(x, 1, alpha=a), lambda a: x.add_(x, alpha=a)):
            with pytest.raises(RuntimeError, match="alpha"):
                call(alpha)
    for alpha, expected in ((2.7, 3), (-2.7, -1)):  # but that of index_add, whose fraction PyTorch cuts off
        assert vesta.tensor([1]).index_add(0, vesta.tensor([0]), vesta.tensor([1]), alpha=alpha).tolist() == [expected]
    with pytest.raises(RuntimeError, match="index_add.*alpha"):
        x.index_add(0, vesta.tensor([0]), x[:1], alpha=300.5)
    assert x.tolist() == [0, 1, 2, 3] and vesta.add(x, x, alpha=2).tolist() == [0, 3, 6, 9]
    assert op(x, 1.5, alpha=0.5).tolist() == op(x.float(), 1.5, alpha=0.5).tolist()
    unsigned = vesta.tensor([1], dtype=vesta.uint8)
    assert vesta.add(unsigned, unsigned, alpha=-1).tolist() == [0]


def test_sums_to_integers_convert_before_they_add() -> None:
    """sum(dtype=) of an integer dtype or bool casts each element first, as PyTorch documents."""
    x = vesta.tensor([[0.6, -1.9], [0.6, 2.2]])
    assert x.sum(dtype=vesta.int64).item() == 1 and x.sum(0, dtype=vesta.int32).tolist() == [0, 1]
    assert vesta.tensor([1.0, -1.0]).sum(dtype=vesta.bool).item() is True


def test_any_and_all_over_no_dimension() -> None:
    """An empty list of dimensions reduces nothing, as in PyTorch; that of sum and amax means all."""
    x = vesta.tensor([[0, 2], [3, 0]], dtype=vesta.uint8)
    for op in (vesta.any, vesta.all):
        assert op(x, dim=()).tolist() == [[0, 1], [1, 0]] and op(x, dim=()).dtype is vesta.uint8
        assert op(x > 0, dim=[]).tolist() == [[False, True], [True, False]]
    assert vesta.sum(x, dim=()).item() == 5


@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16"])
def test_places_in_long_rows(dtype: str) -> None:
    """Rows that are searched in parts give the first of equal extrema, and the first NaN, also with strides."""
    n = (1 << 16) * 3 + 5
    for step in (1, 2):
        x = vesta.zeros(2, n, step, dtype=getattr(vesta, dtype))[:, :, 0]
        x[0, 70000], x[0, 140000], x[1, n - 1] = 3, 3, 2
        assert x.argmax(1).tolist() == [70000, n - 1] and x.argmax().item() == 70000
        assert x.argmin(1).tolist() == [0, 0] and x.max(1).values.tolist() == [3, 2]
        if dtype != "int64":
            x[0, 100000], x[0, 150000] = float("nan"), float("nan")
            assert x.argmax(1).tolist() == [100000, n - 1] and x.argmin().item() == 100000
