"""Forward tests generated from the table: values against NumPy, equal bits in every layout, methods, operators."""

from __future__ import annotations

import operator

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db_cases import COMPARED, describe, pairs, placed
from op_db_row import DTYPES, Constant, Fixed, Maker, Row, Sample


@pytest.mark.parametrize("row, dtype, device", placed(COMPARED))
def test_forward(row: Row, dtype: str, device: str) -> None:
    """The values, dtype and shape of every sample are NumPy's."""
    function, count = check.function_of(row), 0
    for sample in row.samples(Maker(DTYPES[dtype], row.name)):
        args, kwargs = check.materialize(sample, dtype, device)
        got = check.results(function(*args, **kwargs))
        want = check.results(check.expected(row, sample, dtype))
        assert len(got) == len(want)
        for number, (tensor, array) in enumerate(zip(got, want)):
            check.assert_close(tensor, array, row.result_dtype(dtype, number), row, describe(sample))
            assert tensor.device.type == device and not tensor.requires_grad
        count += 1
    assert count, "a row without samples tests nothing"


@pytest.mark.parametrize("row, dtype, device", placed([row for row in COMPARED if row.kind != "view"]))
def test_layouts(row: Row, dtype: str, device: str) -> None:
    """The same values in another layout give the same bits (sums and products: the same within the tolerance)."""
    function = check.function_of(row)
    for sample in row.samples(Maker(DTYPES[dtype], row.name)):
        for name, layout in check.LAYOUTS.items():
            values = sample
            if name == "expanded":
                if not row.repeats:
                    continue
                values = Sample(*(check.map_arrays(v, check.repeated, Fixed, check.repeated_constant) for v in sample))
            plain, laid = check.materialize(values, dtype, device), check.materialize(values, dtype, device, layout)
            want = check.results(function(*plain.args, **plain.kwargs))
            got = check.results(function(*laid.args, **laid.kwargs))
            for number, (a, b) in enumerate(zip(got, want)):
                note = f"{name} {describe(sample)}"
                if row.bitwise or not DTYPES[dtype].bits:
                    check.assert_same_bits(a, b, note)
                else:
                    check.assert_close(a, check.array_of(b), row.result_dtype(dtype, number), row, note)


@pytest.mark.parametrize(
    "row, dtype", pairs([r for r in COMPARED if r.method and r.where != "Tensor" and r.fn is None])
)
def test_method(row: Row, dtype: str) -> None:
    """``x.op(...)`` is ``vesta.op(x, ...)``."""
    function = check.function_of(row)
    for sample in list(row.samples(Maker(DTYPES[dtype], row.name)))[3:6]:
        args, kwargs = check.materialize(sample, dtype)
        got = getattr(args[0], row.name)(*args[1:], **kwargs)
        for a, b in zip(check.results(got), check.results(function(*args, **kwargs))):
            check.assert_same_bits(a, b, describe(sample))


@pytest.mark.parametrize("row, dtype", pairs([row for row in COMPARED if row.operator]))
def test_operator(row: Row, dtype: str) -> None:
    """The Python operator equals the function, also with a number on either side and in place."""
    function, symbol, previous = check.function_of(row), getattr(operator, row.operator), ()
    for sample in row.samples(Maker(DTYPES[dtype], row.name)):
        args, kwargs = check.materialize(sample, dtype)
        if not kwargs:
            check.assert_same_bits(symbol(*args), function(*args), describe(sample))
        if row.kind == "binary" and not isinstance(args[1], vesta.Tensor) and not kwargs:
            number, x = args[1], previous[1]
            if type(number) is type(x.reshape(-1)[0].item()):  # else the number would change the dtype
                filled = vesta.tensor(number).to(x.dtype).expand(x.shape)
                check.assert_same_bits(symbol(number, x), function(filled, x), f"{number} on the left")
        if row.kind == "binary" and isinstance(args[1], vesta.Tensor) and args[1].numel():
            previous = args


@pytest.mark.parametrize(
    "row, dtype, device",
    placed(
        [row for row in COMPARED if row.extremes and row.grad],
        lambda row, dtype: row.accepts(dtype) and DTYPES[dtype].family in "hf",
    ),
)
def test_extremes(row: Row, dtype: str, device: str) -> None:
    """NaN, infinities, zeros of both signs, the largest and the smallest numbers give what NumPy gives."""
    spec = DTYPES[dtype]
    smallest_normal = spec.smallest * 2.0 ** (spec.bits - 1)
    edges = np.array([np.nan, np.inf, 0.0, 1.0, 0.5, 3.0, 88.0, 700.0, spec.largest, smallest_normal, spec.smallest])
    edges = spec.round(np.concatenate([edges, -edges]))
    function = check.function_of(row)
    first = next(iter(row.samples(Maker(spec, row.name))))
    operands = [edges] if row.kind == "unary" else [np.repeat(edges, edges.size), np.tile(edges, edges.size)]
    rest = first.args[len(operands) :]
    for size in (operands[0].size, 1):  # the vector loop, then every element alone
        for start in range(0, operands[0].size, size):
            part = Sample((*(o[start : start + size] for o in operands), *rest), first.kwargs)
            args, kwargs = check.materialize(part, dtype, device)
            both = zip(check.results(function(*args, **kwargs)), check.results(check.expected(row, part, dtype)))
            for n, (got, want) in enumerate(both):
                check.assert_close(got, want, row.result_dtype(dtype, n), row, f"{part.args}")


@pytest.mark.parametrize("row, dtype", pairs(COMPARED, Row.refuses))
def test_other_dtypes_are_refused(row: Row, dtype: str) -> None:
    """A dtype that the row does not list raises an error that names the op; nothing is cast silently."""
    function = check.function_of(row)
    sample = next(s for s in row.samples(Maker(DTYPES["float32"], row.name)) if s.args and np.size(s.args[0]))
    cast = lambda a: np.ones(a.shape, DTYPES[dtype].carrier)
    sample = Sample(check.map_arrays(sample.args, cast, Fixed, lambda a: Constant(cast(a))), sample.kwargs)
    args, kwargs = check.materialize(sample, dtype)
    with pytest.raises(check.REFUSALS) as caught:
        function(*args, **kwargs)
    check.check_message(caught.value, check.known(row.name.removesuffix("_tensors")))  # a second row of clamp
