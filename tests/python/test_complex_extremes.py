"""Infinities, NaN and zeros of both signs in the parts of complex numbers, part by part, against NumPy.

NumPy and PyTorch agree almost everywhere: a product is the plain formula, a quotient Smith's, functions are C99's.
Where they do not, Vesta has the answer of one of them, and the test says which.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import op_db_check as check
import pytest
import vesta

inf, nan = float("inf"), float("nan")
PARTS = (nan, inf, -inf, 0.0, -0.0, 1.5, -2.0)


def numbers(dtype: str) -> np.ndarray:
    """Returns every combination of two parts."""
    values = np.empty(len(PARTS) ** 2, dtype)
    values.real, values.imag = np.repeat(PARTS, len(PARTS)), np.tile(PARTS, len(PARTS))
    return values


def complexes(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    """Puts parts together without arithmetic."""
    values = np.empty(re.shape, np.result_type(re, np.complex64))
    values.real, values.imag = re, im
    return values


def assert_parts(got: Any, want: np.ndarray, operands: tuple, signs: bool = True) -> None:
    """Asserts equal parts: NaN where NaN is wanted, infinities and zeros of the same sign, else close numbers."""
    have = check.array_of(got)
    assert have.dtype == want.dtype and have.shape == want.shape
    if have.dtype == bool:
        np.testing.assert_array_equal(have, want)
        return
    epsilon = 64 * np.finfo(have.real.dtype).eps
    for part in ("real", "imag") if np.iscomplexobj(want) else ("real",):
        a, b = getattr(have, part), getattr(want, part)
        near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= epsilon * np.maximum(1, np.abs(b)))
        equal = (np.isnan(a) & np.isnan(b)) | (near & (b != 0)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
        equal |= (not signs) & (a == b)
        for i in np.flatnonzero(~equal):
            operand = tuple(np.ravel(o)[i] for o in operands)
            raise AssertionError(f"{operand}: {have[i]} instead of {want[i]} ({int((~equal).sum())} of {equal.size})")


UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "square": np.square,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "conj_physical": np.conj,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "logical_not": np.logical_not,
}
BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "eq": np.equal,
    "ne": np.not_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
#: The functions of a GPU are CUDA's own; arithmetic is the same everywhere.
EXACT = {"neg", "abs", "square", "conj_physical", "isnan", "isinf", "isfinite", "logical_not", *BINARY}

dtypes = pytest.mark.parametrize("dtype", ["complex64", "complex128"])
devices = pytest.mark.parametrize("device", check.DEVICES)


@dtypes
@pytest.mark.parametrize(
    "name, device", [(name, d) for name in UNARY for d in check.DEVICES if d == "cpu" or name in EXACT]
)
def test_functions(name: str, dtype: str, device: str) -> None:
    z = numbers(dtype)
    with np.errstate(all="ignore"):
        assert_parts(getattr(vesta, name)(check.tensor_of(z, dtype, device)), UNARY[name](z), (z,))


@dtypes
@devices
@pytest.mark.parametrize("name", BINARY)
def test_operations(name: str, dtype: str, device: str) -> None:
    """Of every pair, in place as well, in the vector loop and alone."""
    z = numbers(dtype)
    a, b = np.repeat(z, z.size), np.tile(z, z.size)
    x, y = check.tensor_of(a, dtype, device), check.tensor_of(b, dtype, device)
    with np.errstate(all="ignore"):
        want = BINARY[name](a, b)
    assert_parts(getattr(vesta, name)(x, y), want, (a, b))
    if want.dtype == a.dtype:
        assert_parts(getattr(x.clone(), f"{name}_")(y), want, (a, b))
        for i in range(0, a.size, 97):
            assert_parts(
                getattr(vesta, name)(x[i : i + 1], y[i : i + 1]), want[i : i + 1], (a[i : i + 1], b[i : i + 1])
            )


@dtypes
@devices
def test_what_is_real_is_not_multiplied_as_complex(dtype: str, device: str) -> None:
    """alpha is a real number: each part is multiplied by it, and 1 changes nothing; a real tensor has no other part."""
    z = numbers(dtype)
    a, b = np.repeat(z, z.size), np.tile(z, z.size)
    x, y = check.tensor_of(a, dtype, device), check.tensor_of(b, dtype, device)
    with np.errstate(all="ignore"):
        for alpha in (1, 2, -0.5):
            scaled = complexes(b.real * alpha, b.imag * alpha).astype(dtype)
            assert_parts(vesta.add(x, y, alpha=alpha), a + scaled, (a, b))
            assert_parts(vesta.sub(x, y, alpha=alpha), a - scaled, (a, b))
        real = vesta.from_numpy(z.real.copy()).to(device)
        assert_parts((1 + 2j) + real.to(vesta.float32 if dtype == "complex64" else real.dtype), (1 + 2j) + z.real, (z,))
        assert_parts(x + 2.0, a + 2.0, (a,))
        assert_parts(x * 2.0, a * 2.0, (a,))
        assert_parts(x / 2.0, a / 2.0, (a,))


def test_the_cases_that_were_found() -> None:
    z = vesta.tensor([complex(inf, 2)])
    assert (z + z).tolist() == [complex(inf, 4)] and ((1 + 2j) + vesta.tensor([inf])).tolist() == [complex(inf, 2)]
    assert (z - vesta.tensor([1 + 2j])).tolist() == [complex(inf, 0)]


@dtypes
@devices
def test_quotients_of_numbers(dtype: str, device: str) -> None:
    """reciprocal, rsqrt and negative powers are quotients of 1, in NumPy's formula of a quotient."""
    z = numbers(dtype)
    x, one = check.tensor_of(z, dtype, device), np.ones((), dtype)
    with np.errstate(all="ignore"):
        assert_parts(vesta.reciprocal(x), one / z, (z,))
        assert_parts(1 / x, one / z, (z,))
        some = z != 0  # a negative power of 0 is NaN, as NumPy's power has it
        assert_parts((x**-1)[x != 0], (one / z)[some], (z[some],))
        assert_parts((x**-2)[x != 0], (one / (z * z))[some], (z[some],))
        if device == "cpu":
            assert_parts(vesta.rsqrt(x), one / np.sqrt(z), (z,))


@dtypes
@devices
def test_powers(dtype: str, device: str) -> None:
    """Whole powers are products, the power 1/2 is the root, the power 0 is 1."""
    z = numbers(dtype)
    x = check.tensor_of(z, dtype, device)
    with np.errstate(all="ignore"):
        assert_parts(x**0, np.ones_like(z), (z,))
        assert_parts(x**1, z, (z,), signs=False)
        assert_parts(x**2, z * z, (z,), signs=False)
        assert_parts(x**4, (z * z) * (z * z), (z,), signs=False)
        if device == "cpu":
            assert_parts(x**0.5, np.sqrt(z), (z,), signs=False)


@dtypes
def test_sums(dtype: str) -> None:
    """A sum of one element is that element (-0.0 is 0.0, as in PyTorch); sgn divides both parts by the modulus."""
    z = numbers(dtype)
    x = check.tensor_of(z, dtype)
    for name in ("sum", "mean", "cumsum"):
        dim = {"dim": 0} if name == "cumsum" else {}
        got = vesta.stack([getattr(x[i : i + 1], name)(**dim).reshape(()) for i in range(z.size)])
        assert_parts(got, z, (z,), signs=False)
    with np.errstate(all="ignore"):
        size = np.abs(z)
        want = np.where(size == 0, 0, complexes(z.real / size, z.imag / size)).astype(dtype)
        assert_parts(vesta.sgn(x), want, (z,), signs=False)
