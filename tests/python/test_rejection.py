"""Poisson and truncated normal numbers, which are drawn until one is accepted, and histograms: the laws, the CPU's
numbers on a CUDA device, and few launches."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import vesta
from scipy import stats

CUDA = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")
RATES = [0.0, 0.01, 0.4, 3.0, 9.99, 10.0, 45.0, 1e4, 1e6]
CUTS = [(0.0, 1.0, -2.0, 2.0), (0.0, 1.0, 1.0, 1.5), (1.0, 0.5, 2.5, 3.0), (-50.0, 1.0, 0.0, 10.0)]


def drawn(fill: Callable[..., Any], device: str, seed: int = 0) -> vesta.Tensor:
    return fill(vesta.Generator(device).manual_seed(seed), device).cpu()


def launches(run: Callable[[], Any]) -> int:
    from vesta import _C_cuda

    run()
    before = dict(_C_cuda.counters())["launches"]
    run()
    return dict(_C_cuda.counters())["launches"] - before


@pytest.mark.parametrize("rate", RATES[1:])
def test_poisson_numbers_follow_their_law(rate: float) -> None:
    count = 20000
    x = vesta.poisson(vesta.full((count,), rate, dtype=vesta.float64), generator=vesta.Generator().manual_seed(1))
    law = stats.poisson(rate)
    values = x.numpy()
    # equal parts of the law, as far as integers allow
    edges = sorted({-1.0, *(law.ppf(q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)), math.inf})
    expected = [law.cdf(b) - law.cdf(a) for a, b in zip(edges, edges[1:])]
    found = [((values > a) & (values <= b)).sum() for a, b in zip(edges, edges[1:])]
    assert stats.chisquare(found, [p / sum(expected) * count for p in expected]).pvalue > 1e-4


@pytest.mark.parametrize("mean, std, a, b", CUTS)
def test_truncated_normal_numbers_follow_their_law(mean: float, std: float, a: float, b: float) -> None:
    x = vesta.empty(20000, dtype=vesta.float64)
    vesta.nn.init.trunc_normal_(x, mean, std, a, b, vesta.Generator().manual_seed(1))
    law = stats.truncnorm((a - mean) / std, (b - mean) / std, loc=mean, scale=std)
    assert x.min() >= a and x.max() <= b and stats.kstest(x.numpy(), law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16, vesta.float32])
def test_rounded_numbers_do_not_leave_the_range(dtype: Any) -> None:
    x = vesta.nn.init.trunc_normal_(vesta.empty(5000, dtype=dtype), 0.0, 1.0, -0.333, 0.7001)
    assert x.double().min() >= -0.333 and x.double().max() <= 0.7001
    narrow = vesta.nn.init.trunc_normal_(vesta.empty(3, dtype=vesta.bfloat16), 0.0, 1.0, 0.1001, 0.10011)
    assert bool(vesta.isfinite(narrow).all())  # although no number of the dtype lies between


def test_numbers_do_not_depend_on_the_tensor_around_them() -> None:
    rates = vesta.tensor([0.3, 12.0, 700.0] * 50)

    def of(x: vesta.Tensor) -> vesta.Tensor:
        return vesta.poisson(x, generator=vesta.Generator().manual_seed(4))

    assert vesta.equal(of(rates)[:40], of(rates[:40]))
    assert vesta.equal(of(rates.reshape(3, 50).T), of(rates.reshape(3, 50).T.contiguous()))
    recorded = of(rates.clone().requires_grad_())
    assert vesta.equal(recorded, of(rates))


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=CUDA)])
def test_numbers_that_are_no_rates_are_refused(wrong: float, device: str) -> None:
    with pytest.raises(vesta.Error, match="poisson: expected rates that are finite and at least 0"):
        vesta.poisson(vesta.tensor([1.0, wrong], device=device)).cpu()


@CUDA
@pytest.mark.parametrize("dtype", [vesta.bfloat16, vesta.float32, vesta.float64])
def test_devices_draw_the_same_numbers(dtype: Any) -> None:
    """But for numbers at which a logarithm's last digit decides."""
    rates = vesta.tensor(RATES).repeat(300).to(dtype)
    a, b = (drawn(lambda g, d: vesta.poisson(rates.to(d), generator=g), d) for d in ("cpu", "cuda"))
    assert (a != b).sum() <= 2
    for cut in CUTS:

        def fill(g: vesta.Generator, d: str, cut: Any = cut) -> vesta.Tensor:
            return vesta.nn.init.trunc_normal_(vesta.empty(2000, dtype=dtype, device=d), *cut, g)

        vesta.testing.assert_close(drawn(fill, "cpu"), drawn(fill, "cuda"))


@CUDA
def test_one_launch_draws_all() -> None:
    x = vesta.rand(500, device="cuda")
    assert launches(lambda: vesta.poisson(x)) == 1
    assert launches(lambda: vesta.nn.init.trunc_normal_(x)) == 1


@CUDA
@pytest.mark.parametrize("bins", [1, 7, 256, 300, 8192, 9000])
def test_histograms_are_the_cpus(bins: int) -> None:
    for dtype in (vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64):
        x = vesta.randn(20011).to(dtype)
        x[:2] = vesta.tensor([math.nan, -1.5])
        for low, high in ((-1.5, 2.0), (-1.5, -1.25)):
            assert vesta.equal(x.cuda().histc(bins, low, high).cpu(), x.histc(bins, low, high))
        strided = x[3:][::2]
        assert vesta.equal(strided.cuda().histc(bins).cpu(), strided.histc(bins))


@CUDA
@pytest.mark.parametrize("dtype", [vesta.uint8, vesta.int16, vesta.int64])
def test_counts_of_integers_are_the_cpus(dtype: Any) -> None:
    x = vesta.randint(0, 100, (30000,)).to(dtype)
    for least in (0, 300, 20000):
        got = x.cuda().bincount(minlength=least)
        assert got.dtype == vesta.int64 and vesta.equal(got.cpu(), x.bincount(minlength=least))
    assert x[:0].cuda().bincount().shape == (0,)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=CUDA)])
def test_bins_are_those_of_pytorch(device: str) -> None:
    """Its numbers, recorded: bins are computed in the dtype of the input, and edges are numbers of it."""
    x = vesta.tensor([0.1, 0.29, 0.3, 0.7, 0.6, 0.57, 0.58, 1.0, 0.0, -0.1]).to(device)
    for dtype, want in (
        (vesta.float32, [1, 1, 1, 1, 0, 2, 1, 1, 0, 1]),
        (vesta.float64, [1, 1, 1, 1, 0, 2, 2, 0, 0, 1]),
    ):
        assert x.to(dtype).histc(10, 0, 1).tolist() == want
    hundredths = vesta.arange(101, device=device) / 100
    found = hundredths.histc(100, 0, 1)
    assert found.ne(1).nonzero().flatten().tolist() == [52, 53, 58, 59, 99]
    assert found[[52, 53, 58, 59, 99]].tolist() == [2, 0, 2, 0, 2]
    assert vesta.tensor([0.1], device=device).histc(1, 0.0, 0.1).item() == 1  # 0.1 as a float is above 0.1
    for values, call, want in (
        ([3.0, 3.0], (3,), [0, 2, 0]),
        ([3.0, 3.0, 4.0], (3, 3, 3), [2, 0, 1]),
        ([1.0], (1,), [1]),
        ([], (3,), [0, 0, 0]),
        ([math.nan, 1.0, 2.0], (3, 0, 2), [0, 1, 1]),
        ([math.inf, 1.0, 2.0, -math.inf], (3, 0, 2), [0, 1, 1]),
        ([16777217.0, 16777216.0], (2, 0, 16777217), [0, 2]),
        ([-3e38, 3e38, 0.0], (2,), [1, 2]),  # where PyTorch's float overflows
    ):
        assert vesta.tensor(values, device=device).histc(*call).tolist() == want
    for values, call in (([math.nan, 1.0], (3,)), ([math.inf, 1.0], (3,)), ([1.0], (3, 2, 1)), ([1.0], (0,))):
        with pytest.raises(RuntimeError, match="histc: "):
            vesta.tensor(values, device=device).histc(*call)


@CUDA
def test_histograms_take_few_launches() -> None:
    x = vesta.rand(500, device="cuda")
    assert launches(lambda: x.histc(5, 0.0, 1.0)) == 3  # zeros, counts, their conversion
