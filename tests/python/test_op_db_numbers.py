"""Generated tests of Python numbers among 16-bit operands: a number is not rounded to the operand's type.

The promise is one sentence: an op of 16-bit floats and a number gives what the op of float32 gives, rounded once. The
same holds for its gradient. Comparisons and choices are the exception: they take the number as an element has it, as
PyTorch does, so that ``float16(0.1) == 0.1``.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import placed
from op_db_row import DTYPES, Maker, Row
from vesta import autograd

#: Beyond float16 in both directions, beyond bfloat16's precision, and plain ones.
NUMBERS = (65536.0, -1e5, 1e-8, -3e-10, 0.1, 1 / 3, 3.0, 1.5e38, 1e-39)
VALUES = np.array([0.1, 2.0, -3.0, 0.0, -0.0, 1e-7, 6e4, -6e4, 1.0, np.inf, -np.inf, np.nan, 0.333], dtype=np.float32)


def takes_a_number(row: Row) -> bool:
    """Returns whether the row's op takes a Python number in the place of its second operand."""
    if row.kind != "binary" or not row.accepts("float16"):
        return False
    return any(type(s.args[1]) is float for s in row.samples(Maker(DTYPES["float16"], row.name)))


WITH_NUMBERS = [row for row in OPS if takes_a_number(row)]
HALVES = lambda row, dtype: row.accepts(dtype) and DTYPES[dtype].family == "h"
ROUNDS = {"eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "clamp"}


def halves(dtype: str, device: str) -> Any:
    """Returns values of 16 bits, more than a vector register holds, with zeros, infinities and NaN."""
    return vesta.from_numpy(np.tile(VALUES, 5)).to(check.vdtype(dtype)).to(device)


def rounded(number: float, dtype: str) -> float:
    return float(vesta.tensor(number, dtype=vesta.float64).to(vesta.float32).to(check.vdtype(dtype)).item())


def layouts(x: Any) -> Iterator[Any]:
    """Yields the operand contiguous, strided, as one repeated value, as one element and as a number."""
    yield x
    yield x.view(5, -1).t()
    yield vesta.stack([x, x], 1)[:, 1]
    yield x[:1].expand(7)
    yield x[1:2]
    yield x[1]


@pytest.mark.parametrize("row, dtype, device", placed(WITH_NUMBERS, HALVES))
def test_a_number_is_not_rounded(row: Row, dtype: str, device: str) -> None:
    """On either side, in every layout and in place: the bits are those of float32, rounded once."""
    function, symbol = check.function_of(row), getattr(operator, row.operator) if row.operator else None
    for number in NUMBERS:
        wide = rounded(number, dtype) if row.name in ROUNDS else number
        for x in layouts(halves(dtype, device)):
            want = function(x.float(), wide)
            narrow = want if want.dtype == vesta.bool else want.to(x.dtype)
            check.assert_same_bits(function(x, number), narrow, f"{row.name} {number} {x.stride()}")
            if symbol and row.name not in ROUNDS:
                want = symbol(number, x.float()).to(x.dtype)
                check.assert_same_bits(symbol(number, x), want, f"{number} {row.name} {x.stride()}")
            if row.inplace and want.dtype != vesta.bool and x.stride() != (0,):
                y = vesta.clone(x)
                getattr(y, f"{row.name}_")(number)
                check.assert_same_bits(y, narrow, f"{row.name}_ {number}")


@pytest.mark.parametrize("row, dtype, device", placed([row for row in WITH_NUMBERS if row.grad], HALVES))
def test_a_number_is_not_rounded_in_the_gradient(row: Row, dtype: str, device: str) -> None:
    """The gradient, recorded or not, is that of float32, rounded once."""
    function = check.function_of(row)
    for number in NUMBERS:
        for take in (lambda x: x, lambda x: x.view(5, -1).t(), lambda x: x[1]):
            x = take(halves(dtype, device)).detach().requires_grad_()
            y = x.detach().float().requires_grad_()
            g = vesta.full(x.shape, 1000.0, dtype=x.dtype, device=device)
            (want,) = autograd.grad(function(y, number), y, g.float())
            for create_graph in (False, True):
                (have,) = autograd.grad(function(x, number), x, g, create_graph=create_graph)
                if create_graph:  # a formula in other ops, float32 among themselves, may round otherwise
                    a, b = check.array_of(have).astype(np.float64), check.array_of(want.to(x.dtype)).astype(np.float64)
                    near = np.isclose(a, b, rtol=2.0 ** (2 - DTYPES[dtype].bits), atol=DTYPES[dtype].smallest)
                    assert (near | (np.isnan(a) & np.isnan(b)) | (a == b)).all(), f"{row.name} {number}"
                else:
                    check.assert_same_bits(have, want.to(x.dtype), f"{row.name} {number}")


@pytest.mark.parametrize("device", check.DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_parameters_are_not_rounded(dtype: str, device: str) -> None:
    """alpha and the parameters of activations likewise."""
    functional = vesta.nn.functional
    calls = (
        lambda x, number: vesta.add(x, x, alpha=number),
        lambda x, number: vesta.sub(x, x, alpha=number),
        lambda x, number: functional.leaky_relu(x, number),
        lambda x, number: functional.softplus(x, number, 20.0),
    )
    for number, (count, function) in itertools.product(NUMBERS, enumerate(calls)):
        for x in layouts(halves(dtype, device)):
            if count < 2 and abs(number) > vesta.finfo(x.dtype).max:  # as in PyTorch
                with pytest.raises(RuntimeError, match="cannot be converted to type float16 without overflow"):
                    function(x, number)
                continue
            want = function(x.float(), number).to(x.dtype)
            check.assert_same_bits(function(x, number), want, f"call {count} {number}")


@pytest.mark.parametrize("device", check.DEVICES)
def test_the_cases_that_were_found(device: str) -> None:
    x = vesta.tensor([0.1], dtype=vesta.float16, device=device, requires_grad=True)
    assert (x * 65536.0).tolist() == [6552.0] and (65536.0 * x).tolist() == [6552.0]
    assert (x / 65536.0).item() == pytest.approx(1.55e-6, rel=0.01)
    (x * 1e-8).backward(vesta.tensor([1000.0], dtype=vesta.float16, device=device))
    assert x.grad.item() == pytest.approx(1e-5, rel=0.01)
    assert (x == 0.1).item() and x.clamp(min=0.1).item() == x.item()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("scale", [65536.0, 1e-8])
def test_a_number_that_is_a_tensor_is_not_rounded(dtype: str, scale: float) -> None:
    """A tensor without dimensions counts as a number, whatever its dtype."""
    x = halves(dtype, "cpu")
    for other in (vesta.tensor(scale), vesta.tensor(scale, dtype=vesta.float64)):
        check.assert_same_bits(x * other, (x.float() * scale).to(x.dtype))
        check.assert_same_bits(other * x, (x.float() * scale).to(x.dtype))
        check.assert_same_bits(x / other, (x.float() / scale).to(x.dtype))


@pytest.mark.parametrize("device", check.DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_structured_ops_take_numbers_as_float32(dtype: str, device: str) -> None:
    """The factors of addmm and index_add."""
    kind = check.vdtype(dtype)
    a, b, c = (vesta.full((3, 3), v, dtype=kind, device=device) for v in (0.25, 0.5, 1e4))
    got = vesta.addmm(c, a, b, beta=1e-8, alpha=65536.0)
    check.assert_same_bits(got, vesta.addmm(c.float(), a.float(), b.float(), beta=1e-8, alpha=65536.0).to(kind))
    index = vesta.tensor([0, 2], device=device)
    got = vesta.index_add(c, 0, index, c[:2], alpha=1e-8)
    check.assert_same_bits(got, vesta.index_add(c.float(), 0, index, c[:2].float(), alpha=1e-8).to(kind))


@pytest.mark.parametrize("device", check.DEVICES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_optimizers_and_scalers_take_numbers_as_float32(dtype: str, device: str) -> None:
    """A learning rate, a decay and an inverse scale below the smallest float16 still count."""
    kind = check.vdtype(dtype)
    for name, options in (
        ("SGD", {"lr": 1e-8}),
        ("SGD", {"lr": 1e-3, "weight_decay": 1e-8}),
        ("SGD", {"lr": 1e-8, "momentum": 0.9}),
        ("Adam", {"lr": 1e-3, "eps": 1e-9}),
        ("RMSprop", {"lr": 1e-3, "eps": 1e-9}),
    ):
        after = []
        for one in (kind, vesta.float32):
            p = vesta.nn.Parameter(vesta.full((40,), 2.0**-7, dtype=one, device=device))
            p.grad = vesta.full((40,), 2.0**15, dtype=one, device=device)
            getattr(vesta.optim, name)([p], **options).step()
            after.append(p.detach())
        check.assert_same_bits(after[0], after[1].to(kind), f"{name} {options}")
    grads = [vesta.full((40,), 2.0**15, dtype=kind, device=device)]
    found, inverse = (vesta.full((), value, device=device) for value in (0.0, 2.0**-40))
    vesta._C._amp_unscale_(grads, found, inverse)
    check.assert_same_bits(grads[0], vesta.full((40,), 2.0**-25, device=device).to(kind))
    assert found.item() == 0


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16])
def test_a_repeated_operand_is_no_number(dtype: vesta.dtype) -> None:
    """A 0-d operand keeps its precision; the same value along a dimension is rounded, however it lies in memory."""
    x, k = vesta.tensor([1.0, 3.0, 0.5, -2.0], dtype=dtype), vesta.tensor(70001)
    want = x * k.expand(4).contiguous()
    for repeated in (k.expand(4), k.reshape(1)):
        assert vesta.equal(x * repeated, want) and vesta.equal(repeated * x, want)
    assert vesta.equal(x * k, (x.double() * 70001).to(dtype))


def test_eye_goes_into_a_part_of_a_tensor() -> None:
    whole = vesta.full((4, 3), 7.0)
    part = whole[1:]
    assert vesta.eye(3, out=part) is part
    assert whole.tolist() == [[7.0] * 3, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
