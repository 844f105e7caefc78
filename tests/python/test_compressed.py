"""Matrices that are compressed by rows or columns: what they are made of, products, gradients, files."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import vesta
from vesta import Tensor
from vesta.autograd import gradcheck

DENSE = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]])


def csr(dtype: Any = vesta.float32, requires_grad: bool = False, index: Any = vesta.int64) -> Tensor:
    """Makes DENSE by rows."""
    ends, columns = vesta.tensor([0, 2, 3, 3], dtype=index), vesta.tensor([0, 2, 1], dtype=index)
    return vesta.sparse_csr_tensor(ends, columns, [1.0, 2.0, 3.0], (3, 3), dtype=dtype, requires_grad=requires_grad)


def test_parts_and_kinds() -> None:
    """A matrix says how it is stored, and gives its parts; those of another layout raise."""
    a = csr()
    assert a.layout is vesta.sparse_csr and a.is_sparse_csr and not a.is_sparse and a.shape == (3, 3)
    assert a.crow_indices().tolist() == [0, 2, 3, 3] and a.col_indices().tolist() == [0, 2, 1]
    assert a.values().tolist() == [1, 2, 3] and (a._nnz(), a.sparse_dim(), a.dense_dim()) == (3, 2, 0)
    b = a.to_sparse_csc()
    assert b.layout is vesta.sparse_csc and not b.is_sparse_csr and not b.is_sparse
    assert b.ccol_indices().tolist() == [0, 1, 2, 3] and b.row_indices().tolist() == [0, 1, 0]
    assert b.values().tolist() == [1, 3, 2]
    assert csr(index=vesta.int32).crow_indices().dtype == vesta.int32
    for x, names in (
        (a, "ccol_indices row_indices indices _indices _values coalesce is_coalesced"),
        (b, "crow_indices col_indices indices coalesce"),
        (a.to_sparse(), "crow_indices col_indices ccol_indices"),
        (vesta.ones(2, 2), "crow_indices values"),
    ):
        for name in names.split():
            with pytest.raises(RuntimeError, match=f"{name}: "):
                getattr(x, name)()


@pytest.mark.parametrize("layout", [vesta.sparse_coo, vesta.sparse_csr, vesta.sparse_csc], ids=str)
@pytest.mark.parametrize("other", [vesta.sparse_coo, vesta.sparse_csr, vesta.sparse_csc], ids=str)
@pytest.mark.parametrize("shape", [(5, 7), (1, 4), (4, 1), (0, 3), (3, 0), (4, 5, 2)], ids=str)
def test_every_layout_becomes_every_other(layout: Any, other: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x = vesta.from_numpy(rng.standard_normal(shape) * np.repeat(rng.random((*shape[:2], 1)) < 0.4, 2, 2)[..., 0, None]
                         if len(shape) == 3 else rng.standard_normal(shape) * (rng.random(shape) < 0.4))  # fmt: skip
    made = x.to_sparse(layout=layout, dense_dim=len(shape) - 2)
    assert made.layout is layout and vesta.equal(made.to_dense(), x)
    again = made.to_sparse(layout=other)
    assert again.layout is other and vesta.equal(again.to_dense(), x)
    if len(shape) == 2:
        turned = made.t()
        assert vesta.equal(turned.to_dense(), x.t())
        assert turned.layout is {vesta.sparse_csr: vesta.sparse_csc, vesta.sparse_csc: vesta.sparse_csr}.get(
            layout, vesta.sparse_coo
        )


@pytest.mark.parametrize("index", [vesta.int32, vesta.int64], ids=str)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16, vesta.int64, vesta.complex64], ids=str)
def test_products(dtype: Any, index: Any) -> None:
    """Every form of a product with a dense matrix gives that of the dense ones."""
    a, whole = csr(dtype, index=index), vesta.from_numpy(DENSE).to(dtype)
    b, v = vesta.arange(6).reshape(3, 2).to(dtype), vesta.arange(3).to(dtype)
    left = vesta.arange(6).reshape(2, 3).to(dtype)
    for sparse in (a, a.to_sparse_csc(), a.to_sparse()):
        for f in (
            lambda m: m @ b,
            lambda m: m.mm(b),
            lambda m: vesta.sparse.mm(m, b) if m.layout != vesta.strided else m @ b,
            lambda m: m.mv(v),
            lambda m: m @ v,
            lambda m: left @ m,
            lambda m: vesta.addmm(b, m, b, beta=2, alpha=3),
            lambda m: vesta.addmv(v, m, v),
            lambda m: vesta.nn.functional.linear(left, m),
        ):
            got = f(sparse)
            assert got.layout is vesta.strided and vesta.equal(got, f(whole)), str(sparse.layout)
    made = a @ a.t()
    assert made.layout is vesta.sparse_csr and vesta.equal(made.to_dense(), whole @ whole.t())


def test_a_product_does_not_depend_on_threads_or_columns() -> None:
    rng = np.random.default_rng(5)
    a = vesta.from_numpy(rng.standard_normal((300, 200)) * (rng.random((300, 200)) < 0.1)).float().to_sparse_csr()
    b = vesta.from_numpy(rng.standard_normal((200, 130))).float()
    whole, threads = a @ b, vesta.get_num_threads()
    try:
        for n in (1, 2, 3):
            vesta.set_num_threads(n)
            assert vesta.equal(a @ b, whole)
    finally:
        vesta.set_num_threads(threads)
    assert vesta.equal(a @ b[:, 3:70], whole[:, 3:70]) and vesta.equal(a @ b.t().contiguous().t(), whole)
    assert vesta.equal(a.to_sparse() @ b, whole)
    assert (whole - a.to_dense() @ b).abs().max() < 1e-4


def test_gradients() -> None:
    """Gradients by values, by the dense factor and through conversions are those of differences."""
    ends, columns = vesta.tensor([0, 2, 3, 3]), vesta.tensor([0, 2, 1])

    def of(make: Callable[..., Tensor]) -> None:
        values = vesta.tensor([1.0, 2.0, 3.0], dtype=vesta.float64, requires_grad=True)
        b = vesta.arange(6.0, dtype=vesta.float64).reshape(3, 2).requires_grad_()
        assert gradcheck(lambda v, m: make(v) @ m, (values, b))
        assert gradcheck(lambda v, m: (make(v) * 2).t() @ m, (values, b))
        assert gradcheck(lambda v: make(v).to_dense() ** 2, (values,))
        assert gradcheck(lambda v: (make(v) * 3).values(), (values,))
        assert gradcheck(lambda v: make(v).to_sparse().to_sparse_csc().values(), (values,))

    of(lambda v: vesta.sparse_csr_tensor(ends, columns, v, (3, 3)))
    of(lambda v: vesta.sparse_csc_tensor(ends, columns, v, (3, 3)))
    x = vesta.from_numpy(DENSE).requires_grad_()
    (x.to_sparse_csr() @ vesta.ones(3, 2, dtype=vesta.float64)).sum().backward()
    assert x.grad.tolist() == (2.0 * (DENSE != 0)).tolist()


def test_the_gradient_of_a_matrix_has_its_layout() -> None:
    for use in (
        lambda a: a @ vesta.ones(3, 2),
        lambda a: a.to_dense() * 2,
        lambda a: a.values() * 2,
        lambda a: (a * 2).to_dense(),
        lambda a: vesta.addmm(vesta.ones(3, 2), a, vesta.ones(3, 2)),
    ):
        a = csr(requires_grad=True)
        for k in (1, 2):
            use(a).sum().backward()
            assert a.grad.layout is vesta.sparse_csr and a.grad.values().tolist() == [2 * k] * 3
            assert a.grad.col_indices().tolist() == [0, 2, 1]


def test_arithmetic_keeps_the_layout() -> None:
    whole = vesta.from_numpy(DENSE).float()
    for a in (csr(), csr().to_sparse_csc()):
        for f in (lambda m: m * 2, lambda m: -m, lambda m: m.sqrt(), lambda m: m.abs(), lambda m: m + m,
                  lambda m: m * m, lambda m: m * whole, lambda m: m.to(vesta.float64), lambda m: m.clone(),
                  lambda m: m.detach(), lambda m: vesta.zeros_like(m), lambda m: m / 2):  # fmt: skip
            got = f(a)
            assert got.layout is a.layout and vesta.equal(got.to_dense(), f(whole)), got
        b = a.clone()
        assert b.mul_(2) is b and b.layout is a.layout and vesta.equal(b.to_dense(), whole * 2)
        assert vesta.equal(b.copy_(a).add_(a).to_dense(), whole * 2) and b.zero_()._nnz() == 0
        assert vesta.equal(b.to_dense(), whole * 0) and vesta.equal(a.to_dense(), whole)
        assert vesta.equal(a + whole, whole * 2) and vesta.equal(whole + a, whole * 2)
        assert a.sum().item() == 6 and a[0].to_dense().tolist() == [1, 0, 2] and a[0, 2].item() == 2
    with pytest.raises(RuntimeError, match="copy_: expected sparse tensors of one layout"):
        csr().copy_(csr().to_sparse())


def test_copies_and_files() -> None:
    for a in (csr(), csr().to_sparse_csc(), csr(index=vesta.int32), csr(requires_grad=True)):
        stream = io.BytesIO()
        vesta.save({"a": a}, stream)
        stream.seek(0)
        loaded = vesta.load(stream)["a"]
        for again in (copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a)), loaded):
            assert again.layout is a.layout and vesta.equal(again.to_dense(), a.to_dense())
            assert again.requires_grad == (a.requires_grad and again is not loaded)
        parts = "crow_indices" if a.layout is vesta.sparse_csr else "ccol_indices"
        assert getattr(loaded, parts)().dtype == getattr(a, parts)().dtype


def test_printing() -> None:
    assert repr(csr()) == (
        "tensor(crow_indices=tensor([0, 2, 3, 3]),\n       col_indices=tensor([0, 2, 1]),\n"
        "       values=tensor([1., 2., 3.]),\n       size=(3, 3), nnz=3, layout=vesta.sparse_csr)"
    )
    assert "ccol_indices=tensor([0, 1, 2, 3])" in repr(csr().to_sparse_csc())


@pytest.mark.differs
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1, 3], [0, 1], [1.0, 2.0], (2, 2)), "rise from 0 to the number of elements"),
        (([1, 1, 2], [0, 1], [1.0, 2.0], (2, 2)), "rise from 0"),
        (([0, 2, 1, 2], [0, 1], [1.0, 2.0], (3, 2)), "rise from 0"),
        (([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2)), "distinct and rise"),
        (([0, 2, 2], [1, 1], [1.0, 2.0], (2, 2)), "distinct and rise"),
        (([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2)), "plain indices from 0 to 1"),
        (([0, 1, 2], [0, -1], [1.0, 2.0], (2, 2)), "plain indices from 0 to 1"),
        (([0, 1, 2], [0, 1], [1.0, 2.0, 3.0], (2, 2)), "expected values of sizes"),
        (([0, 1], [0, 1], [1.0, 2.0], (2, 2)), "expected 3 compressed indices"),
        (([0.0, 1, 2], [0, 1], [1.0, 2.0], (2, 2)), "int32 or of int64"),
        (([0, 1, 2], [0, 1], [1.0, 2.0], (2,)), "expected 2 sizes"),
        (([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2, 2)), "expected 2 sizes"),
        (
            (vesta.tensor([0, 1, 2], dtype=vesta.int32), [0, 1], [1.0, 2.0], (2, 2)),
            "int32 and vesta.int64|int32 and int64",
        ),
    ],
)
def test_indices_that_are_no_matrix_raise(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        vesta.sparse_csr_tensor(*arguments)


@pytest.mark.differs
@pytest.mark.parametrize("place", [10**12, -1, 3])
def test_indices_that_were_written_in_place_read_no_other_memory(place: int) -> None:
    """A product of what is no matrix any more raises, whether the parts were its own or the program's."""
    b = vesta.ones(3, 2)
    for layout in (vesta.sparse_coo, vesta.sparse_csr):
        a = vesta.from_numpy(DENSE).float().to_sparse(layout=layout)
        columns = a.col_indices() if layout is vesta.sparse_csr else a._indices()[1]
        columns[1] = place
        for product, other in ((Tensor.mm, b), (Tensor.mv, b[:, 0])):
            with pytest.raises(IndexError, match="expected indices of a sparse matrix with 3 columns"):
                product(a, other)
    for at in range(4):
        ends = vesta.tensor([0, 2, 3, 3])
        a = vesta.sparse_csr_tensor(ends, [0, 2, 1], [1.0, 2.0, 3.0], (3, 3))
        ends[at] = place if place != 3 or at < 1 else 7
        with pytest.raises(IndexError, match="changed in place"):
            a @ b


@pytest.mark.differs
def test_a_layout_that_is_not_made_is_refused() -> None:
    a = csr()
    assert vesta.zeros(2, layout=vesta.strided).layout is vesta.strided
    assert vesta.zeros_like(a, layout=vesta.sparse_csr).layout is vesta.sparse_csr
    for f in (
        lambda: vesta.zeros(2, 3, layout=vesta.sparse_csr),
        lambda: vesta.ones(2, layout=vesta.sparse_coo),
        lambda: vesta.empty(2, layout=vesta.sparse_coo),
        lambda: vesta.ones(2).new_zeros(2, layout=vesta.sparse_coo),
        lambda: vesta.zeros_like(vesta.ones(2, 2), layout=vesta.sparse_csc),
        lambda: vesta.zeros_like(a, layout=vesta.strided),
    ):
        with pytest.raises(NotImplementedError, match=r"(zeros|ones|empty|zeros_like): expected .*layout"):
            f()
    with pytest.raises(TypeError, match="layout"):
        vesta.zeros(2, layout=5)  # type: ignore[arg-type]


def test_other_calls_are_refused() -> None:
    with pytest.raises(RuntimeError, match="sizes >= 0"):
        vesta.sparse_csr_tensor([0, 1], [0], [5.0], (1, -1))
    with pytest.raises(RuntimeError, match="sparse_coo, got vesta.sparse_csr"):
        vesta.sparse.softmax(csr(), 1)
    with pytest.raises(RuntimeError, match="layout"):
        vesta.sparse_compressed_tensor([0, 1], [0], [1.0], (1, 1))
    with pytest.raises(TypeError, match="size"):
        vesta.sparse_csr_tensor([0, 1], [0], [1.0], "a")
    with pytest.raises(NotImplementedError, match="blocksize"):
        vesta.ones(2, 2).to_sparse(layout=vesta.sparse_csr, blocksize=(1, 1))
    with pytest.raises(RuntimeError, match="to_sparse_csr: expected a matrix"):
        vesta.ones(2).to_sparse_csr()
    with pytest.raises(NotImplementedError, match="batch"):
        vesta.ones(2, 2, 2).to_sparse_csr()
    for f in (lambda a: a.numpy(), lambda a: a.cos(), lambda a: a.data_ptr(), lambda a: a.untyped_storage()):
        with pytest.raises((NotImplementedError, TypeError), match="(?i)sparse|dense"):
            f(csr())


def test_reductions_of_a_product() -> None:
    """sparse.mm with reduce is that of each row's terms; rows without elements give 0."""
    b = vesta.arange(6.0).reshape(3, 2)
    a = csr(requires_grad=True)
    assert vesta.sparse.mm(a, b, "mean").tolist() == [[4, 5.5], [6, 9], [0, 0]]
    assert vesta.sparse.mm(a, b, "amax").tolist() == [[8, 10], [6, 9], [0, 0]]
    assert vesta.sparse.mm(a, b, "amin").tolist() == [[0, 1], [6, 9], [0, 0]]
    assert vesta.equal(vesta.sparse.mm(a, b, "sum"), a @ b)
    vesta.sparse.mm(a, b, "amax").sum().backward()
    assert a.grad.layout is vesta.sparse_csr and a.grad.values().tolist() == [0, 9, 5]
    with pytest.raises(NotImplementedError, match="sparse_csr"):
        vesta.sparse.mm(csr().to_sparse(), b, "mean")
    with pytest.raises(RuntimeError, match="reduce"):
        vesta.sparse.mm(csr(), b, "prod")


def test_products_at_the_places_of_a_matrix() -> None:
    x, y = vesta.arange(6.0).reshape(3, 2), vesta.arange(6.0).reshape(2, 3)
    got = vesta.sparse.sampled_addmm(csr(), x, y, beta=2.0, alpha=3.0)
    assert got.layout is vesta.sparse_csr
    assert vesta.equal(
        got.to_dense(), (2 * vesta.from_numpy(DENSE).float() + 3 * (x @ y)) * vesta.from_numpy(DENSE != 0)
    )
    for call in (
        lambda: vesta.sparse.sampled_addmm(csr().to_sparse(), x, y),
        lambda: vesta.sparse.sampled_addmm(csr(), x, x),
        lambda: vesta.sparse.sampled_addmm(csr(), x[:2], y),
    ):
        with pytest.raises(RuntimeError, match="sampled_addmm"):
            call()


def test_copies_of_indices() -> None:
    assert vesta.crow_indices_copy(csr()).tolist() == [0, 2, 3, 3] and vesta.col_indices_copy(csr()).tolist() == [
        0,
        2,
        1,
    ]
    turned = csr().to_sparse_csc()
    assert vesta.ccol_indices_copy(turned).tolist() == [0, 1, 2, 3]
    assert vesta.row_indices_copy(turned).tolist() == [0, 1, 0]
