"""Gradient tests generated from the table: gradcheck and gradgradcheck, narrow dtypes, and which ops record."""

from __future__ import annotations

from typing import Any

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import COMPARED, describe, pairs, placed, single
from op_db_row import DTYPES, Maker, Row, Sample
from vesta.autograd import gradcheck, gradgradcheck

DIFFERENTIABLE = [row for row in OPS if row.grad]


def wide(row: Row, dtype: str) -> bool:
    return row.accepts(dtype) and dtype in ("float64", "complex128")


@pytest.mark.parametrize("row, dtype, device", placed(DIFFERENTIABLE, wide))
def test_gradcheck(row: Row, dtype: str, device: str) -> None:
    """The analytical gradient is the numerical one, for contiguous and for transposed or sliced operands."""
    count = 0
    for sample in row.grad_samples(Maker(DTYPES[dtype], row.name)):
        for layout in (check.layout_contiguous, check.layout_sliced)[: 2 if count == 3 else 1]:
            made = check.materialize(sample, dtype, device, layout, requires_grad=True)
            function, leaves = check.of_leaves(row, made)
            assert leaves and gradcheck(function, leaves), describe(sample)
        count += 1
    assert count


@pytest.mark.parametrize("row, dtype", pairs([row for row in DIFFERENTIABLE if row.gradgrad], wide))
def test_gradgradcheck(row: Row, dtype: str) -> None:
    """The gradient of the gradient is the numerical one."""
    for sample in row.grad_samples(Maker(DTYPES[dtype], row.name)):
        made = check.materialize(sample, dtype, requires_grad=True)
        function, leaves = check.of_leaves(row, made)
        if all(leaf.numel() <= 8 for leaf in leaves):
            assert gradgradcheck(function, leaves), describe(sample)


@pytest.mark.parametrize(
    "row, dtype, device", placed(DIFFERENTIABLE, lambda r, d: r.accepts(d) and DTYPES[d].family in "hf")
)
def test_gradient_has_the_dtype_and_shape_of_its_input(row: Row, dtype: str, device: str) -> None:
    """A gradient has its input's dtype, shape and device, and the float64 gradient's value within the precision."""
    for sample in row.grad_samples(Maker(DTYPES[dtype], row.name)):
        narrow = gradients(row, check.materialize(sample, dtype, device, requires_grad=True))
        exact = gradients(row, check.materialize(sample, "float64", requires_grad=True))
        for (leaf, have), (_, want) in zip(narrow, exact):
            assert have.dtype == leaf.dtype and have.shape == leaf.shape and have.device == leaf.device
            a, b = check.array_of(have).astype(np.float64), check.array_of(want)
            bound = {"float16": 0.02, "bfloat16": 0.15, "float32": 2e-5, "float64": 0 if device == "cpu" else 1e-12}[
                dtype
            ]
            assert np.allclose(a, b, rtol=bound, atol=bound), f"{describe(sample)}: {a} instead of {b}"


def gradients(row: Row, sample: Sample) -> list[tuple[Any, Any]]:
    """Runs backward from the sum of the floating-point results and returns (leaf, gradient) pairs."""
    function, leaves = check.of_leaves(row, sample)
    total = sum(
        (tensor.to("cpu", vesta.float64).sum() for tensor in function(*leaves)), vesta.zeros((), dtype=vesta.float64)
    )
    total.backward()
    return [(leaf, leaf.grad) for leaf in leaves]


@pytest.mark.parametrize("row", single(row for row in COMPARED if row.accepts("float32")))
def test_who_records(row: Row) -> None:
    """A result requires grad when the op is differentiable, an operand does, and grad mode is on; never otherwise.

    Ops that may return their operand (``contiguous``) and views, which depend on their base, are exempt.
    """
    function = check.function_of(row)
    samples = row.grad_samples or row.samples
    sample = next(iter(samples(Maker(DTYPES["float32"], row.name))))
    args, kwargs = check.materialize(sample, "float32", requires_grad=True)
    for number, tensor in enumerate(check.results(function(*args, **kwargs))):
        if tensor is args[0]:
            continue
        recorded = (row.grad or row.recorded) and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
        assert tensor.requires_grad == recorded and (tensor.grad_fn is not None) == recorded, f"result {number}"
    with vesta.no_grad():
        for tensor in check.results(function(*args, **kwargs)):
            assert tensor.grad_fn is None
            assert not tensor.requires_grad or row.kind == "view" or tensor is args[0]


@pytest.mark.parametrize("dtype", [d.name for d in DTYPES.values() if d.family in "bui"])
def test_integers_do_not_require_grad(dtype: str) -> None:
    """Setting requires_grad of an integer or bool tensor raises; only floats and complex numbers have gradients."""
    x = check.tensor_of(np.ones(3), dtype)
    with pytest.raises(RuntimeError, match="(?i)float"):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match="(?i)float"):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match="(?i)float"):
        vesta.zeros(3, dtype=check.vdtype(dtype), requires_grad=True)
    assert not x.requires_grad
