"""What operations cost, told from shapes: every row of ``op_db.py`` states bytes, about those of operands, results."""

from __future__ import annotations

import warnings
from typing import Any

import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import describe
from op_db_row import DTYPES, Maker, Row
from op_registry import by_name
from vesta import nn
from vesta.profiler import profile

F = nn.functional

#: Rows that read a part of an operand, or look at its dtype only.
READ_A_PART = {"trace", "index_select", "gather", "embedding", "take", "getitem", "take_along_dim", "isreal"}
#: Rows that write nothing: room for values.
MAKE_ROOM = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}


def tensors(value: Any) -> list[Any]:
    if isinstance(value, vesta.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors(v)] if isinstance(value, (list, tuple)) else []


def nbytes(value: Any) -> int:
    return sum(t.numel() * t.element_size() for t in tensors(value))


def dtype_of(row: Row) -> str:
    return next(d for d in ("float32", "complex64", "int64", "float64", *DTYPES) if row.accepts(d))


def shares_memory(operands: Any, results: Any) -> bool:
    at = {t.untyped_storage().data_ptr() for t in tensors(operands) if t.layout == vesta.strided and t.numel()}
    return any(t.untyped_storage().data_ptr() in at for t in tensors(results) if t.layout == vesta.strided)


KERNELS = {name for name, entry in by_name().items() if entry["kind"] != "composite"}


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in OPS if "sparse" not in row.name])
def test_every_operation_states_its_bytes(row: Row) -> None:
    """Of every sample, contiguous and transposed: at least about its operands and results, once; a kernel no more."""
    dtype = dtype_of(row)
    for layout in (check.layout_contiguous, check.layout_transposed):
        for sample in row.samples(Maker(DTYPES[dtype], row.name)):
            given = check.materialize(sample, dtype, layout=layout)
            options = {"dtype": check.vdtype(dtype)} if row.kind in ("factory", "random") else {}
            try:
                with warnings.catch_warnings(), profile() as prof:
                    warnings.simplefilter("ignore")
                    result = check.function_of(row)(*given.args, **given.kwargs, **options)
            except check.REFUSALS:  # a view of another layout
                continue
            operands = [*given.args, *given.kwargs.values()]
            moved = sum(event.bytes_moved for event in prof.events())
            if shares_memory(operands, result) or row.kind == "view":
                assert row.name.endswith("_") or moved <= 4 * nbytes(operands), describe(sample)
                continue
            least = 1 if row.name in READ_A_PART or not nbytes(operands) else 0.5 * nbytes([*operands, result])
            if nbytes(result) and row.name not in MAKE_ROOM:
                assert moved >= least or not all(t.numel() for t in tensors(operands)), describe(sample)
            if row.name in KERNELS and row.kind in ("unary", "binary", "comparison", "reduction"):
                assert moved <= 4 * nbytes([*operands, result]) + 64, describe(sample)


def test_a_view_inside_takes_no_cost_away() -> None:
    """What calls ``contiguous`` of contiguous operands costs what it moves."""
    x, w, b = vesta.randn(64, 32), vesta.ones(32), vesta.zeros(32)
    image, y = vesta.randn(2, 3, 16, 16), vesta.randint(0, 32, (64,))

    def moved(f: Any) -> tuple[float, float]:
        with profile() as prof:
            result = f()
        return sum(event.bytes_moved for event in prof.events()), nbytes(result)

    n = nbytes(x)
    for f, inputs in (
        (lambda: F.layer_norm(x, (32,), w, b), n),
        (lambda: F.cross_entropy(x, y), n),
        (lambda: F.max_pool2d(image, 2), nbytes(image)),
        (lambda: F.interpolate(image, scale_factor=2), nbytes(image)),
        (lambda: x.sort(), n),
        (lambda: x.topk(3), n),
        (lambda: x.kthvalue(3), n),
        (lambda: x.cumsum(1), n),
        (lambda: x.logcumsumexp(1), n),
        (lambda: x.t().cumsum(1), n),
    ):
        got, outputs = moved(f)
        assert inputs + outputs <= got <= 3.2 * (inputs + outputs)


def test_work_counts_once() -> None:
    """A composite without a formula costs what its parts do, one that copies its operand first no less."""
    a, b = vesta.ones(32, 32), vesta.ones(32, 32)
    with profile() as prof:
        vesta.einsum("ij,jk->ik", a, b)
        vesta.mm(a, b)
    events = prof.events()
    assert sum(event.operations for event in events) == 2 * 2 * 32**3
    assert {event.name for event in events if event.operations > 2**15} == {"aten::matmul"}
    with profile() as prof:
        a.t().contiguous()
    assert sum(event.bytes_moved for event in prof.events()) == 2 * nbytes(a)
