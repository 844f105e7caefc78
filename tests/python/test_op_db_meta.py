"""The meta device, generated from the table: shapes, dtypes, strides and errors as on the CPU, without memory.

Every row runs here, but for those of ``WITHOUT_SHAPE``; that no op which has a CPU kernel is without a meta function is
read from the sources.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import op_db_check as check
import pytest
import vesta
from meta_device import devices, facts, on_meta
from op_db import OPS
from op_db_cases import describe
from op_db_errors import ERRORS
from op_db_row import DTYPES, Bad, Maker, Row, Sample

#: Rows whose result, or its size, depends on values, with a fragment of what they say on the meta device.
WITHOUT_SHAPE: dict[str, str] = {
    **dict.fromkeys(("nonzero", "argwhere", "masked_select", "getitem"), "the size of the result depends on values"),
    **dict.fromkeys(
        ("to_sparse", "to_sparse_csr", "_csr_product", "sparse_mask", "_sparse_sum"),
        "the size of the result depends on values",
    ),
    **dict.fromkeys(("bincount", "one_hot"), "cannot be called on meta tensors"),
    "repeat_interleave": "without output_size",
}

#: Rows with samples whose gradient depends on values: what a mask takes from a gradient.
WITHOUT_GRADIENT = {*WITHOUT_SHAPE, "index_put", "index_put_"}

#: Listed errors (a row's name and their numbers) that are about values, which a meta tensor does not have.
ABOUT_VALUES: dict[str, tuple[int, ...]] = {
    "eig": (0, 1),  # NaN
    "nll_loss": (0,),  # indices out of bounds
    "cross_entropy": (0,),
    "embedding": (0, 1),
    "index_select": (0,),
    "index_fill": (0,),
    "gather": (0,),
    "scatter_add": (0,),
}


def cases(accept: Any) -> list[Any]:
    return [
        pytest.param(row, dtype, "meta", id=f"{row.name}-{dtype}-meta")
        for row in OPS
        for dtype in DTYPES
        if accept(row, dtype)
    ]


def call(row: Row, sample: Sample, dtype: str, device: str) -> Any:
    options = {"dtype": check.vdtype(dtype), "device": device} if row.kind in ("factory", "random") else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check.function_of(row)(*sample.args, **sample.kwargs, **options)


@pytest.mark.parametrize("row, dtype, device", cases(lambda row, dtype: row.accepts(dtype)))
def test_meta(row: Row, dtype: str, device: str) -> None:
    """The result of every sample, in three layouts, has the CPU's shape, dtype and strides; an error its class."""
    refused = 0
    for layout in (check.layout_contiguous, check.layout_transposed, check.layout_sliced):
        for sample in row.samples(Maker(DTYPES[dtype], row.name)):
            plain = check.materialize(sample, dtype, layout=layout)
            meta = Sample(on_meta(plain.args), on_meta(plain.kwargs))
            try:
                want = call(row, plain, dtype, "cpu")
            except check.REFUSALS as error:  # a view of another layout
                with pytest.raises(type(error)):
                    call(row, meta, dtype, device)
                continue
            try:
                got = call(row, meta, dtype, device)
            except RuntimeError as error:  # NotImplementedError is one
                assert row.name in WITHOUT_SHAPE, f"{layout.__name__} {describe(sample)}: {error}"
                check.check_message(error, WITHOUT_SHAPE[row.name])
                refused += 1
                continue
            assert facts(got) == facts(want), f"{layout.__name__} {describe(sample)}"
            assert devices(got) <= {"meta"}, describe(sample)
    assert bool(refused) == (row.name in WITHOUT_SHAPE), "the list of rows without a shape names those, and no others"


@pytest.mark.parametrize(
    "row, dtype, device",
    cases(
        lambda row, dtype: row.grad
        and row.ref is not None
        and row.accepts(dtype)
        and dtype == "float32"
        and row.name not in WITHOUT_GRADIENT
    ),
)
def test_meta_gradient(row: Row, dtype: str, device: str) -> None:
    """The gradients of every leaf have its shape and dtype, on the meta device."""
    for sample in (row.grad_samples or row.samples)(Maker(DTYPES[dtype], row.name)):
        plain = check.materialize(sample, dtype, requires_grad=True)
        meta = Sample(on_meta(plain.args), on_meta(plain.kwargs))
        of, leaves = check.of_leaves(row, meta)
        outputs = [output for output in of(*leaves) if output.requires_grad]
        if not outputs:
            continue
        grads = vesta.autograd.grad(outputs, leaves, [vesta.ones_like(o) for o in outputs], allow_unused=True)
        for leaf, grad in zip(leaves, grads):
            if grad is not None:
                assert (grad.shape, grad.dtype, grad.device) == (leaf.shape, leaf.dtype, leaf.device), describe(sample)


@pytest.mark.parametrize(
    "name, number, bad",
    [
        pytest.param(name, number, bad, id=f"{name}-{number}")
        for name, listed in ERRORS.items()
        for number, bad in enumerate(listed)
        if number not in ABOUT_VALUES.get(name, ())
    ],
)
def test_meta_errors(name: str, number: int, bad: Bad) -> None:
    """A bad call raises on the meta device what it raises on the CPU, unless it is about values."""
    with vesta.device("meta"), pytest.raises(bad.error) as caught:
        bad.call(vesta)
    check.check_message(caught.value, bad.fragment)


def test_lists_name_rows() -> None:
    names = {row.name for row in OPS}
    assert names >= WITHOUT_GRADIENT
    assert all(max(numbers) < len(ERRORS[name]) for name, numbers in ABOUT_VALUES.items())


def test_every_kernel_has_a_meta_function() -> None:
    """An op with a kernel for the CPU has a function for the meta device.

    Composites, views and ops with a kernel for all devices (`set_kernel(&kernel)`) need none."""
    core = Path(__file__).resolve().parents[2] / "core"
    entered = re.compile(r"ops::(\w+)\.set_kernel\((?:DeviceType::)?(cpu|meta),")
    found = {
        device: {name for path in (core / device).glob("*.cpp") for name, _ in entered.findall(path.read_text())}
        for device in ("cpu", "meta")
    }
    assert len(found["cpu"]) > 60
    body = re.compile(r"^\w+ (\w+)_composite\(", re.MULTILINE)
    for_all = re.compile(r"ops::(\w+)\.set_kernel\(&")
    sources = [path.read_text() for path in (core / "ops").glob("*.cpp")]
    general = {name for source in sources for name in body.findall(source) + for_all.findall(source)}
    assert found["meta"] <= found["cpu"]
    assert found["cpu"] - found["meta"] <= general
