"""Generated tests of recorded gradients: those of ``create_graph=True`` are the others, in every dtype.

A gradient runs as one fused kernel, or, where it is recorded, as a formula in other ops. Both must have the precision
of the dtype; the numbers of the samples are ones that float32 does not hold, so that none may pass through it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import describe, placed
from op_db_row import DTYPES, REAL_OF, Maker, Row, Sample
from vesta import autograd

DIFFERENTIABLE = [row for row in OPS if row.grad]


def has_gradient(row: Row, dtype: str) -> bool:
    return row.accepts(dtype) and DTYPES[dtype].family in "hfc"


def uneven(value: Any) -> Any:
    """Replaces floats among plain arguments by others nearby that no binary fraction equals."""
    if type(value) is float and np.isfinite(value) and value != 0:
        return value * 0.7
    if isinstance(value, (tuple, list)):
        return type(value)(uneven(item) for item in value)
    if isinstance(value, dict):
        return {key: uneven(item) for key, item in value.items()}
    return value


def seeds(outputs: tuple) -> list:
    """Makes the gradients that come in: different for each element."""
    made = []
    for output in outputs:
        values = np.cos(np.arange(output.numel(), dtype=np.float64)).reshape(tuple(output.shape)) + 0.25
        made.append(check.tensor_of(values, check.name_of(output.dtype), output.device.type))
    return made


def gradients(row: Row, sample: Sample, create_graph: bool) -> tuple[list, tuple]:
    """Returns the gradients of a sample's tensors, and the tensors."""
    function, leaves = check.of_leaves(row, sample)
    outputs = tuple(output for output in function(*leaves) if output.requires_grad)
    return list(autograd.grad(outputs, leaves, seeds(outputs), create_graph=create_graph, allow_unused=True)), leaves


def samples_of(row: Row, dtype: str) -> list[Sample]:
    found = []
    for sample in row.grad_samples(Maker(DTYPES[dtype], row.name)):
        changed = Sample(uneven(sample.args), uneven(sample.kwargs))
        try:
            check.function_of(row)(*check.materialize(changed, dtype).args, **check.materialize(changed, dtype).kwargs)
        except check.REFUSALS:  # there the number means something else
            changed = sample
        found.append(changed)
    return found


#: Ops some of whose gradients are small differences of large terms, where only another gradient tells their size.
BY_TERMS = {"scaled_dot_product_attention"}


def largest(values: np.ndarray) -> float:
    """Returns the largest finite absolute value; 0 if there is none."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0))


def misses(have: np.ndarray, want: np.ndarray, bound: float, least: float = 0.0) -> bool:
    """Returns whether an error is larger than ``bound`` of the value and of the largest one (at least of ``least``)."""
    wide = np.complex128 if np.iscomplexobj(want) else np.float64
    have, want = have.astype(wide), want.astype(wide)
    if not want.size:
        return False
    finite = np.abs(want[np.isfinite(want)])
    return not np.allclose(have, want, rtol=bound, atol=bound * float(finite.max(initial=least)), equal_nan=True)


@pytest.mark.parametrize("row, dtype, device", placed(DIFFERENTIABLE, has_gradient))
def test_a_recorded_gradient_is_the_other_one(row: Row, dtype: str, device: str) -> None:
    """The gradient with ``create_graph`` equals that without to rounding."""
    epsilon = 2.0 ** (1 - DTYPES[REAL_OF.get(dtype, dtype)].bits)
    for sample in samples_of(row, dtype):
        made = check.materialize(sample, dtype, device, requires_grad=True)
        found = gradients(row, made, False)[0]
        by_terms = row.name in BY_TERMS
        least = max((largest(check.array_of(g)) for g in found if g is not None), default=0.0) if by_terms else 0.0
        for plain, recorded in zip(found, gradients(row, made, True)[0]):
            assert (plain is None) == (recorded is None), describe(sample)
            if plain is None:
                continue
            assert plain.dtype == recorded.dtype and plain.shape == recorded.shape
            a, b = check.array_of(plain), check.array_of(recorded)
            assert not misses(b, a, 16 * epsilon, least), f"{describe(sample)}: {b} instead of {a}"


def second(row: Row, sample: Sample) -> list:
    """Returns the gradients of a weighted sum of the gradients."""
    first, leaves = gradients(row, sample, True)
    outputs = tuple(g for g in first if g is not None and g.requires_grad)
    if not outputs:
        return []
    return list(autograd.grad(outputs, leaves, seeds(outputs), allow_unused=True))


#: The precision of a second gradient, relative to its largest value.
BOUNDS = {"float16": 0.03, "bfloat16": 0.2, "float32": 1e-4, "complex64": 1e-4}


@pytest.mark.parametrize(
    "row, dtype, device",
    placed([row for row in OPS if row.grad and row.gradgrad], lambda r, d: r.accepts(d) and d in BOUNDS),
)
def test_a_second_gradient_is_that_of_float64(row: Row, dtype: str, device: str) -> None:
    """The gradient of the gradient is that of float64 (complex128) within the dtype's precision."""
    wide = "complex128" if dtype in REAL_OF else "float64"
    for sample in samples_of(row, dtype):
        narrow = second(row, check.materialize(sample, dtype, device, requires_grad=True))
        exact = second(row, check.materialize(sample, wide, requires_grad=True))
        for have, want in zip(narrow, exact):
            assert (have is None) == (want is None), describe(sample)
            if have is None:
                continue
            a, b = check.array_of(have), check.array_of(want)
            # what is saved is rounded, so that differences of it (1 - y) have no better precision than 1 has
            assert not misses(a, b, BOUNDS[dtype], least=0.1), f"{describe(sample)}: {a} instead of {b}"


def test_a_parameter_keeps_its_precision() -> None:
    """The cases that were found: an exponent, a base and a complex factor in a recorded formula of float64."""
    x = vesta.tensor([0.3, 1.7, 2.9], dtype=vesta.float64, requires_grad=True)
    z = vesta.tensor([0.3 + 1j, 1.7 - 2j], dtype=vesta.complex128, requires_grad=True)
    for leaf, function in (
        (x, lambda x: x**0.1),
        (x, lambda x: 0.1**x),
        (x, lambda x: 0.1 / x),
        (x, lambda x: x / 0.1),
        (z, lambda z: z * (0.1 + 0.7j)),
        (z, lambda z: z / (0.1 + 0.7j)),
    ):
        plain, recorded = (
            autograd.grad(function(leaf).sum().real if leaf is x else function(leaf).abs().sum(), leaf, create_graph=c)[
                0
            ]
            for c in (False, True)
        )
        assert not misses(check.array_of(recorded), check.array_of(plain), 1e-15)
