"""Functions of any number of tensors, and ``unique``: values against NumPy, views, errors."""

from __future__ import annotations

import numpy as np
import pytest
import vesta


def test_broadcasting() -> None:
    assert vesta.broadcast_shapes((2, 1), (3,), 1) == vesta.Size([2, 3])
    assert vesta.broadcast_shapes() == vesta.Size([]) and vesta.broadcast_shapes((0, 1), (5,)) == (0, 5)
    x = vesta.arange(3)
    a, b = vesta.broadcast_tensors(x, vesta.zeros(2, 1))
    assert a.shape == b.shape == (2, 3) and a.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match=r"dimension of length 3 at -1! .* index 1 had \(3,\); .* to \[2\]"):
        vesta.broadcast_shapes((2,), (3,))
    with pytest.raises(TypeError, match="int at position 1"):
        vesta.broadcast_tensors(x, 3)


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("sizes", [(2,), (2, 3), (2, 3, 4)], ids=str)
def test_meshgrid(sizes, indexing) -> None:
    arrays = [np.arange(n) + n for n in sizes]
    got = vesta.meshgrid(*(vesta.tensor(a) for a in arrays), indexing=indexing)
    assert isinstance(got, tuple)
    for g, want in zip(got, np.meshgrid(*arrays, indexing=indexing)):
        assert g.tolist() == want.tolist()
    assert [g.tolist() for g in vesta.meshgrid([vesta.tensor(a) for a in arrays], indexing=indexing)] == [
        g.tolist() for g in got
    ]


def test_meshgrid_refuses() -> None:
    x = vesta.arange(3)
    for call, error, words in (
        (lambda: vesta.meshgrid(), ValueError, "none"),
        (lambda: vesta.meshgrid(x, indexing="yx"), RuntimeError, "'yx'"),
        (lambda: vesta.meshgrid(x, x.float()), RuntimeError, "float32"),
        (lambda: vesta.meshgrid(x.reshape(1, 3)), RuntimeError, r"\[1, 3\]"),
        (lambda: vesta.meshgrid(x, 2), TypeError, "int"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_at_least() -> None:
    zero, one, two = vesta.tensor(1.0), vesta.ones(3), vesta.ones(2, 3)
    assert vesta.atleast_1d(zero).shape == (1,) and vesta.atleast_2d(one).shape == (1, 3)
    assert [t.shape for t in vesta.atleast_3d(zero, one, two)] == [(1, 1, 1), (1, 3, 1), (2, 3, 1)]
    assert isinstance(vesta.atleast_2d([zero, one]), tuple) and vesta.atleast_2d(two) is two


def test_products_of_lists() -> None:
    a, b = vesta.tensor([1, 2]), vesta.tensor([3, 4, 5])
    assert vesta.cartesian_prod(a, b).tolist() == [[x, y] for x in (1, 2) for y in (3, 4, 5)]
    assert vesta.cartesian_prod(a) is a
    assert vesta.combinations(b).tolist() == [[3, 4], [3, 5], [4, 5]]
    assert vesta.combinations(a, 2, True).tolist() == [[1, 1], [1, 2], [2, 2]]
    assert vesta.combinations(a, 3).shape == (0, 3) and vesta.combinations(a, 0).shape == (0,)
    blocks = vesta.block_diag(vesta.tensor([[1, 2]]), vesta.tensor(3), vesta.tensor([[4], [5]]))
    assert blocks.tolist() == [[1, 2, 0, 0], [0, 0, 3, 0], [0, 0, 0, 4], [0, 0, 0, 5]]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32"])
@pytest.mark.parametrize("shape", [(0,), (1,), (50,), (6, 7)], ids=str)
def test_unique(shape, dtype) -> None:
    x = np.random.default_rng(1).integers(0, 9, shape).astype(dtype)
    values, inverse, counts = vesta.unique(vesta.tensor(x), return_inverse=True, return_counts=True)
    want, back, numbers = np.unique(x, return_inverse=True, return_counts=True)
    assert values.tolist() == want.tolist() and counts.tolist() == numbers.tolist()
    assert inverse.tolist() == back.reshape(shape).tolist()
    assert vesta.equal(vesta.tensor(x).unique(), values)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_slices(dim) -> None:
    x = np.random.default_rng(2).integers(0, 2, (6, 4, 2))
    values, inverse, counts = vesta.tensor(x).unique(return_inverse=True, return_counts=True, dim=dim)
    want, back, numbers = np.unique(x, return_inverse=True, return_counts=True, axis=dim)
    assert values.tolist() == want.tolist() and counts.tolist() == numbers.tolist()
    assert inverse.tolist() == back.reshape(-1).tolist()


def test_unique_consecutive() -> None:
    x = vesta.tensor([1, 1, 2, 2, 3, 1, 1, 2])
    values, inverse, counts = vesta.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert values.tolist() == [1, 2, 3, 1, 2] and counts.tolist() == [2, 2, 1, 2, 1]
    assert inverse.tolist() == [0, 0, 1, 1, 2, 3, 3, 4]
    rows = vesta.tensor([[1, 2], [1, 2], [3, 4]])
    assert rows.unique_consecutive(dim=0).tolist() == [[1, 2], [3, 4]]
    nan = float("nan")
    assert len(vesta.tensor([nan, 1.0, nan]).unique()) == 3


def test_repeat_interleave_of_counts() -> None:
    assert vesta.repeat_interleave(vesta.tensor([2, 0, 3])).tolist() == [0, 0, 2, 2, 2]
    assert vesta.repeat_interleave(vesta.tensor([2, 1]), output_size=3).tolist() == [0, 0, 1]
    x = vesta.rand(2, 3, requires_grad=True)
    x.repeat_interleave(vesta.tensor([1, 2, 0]), dim=1).sum().backward()
    assert x.grad.tolist() == [[1, 2, 0], [1, 2, 0]]
    for bad in (vesta.tensor([-1]), vesta.tensor([1.0]), vesta.tensor([[1]])):
        with pytest.raises(RuntimeError, match="repeat"):
            vesta.repeat_interleave(bad)


def test_views_share_memory() -> None:
    x = vesta.arange(12).reshape(3, 4)
    for made in (x.movedim(0, 1), x.unflatten(1, (2, 2)), x.unfold(0, 2, 1), x.tensor_split(2)[0], x.hsplit(2)[1]):
        assert made._base is x or made._base is x._base, made
    for made in (x.repeat(1, 1), x.tile((1,)), x.roll(0), x.rot90(0), x.fliplr(), x.diag(), x.tril()):
        assert made.data_ptr() != x.data_ptr()
    x.unfold(1, 2, 2)[0, 0, 0] = 7
    assert x[0, 0] == 7
    assert [t.tolist() for t in x.tensor_split(vesta.tensor([1]))] == [x[:1].tolist(), x[1:].tolist()]


def test_median_and_quantile_of_nan() -> None:
    x = vesta.tensor([[1.0, float("nan"), 3.0], [1.0, 2.0, 3.0]])
    values, places = x.median(1)
    assert str(values.tolist()) == "[nan, 2.0]" and places.tolist() == [1, 1]
    assert x.median().isnan() and vesta.tensor([1.0, 2.0]).median() == 1
    assert str(x.quantile(0.5, dim=1).tolist()) == "[nan, 2.0]"
    levels = vesta.tensor([0.0, 0.25, 1.0])
    want = np.quantile(x[1:].numpy(), levels.numpy(), axis=1, keepdims=True)
    assert x[1:].quantile(levels, dim=1, keepdim=True).tolist() == want.tolist()
    assert x[1].quantile(levels, keepdim=True).shape == (3, 1)
    with pytest.raises(RuntimeError, match="1.5"):
        x.quantile(1.5)


def test_quantile_of_infinities_ties_and_single_precision() -> None:
    inf = float("inf")
    for values, q, want in (([-inf, inf, 1.0], 0.25, -inf), ([-inf, 1.0], 0.5, -inf), ([1.0, 2.0, 4.0], 0.75, 3.0)):
        assert vesta.tensor(values).quantile(q) == want
    ten = vesta.arange(11.0)
    assert ten.quantile(0.7, interpolation="lower") == 6 and ten.quantile(0.3, interpolation="higher") == 4
    levels = vesta.tensor([0.1, 0.3, 0.5, 0.7, 0.9])
    assert vesta.arange(6.0).quantile(levels, interpolation="nearest").tolist() == [1, 2, 2, 3, 4]
    for name, want in (("lower", [-inf, -inf, inf]), ("higher", [-inf, 1.0, inf]), ("nearest", [-inf, -inf, inf])):
        for quantile in (vesta.quantile, vesta.nanquantile):
            levels = vesta.tensor([0.0, 0.35, 1.0])
            assert quantile(vesta.tensor([inf, -inf, 1.0, inf, -inf]), levels, interpolation=name).tolist() == want
    x = vesta.tensor([1.0, float("nan"), 2.0], requires_grad=True)
    x.quantile(0.5).backward()
    assert x.grad.tolist() == [0, 1, 0]
    assert vesta.tensor(3.0).quantile(0.5, dim=0, keepdim=True).shape == ()


def test_edges_of_the_empty_and_of_zero() -> None:
    assert vesta.zeros(0, 3).unique(dim=0, return_inverse=True)[1].shape == (0,)
    for call in (vesta.unique, vesta.unique_consecutive):
        with pytest.raises(RuntimeError, match="slices with elements"):
            call(vesta.zeros(2, 0), dim=0)
        with pytest.raises(IndexError, match="dimension"):
            call(vesta.tensor(3), dim=0)
    x = vesta.arange(6).reshape(2, 3)
    assert vesta.equal(x.diff(0, append=vesta.tensor([[9], [9]])), x)
    with pytest.raises(IndexError, match="0-d"):
        vesta.tensor(5).repeat_interleave(2, dim=0)
    y, nan = vesta.tensor([1.0, 2.0]), vesta.full((2, 3), float("nan"))
    assert vesta.addmm(y, nan, vesta.ones(3, 2), alpha=0).tolist() == [[1, 2], [1, 2]]
    assert vesta.addmv(y, nan, vesta.ones(3), alpha=0).tolist() == [1, 2]
    with pytest.raises(RuntimeError, match="sections"):
        x.tensor_split(2**40)


def test_nonzero_static() -> None:
    x = vesta.tensor([[0, 3, 0], [4, 0, 5]])
    assert vesta.nonzero_static(x, size=3).tolist() == x.nonzero().tolist()
    assert vesta.nonzero_static(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert vesta.nonzero_static(x, size=4, fill_value=-7).tolist() == [*x.nonzero().tolist(), [-7, -7]]
    assert (
        vesta.nonzero_static(vesta.tensor(3.0), size=2).shape == (2, 0) and vesta.nonzero_static(x, size=0).numel() == 0
    )
    out = vesta.empty(0, dtype=vesta.int64)
    assert vesta.nonzero_static(x, size=1, out=out) is out and out.tolist() == [[0, 1]]
    with pytest.raises(RuntimeError, match="non-negative integer, got -1"):
        vesta.nonzero_static(x, size=-1)
    with pytest.raises(TypeError, match=r"expected int, got float \(fill_value\)"):
        vesta.nonzero_static(x, size=1, fill_value=0.5)


def test_empty_permuted() -> None:
    assert vesta.empty_permuted((2, 3, 5), (0, 2, 1)).stride() == (15, 1, 3)
    made = vesta.empty_permuted((2, 3, 5, 7), (0, 2, 3, 1), dtype=vesta.float64, requires_grad=True)
    assert made.is_contiguous(memory_format=vesta.channels_last) and made.dtype == vesta.float64 and made.requires_grad
    assert vesta.empty_permuted((0, 3), (1, 0)).shape == (0, 3) and vesta.empty_permuted((), ()).shape == ()
    for order, words in (((0,), "does not match"), ((0, 0), "each of 0 to 1 once"), ((0, 2), "each of 0 to 1 once")):
        with pytest.raises(RuntimeError, match=words):
            vesta.empty_permuted((2, 3), order)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "float16", "complex64"])
def test_triangles_of_any_diagonal(dtype: str) -> None:
    for shape in ((5, 7), (7, 5), (3, 4, 6), (1, 9), (9, 1), (300, 70)):
        a = (np.random.default_rng(0).random(shape) * 10).astype(dtype)
        x = vesta.tensor(a)
        for d in (-(2**63), -9, -1, 0, 1, 4, 2**63 - 1):
            near = max(-400, min(400, d))
            assert np.array_equal(x.tril(d).numpy(), np.tril(a, near)) and np.array_equal(
                x.triu(d).numpy(), np.triu(a, near)
            )
            assert np.array_equal(x.mT.tril(d).numpy(), np.tril(np.swapaxes(a, -1, -2), near))
            assert np.array_equal(x.clone().tril_(d).numpy(), np.tril(a, near))
            out = vesta.empty(0, dtype=x.dtype)
            assert np.array_equal(vesta.triu(x, d, out=out).numpy(), np.triu(a, near))


def test_triangles_that_no_cache_holds() -> None:
    x = vesta.rand(3000, 4099)
    assert np.array_equal(x.tril(5).numpy(), np.tril(x.numpy(), 5))
    assert np.array_equal(x.triu(-5).numpy(), np.triu(x.numpy(), -5))
