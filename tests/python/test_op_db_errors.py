"""Bad input generated from the table: wrong types, wrong counts, mismatched shapes, and each row's own cases."""

from __future__ import annotations

from typing import Any

import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import single
from op_db_errors import ERRORS
from op_db_row import DTYPES, Bad, Maker, Row

CALLED = [row for row in OPS if row.fn is None and row.where != "Tensor" and row.kind not in ("factory", "random")]


def good(row: Row) -> Any:
    """Returns a small valid sample of the row, with tensors."""
    dtype = "float32" if row.accepts("float32") else "int64"
    return check.materialize(list(row.samples(Maker(DTYPES[dtype], row.name)))[-1], dtype)


@pytest.mark.parametrize("wrong", ["text", None, object(), b"1", [1.0], {}], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("row", single(row for row in CALLED if row.name not in ("cat", "stack")))
def test_first_argument_must_be_a_tensor(row: Row, wrong: Any) -> None:
    args, kwargs = good(row)
    with pytest.raises(TypeError) as caught:
        check.function_of(row)(wrong, *args[1:], **kwargs)
    check.check_message(caught.value, check.known(row.name))


@pytest.mark.parametrize("row", single(row for row in CALLED if row.kind in ("binary", "structured")))
def test_second_argument_must_not_be_text(row: Row) -> None:
    args, kwargs = good(row)
    wrong = 1 if isinstance(args[1] if args[1:] else None, str) else "text"
    with pytest.raises(TypeError) as caught:
        check.function_of(row)(args[0], wrong, *args[2:], **kwargs)
    check.check_message(caught.value, check.known(row.name))


@pytest.mark.parametrize("row", single(CALLED))
def test_argument_names_and_counts(row: Row) -> None:
    """No argument, an unknown keyword and too many arguments each raise a TypeError that names the op."""
    function, (args, kwargs) = check.function_of(row), good(row)
    for call in (
        lambda: function(),
        lambda: function(*args, **kwargs, bogus=1),
        lambda: function(*args, *[args[0]] * 20, **kwargs),
    ):
        with pytest.raises(TypeError) as caught:
            call()
        check.check_message(caught.value, check.known(row.name))


@pytest.mark.parametrize("row", single(r for r in CALLED if r.kind == "binary"))
def test_shapes_must_broadcast(row: Row) -> None:
    dtype = vesta.float32 if row.accepts("float32") else vesta.int64
    with pytest.raises(RuntimeError) as caught:
        check.function_of(row)(vesta.ones(2, 3, dtype=dtype), vesta.ones(4, 5, dtype=dtype))
    check.check_message(caught.value, check.known(row.name), "[2, 3]", "[4, 5]")


@pytest.mark.parametrize("row", single(row for row in CALLED if row.kind == "reduction"))
def test_dims_of_a_reduction(row: Row) -> None:
    """A dim out of range raises an IndexError with the dim in it; a dim of another type raises a TypeError."""
    function = check.function_of(row)
    for dim in (2, -3, 10**12):
        with pytest.raises(IndexError) as caught:
            function(vesta.ones(2, 3), dim)
        check.check_message(caught.value, check.known(row.name), str(dim))
    for dim in ("x", 1.5, [None], object()):
        with pytest.raises(TypeError) as caught:
            function(vesta.ones(2, 3), dim)
        check.check_message(caught.value, check.known(row.name))


@pytest.mark.parametrize("row", single(r for r in CALLED if r.name in ("sum", "mean", "amax", "amin", "all", "any")))
def test_dims_of_a_reduction_are_named_once(row: Row) -> None:
    for dims in ((0, 0), (1, -1)):
        with pytest.raises(RuntimeError) as caught:
            check.function_of(row)(vesta.ones(2, 3), dims)
        check.check_message(caught.value, check.known(row.name))


@pytest.mark.parametrize("row", single(row for row in CALLED if row.name in ("amax", "amin")))
def test_extrema_of_nothing(row: Row) -> None:
    """A reduction without an identity raises only when the reduced size is 0."""
    function = check.function_of(row)
    for shape, dim in (((0,), 0), ((2, 0), 1)):
        with pytest.raises((IndexError, RuntimeError)) as caught:
            function(vesta.ones(*shape), dim)
        check.check_message(caught.value, check.known(row.name))
    assert tuple(function(vesta.ones(2, 0), 0).shape) == (0,)


@pytest.mark.parametrize(
    "bad",
    [pytest.param(bad, id=f"{name}-{number}") for name, cases in ERRORS.items() for number, bad in enumerate(cases)],
)
def test_listed_errors(bad: Bad) -> None:
    """An op's own bad calls raise the listed class with the listed fragment."""
    with pytest.raises(bad.error) as caught:
        bad.call(vesta)
    check.check_message(caught.value, bad.fragment)


def test_listed_errors_belong_to_rows() -> None:
    assert set(ERRORS) <= {row.name for row in OPS}
