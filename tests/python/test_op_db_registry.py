"""The op list and the table have the same ops, and agree on the promises of each."""

from __future__ import annotations

import inspect

import op_db_check as check
import op_registry
import pytest
import vesta
from op_db import OPS
from op_db_cases import COMPARED, single
from op_db_row import DTYPES, RESULT_RULES, Maker, Row

REGISTRY = op_registry.by_name()
NAMES = [name for row in OPS for name in row.op_names]
FORMS = op_registry.forms()


def test_every_op_has_a_row() -> None:
    missing = sorted(n for n in set(REGISTRY) - set(NAMES) if not op_registry.is_twin(n, REGISTRY))
    assert missing == [], "ops of the op list without a row in tests/op_db.py"


def test_every_row_has_an_op() -> None:
    assert sorted(set(NAMES) - set(REGISTRY)) == [], "rows of tests/op_db.py without an op in the op list"


def test_no_row_twice() -> None:
    assert sorted(NAMES) == sorted(set(NAMES))


@pytest.mark.parametrize("row", single(row for row in OPS if not row.covers))
def test_row_and_op_agree(row: Row) -> None:
    """Both agree on gradients; a method or in-place variant that the row promises exists."""
    entry = REGISTRY[row.op_names[0]]
    assert entry["differentiable"] == (row.grad or row.recorded)
    for variant, attribute in (("method", row.name), ("inplace", f"{row.name}_")):
        if getattr(row, variant) and row.fn is None:
            assert hasattr(vesta.Tensor, attribute), f"the row promises {variant}"
        if entry[variant] and entry["space"] == "":  # what is no method has no in-place method either, but a function
            assert hasattr(vesta.Tensor if entry["method"] else vesta, attribute)


@pytest.mark.parametrize("row", single(row for row in OPS if row.fn is None))
def test_op_has_help(row: Row) -> None:
    """``help(op)`` has a text: a docstring that contains the op's name."""
    target = getattr(vesta.Tensor, row.name) if row.where == "Tensor" else check.function_of(row)
    assert row.name in (inspect.getdoc(target) or "")


@pytest.mark.parametrize("row", single(row for row in COMPARED if row.fn is None))
def test_the_schema_states_the_dtypes(row: Row) -> None:
    """Calls work with the dtypes that the schema accepts and with no other, and give what one of its forms says."""
    forms, function = FORMS[row.op_names[0]], check.function_of(row)
    for dtype in DTYPES:
        try:
            samples = list(row.samples(Maker(DTYPES[dtype], row.name)))[:4]
        except TypeError:  # the reference that makes them has no such dtype
            continue
        works = False
        for sample in samples:
            args, kwargs = check.materialize(sample, dtype)
            try:
                results = check.results(function(*args, **kwargs))
            except check.REFUSALS:
                continue
            works = True
            found = [check.name_of(tensor.dtype) for tensor in results][:3]
            told = [[RESULT_RULES[rule](dtype) for rule in form["gives"]][: len(found)] for form in forms]
            assert found in told, f"{dtype} {kwargs}"
        accepted = {name for form in forms for name in form["accepts"]}
        assert not samples or works == (dtype in accepted), f"{dtype}: accepted are {sorted(accepted)}"
