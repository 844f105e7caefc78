"""Pointwise ops of integers: every length of a tail, operands that are numbers, results in place, against NumPy."""

from __future__ import annotations

import operator

import numpy as np
import pytest
import vesta

DTYPES = ["uint8", "int8", "int16", "int32", "int64"]
BINARY = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "eq": operator.eq,
    "lt": operator.lt,
}
LENGTHS = [0, 1, 2, 7, 16, 31, 33, 64, 127, 1000, 4099]


def operands(name: str, dtype: str, n: int):
    rng = np.random.default_rng(n)
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    if "shift" in name:
        return x, rng.integers(0, 8 * x.itemsize, n).astype(dtype)
    y = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    y[(y == 0) | (y == -1 if info.min else False)] = 3
    return x, y


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, dtype: str) -> None:
    op = getattr(vesta, name)
    for n in LENGTHS:
        x, y = operands(name, dtype, n)
        with np.errstate(over="ignore"):
            both, by_number = BINARY[name](x, y), BINARY[name](x, x.dtype.type(5))
            number = None if n == 0 or name in ("eq", "lt") else BINARY[name](np.full_like(y, 5), y)
        a, b = vesta.tensor(x), vesta.tensor(y)
        assert op(a, b).tolist() == both.tolist(), n
        assert op(a, vesta.tensor(5, dtype=a.dtype)).tolist() == by_number.tolist(), n
        if number is not None:
            assert op(vesta.tensor(5, dtype=a.dtype), b).tolist() == number.tolist(), n
        shifted = vesta.zeros(n + 3, dtype=a.dtype)[3:]  # another alignment
        shifted.copy_(a)
        assert op(shifted, b).tolist() == both.tolist(), n
        if hasattr(a, name + "_") and both.dtype == x.dtype:
            assert getattr(a.clone(), name + "_")(b).tolist() == both.tolist(), n
            assert getattr(a.clone(), name + "_")(vesta.tensor(5, dtype=a.dtype)).tolist() == by_number.tolist(), n
            into = b.clone()
            assert op(a, into, out=into).tolist() == both.tolist(), n


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_and_three_operands(dtype: str) -> None:
    for n in LENGTHS:
        x, y = operands("add", dtype, n)
        low, high = 3, 90
        a, b = vesta.tensor(x), vesta.tensor(y)
        with np.errstate(over="ignore"):
            assert (~a).tolist() == (~x).tolist() and (-a).tolist() == (-x).tolist()
            assert a.abs().tolist() == np.abs(x).tolist() and a.sign().tolist() == np.sign(x).tolist()
            assert a.clamp(low, high).tolist() == np.clip(x, low, high).tolist()
            assert a.clone().clamp_(low, high).tolist() == np.clip(x, low, high).tolist()
            assert vesta.addcmul(a, b, a).tolist() == (x + y * x).tolist()
        assert vesta.where(a > b, a, b).tolist() == np.maximum(x, y).tolist()
        assert vesta.clamp(a, vesta.minimum(a, b), b).tolist() == np.minimum(x, y).tolist()


@pytest.mark.parametrize("dtype", [*DTYPES, "bool", "float32", "complex128"])
def test_rows_with_a_number_each(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for columns in (1, 5, 31, 64, 100, 256, 300):
        x, y = rng.integers(0, 100, (9, columns)).astype(dtype), rng.integers(0, 100, (9, 1)).astype(dtype)
        row = rng.integers(0, 100, (1, columns)).astype(dtype)
        for other in (y, row):
            assert (vesta.tensor(x) + vesta.tensor(other)).tolist() == (x + other).tolist()
            assert (vesta.tensor(x) * vesta.tensor(other)).tolist() == (x * other).tolist()
            assert (vesta.tensor(other) == vesta.tensor(x)).tolist() == (other == x).tolist()


# ---- quotients by floating-point numbers ----


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32"])
def test_quotients_and_remainders_are_exact(dtype: str) -> None:
    """All pairs of bytes; of wider integers quotients next to whole numbers, and the smallest by -1, wrapping."""
    info = np.iinfo(dtype)
    if info.bits == 8:
        a, b = (g.ravel() for g in np.meshgrid(np.arange(info.min, info.max + 1), np.arange(info.min, info.max + 1)))
        a, b = a[b != 0], b[b != 0]
    else:
        rng = np.random.default_rng(0)
        b = np.concatenate([rng.integers(1, 1 << k, 3000) for k in range(1, info.bits)])
        quotient = rng.integers(0, info.max // b + 1)
        near = np.concatenate([quotient * b + k for k in (-1, 0, 1)])
        a, b = np.clip(near, info.min, info.max), np.tile(b, 3)
        a, b = (
            np.concatenate([a, a, -a, -a, [info.min] * 4]),
            np.concatenate([b, -b, b, -b, [-1, 1, info.min, info.max]]),
        )
    x, y = vesta.tensor(a).to(getattr(vesta, dtype)), vesta.tensor(b).to(getattr(vesta, dtype))
    down, rest = a // b, a % b
    towards_zero = np.where((rest != 0) & ((a < 0) != (b < 0)), down + 1, down)
    want = {"floor": down, "trunc": towards_zero}
    for mode, values in want.items():
        np.testing.assert_array_equal(vesta.div(x, y, rounding_mode=mode).numpy(), values.astype(dtype))
    np.testing.assert_array_equal(vesta.remainder(x, y).numpy(), rest.astype(dtype))
    np.testing.assert_array_equal(vesta.fmod(x, y).numpy(), (a - towards_zero * b).astype(dtype))
    for divisor in (7, -3, -1):
        if divisor > 0 or info.min < 0:
            np.testing.assert_array_equal((x // divisor).numpy(), (a // divisor).astype(dtype))
            np.testing.assert_array_equal((x % divisor).numpy(), (a % divisor).astype(dtype))


@pytest.mark.parametrize("limit", [2**20, 2**50, 2**51, 2**62])
def test_quotients_of_long_integers(limit: int) -> None:
    """Those that divide as doubles, and others among them: quotients next to whole numbers, and both ends."""
    rng = np.random.default_rng(limit % 1000)
    b = np.concatenate([rng.integers(1, 2**k, 400) for k in range(1, limit.bit_length())])
    near = rng.integers(0, limit // b + 1) * b
    a = np.clip(np.concatenate([near - 1, near, near + 1]), -limit, limit - 1)
    b = np.tile(b, 3)
    a = np.concatenate([a, a, -a, -a, [-limit, -limit, limit - 1, limit - 1]])
    b = np.concatenate([b, -b, b, -b, [-1, 1, -1, limit - 1]])
    x, y = vesta.tensor(a), vesta.tensor(b)
    down, rest = a // b, a % b
    towards_zero = np.where((rest != 0) & ((a < 0) != (b < 0)), down + 1, down)
    np.testing.assert_array_equal(vesta.div(x, y, rounding_mode="floor").numpy(), down)
    np.testing.assert_array_equal(vesta.div(x, y, rounding_mode="trunc").numpy(), towards_zero)
    np.testing.assert_array_equal(vesta.remainder(x, y).numpy(), rest)
    np.testing.assert_array_equal(vesta.fmod(x, y).numpy(), a - towards_zero * b)
    for divisor in (3, -7, -1, limit - 1):
        np.testing.assert_array_equal((x // divisor).numpy(), a // divisor)
        np.testing.assert_array_equal((x % divisor).numpy(), a % divisor)
    mixed = a.copy()
    mixed[::1500] = np.iinfo(np.int64).min + 1
    np.testing.assert_array_equal((vesta.tensor(mixed) // y).numpy(), mixed // b)
    smallest = vesta.tensor([np.iinfo(np.int64).min] * 3)
    assert (smallest // vesta.tensor([-1, 1, 2])).tolist() == [-(2**63), -(2**63), -(2**62)]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_bytes_shifted_by_every_count(dtype: str) -> None:
    info = np.iinfo(dtype)
    every = np.arange(info.min, info.max + 1)
    a, b = (g.ravel() for g in np.meshgrid(every, every))
    x, y = vesta.tensor(a.astype(dtype)), vesta.tensor(b.astype(dtype))
    inside = (b >= 0) & (b < 8)
    count = np.where(inside, b, 0)
    left = np.where(inside, a << count, 0).astype(dtype)
    right = np.where(inside, a >> count, np.where(a < 0, -1, 0)).astype(dtype)
    np.testing.assert_array_equal((x << y).numpy(), left)
    np.testing.assert_array_equal((x >> y).numpy(), right)
    for one in (0, 3, 7):
        np.testing.assert_array_equal((x << one).numpy(), (a << one).astype(dtype))
        np.testing.assert_array_equal((x >> one).numpy(), (a >> one).astype(dtype))
