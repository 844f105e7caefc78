"""``einsum`` and ``tensordot`` against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import vesta

rng = np.random.default_rng(0)
CASES = [
    ("ij->ji", (2, 3)),
    ("ij", (2, 3)),
    ("ba", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->ji", (3, 3, 2)),
    ("ij->", (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("i,j->ji", (2,), (3,)),
    ("ij,k->kji", (2, 3), (4,)),
    ("ij,kj->kij", (2, 3), (4, 3)),
    ("ji,i->ij", (2, 3), (3,)),
    ("bi,bj->bij", (2, 3), (2, 4)),
    ("...i,...j->...ij", (2, 3), (5, 1, 4)),
    ("i,i", (4,), (4,)),
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bij,bjk->kbi", (2, 3, 4), (2, 4, 5)),
    ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ij,kl->il", (2, 3), (4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...i->...", (2, 3, 4)),
    ("i...,i...", (2, 3), (2, 1)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("i,ij,j->", (2,), (2, 3), (3,)),
    ("ab,bc,ad->cd", (2, 3), (3, 4), (2, 5)),
    ("ij,j,j->i", (2, 3), (3,), (3,)),
    ("ij,jk->ik", (2, 0), (0, 3)),
    ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    ("aibj,jbck->kcia", (2, 3, 4, 5), (5, 4, 6, 7)),
    ("ij,j->i", (2, 3), (3,)),
    ("bij,bij->b", (2, 3, 4), (2, 3, 4)),
    ("bij,bjk->bik", (2, 3, 4), (1, 4, 5)),
    ("bij,bjk->bik", (2, 3, 1), (2, 4, 5)),
    ("ijk,k->ij", (2, 3, 1), (1,)),
    ("", ()),
    (",i->i", (), (3,)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0] or "empty")
def test_values_and_gradients(case) -> None:
    equation, *shapes = case
    arrays = [rng.standard_normal(shape) for shape in shapes]
    tensors = [vesta.tensor(a, requires_grad=True) for a in arrays]
    got = vesta.einsum(equation, *tensors)
    want = np.einsum(equation, *arrays)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12, atol=1e-12)
    if got.numel():
        assert vesta.autograd.gradcheck(lambda *t: vesta.einsum(equation, *t), tuple(tensors))


def test_other_ways_to_call() -> None:
    x, y = vesta.rand(2, 3), vesta.rand(3, 4)
    want = x @ y
    assert vesta.allclose(vesta.einsum("ij,jk->ik", [x, y]), want)
    assert vesta.allclose(vesta.einsum(x, [0, 1], y, [1, 2], [0, 2]), want)
    assert vesta.allclose(vesta.einsum(x, [0, 1], y, [1, 2]), want)
    assert vesta.allclose(vesta.einsum(x, [..., 1], y, [1, 2], [..., 2]), want)
    assert vesta.einsum(" i j , j k -> i k ", x, y).shape == (2, 4)
    whole = vesta.arange(6).reshape(2, 3)
    assert vesta.einsum("ij,kj->ik", whole, whole).tolist() == [[5, 14], [14, 50]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: vesta.einsum("ij,jk", x), RuntimeError, "as many operands"),
        (lambda x: vesta.einsum("ijk", x), RuntimeError, r"shape \[2, 3\]"),
        (lambda x: vesta.einsum("i", x), RuntimeError, "each dimension"),
        (lambda x: vesta.einsum("ij,jk->ik", x, x), RuntimeError, "'j', got 3 and 2"),
        (lambda x: vesta.einsum("ij->ik", x), RuntimeError, "'k'"),
        (lambda x: vesta.einsum("ij->ii", x), RuntimeError, "2 times"),
        (lambda x: vesta.einsum("i1", x), RuntimeError, "'1'"),
        (lambda x: vesta.einsum("ii", x), RuntimeError, "2 and 3"),
        (lambda x: vesta.einsum("ij", 3), TypeError, "int at operand 0"),
        (lambda x: vesta.einsum(), ValueError, "nothing"),
        (lambda x: vesta.einsum("ij", None), TypeError, "NoneType"),
        (lambda x: vesta.tensordot(x, x, 1), RuntimeError, "3 at dim 1 of a and 2 at dim 0 of b"),
        (lambda x: vesta.tensordot(x, x, 3), RuntimeError, "dims"),
        (lambda x: vesta.tensordot(x, x, ([0], [5])), IndexError, "5"),
        (lambda x: vesta.tensordot(x, 1), TypeError, "'b'"),
        (lambda x: vesta.tensordot(x, x, (1, 0)), TypeError, "two lists of ints"),
    ],
)
def test_errors(call, error, words) -> None:
    with pytest.raises(error, match=words):
        call(vesta.ones(2, 3))


@pytest.mark.parametrize("dims", [0, 1, 2, ([1], [0]), ([0, 1], [1, 0]), ([-1], [0])], ids=str)
def test_tensordot(dims) -> None:
    a, b = rng.standard_normal((3, 4)), rng.standard_normal((4, 3))
    if dims == 2:
        b = b.T.copy()
    got = vesta.tensordot(vesta.tensor(a), vesta.tensor(b), dims)
    np.testing.assert_allclose(got.numpy(), np.tensordot(a, b, dims), rtol=1e-12)
    out = vesta.empty(0, dtype=vesta.float64) if dims == 0 else vesta.empty(got.shape, dtype=vesta.float64)
    if dims != 0:
        assert vesta.tensordot(vesta.tensor(a), vesta.tensor(b), dims, out=out) is out and vesta.equal(out, got)


def test_integers_keep_their_dtype_where_nothing_is_summed() -> None:
    x = vesta.tensor([[3, 4], [1, 2]], dtype=vesta.int32)
    assert vesta.einsum("db,c->bc", x[:1].to(vesta.int8), x[0].to(vesta.int8)).dtype == vesta.int8
    assert vesta.einsum("i,jk,kl->jl", x[0, :1], x, x).tolist() == [[39, 60], [15, 24]]


def test_out_of_tensordot_is_checked_and_resized() -> None:
    x = vesta.arange(6.0).reshape(2, 3)
    out = vesta.empty(0)
    assert vesta.tensordot(x, x, ([1], [1]), out=out) is out and out.tolist() == [[5, 14], [14, 50]]
    with pytest.raises((RuntimeError, ValueError)):
        vesta.tensordot(x, x, 2, out=vesta.ones(3, 3))
    with pytest.raises((RuntimeError, TypeError)):
        vesta.tensordot(x, x.mT, 1, out=vesta.zeros(2, 2, dtype=vesta.int64))
    with pytest.raises(TypeError, match="out"):
        vesta.tensordot(x, x, 2, out=3)
