"""Sorting: PyTorch's order of NaN, zeros and equals, named results, out=, long lines on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
import vesta

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64], ids=str)
def test_nan_is_the_largest_and_zeros_are_equal(dtype) -> None:
    x = vesta.tensor([1.0, NAN, 0.0, -INF, -0.0, INF, -NAN, -1.0], dtype=dtype)
    up, down = vesta.sort(x), x.sort(descending=True)
    assert up.indices.tolist() == [3, 7, 2, 4, 0, 5, 1, 6]
    assert down.indices.tolist() == [1, 6, 5, 0, 2, 4, 7, 3]
    assert str(up.values.tolist()) == str(x[up.indices].tolist())


@pytest.mark.parametrize("count", [256, 257, 5000])
def test_equals_keep_their_order(count: int) -> None:
    x = vesta.randint(0, 9, (count,))
    for descending in (False, True):
        values, places = x.sort(stable=True, descending=descending)
        same = values[1:] == values[:-1]
        assert (places[1:] > places[:-1])[same].all()
        assert vesta.equal(places, x.argsort(descending=descending))


def test_integers_over_their_whole_range() -> None:
    for name in ("int8", "int16", "int32", "int64", "uint8"):
        info = np.iinfo(name)
        x = np.random.default_rng(0).integers(info.min, info.max, 700, dtype=name, endpoint=True)
        x[:2] = info.max, info.min
        assert vesta.tensor(x).sort().values.tolist() == np.sort(x).tolist()


@pytest.mark.parametrize("n", [512, 1000, 4099])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_best_of_long_lines(n: int, dtype: str) -> None:
    """They are sought among a few candidates, unless some are equal, NaN or infinite."""
    random = np.random.default_rng(n)
    plain = random.standard_normal((8, n)).astype(dtype)
    rounded, special, ends = np.round(plain * 3), plain.copy(), plain.copy()
    special[2, 5] = special[3, n - 1] = NAN
    special[4], special[5] = -INF, INF
    ends[:, -1], ends[:, 0] = 100, -100
    for x in (plain, rounded, special, ends):
        for largest in (True, False):
            ordered = vesta.tensor(x).sort(1, descending=largest).values.numpy()
            for k in (1, 7, 31, 32):
                values, places = vesta.tensor(x).topk(k, largest=largest)
                assert np.array_equal(values.numpy(), ordered[:, :k], equal_nan=True)
                assert np.array_equal(np.take_along_axis(x, places.numpy(), 1), values.numpy(), equal_nan=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "int32", "int8", "uint8", "bool"])
def test_long_lines_of_every_width(dtype: str) -> None:
    for n in (257, 300, 1001, 5000):
        x = (np.random.default_rng(n).standard_normal((3, n)) * 50).astype(dtype)
        for descending in (False, True):
            places = vesta.tensor(x).sort(dim=1, stable=True, descending=descending).indices.numpy()
            keys = x.astype("float64")
            assert np.array_equal(places, np.argsort(-keys if descending else keys, axis=1, kind="stable"))


def test_results_have_names_and_go_to_out() -> None:
    x = vesta.tensor([[3.0, 1.0], [2.0, 4.0]])
    out = vesta.empty(0), vesta.empty(0, dtype=vesta.int64)
    result = vesta.sort(x, 0, out=out)
    assert isinstance(result, vesta.return_types.sort)
    assert result.values is out[0] and result.indices is out[1]
    assert out[0].tolist() == [[2.0, 1.0], [3.0, 4.0]] and out[1].tolist() == [[1, 0], [0, 1]]
    vesta.sort(x, stable=True, out=out)
    assert out[1].tolist() == [[1, 0], [0, 1]]
    place = vesta.empty(0, dtype=vesta.int64)
    assert vesta.argsort(x, stable=True, out=place) is place
    assert vesta.msort(x).tolist() == [[2.0, 1.0], [3.0, 4.0]]


def test_threads_make_no_difference() -> None:
    x = vesta.rand(50, 3000)
    before = vesta.get_num_threads()
    try:
        vesta.set_num_threads(1)
        want = x.sort(0), x.sort(1), x.cummax(1)
        vesta.set_num_threads(4)
        for a, b in zip((x.sort(0), x.sort(1), x.cummax(1)), want):
            assert vesta.equal(a[0], b[0]) and vesta.equal(a[1], b[1])
    finally:
        vesta.set_num_threads(before)


def test_running_extrema_take_the_last_of_equals_and_keep_nan() -> None:
    x = vesta.tensor([1.0, 3.0, 3.0, 2.0, NAN, 5.0, NAN])
    top = vesta.cummax(x, 0)
    assert top.indices.tolist() == [0, 1, 2, 2, 4, 4, 6]
    assert str(top.values.tolist()) == str([1.0, 3.0, 3.0, 3.0, NAN, NAN, NAN])
    assert isinstance(top, vesta.return_types.cummax)
    low = vesta.tensor([2, 1, 1, 5, 0]).cummin(0)
    assert low.values.tolist() == [2, 1, 1, 1, 0] and low.indices.tolist() == [0, 1, 2, 2, 4]
    out = vesta.empty(0), vesta.empty(0, dtype=vesta.int64)
    assert vesta.cummin(x[:4], 0, out=out).values is out[0] and out[1].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("device", ["cpu", "meta", *(["cuda"] if vesta.cuda.is_available() else [])])
def test_ranks_that_do_not_exist_are_refused(device: str) -> None:
    """The op below topk and kthvalue, which programs reach as a private one: it divided by a size of zero."""
    for x in (vesta.ones(0, device=device), vesta.ones(3, device=device), vesta.ones(2, 0, device=device)):
        for first, count in ((0, 4), (-1, 2), (2, 2), (0, -1), (2**62, 2**62)):
            with pytest.raises(RuntimeError, match="places_by_rank: expected ranks of"):
                vesta._C._private._places_by_rank(x, first, count, -1, True)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("n", [511, 512, 5000])
def test_ranks_within_long_lines(n: int, dtype: str) -> None:
    """Those of a stable sort, of equals, NaN and numbers that differ in their last bits alone."""
    random = np.random.default_rng(n)
    lines = [random.integers(0, 200, n), random.integers(0, 3, n), np.full(n, 7), random.standard_normal(n) * 100]
    lines.append(1000 + np.arange(n) % 5 if dtype != "uint8" else np.arange(n) % 256)
    lines.append(np.where(np.arange(n) % 9 == 4, -np.inf, lines[3]) if "float" in dtype else np.arange(n)[::-1])
    x = vesta.tensor(np.stack([one.astype(np.float64) for one in lines])).to(getattr(vesta, dtype))
    if "float" in dtype:
        x[1, ::7] = NAN
    for t, d in ((x, 1), (x.T.contiguous(), 0)):
        for largest in (False, True):
            order = t.argsort(dim=d, descending=largest, stable=True)
            for first, count in ((0, 1), (n // 2, 1), (n - 1, 1), (n // 3, 2), (n // 4, n // 2), (0, n)):
                got = vesta._C._places_by_rank(t, first, count, d, largest)
                assert vesta.equal(got, order.narrow(d, first, count)), (first, count, d, largest)


def test_quantiles_with_and_without_a_sort() -> None:
    x = np.random.default_rng(0).standard_normal((6, 700))
    for dtype in (vesta.float32, vesta.float64):
        t = vesta.tensor(x, dtype=dtype)
        for q in (0.0, 0.3, 0.5, 1.0, [0.1, 0.2], [0.49, 0.51, 0.5], [0.0, 1.0]):
            for how in ("linear", "lower", "higher", "midpoint", "nearest"):
                ranks = vesta.tensor(q, dtype=dtype)
                exact = np.quantile(t.double().numpy(), ranks.double().numpy(), axis=1, method=how)
                for got in (t.quantile(ranks, 1, interpolation=how), t.T.quantile(ranks, 0, interpolation=how)):
                    assert np.abs(got.double().numpy() - exact).max() < 1e-6
                assert t.quantile(ranks, 1, True, interpolation=how).shape == (*ranks.shape, 6, 1)
    x[2, 5] = NAN
    got = vesta.tensor(x).quantile(0.3, 1)
    assert got.isnan().tolist() == [False, False, True, False, False, False]
    assert got[0].item() == pytest.approx(np.quantile(x[0], 0.3))
