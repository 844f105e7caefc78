"""Reductions and normalizations of what a mask selects: values against NumPy, line by line, gradients, errors."""

from __future__ import annotations

import inspect
import math
import pickle
import subprocess
import sys
import textwrap
from typing import Any, Callable

import numpy as np
import pytest
import vesta
from vesta import masked

SHAPE = (3, 4, 5)


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Returns values, and a mask with a full line, an empty one and others."""
    rng = np.random.default_rng(seed)
    x, mask = rng.standard_normal(SHAPE), rng.random(SHAPE) < 0.6
    mask[0, 0], mask[1, 1], mask[:, 2, 3] = True, False, False
    return x, mask


def _or(identity: float, function: Callable[[np.ndarray], Any]) -> Callable[[np.ndarray], Any]:
    return lambda v: function(v) if v.size else identity


#: What a reduction gives for the elements that are left of a line.
REDUCTIONS: dict[str, Callable[[np.ndarray], Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "amax": _or(-math.inf, np.max),
    "amin": _or(math.inf, np.min),
    "mean": _or(math.nan, np.mean),
    "var": lambda v: np.sum((v - v.mean()) ** 2) / np.float64(max(v.size - 1, 0)) if v.size else math.nan,
    "std": lambda v: np.sqrt(np.sum((v - v.mean()) ** 2) / np.float64(max(v.size - 1, 0))) if v.size else math.nan,
    "norm": lambda v: np.sqrt(np.sum(v**2)),
    "logsumexp": _or(-math.inf, lambda v: np.log(np.sum(np.exp(v)))),
}
FOR_ONE_DIM = {"median": _or(math.nan, lambda v: np.sort(v)[(v.size - 1) // 2])}


def _reduced(function: Callable[[np.ndarray], Any], x: np.ndarray, mask: np.ndarray, dims: tuple[int, ...]) -> Any:
    rest = [d for d in range(x.ndim) if d not in dims]
    rows = x.transpose(*rest, *dims).reshape(*(x.shape[d] for d in rest), -1)
    masks = mask.transpose(*rest, *dims).reshape(rows.shape)
    result = np.empty(rows.shape[:-1])
    with np.errstate(all="ignore"):
        for place in np.ndindex(*result.shape):
            result[place] = function(rows[place][masks[place]])
    return result


@pytest.mark.parametrize(
    ("op", "dim"),
    [(op, d) for op in REDUCTIONS for d in (0, 1, -1, (0, 2), (), None)]
    + [(op, d) for op in FOR_ONE_DIM for d in (0, -1)],
    ids=str,
)
def test_reductions_take_what_the_mask_selects(op: str, dim: Any) -> None:
    x, mask = data()
    dims = tuple(range(3)) if dim in ((), None) else tuple(d % 3 for d in np.atleast_1d(dim).tolist())
    want = _reduced({**REDUCTIONS, **FOR_ONE_DIM}[op], x, mask, dims)
    call = getattr(masked, op)
    got = call(vesta.tensor(x), dim=dim, mask=vesta.tensor(mask))
    assert got.dtype == vesta.float64
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    kept = call(vesta.tensor(x), dim=dim, mask=vesta.tensor(mask), keepdim=True)
    assert list(kept.shape) == [1 if d in dims else n for d, n in enumerate(SHAPE)]
    np.testing.assert_array_equal(kept.numpy().reshape(want.shape), got.numpy())
    without = call(vesta.tensor(x), dim=dim)
    every = _reduced({**REDUCTIONS, **FOR_ONE_DIM}[op], x, np.ones_like(mask), dims)
    np.testing.assert_allclose(without.numpy(), every, rtol=1e-12)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_places(op: str) -> None:
    x, mask = data()
    worst = -math.inf if op == "argmax" else math.inf
    filled = np.where(mask, x, worst)
    for dim in (0, 1, 2, None):
        got = getattr(masked, op)(vesta.tensor(x), dim, mask=vesta.tensor(mask))
        assert got.dtype == vesta.float64  # as PyTorch has it
        np.testing.assert_array_equal(got.numpy(), getattr(np, op)(filled, dim))
    got = getattr(masked, op)(vesta.tensor(x), 1, keepdim=True, dtype=vesta.int64, mask=vesta.tensor(mask))
    assert got.shape == (3, 1, 5) and got.dtype == vesta.int64


@pytest.mark.differs
@pytest.mark.parametrize(("dtype", "most"), [("int8", 128), ("uint8", 256), ("bfloat16", 257), ("float16", 2049)])
def test_a_dtype_holds_the_places_or_is_refused(dtype: str, most: int) -> None:
    x = vesta.zeros(most, dtype=getattr(vesta, dtype))
    x[-1] = 1
    assert int(masked.argmax(x, 0)) == most - 1
    with pytest.raises(ValueError, match=f"does not hold the places of {most + 1} elements. Give dtype="):
        masked.argmax(vesta.zeros(most + 1, dtype=x.dtype), 0)
    assert masked.argmax(vesta.zeros(2, most + 1, dtype=x.dtype), 1, dtype=vesta.int64).tolist() == [0, 0]


def _softmax(v: np.ndarray) -> np.ndarray:
    e = np.exp(v - v.max()) if v.size else v
    return e / e.sum()


#: What a normalization gives for the elements that are left of a line, and where there is none of the others.
ALONG: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "softmax": (_softmax, 0),
    "softmin": (lambda v: _softmax(-v), 0),
    "log_softmax": (lambda v: np.log(_softmax(v)), -math.inf),
    "normalize": (lambda v: v / max(np.sqrt(np.sum(v**2)), 1e-12), 0),
}


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("op", ALONG)
def test_normalizations_take_what_the_mask_selects(op: str, dim: int) -> None:
    x, mask = data()
    function, elsewhere = ALONG[op]
    rows, masks = np.moveaxis(x, dim, -1), np.moveaxis(mask, dim, -1)
    want = np.full(rows.shape, float(elsewhere))
    for place in np.ndindex(*rows.shape[:-1]):
        if not masks[place].any() and op != "normalize":
            want[place] = math.nan
        want[place][masks[place]] = function(rows[place][masks[place]])
    given = (2.0, dim) if op == "normalize" else (dim,)
    got = getattr(masked, op)(vesta.tensor(x), *given, mask=vesta.tensor(mask))
    np.testing.assert_allclose(np.moveaxis(got.numpy(), dim, -1), want, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cumulative_operations_step_over_what_is_masked_out(dim: int) -> None:
    x, mask = data()
    t, m = vesta.tensor(x), vesta.tensor(mask)
    np.testing.assert_allclose(masked.cumsum(t, dim, mask=m).numpy(), np.cumsum(np.where(mask, x, 0), dim))
    np.testing.assert_allclose(masked.cumprod(t, dim, mask=m).numpy(), np.cumprod(np.where(mask, x, 1), dim))


def test_logaddexp() -> None:
    (x, a), (y, b) = data(1), data(2)
    with np.errstate(all="ignore"):
        want = np.logaddexp(np.where(a, x, -math.inf), np.where(b, y, -math.inf))
    t = [vesta.tensor(v) for v in (x, y, a, b)]
    np.testing.assert_allclose(masked.logaddexp(*t[:2], input_mask=t[2], other_mask=t[3]).numpy(), want)
    np.testing.assert_allclose(masked.logaddexp(*t[:2]).numpy(), np.logaddexp(x, y))
    assert masked.logaddexp(*t[:2], dtype=vesta.float32).dtype == vesta.float32


@pytest.mark.differs
@pytest.mark.parametrize("ord", [0, 0.5, 1, 3, math.inf, -math.inf, -1, None])
def test_norms(ord: Any) -> None:
    x, mask = data()
    power = 2 if ord is None else ord
    want = _reduced(lambda v: np.linalg.norm(v, power) if v.size else (math.inf if power < 0 else 0), x, mask, (2,))
    got = masked.norm(vesta.tensor(x), ord, -1, mask=vesta.tensor(mask))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("op", ["var", "std"])
def test_corrections(op: str) -> None:
    x, mask = data()
    t, m = vesta.tensor(x), vesta.tensor(mask)
    want = np.ma.masked_array(x, ~mask)
    call = getattr(masked, op)
    for kwargs, less in (({"unbiased": False}, 0), ({"unbiased": True}, 1), ({"correction": 2}, 2), ({}, 1)):
        expected = getattr(want, op)(ddof=less)
        np.testing.assert_allclose(float(call(t, mask=m, **kwargs)), float(expected), rtol=1e-12)
    assert call(t, (0, 1), False, mask=m).shape == (5,)
    with pytest.raises(ValueError, match="unbiased or correction, got both"):
        call(t, unbiased=True, correction=1)


@pytest.mark.differs
def test_dtypes_are_pytorchs() -> None:
    x, mask = vesta.tensor([[3, 1, 2]], dtype=vesta.int8), vesta.tensor([True, False, True])
    kinds = {"sum": "int64", "prod": "int64", "var": "float32", "std": "float32"}
    for op in ("sum", "prod", "amax", "amin", "argmax", "median", "logsumexp", "var", "std"):
        assert getattr(masked, op)(x, 1, mask=mask).dtype == getattr(vesta, kinds.get(op, "int8")), op
    assert masked.cumsum(x, 1, mask=mask).tolist() == [[3, 3, 5]]
    assert masked.cumsum(x, 1, mask=mask).dtype == vesta.int8
    assert masked.sum(x, 1, mask=mask, dtype=vesta.float64).dtype == vesta.float64
    assert masked.mean(x, 1, mask=mask, dtype=vesta.float32).tolist() == [2.5]
    assert masked.median(x, mask=mask).tolist() == [2]
    assert masked.median(vesta.ones(3), dtype=vesta.int64).dtype == vesta.int64
    assert masked.sum(x, dtype=float).dtype == vesta.float32 and masked.amax(x, dtype=bool).dtype == vesta.bool
    none = vesta.zeros(3, dtype=vesta.bool)
    assert masked.amax(x, 1, mask=none).tolist() == [-128] and masked.amin(x, 1, mask=none).tolist() == [127]
    one = vesta.tensor([True, False, False, False])
    assert masked.logsumexp(vesta.zeros(4, dtype=vesta.uint8), 0, mask=one).item() == 0  # of four it is 1
    with pytest.raises(ValueError, match="expected a floating-point or complex dtype, got vesta.int8"):
        masked.mean(x, 1)
    with pytest.raises(ValueError, match="an element in every line"):
        masked.median(x, mask=none)
    with pytest.raises(NotImplementedError, match="amax: expected a real dtype other than bool, got vesta.complex64"):
        masked.amax(x.to(vesta.complex64), 1, mask=mask)
    large = vesta.tensor([2**52 + 1, 0])
    assert masked.median(large, mask=vesta.tensor([True, False])).item() == 2**52 + 1


def test_complex_numbers() -> None:
    x, mask = data()
    z = x + 1j * x[::-1]
    t, m = vesta.tensor(z), vesta.tensor(mask)
    want = np.ma.masked_array(z, ~mask)
    np.testing.assert_allclose(masked.sum(t, 0, mask=m).numpy(), want.sum(0).filled(0))
    np.testing.assert_allclose(masked.mean(t, (0, 1), mask=m).numpy(), want.mean((0, 1)).filled(np.nan))
    got = masked.var(t, (0, 1), mask=m)
    assert got.is_complex() and masked.norm(t, 2, 0, mask=m).dtype == vesta.float64
    np.testing.assert_allclose(got.real.numpy(), want.var((0, 1), ddof=1), rtol=1e-12)


@pytest.mark.differs
@pytest.mark.parametrize(
    "op", "sum prod mean amax amin median logsumexp cumsum cumprod softmax log_softmax softmin var std".split()
)
def test_gradients_pass_what_is_selected_only(op: str) -> None:
    x, mask = data()
    mask[:, :, 0] = mask[:, :, 2] = True  # a line without an element has no derivative
    t, m = vesta.tensor(x, requires_grad=True), vesta.tensor(mask)
    finite = (lambda y: vesta.where(m, y, 0.0)) if op == "log_softmax" else (lambda y: y)
    call = lambda v: finite(getattr(masked, op)(v, 2, mask=m))
    assert vesta.autograd.gradcheck(call, (t,))
    spoilt = vesta.tensor(np.where(mask, x, np.nan), requires_grad=True)  # what is masked out is never looked at
    for v in (t, spoilt):
        weights = vesta.arange(1.0, 1 + call(t).numel(), dtype=vesta.float64).reshape(call(t).shape)
        (weights * call(v)).sum().backward()
    assert not bool(spoilt.grad[~m].any()) and vesta.equal(spoilt.grad, t.grad)


@pytest.mark.parametrize("op", ["norm", "normalize"])
def test_gradients_of_norms(op: str) -> None:
    x, mask = data()
    mask[:, :, 0] = True
    t, m = vesta.tensor(x, requires_grad=True), vesta.tensor(mask)
    assert vesta.autograd.gradcheck(lambda v: getattr(masked, op)(v, 2.0, 2, mask=m), (t,))


def test_masks() -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    assert masked.sum(x, mask=vesta.tensor([True, False, True])).item() == 10  # broadcasts
    assert masked.sum(x, mask=vesta.tensor([[2], [0]])).item() == 3  # any dtype: what is not 0 takes part
    assert masked.sum(vesta.tensor(3.0), mask=vesta.tensor(False)).item() == 0
    assert masked.prod(vesta.tensor(3.0)).item() == 3 and masked.mean(vesta.zeros(0, 2), 0).isnan().all()
    for call, error, words in (
        (lambda: masked.sum(x, mask=vesta.ones(1, 2, 3)), IndexError, "at most 2 dimensions"),
        (lambda: masked.sum(x, mask=vesta.ones(2)), RuntimeError, "expand"),
        (lambda: masked.sum(x, mask=[True]), TypeError, r"expected a Tensor, got list \(mask\)"),
        (lambda: masked.sum([1.0]), TypeError, r"expected a Tensor, got list \(input\)"),
        (lambda: masked.sum(x, 2), IndexError, r"in \[-2, 1\], got 2"),
        (lambda: masked.sum(x, (0, -2)), RuntimeError, "each dimension once"),
        (lambda: masked.sum(x, "a"), TypeError, "expected int, a list of ints or None, got str"),
        (lambda: masked.softmax(x, None), TypeError, "expected int, got NoneType"),
        (lambda: masked.softmax(x, (0, 1)), TypeError, "expected int, got tuple"),
        (lambda: masked.median(x, (0, 1)), TypeError, "expected int, got tuple"),
        (lambda: masked.amax(x.to_sparse()), ValueError, "to_dense"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_names_and_signatures() -> None:
    assert set(masked.__all__) <= set(dir(masked)) and vesta.masked is masked
    for name in masked.__all__:
        value = getattr(masked, name)
        assert value.__doc__ and value.__module__ == "vesta.masked" and pickle.loads(pickle.dumps(value)) is value
    keywords = lambda op: list(inspect.signature(getattr(masked, op)).parameters)
    assert keywords("sum") == keywords("argmax") == ["input", "dim", "keepdim", "dtype", "mask"]
    assert keywords("softmax") == ["input", "dim", "dtype", "mask"]
    assert keywords("norm") == ["input", "ord", "dim", "keepdim", "dtype", "mask"]
    assert inspect.signature(masked.median).parameters["dim"].default == -1


def test_it_is_torch_masked() -> None:
    code = """
        import vesta.as_torch
        vesta.as_torch.install()
        import torch, torch.masked
        from torch.masked import MaskedTensor, as_masked_tensor, softmax
        assert torch.masked.sum(torch.ones(3), mask=torch.tensor([True, False, True])).item() == 2
        assert torch.masked.softmax is softmax and softmax.__module__ == "torch.masked", softmax.__module__
        print("ok")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "ok\n", done.stderr


def test_there_are_no_masked_tensors() -> None:
    x = vesta.ones(2)
    for call in (masked.MaskedTensor, masked.masked_tensor, masked.as_masked_tensor):
        with pytest.raises(NotImplementedError, match="keep data and mask apart"):
            call(x, x > 0)
    assert not masked.is_masked_tensor(x) and not isinstance(x, masked.MaskedTensor)
