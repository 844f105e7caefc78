"""Factories and random ops of the table: dtype, device, requires_grad, values; seeds and moments of random ops."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import describe, pairs, placed
from op_db_row import DTYPES, Maker, Row, call

FACTORIES = [row for row in OPS if row.kind == "factory"]
RANDOM = [row for row in OPS if row.kind == "random"]
DRAWING = [row for row in RANDOM if "empty" not in row.name]


def options(dtype: str, device: str = "cpu") -> dict:
    return {"dtype": check.vdtype(dtype), "device": device}


@pytest.mark.parametrize("row, dtype, device", placed(FACTORIES))
def test_factory(row: Row, dtype: str, device: str) -> None:
    """Values are NumPy's, contiguous; dtype and device are as requested, and requires_grad only if requested."""
    function = check.function_of(row)
    for sample in row.samples(Maker(DTYPES[dtype], row.name)):
        args, kwargs = check.materialize(sample, dtype)
        made = function(*args, **kwargs, **options(dtype, device))
        want = DTYPES[dtype].round(row.ref(*sample.args, **sample.kwargs))
        check.assert_close(made, want.astype(np.complex128 if dtype.startswith("complex") else want.dtype), dtype, row)
        assert made.is_contiguous() and not made.requires_grad and made.device.type == device, describe(sample)


@pytest.mark.parametrize("row, dtype", pairs(RANDOM))
def test_random_dtype_and_shape(row: Row, dtype: str) -> None:
    function = check.function_of(row)
    for sample in row.samples(Maker(DTYPES[dtype], row.name)):
        args, kwargs = check.materialize(sample, dtype)
        made = function(*args, **kwargs, **options(dtype))
        size = {"randint": sample.args[-1], "randperm": sample.args[:1]}.get(row.name, sample.args[0])
        assert tuple(made.shape) == (size.shape if isinstance(size, np.ndarray) else tuple(size))
        assert check.name_of(made.dtype) == dtype and not made.requires_grad and made.is_contiguous()


@pytest.mark.parametrize("row, dtype", pairs(DRAWING))
def test_seed(row: Row, dtype: str) -> None:
    """The same seed gives the same bits; the next draw and another seed give different ones."""
    function = check.function_of(row)
    sample = {"randint": call(0, 100, (500,)), "randperm": call(100)}.get(row.name, call((500,)))
    if row.name.endswith("_like"):
        sample = call(np.zeros(500, DTYPES[dtype].carrier))
    args, kwargs = check.materialize(sample, dtype)
    vesta.manual_seed(7)
    first, second = (function(*args, **kwargs, **options(dtype)) for _ in range(2))
    vesta.manual_seed(7)
    again = function(*args, **kwargs, **options(dtype))
    vesta.manual_seed(8)
    other = function(*args, **kwargs, **options(dtype))
    check.assert_same_bits(first, again)
    assert bool((first != second).any()) and bool((first != other).any())


@pytest.mark.parametrize(
    "draw, mean, deviation",
    [
        pytest.param(lambda n, d: vesta.rand(n, dtype=d), 0.5, 12**-0.5, id="rand"),
        pytest.param(lambda n, d: vesta.randn(n, dtype=d), 0.0, 1.0, id="randn"),
        pytest.param(lambda n, d: vesta.empty(n, dtype=d).uniform_(-1, 3), 1.0, 4 * 12**-0.5, id="uniform_"),
        pytest.param(lambda n, d: vesta.empty(n, dtype=d).normal_(2, 3), 2.0, 3.0, id="normal_"),
        pytest.param(lambda n, d: vesta.empty(n, dtype=d).bernoulli_(0.3), 0.3, 0.21**0.5, id="bernoulli_"),
        pytest.param(lambda n, d: vesta.bernoulli(vesta.full((n,), 0.25, dtype=d)), 0.25, 0.1875**0.5, id="bernoulli"),
        pytest.param(lambda n, d: vesta.empty(n, dtype=d).exponential_(2.0), 0.5, 0.5, id="exponential_"),
        pytest.param(lambda n, d: vesta.empty(n, dtype=d).geometric_(0.25), 4.0, 12**0.5, id="geometric_"),
        pytest.param(
            lambda n, d: vesta.empty(n, dtype=d).log_normal_(0, 0.5), 1.1331, 0.6039, id="log_normal_"
        ),  # e^(1/8), e^(1/8) sqrt(e^(1/4) - 1)
        pytest.param(lambda n, d: vesta.normal(vesta.full((n,), 1.0, dtype=d), 2.0), 1.0, 2.0, id="normal"),
        pytest.param(lambda n, d: vesta.poisson(vesta.full((n,), 4.0, dtype=d)), 4.0, 2.0, id="poisson"),
        pytest.param(lambda n, d: vesta.poisson(vesta.full((n,), 64.0, dtype=d)), 64.0, 8.0, id="poisson_large"),
        pytest.param(
            lambda n, d: vesta.multinomial(vesta.tensor([1.0, 0.0, 3.0], dtype=d), n, True).to(d),
            1.5,
            0.75**0.5,
            id="multinomial",
        ),
        pytest.param(lambda n, d: vesta.randint(0, 10, (n,), dtype=d), 4.5, 8.25**0.5, id="randint"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_moments(draw, mean: float, deviation: float, dtype: str) -> None:
    """Mean and deviation of 200,000 draws lie within six standard errors, and neighbours are not correlated."""
    vesta.manual_seed(3)
    count = 200_000
    values = check.array_of(draw(count, check.vdtype(dtype))).astype(np.float64)
    slack = 6 * deviation / count**0.5 + (1e-3 if dtype == "float16" else 0)
    assert abs(values.mean() - mean) < slack and abs(values.std() - deviation) < 2 * slack
    centred = values - values.mean()
    for lag in (1, 2, 4, 8, 1024):
        assert abs((centred[lag:] * centred[:-lag]).mean()) < 6 * deviation**2 / count**0.5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_rand_stays_below_one(dtype: str) -> None:
    """[0, 1) excludes 1 in every dtype: rounding to 16 bits must not reach it."""
    values = vesta.rand(1 << 18, dtype=check.vdtype(dtype))
    assert bool((values >= 0).all()) and bool((values < 1).all())
    low, high = 1.0, 1.0 + 2 ** -(DTYPES[dtype].bits - 3)
    narrow = vesta.empty(1 << 16, dtype=check.vdtype(dtype)).uniform_(low, high)
    assert bool((narrow >= low).all()) and bool((narrow < high).all())


def test_randn_is_finite() -> None:
    """No logarithm of zero: 2^20 draws of each dtype are finite, and reach beyond four deviations."""
    for dtype in (vesta.float16, vesta.float32, vesta.float64):
        values = vesta.randn(1 << 20, dtype=dtype)
        top = float(values.abs().max())
        assert 4 < top < 10


def test_randint_covers_its_range() -> None:
    values = check.array_of(vesta.randint(-3, 4, (7000,)))
    assert set(values.tolist()) == set(range(-3, 4))
    assert np.bincount(values + 3).min() > 800
    assert vesta.randint(5, (4,)).dtype == vesta.int64
    with pytest.raises(RuntimeError) as caught:
        vesta.randint(4, 4, (2,))
    check.check_message(caught.value, "randint", "4")


def test_randperm_permutes() -> None:
    vesta.manual_seed(0)
    for count in (0, 1, 2, 17, 1000):
        made = check.array_of(vesta.randperm(count))
        assert sorted(made.tolist()) == list(range(count))
    firsts = [int(vesta.randperm(5)[0]) for _ in range(1000)]
    assert np.bincount(firsts, minlength=5).min() > 130
    with pytest.raises(RuntimeError) as caught:
        vesta.randperm(-1)
    check.check_message(caught.value, "randperm", "-1")


def test_bernoulli_edges() -> None:
    """Probability 0 never draws 1 and probability 1 always does; outside [0, 1] raises."""
    assert not vesta.zeros(10000).bernoulli_(0.0).any()
    assert vesta.zeros(10000).bernoulli_(1.0).all()
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(RuntimeError) as caught:
            vesta.zeros(3).bernoulli_(p)
        check.check_message(caught.value, "bernoulli_")
    with pytest.raises(RuntimeError):
        vesta.bernoulli(vesta.tensor([0.5, 1.5]))


def test_dropout() -> None:
    """Dropout scales what it keeps, is the identity outside training, and its gradient is its own mask."""
    dropout = vesta.nn.functional.dropout
    vesta.manual_seed(1)
    x = vesta.full((10000,), 3.0, requires_grad=True)
    y = dropout(x, 0.25)
    kept = y != 0
    assert abs(float(kept.to(vesta.float64).mean()) - 0.75) < 0.03
    assert bool((y[kept] == 4.0).all())
    y.sum().backward()
    check.assert_same_bits(x.grad, kept.to(vesta.float32) * (1 / 0.75))
    check.assert_same_bits(dropout(x, 0.25, training=False), x)
    assert not dropout(x, 1.0).any()
    check.assert_same_bits(dropout(x, 0.0), x)
    for p in (-0.1, 1.5):
        with pytest.raises(ValueError) as caught:
            dropout(x, p)
        check.check_message(caught.value, "dropout", str(p))


@pytest.mark.differs
def test_a_draw_does_not_depend_on_layout() -> None:
    """The element's index is the counter: a strided tensor draws the same values as a contiguous one."""
    vesta.manual_seed(5)
    plain = vesta.empty(6, 5).uniform_()
    vesta.manual_seed(5)
    check.assert_same_bits(vesta.empty(5, 6).t().uniform_(), plain)
    vesta.manual_seed(5)
    check.assert_same_bits(vesta.empty(6, 10)[:, ::2].uniform_(), plain)


def test_batch_norm_updates_running_statistics() -> None:
    """running = (1 - momentum) * running + momentum * batch, with the unbiased variance; eval does not change them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(4, 3, 2, 2))
    mean, variance = vesta.zeros(3, dtype=vesta.float64), vesta.ones(3, dtype=vesta.float64)
    x = vesta.from_numpy(values)
    vesta.nn.functional.batch_norm(x, mean, variance, training=True, momentum=0.3)
    want_mean, want_variance = values.mean(axis=(0, 2, 3)), values.var(axis=(0, 2, 3), ddof=1)
    np.testing.assert_allclose(check.array_of(mean), 0.3 * want_mean, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(check.array_of(variance), 0.7 + 0.3 * want_variance, rtol=1e-12)
    before = mean.clone(), variance.clone()
    vesta.nn.functional.batch_norm(x, mean, variance, training=False)
    check.assert_same_bits(mean, before[0])
    check.assert_same_bits(variance, before[1])


def test_default_dtypes_of_factories() -> None:
    """Floats default to float32, integers to int64, bools to bool; Python values decide for full and tensor."""
    assert vesta.zeros(1).dtype == vesta.ones(1).dtype == vesta.empty(1).dtype == vesta.rand(1).dtype == vesta.float32
    assert vesta.arange(3).dtype == vesta.randperm(3).dtype == vesta.full((1,), 2).dtype == vesta.int64
    assert vesta.arange(0, 1, 0.25).dtype == vesta.full((1,), 2.0).dtype == vesta.linspace(0, 1, 3).dtype
    assert vesta.full((1,), True).dtype == vesta.bool and vesta.full((1,), 1j).dtype == vesta.complex64


@pytest.mark.parametrize("bad", ["zeros", "ones", "empty", "rand", "randn"])
def test_sizes_of_factories(bad: str) -> None:
    """Negative and overflowing sizes raise before anything is allocated; sizes may be a tuple, a list or numbers."""
    function = getattr(vesta, bad)
    assert function(2, 3).shape == function((2, 3)).shape == function([2, 3]).shape == function(size=(2, 3)).shape
    for size in ((-1,), (2**62, 4), (2**40, 2**40)):
        with pytest.raises(RuntimeError) as caught:
            function(size)
        check.check_message(caught.value, bad)
    with pytest.raises(TypeError):
        function(1.5)
    with pytest.raises(TypeError):
        function("3")
    assert function(0, 2**40).numel() == 0


def test_arange_and_linspace_bounds() -> None:
    for arguments in ((0, 5, 0), (0, 5, -1), (5, 0, 1), (0, float("nan"), 1), (0, float("inf"), 1)):
        with pytest.raises(RuntimeError) as caught:
            vesta.arange(*arguments)
        check.check_message(caught.value, "arange")
    with pytest.raises(RuntimeError) as caught:
        vesta.linspace(0, 1, -1)
    check.check_message(caught.value, "linspace", "-1")
    values = check.array_of(vesta.arange(0, 1, 0.1, dtype=vesta.float64))
    np.testing.assert_allclose(values, np.arange(10) * 0.1, rtol=1e-15)
    assert float(vesta.linspace(-1, 1, 33)[-1]) == 1.0 and float(vesta.linspace(-1, 1, 33)[0]) == -1.0


def test_generators_are_pickled_and_copied() -> None:
    """A copy continues at the generator's position, independently of it."""
    generator = vesta.Generator().manual_seed(3)
    vesta.rand(5, generator=generator)
    for other in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator), copy.copy(generator)):
        assert other is not generator and other.initial_seed() == 3
        ahead = vesta.rand(4, generator=other).tolist()
        assert ahead == vesta.rand(4, generator=copy.deepcopy(generator)).tolist()
    assert ahead == vesta.rand(4, generator=generator).tolist()
