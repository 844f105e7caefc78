"""Rows of the table of ops for sparse tensors, each by way of a dense one, and for views made in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import op_db_calls as c
import op_db_references as ref
import op_db_samples as s
import vesta
from op_db_row import Fixed, Maker, Row, Sample, call, structured

Array = np.ndarray


def with_zeros(make: Maker) -> Iterator[Sample]:
    """Matrices of which a part is zero, and a mask of the places that a sparse tensor has."""
    for shape in ((4, 5), (1, 7), (3, 1), (2, 3, 4)):
        keep = make.rng.random(shape) < 0.5
        yield call(make(*shape), Fixed(keep))


def kept(x: Array, keep: Array) -> Array:
    return np.where(keep, x, np.zeros((), x.dtype))


def scattered(x: Any, keep: Any) -> Any:
    """Builds the kept elements as a sparse tensor, every place twice, and makes it dense."""
    where = keep.nonzero().t()
    values = vesta._C._private._sparse_values(x.sparse_mask(vesta.sparse_coo_tensor(where, where[0] + 1, x.shape)))
    return vesta.sparse_coo_tensor(where, values, x.shape).coalesce().to_dense()


def round_trip(x: Any, keep: Any) -> Any:
    """Takes a sparse tensor apart and puts it together again."""
    sparse = vesta.where(keep, x, vesta.zeros_like(x)).to_sparse()
    again = vesta.sparse_coo_tensor(sparse._indices(), sparse.values(), sparse.shape)
    assert (again._indices() == sparse.indices()).all() and (again._values() == sparse._values()).all()
    return again.to_dense()


def summed(x: Any, keep: Any) -> Any:
    """Sums over the first dimension of a sparse tensor."""
    made = vesta.where(keep, x, vesta.zeros_like(x)).to_sparse()
    return vesta.sparse.sum(made, (0,)).to_dense()


def matrices_with_zeros(make: Maker) -> Iterator[Sample]:
    """Matrices of which a part is zero, also of vectors, and a mask of what is not."""
    for shape in ((4, 5), (1, 7), (3, 1), (2, 3, 4)):
        keep = make.rng.random(shape[:2]) < 0.5
        yield call(make(*shape), Fixed(keep if len(shape) == 2 else np.repeat(keep[..., None], shape[2], 2)))


def factors_with_zeros(make: Maker) -> Iterator[Sample]:
    """Matrices of which a part is zero, a mask of what is not, and a matrix to multiply by."""
    for n, m, k in ((4, 5, 3), (1, 7, 1), (70, 3, 70), (3, 2, 0)):
        yield call(make(n, m), Fixed(make.rng.random((n, m)) < 0.5), make(m, k))


def compressed(x: Any, keep: Any) -> Any:
    """Compresses a matrix by rows and by columns, and takes each apart and puts it together again."""
    sparse = vesta.where(keep, x, vesta.zeros_like(x))
    rows = sparse.to_sparse(layout=vesta.sparse_csr, dense_dim=x.dim() - 2)
    again = vesta.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), rows.values(), rows.shape)
    columns = again.to_sparse_csc()
    return vesta.sparse_csc_tensor(
        columns.ccol_indices(), columns.row_indices(), columns.values(), columns.shape
    ).to_dense()


def product(x: Any, keep: Any, y: Any) -> Any:
    """Multiplies a compressed matrix by a dense one."""
    return vesta.where(keep, x, vesta.zeros_like(x)).to_sparse_csr() @ y


OPS: tuple[Row, ...] = (
    structured(
        "sparse_mask",
        kept,
        with_zeros,
        fn=scattered,
        where="Tensor",
        method=False,
        ulp=0.5,
        dtypes="hfc",
        may="bui",
        covers=(
            *("sparse_mask", "coalesce", "to_dense", "_sparse_coo", "_sparse_values"),
            *("_sparse_numbers", "_sparse_places", "_sparse_order", "_sum_runs"),
        ),
    ),
    structured(
        "to_sparse",
        kept,
        with_zeros,
        fn=round_trip,
        where="Tensor",
        method=False,
        ulp=0.5,
        dtypes="hfc",
        may="bui",
        covers=("to_sparse", "_unique_values", "_unique_indices", "values", "indices", "_values", "_indices"),
    ),
    structured(
        "to_sparse_csr",
        kept,
        matrices_with_zeros,
        fn=compressed,
        where="Tensor",
        method=False,
        ulp=0.5,
        dtypes="hfc",
        may="bui",
        covers=(
            *("_sparse_compressed", "_compress", "_compressed_part"),
            *("crow_indices", "col_indices", "ccol_indices", "row_indices"),
        ),
    ),
    structured(
        "_csr_product",
        lambda x, keep, y: kept(x, keep) @ y,
        factors_with_zeros,
        fn=product,
        method=False,
        dtypes="fc",
        may="buih",
        ulp=0,
        norm=16,
        bitwise=False,
        covers=("_csr_product",),
    ),
    structured(
        "_sparse_sum",
        lambda x, keep: kept(x, keep).sum(0),
        with_zeros,
        fn=summed,
        method=False,
        dtypes="fc",
        may="buih",
        ulp=0,
        norm=16,
        bitwise=False,
        covers=("_sparse_sum",),
    ),
    structured(
        "unsqueeze_",
        np.expand_dims,
        s.shapes(((3,), 0), ((2, 3), -1), ((), 0)),
        fn=c.on_clone("unsqueeze_"),
        where="Tensor",
        ulp=0.5,
    ),
    structured(
        "squeeze_",
        ref.squeeze,
        s.shapes(((1, 3, 1),), ((1, 3, 1), 0), ((1, 3, 1), (0, 2)), ((2, 3), 1)),
        fn=c.on_clone("squeeze_"),
        where="Tensor",
        ulp=0.5,
        covers=("squeeze_", "_squeeze_"),
    ),
    structured(
        "transpose_",
        np.swapaxes,
        s.shapes(((2, 3), 0, 1), ((2, 3, 4), -1, 0)),
        fn=c.on_clone("transpose_"),
        where="Tensor",
        ulp=0.5,
        covers=("transpose_", "swapaxes_"),
    ),
    structured("t_", np.transpose, s.shapes(((2, 3),), ((3,),)), fn=c.on_clone("t_"), where="Tensor", ulp=0.5),
    structured(
        "as_strided_",
        ref.as_strided,
        s.shapes(((7,), (2, 3), (3, 1), 1), ((6,), (2, 2), (3, 1))),
        fn=c.on_clone("as_strided_"),
        ulp=0.5,
        covers=("as_strided_", "resize_", "resize_as_"),  # sizes: python/test_inplace_views.py
    ),
)
