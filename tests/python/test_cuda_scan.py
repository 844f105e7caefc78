"""Running sums, products and sums of exponentials on a CUDA device: the CPU's values; a launch for lines of a piece."""

from __future__ import annotations

import numpy as np
import pytest
import vesta

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a CUDA device, emulated or not")

#: Lines of a thread each, of a piece, of several pieces; packed and not, beside each other and not.
LINES = [((3, 20), 1), ((5, 300), 1), ((2, 8193), 1), ((17000,), 0), ((3, 8196), 1), ((2, 70, 5), 1), ((40, 3), 0)]


def launches() -> int:
    from vesta import _C_cuda

    return int(dict(_C_cuda.counters())["launches"])


def factors(shape: tuple[int, ...], dtype: str) -> vesta.Tensor:
    rng = np.random.default_rng([1, *shape])
    if "int" in dtype:
        return vesta.tensor(rng.integers(-5, 6, shape)).to(getattr(vesta, dtype))
    x = rng.choice([-1, 1], shape) * rng.uniform(0.9, 1.1, shape)
    if "complex" in dtype:
        x = x * np.exp(1j * rng.uniform(0, 6, shape))
    return vesta.tensor(x).to(getattr(vesta, dtype))


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128", "int8", "int32", "int64"]
)
def test_running_products_are_the_cpus(dtype: str) -> None:
    for shape, dim in LINES:
        x = factors(shape, dtype)
        got, want = x.cuda().cumprod(dim), x.cumprod(dim)
        assert got.dtype == want.dtype and got.shape == want.shape
        if "int" in dtype:
            assert vesta.equal(got.cpu(), want), (shape, dim)
            continue
        error = (got.cpu() - want).abs().double() / want.abs().double().clamp(min=1e-4)
        tolerance = {"float64": 1e-10, "complex128": 1e-10, "float16": 4e-3, "bfloat16": 3e-2}.get(dtype, 2e-3)
        assert error.max().item() <= tolerance, (shape, dim)


def test_zeros_infinities_and_nans_of_running_products_stay_where_they_are() -> None:
    inf, nan = float("inf"), float("nan")
    for value, dtype in ((0.0, vesta.float32), (0.0, vesta.complex64), (inf, vesta.float32), (nan, vesta.float32)):
        for at in (0, 1, 31, 127, 1030, 8191, 8192, 8999):
            x = vesta.ones(9000, dtype=dtype)
            x[at] = value
            got = x.cuda().cumprod(0).cpu()
            assert got[:at].eq(1).all() and got[at:].allclose(x[at:].cumprod(0), equal_nan=True), (value, at)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_what_follows_a_zero_is_zero_whatever_its_own_product_would_be(dtype: str) -> None:
    for x in (vesta.arange(400.0), vesta.cat([vesta.full((100,), 1e-3), vesta.full((100,), 1e3)])):
        x = x.to(getattr(vesta, dtype))
        got, want = x.cuda().cumprod(0).cpu(), x.cumprod(0)
        assert got.allclose(want, rtol=1e-4) and got[-1] == want[-1]


@pytest.mark.parametrize("dtype, tolerance", [("float32", 1e-5), ("float64", 1e-12), ("bfloat16", 2e-2)])
def test_running_sums_of_exponentials_are_the_cpus(dtype: str, tolerance: float) -> None:
    for shape, dim in LINES:
        x = vesta.tensor(3 * np.random.default_rng(3).standard_normal(shape)).to(getattr(vesta, dtype))
        for special in (None, -float("inf"), float("inf"), float("nan")):
            if special is not None:
                x.select(dim, 0)[...] = -float("inf")
                x.select(dim, 11)[...] = special
            got, want = x.cuda().logcumsumexp(dim).cpu(), x.logcumsumexp(dim)
            assert got.allclose(want, rtol=tolerance, atol=tolerance, equal_nan=True), (shape, dim, special)


def test_in_place_and_one_launch() -> None:
    for name in ("cumsum", "cumprod"):
        for shape, dim in LINES:
            x = factors(shape, "float64").cuda()
            want = getattr(x, name)(dim)
            assert vesta.equal(getattr(x, name + "_")(dim), want)
    x = factors((5, 300), "float32").cuda()
    for f in (lambda: x.cumsum(1), lambda: x.cumprod(1), lambda: x.logcumsumexp(1)):
        f()
        before = launches()
        f()
        assert launches() == before + 1
