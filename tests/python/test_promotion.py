"""Result dtypes of mixed operands, exhaustively: 12 dtypes against 12 dtypes (tensors and 0-d tensors) and 4 numbers.

The rule is PyTorch's. There are four categories (bool, integers, floats, complex) and three priorities: tensors with
dimensions, 0-d tensors, Python numbers. An operand of lower priority changes the result only if its category is higher;
a number then has the default dtype of its category.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Callable

import op_db_check as check
import pytest
import vesta
import vesta.nn.functional as F

LETTERS = dict(
    zip(
        "bu1234hgfdcz",
        "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split(),
    )
)
NUMBERS = (True, 1, 1.0, 1j)

# left: with a tensor of each dtype in LETTERS' order, with a 0-d tensor of each, with each of NUMBERS
TABLE = {
    "b": "bu1234hgfdcz bu1234hgfdcz b4fc",
    "u": "uu2234hgfdcz uuuuuuhgfdcz uufc",
    "1": "121234hgfdcz 111111hgfdcz 11fc",
    "2": "222234hgfdcz 222222hgfdcz 22fc",
    "3": "333334hgfdcz 333333hgfdcz 33fc",
    "4": "444444hgfdcz 444444hgfdcz 44fc",
    "h": "hhhhhhhffdcz hhhhhhhhhhcc hhhc",
    "g": "ggggggfgfdcz ggggggggggcc gggc",
    "f": "fffffffffdcz ffffffffffcc fffc",
    "d": "ddddddddddzz ddddddddddzz dddz",
    "c": "ccccccccczcz cccccccccccc cccc",
    "z": "zzzzzzzzzzzz zzzzzzzzzzzz zzzz",
}


def tensor(letter: str, *shape: int):
    return vesta.ones(shape, dtype=check.vdtype(LETTERS[letter]))


def expect(result, letter: str, note: str) -> None:
    assert check.name_of(result.dtype) == LETTERS[letter], f"{note}: {result.dtype} instead of {LETTERS[letter]}"


@pytest.mark.parametrize("left", LETTERS, ids=LETTERS.get)
def test_tensor_with_tensor(left: str) -> None:
    """add, mul and where give the table's dtype in both orders, div its float; the same holds for two 0-d tensors."""
    for right, result in zip(LETTERS, TABLE[left].split()[0]):
        note = f"{LETTERS[left]} with {LETTERS[right]}"
        for shape in ((2,), ()):
            a, b = tensor(left, *shape), tensor(right, *shape)
            expect(a + b, result, note)
            expect(b + a, result, note)
            expect(a * b, result, note)
            expect(vesta.where(a == b, a, b), result, note)
            expect(a / b, result if result in "hgfdcz" else "f", note)


@pytest.mark.parametrize("left", LETTERS, ids=LETTERS.get)
def test_tensor_with_0d_tensor(left: str) -> None:
    for right, result in zip(LETTERS, TABLE[left].split()[1]):
        if left in "hg" and right in "cz":
            continue  # test_half_with_complex
        note = f"{LETTERS[left]} with 0-d {LETTERS[right]}"
        a, b = tensor(left, 2), tensor(right)
        expect(a + b, result, note)
        expect(b + a, result, note)
        expect(a * b, result, note)
        expect(a / b, result if result in "hgfdcz" else "f", note)
        expect(tensor(left, 0) + b, result, f"{note}, empty")


@pytest.mark.parametrize("left", LETTERS, ids=LETTERS.get)
def test_tensor_with_number(left: str) -> None:
    for number, result in zip(NUMBERS, TABLE[left].split()[2]):
        if left in "hg" and isinstance(number, complex):
            continue  # test_half_with_complex
        for shape in ((2,), ()):
            a, note = tensor(left, *shape), f"{LETTERS[left]} {list(shape)} with {number}"
            expect(a + number, result, note)
            expect(number + a, result, note)
            expect(a * number, result, note)
            expect(vesta.add(a, number), result, note)
            expect(a / number, result if result in "hgfdcz" else "f", note)
            expect(vesta.where(a == a, a, number), result, note)


@pytest.mark.differs
def test_half_with_complex() -> None:
    """There is no 32-bit complex dtype here: a 16-bit float with a complex 0-d tensor or number gives complex64."""
    for half in "hg":
        for other in (tensor("c"), tensor("z"), 1j):
            expect(tensor(half, 2) + other, "c", f"{LETTERS[half]} with complex")
            expect(other * tensor(half, 2), "c", f"complex with {LETTERS[half]}")


@pytest.mark.parametrize("left", LETTERS, ids=LETTERS.get)
def test_comparisons_give_bool(left: str) -> None:
    """Comparisons give bool for every pair; ordering of complex numbers raises."""
    for right in LETTERS:
        for shape in ((2,), ()):
            a, b = tensor(left, 2), tensor(right, *shape)
            if left in "hg" and right in "cz" and shape == ():
                continue  # as above: PyTorch compares in a dtype that does not exist here
            assert (a == b).dtype == (b != a).dtype == vesta.bool and bool((a == b).all())
            for ordering in (operator.lt, operator.le, operator.gt, operator.ge):
                if left in "cz" or right in "cz":
                    with pytest.raises((RuntimeError, TypeError)):
                        ordering(a, b)
                else:
                    assert ordering(a, b).dtype == vesta.bool
    for number in NUMBERS[:3]:
        assert (tensor(left, 2) == number).dtype == (number == tensor(left, 2)).dtype == vesta.bool


@pytest.mark.parametrize(
    "left, right, less",
    [
        ("uint8", "int8", [200, -1]),
        ("int64", "float32", [3, 3.5]),
        ("int8", "float16", [1, 1.5]),
        ("bool", "int32", [1, 2]),
        ("float32", "float64", [1, 1 + 2**-40]),
    ],
)
def test_comparisons_happen_in_the_common_dtype(left: str, right: str, less: list) -> None:
    """Neither side is narrowed: 200 as uint8 is above -1 as int8."""
    a, b = vesta.tensor([less[0]], dtype=check.vdtype(left)), vesta.tensor([less[1]], dtype=check.vdtype(right))
    assert bool(a < b) == (less[0] < less[1]) and bool(a > b) == (less[0] > less[1])
    assert bool(b > a) == (less[1] > less[0]) and not bool(a == b)


@pytest.mark.parametrize("target", LETTERS, ids=LETTERS.get)
def test_in_place_keeps_its_dtype(target: str) -> None:
    """An in-place result is cast back to the tensor's dtype, unless that would lower the category, which raises."""
    order = {letter: category for category, group in enumerate(("b", "u1234", "hgfd", "cz")) for letter in group}
    for other in LETTERS:
        a, b = tensor(target, 2), tensor(other, 2)
        result = TABLE[target].split()[0][list(LETTERS).index(other)]
        if order[result] <= order[target]:
            a += b
            expect(a, target, f"{LETTERS[target]} += {LETTERS[other]}")
        else:
            with pytest.raises(RuntimeError) as caught:
                a += b
            check.check_message(caught.value, LETTERS[result], LETTERS[target])
            assert bool((a == tensor(target, 2)).all())


@pytest.mark.differs
@pytest.mark.parametrize(
    "dtype, number", [("int8", 300), ("int8", -129), ("uint8", -1), ("uint8", 256), ("int16", 2**15), ("int32", 2**31)]
)
@pytest.mark.parametrize("shape", [(2,), ()], ids=["tensor", "0-d"])
def test_number_out_of_range_raises(dtype: str, number: int, shape: tuple) -> None:
    """A Python int that the tensor's dtype cannot hold raises instead of wrapping around."""
    x = vesta.ones(shape, dtype=check.vdtype(dtype))
    for call in (lambda: x + number, lambda: x * number, lambda: number - x, lambda: x.add_(number)):
        with pytest.raises((RuntimeError, OverflowError)) as caught:
            call()
        check.check_message(caught.value, str(number), dtype)
    assert bool((x == 1).all())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_bounds_of_integers_are_integers_within_reach(dtype: str) -> None:
    """hardtanh and threshold of integers never compute with a number that was wrapped around."""
    x = vesta.tensor([0, 1, 5], dtype=check.vdtype(dtype))
    wide = dtype in ("int32", "int64")
    assert F.hardtanh(x, -1, 2).tolist() == F.hardtanh(x, -1.5, 2.5).tolist() == [0, 1, 2]
    assert F.hardtanh(x, -300, 300).tolist() == [0, 1, 5] and F.hardtanh(x, 3, 300).tolist() == [3, 3, 5]
    assert F.threshold(x, 2.5, 1.5).tolist() == [1, 1, 5] and F.threshold(x, 0.5, 7).tolist() == [7, 1, 5]
    bounds = [(300, 400), (-300, -200)]
    for low, high in bounds:
        if wide:
            assert F.hardtanh(x, low, high).tolist() == [low if low > 0 else high] * 3
        else:
            with pytest.raises(RuntimeError, match="hardtanh: m.._val -?.00 is outside the representable range"):
                F.hardtanh(x, low, high)
    for low, high in [(1e20, 2e20), (-1e20, 1e20), (-math.inf, math.inf), (math.nan, 2)]:
        with pytest.raises((RuntimeError, ValueError), match="hardtanh: expected a number in the range of int64"):
            F.hardtanh(x, low, high)
    for numbers in [(1e20, 3), (math.nan, 3), (1, math.nan), (2, math.inf), *([] if wide else [(2, 300)])]:
        with pytest.raises((RuntimeError, ValueError), match=f"threshold: expected a number in the range of {dtype}"):
            F.threshold(x, *numbers)


@pytest.mark.differs
@pytest.mark.parametrize("dtype, number", [("uint8", -56), ("uint8", 456), ("int8", 200), ("int16", -(2**17))])
def test_comparison_with_a_number_out_of_range(dtype: str, number: int) -> None:
    """The number is not wrapped into the dtype: 200 is not -56, and above -1."""
    x = vesta.tensor([number % 256 if dtype == "uint8" else 0], dtype=check.vdtype(dtype))
    assert not (x == number).item() and (x != number).item()
    assert (x > number).item() is (number < 0) and (x < number).item() is (number > 0)


@pytest.mark.parametrize("number", [pytest.param(2**63, marks=pytest.mark.differs), -(2**63) - 1, 2**200])
def test_number_beyond_int64_raises(number: int) -> None:
    for dtype in ("int64", "float32"):
        x = vesta.ones(2, dtype=check.vdtype(dtype))
        for call in (
            lambda x: x + number,
            lambda x: x.clamp(0, number),
            lambda x: vesta.where(x > 0, x, number),
            lambda x: x.fill_(number),
            lambda x: vesta.full((2,), number),
        ):
            with pytest.raises(OverflowError, match="expected a number of 64 bits"):
                call(x)
        with pytest.raises(ValueError, match="expected dim to fit 64 bits"):
            x.softmax(number)


MASK, PLACE = vesta.tensor([True, False]), vesta.tensor([0])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, v: x.clamp(0, v),
        lambda x, v: x.clamp(-v),
        lambda x, v: x.clamp_(0, v),
        lambda x, v: x.masked_fill(MASK, v),
        lambda x, v: x.masked_fill(MASK, vesta.tensor(v, dtype=vesta.float64)),
        lambda x, v: x.masked_fill_(MASK, vesta.tensor(v, dtype=vesta.float64)),
        lambda x, v: x.index_fill_(0, PLACE, v),
        lambda x, v: x.index_fill(0, PLACE, vesta.tensor(v, dtype=vesta.float64)),
        lambda x, v: x.fill_(v),
        lambda x, v: vesta.full((2,), v, dtype=x.dtype),
    ],
)
def test_a_number_that_overflows_a_float_dtype_is_refused(call: Callable[[vesta.Tensor, float], Any]) -> None:
    for dtype, number, held in [("float32", 1e300, 3e38), ("float16", 1e6, 65504.0), ("bfloat16", 1e39, 3e38)]:
        x = vesta.tensor([1.0, 2.0], dtype=check.vdtype(dtype))
        with pytest.raises(RuntimeError, match="without overflow"):
            call(x, number)
        assert x.tolist() == [1.0, 2.0]
        if dtype == "float16":
            for integer in (10**6, vesta.tensor(10**6)):
                with pytest.raises(RuntimeError, match="without overflow"):
                    x.masked_fill(MASK, integer)
            with pytest.raises(RuntimeError, match="without overflow"):
                x.fill_(10**6)
        for fits in (held, math.inf):
            call(x.clone(), fits)


def test_where_refuses_numbers_that_float32_cannot_hold() -> None:
    x = vesta.ones(2)
    for call in (lambda: vesta.where(MASK, x, 1e300), lambda: vesta.where(MASK, -1e39, x), lambda: x.where(MASK, 1e300),
                 lambda: vesta.where(MASK, 1e300, 2.0)):  # fmt: skip
        with pytest.raises(RuntimeError, match="where: value .* without overflow"):
            call()
    assert vesta.where(MASK, x, math.inf)[1] == math.inf and vesta.where(MASK, x.double(), 1e300)[1] == 1e300
    assert vesta.where(MASK, x.half(), 1e6)[1] == math.inf  # elements of 16 bits round it


def test_a_value_that_overflows_an_integer_dtype_is_refused() -> None:
    x = vesta.tensor([1, 2], dtype=vesta.int8)
    for value in (300, vesta.tensor(300), vesta.tensor(1e20), vesta.tensor(math.nan)):
        for call in (lambda v: x.masked_fill(MASK, v), lambda v: x.index_fill_(0, PLACE, v)):
            with pytest.raises(RuntimeError, match="in the range of int8"):
                call(value)
    assert x.tolist() == [1, 2]
    assert x.masked_fill(MASK, vesta.tensor(-128)).tolist() == [-128, 2]
    values = vesta.tensor([1, 2], dtype=vesta.uint8)
    assert values.masked_fill(MASK, vesta.tensor(-1)).tolist() == [255, 2]
    with pytest.raises(RuntimeError, match="in the range of uint8"):
        values.index_fill(0, PLACE, vesta.tensor(-256))
    assert x.index_fill(0, PLACE, vesta.tensor(1.5)).tolist() == [1, 2]


@pytest.mark.parametrize(
    "dtype, number",
    [("int8", 300), pytest.param("uint8", -1, marks=pytest.mark.differs), ("int32", 2**31), ("bool", 2)],
)
def test_factories_refuse_numbers_out_of_range(dtype: str, number: int) -> None:
    if dtype != "bool":
        for call in (
            lambda d: vesta.full((2,), number, dtype=d),
            lambda d: vesta.tensor([number], dtype=d),
            lambda d: vesta.zeros(2, dtype=d).fill_(number),
        ):
            with pytest.raises((RuntimeError, OverflowError)):
                call(check.vdtype(dtype))
    else:
        assert vesta.full((2,), number, dtype=vesta.bool).all()


def test_cat_and_stack_promote() -> None:
    """A list promotes like operands with dimensions."""
    a, b, c = tensor("1", 2), tensor("f", 1), tensor("b", 3)
    expect(vesta.cat([a, b, c]), "f", "cat")
    expect(vesta.cat([a, c]), "1", "cat")
    expect(vesta.stack([tensor("u", 2), tensor("1", 2)]), "2", "stack")


def test_sum_and_mean_dtypes() -> None:
    """``dtype=`` is the dtype that is accumulated in and returned; sums of integers are int64."""
    x = vesta.full((300,), 100, dtype=vesta.int8)
    assert x.sum().dtype == vesta.int64 and int(x.sum()) == 30000
    assert x.sum(dtype=vesta.float32).dtype == vesta.float32 and float(x.sum(dtype=vesta.float32)) == 30000
    assert float(x.mean(dtype=vesta.float64)) == 100
    half = vesta.full((100_000,), 10.0, dtype=vesta.float16)
    assert float(half.mean()) == 10.0, "16-bit floats accumulate in float32"


@pytest.mark.parametrize("device", check.DEVICES)
def test_truth_is_that_of_an_element(device: str) -> None:
    """A number and a tensor without dimensions are rounded, or wrap, before they are compared with 0."""
    for dtype, tiny in ((vesta.float16, 1e-30), (vesta.float32, 1e-300)):
        x = vesta.ones(2, dtype=dtype, device=device)
        for place in {"cpu", device}:
            for value, want in ((tiny, False), (0.25, True), (-0.0, False), (float("nan"), True)):
                a = vesta.tensor(value, dtype=vesta.float64, device=place)
                assert vesta.logical_and(x, a).tolist() == vesta.logical_and(a, x).tolist() == [want] * 2, value
    for dtype, wraps in ((vesta.uint8, 256), (vesta.int16, 65536), (vesta.int32, 2**32)):
        x = vesta.zeros(2, dtype=dtype, device=device)
        for place in {"cpu", device}:
            assert not vesta.logical_or(x, vesta.tensor(wraps, device=place)).any()
            assert vesta.logical_or(x, vesta.tensor(wraps + 1, device=place)).all()
            assert x.clone().logical_xor_(vesta.tensor(wraps + 3, device=place)).tolist() == [1, 1]
