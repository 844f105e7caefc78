"""In-place and ``out=`` variants generated from the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import op_db_check as check
import op_registry
import pytest
import vesta
from op_db import OPS
from op_db_cases import COMPARED, describe, pairs, placed, single
from op_db_row import DTYPES, REAL_OF, Maker, Row, Sample, can_write

REGISTRY = op_registry.by_name()


def promises(row: Row, variant: str) -> bool:
    """Returns whether the row or the op list promises the variant: a derived variant is always tested."""
    entry = REGISTRY.get(row.op_names[0], {"space": "private"})
    derived = row.kind in ("unary", "binary") and entry["space"] == "" and entry[variant]
    return getattr(row, variant) or derived


IN_PLACE = [row for row in OPS if promises(row, "inplace")]
#: Rows with ``out=``: what the row says, and every function of the op list all of whose forms take it.
TAKE_OUT = op_registry.with_out()
WITH_OUT = [
    row
    for row in OPS
    if row.out or (row in COMPARED and row.op_names[0] in TAKE_OUT and row.fn is None and row.where != "Tensor")
]


def nonempty(row: Row, dtype: str) -> Iterator[Sample]:
    for sample in row.samples(Maker(DTYPES[dtype], row.name)):
        if all(np.size(a) for a in sample.args if isinstance(a, np.ndarray)):
            yield sample


# Written in place only over operands of the result's dtype, as in PyTorch.
EXACT_IN_PLACE = ("float_power",)


def fits_in_place(row: Row, dtype: str) -> bool:
    """Returns whether the result's dtype can be written into an operand of this dtype (abs_ of complex is refused)."""
    narrowed = row.result == "real" and dtype in REAL_OF
    if row.name in EXACT_IN_PLACE and row.result_dtype(dtype) != dtype:
        return False
    return row.accepts(dtype) and can_write(row.result_dtype(dtype), dtype) and not narrowed


def shape_kept(sample: Sample) -> bool:
    shapes = [a.shape for a in sample.args if isinstance(a, np.ndarray)]
    return np.broadcast_shapes(*shapes) == shapes[0]


def pointwise(row: Row) -> bool:
    return row.kind in ("unary", "binary")


def in_place(row: Row) -> Callable[..., vesta.Tensor]:
    """Returns the in-place twin: a method, or a function where the op is none."""
    name = f"{row.name}_"
    return getattr(vesta.Tensor, name, None) or getattr(vesta, name)


@pytest.mark.parametrize("row, dtype, device", placed(IN_PLACE, fits_in_place))
def test_in_place(row: Row, dtype: str, device: str) -> None:
    """``x.op_()`` writes the function's bits into x, in any layout, returns x itself and increments the version."""
    function = check.function_of(row)
    for sample in filter(shape_kept, row.samples(Maker(DTYPES[dtype], row.name))):
        for layout in (check.layout_contiguous, check.layout_transposed, check.layout_sliced):
            args, kwargs = check.materialize(sample, dtype, device, layout)
            want = function(*args, **kwargs).to(check.vdtype(dtype))
            version = args[0]._version
            got = in_place(row)(*args, **kwargs)
            assert got is args[0], describe(sample)
            check.assert_same_bits(got, want, f"{layout.__name__} {describe(sample)}")
            assert got._version == version + 1


# PyTorch records nothing for these: results count as truth values.
UNRECORDED = ("logical_and", "logical_or", "logical_xor", "logical_not")


def gradient_of(x: vesta.Tensor, call: Callable[[vesta.Tensor], vesta.Tensor]) -> vesta.Tensor:
    """Returns the gradient at x of the sum of what a call makes of a copy of it; zeros where nothing is recorded."""
    leaf = x.detach().clone().requires_grad_()
    result = call(leaf * 1)
    if not result.requires_grad:
        return vesta.zeros_like(x)
    return vesta.autograd.grad(result.abs().sum(), leaf, allow_unused=True, materialize_grads=True)[0]


@pytest.mark.parametrize("row", single(row for row in IN_PLACE if fits_in_place(row, "float64")))
def test_in_place_has_the_gradient_of_the_function(row: Row) -> None:
    sample = next(filter(shape_kept, nonempty(row, "float64")))
    args, kwargs = check.materialize(sample, "float64")
    x, rest = args[0], args[1:]
    if row.name in UNRECORDED:
        return
    function = check.function_of(row)
    want = gradient_of(x, lambda t: function(t, *rest, **kwargs))
    got = gradient_of(x, lambda t: in_place(row)(t, *rest, **kwargs))
    check.assert_same_bits(got, want)
    leaf = x.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        in_place(row)(leaf, *rest, **kwargs)
    assert vesta.equal(leaf.detach(), x) or x.isnan().any()


@pytest.mark.parametrize("row, dtype", pairs(IN_PLACE, lambda r, d: r.accepts(d) and not fits_in_place(r, d)))
def test_in_place_refuses_a_wider_result(row: Row, dtype: str) -> None:
    """An in-place op whose result does not fit the operand's dtype raises and leaves the operand as it was."""
    sample = next(nonempty(row, dtype))
    args, kwargs = check.materialize(sample, dtype)
    before, version = args[0].clone(), args[0]._version
    with pytest.raises(check.REFUSALS) as caught:
        in_place(row)(*args, **kwargs)
    check.check_message(caught.value, check.known(row.name))
    check.assert_same_bits(args[0], before)
    assert args[0]._version == version


@pytest.mark.parametrize("row", single(row for row in IN_PLACE if row.kind == "binary"))
def test_in_place_does_not_grow(row: Row) -> None:
    """An in-place op raises if its other operand would broadcast the first one to a larger shape."""
    names = (name for name in ("float32", "float64", "int32") if fits_in_place(row, name))
    dtype = check.vdtype(next(names))
    x, y = vesta.ones(3, dtype=dtype), vesta.ones(2, 3, dtype=dtype)
    with pytest.raises(RuntimeError) as caught:
        getattr(x, f"{row.name}_")(y)
    check.check_message(caught.value, check.known(row.name), "[2, 3]", "[3]")
    assert tuple(x.shape) == (3,) and x._version == 0


def out_pairs() -> list[Any]:
    return pairs(WITH_OUT, lambda row, dtype: row.accepts(dtype) and DTYPES[dtype].family in "ifc")


def as_out(tensors: list[Any], tuple_of: Any) -> Any:
    """Makes what ``out=`` takes for a call that returned ``tuple_of``: a tensor, or a tuple of tensors."""
    return tuple(tensors) if isinstance(tuple_of, (tuple, list)) else tensors[0]


@pytest.mark.parametrize("row, dtype", out_pairs())
def test_out(row: Row, dtype: str) -> None:
    """``out=`` receives the function's bits in place, in any layout, and is what the call returns."""
    function = check.function_of(row)
    for sample in nonempty(row, dtype):
        args, kwargs = check.materialize(sample, dtype)
        returned = function(*args, **kwargs)
        want = check.results(returned)
        for layout in (check.layout_contiguous, check.layout_transposed, check.layout_sliced):
            names = [check.name_of(w.dtype) for w in want]
            outs = [layout(np.ones(tuple(w.shape), DTYPES[n].carrier), n, "cpu") for w, n in zip(want, names)]
            if None in outs:
                continue
            before = [(out.data_ptr(), out._version) for out in outs]
            got = check.results(function(*args, **kwargs, out=as_out(outs, returned)))
            assert len(got) == len(outs)
            for a, out, w, (place, version) in zip(got, outs, want, before):
                assert a is out and out.data_ptr() == place and out._version > version
                check.assert_same_bits(out, w, f"{layout.__name__} {describe(sample)}")


#: Ops that gather elements: as in PyTorch, no operand may be their out.
APART = ("cat", "gather", "index_select", "masked_select", "stack", "take", "take_along_dim")


@pytest.mark.parametrize("row, dtype", out_pairs())
def test_out_may_be_an_operand(row: Row, dtype: str) -> None:
    """``out=x`` is the in-place op, and an empty out takes the result's shape."""
    function = check.function_of(row)
    sample = next(s for s in nonempty(row, dtype) if not pointwise(row) or shape_kept(s))
    args, kwargs = check.materialize(sample, dtype)
    returned = function(*args, **kwargs)
    want = check.results(returned)
    empty = [vesta.empty(0, dtype=w.dtype) for w in want]
    function(*args, **kwargs, out=as_out(empty, returned))
    for e, w in zip(empty, want):
        check.assert_same_bits(e, w)
    tensors = [a for a in args if isinstance(a, vesta.Tensor)]
    for operand in tensors if len(want) == 1 else ():
        if want[0].dtype == operand.dtype and want[0].shape == operand.shape:
            kept = operand.clone()
            if row.name in APART:
                with pytest.raises(RuntimeError, match="refer to a single memory location"):
                    function(*args, **kwargs, out=operand)
            else:
                check.assert_same_bits(function(*args, **kwargs, out=operand), want[0])
            operand.copy_(kept)


@pytest.mark.differs
@pytest.mark.parametrize("row", single(row for row in WITH_OUT))
def test_out_of_another_shape_is_refused(row: Row) -> None:
    """An out that is not empty is never resized: another shape raises, names both, and leaves it unchanged."""
    dtype = "float32" if row.accepts("float32") else "int32"
    sample = next(s for s in nonempty(row, dtype) if not isinstance(s.args[0], np.ndarray) or s.args[0].ndim)
    args, kwargs = check.materialize(sample, dtype)
    function = check.function_of(row)
    returned = function(*args, **kwargs)
    want = check.results(returned)
    outs = [vesta.full((11, 2), 7, dtype=w.dtype) for w in want]
    before = [out.clone() for out in outs]
    with pytest.raises((RuntimeError, ValueError)) as caught:
        function(*args, **kwargs, out=as_out(outs, returned))
    check.check_message(caught.value, check.known(row.name), "out", "[11, 2]", str(list(want[0].shape)))
    for out, b in zip(outs, before):
        assert tuple(out.shape) == (11, 2) and bool((out == b).all()) and out._version == 0


def computes_in_the_dtype_of_out(row: Row) -> bool:
    entry = REGISTRY.get(row.op_names[0], {"parameters": [], "exact_out": True})
    return any(p["name"] == "dtype" for p in entry["parameters"]) and not entry["exact_out"]


@pytest.mark.parametrize(
    "row", single(row for row in WITH_OUT if row.accepts("float32") and not computes_in_the_dtype_of_out(row))
)
def test_out_of_an_unfitting_dtype_is_refused(row: Row) -> None:
    """A float result does not go into an integer out; a bool one goes anywhere, if the op takes another dtype."""
    sample = next(nonempty(row, "float32"))
    args, kwargs = check.materialize(sample, "float32")
    function = check.function_of(row)
    returned = function(*args, **kwargs)
    want = check.results(returned)
    outs = [vesta.zeros(tuple(w.shape), dtype=vesta.int32) for w in want]
    if any(w.dtype.is_floating_point or w.dtype.is_complex for w in want):
        with pytest.raises(check.REFUSALS) as caught:
            function(*args, **kwargs, out=as_out(outs, returned))
        check.check_message(caught.value, check.known(row.name), "int32")
        assert not any(out.any() for out in outs)
    elif row.op_names[0] in ("all", "any"):  # of bool or uint8, as in PyTorch
        with pytest.raises(check.REFUSALS, match="int32"):
            function(*args, **kwargs, out=outs[0])
    elif want[0].dtype == vesta.bool and not REGISTRY[row.op_names[0]]["exact_out"]:
        check.assert_same_bits(function(*args, **kwargs, out=outs[0]), want[0].to(vesta.int32))


EXACT = [row for row in WITH_OUT if row.accepts("float32") and REGISTRY.get(row.op_names[0], {}).get("exact_out")]


@pytest.mark.parametrize("row", single(EXACT))
def test_out_of_another_dtype_is_refused(row: Row) -> None:
    """Where PyTorch asks for the result's dtype, a wider one is refused as well, and nothing is written."""
    sample = next(nonempty(row, "float32"))
    args, kwargs = check.materialize(sample, "float32")
    function = check.function_of(row)
    returned = function(*args, **kwargs)
    want = check.results(returned)
    for k in range(len(want)):
        outs = [vesta.zeros(tuple(w.shape), dtype=vesta.complex128 if i == k else w.dtype) for i, w in enumerate(want)]
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype .*, but got complex128") as caught:
            function(*args, **kwargs, out=as_out(outs, returned))
        check.check_message(caught.value, check.known(row.name))
        assert outs[k]._version == 0 and not outs[k].any()


@pytest.mark.parametrize("row", single(row for row in WITH_OUT if row.accepts("float32") and row.grad))
def test_out_does_not_record(row: Row) -> None:
    """Gradients do not pass through ``out=``: an operand that requires grad raises while recording."""
    sample = next(nonempty(row, "float32"))
    args, kwargs = check.materialize(sample, "float32", requires_grad=True)
    function = check.function_of(row)
    with vesta.no_grad():
        returned = function(*args, **kwargs)
        outs = [vesta.zeros_like(r) for r in check.results(returned)]
    with pytest.raises(RuntimeError) as caught:
        function(*args, **kwargs, out=as_out(outs, returned))
    check.check_message(caught.value, check.known(row.name), "out")
    assert not any(out.any() for out in outs)
