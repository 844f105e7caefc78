"""Sparse tensors as coordinates (COO), and matrices by rows (CSR) or columns (CSC): ``torch.sparse``.

A sparse tensor has ``indices()`` [s, nnz] and ``values()`` [nnz, *]: what is stored, and where in the first s
dimensions. Everything else is zero. It is a ``Tensor`` with the layout ``vesta.sparse_coo``: sums, products with
numbers, dense and sparse tensors, matrix products, ``sum``, ``transpose``, ``coalesce()``, ``to_dense()`` and their
gradients work; what does not, raises and says so. The gradient of ``nn.Embedding(sparse=True)`` is one. A compressed
matrix has ``crow_indices()`` and ``col_indices()`` (``ccol_indices()`` and ``row_indices()``) in their place.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from numbers import Integral
from typing import Any

from vesta._names import listing
from vesta._types import Data, Device, DType

from . import _C
from ._arguments import checked, expect
from ._C import Tensor, _private

__all__ = ["addmm", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "sum"]


def __getattr__(name: str) -> Any:
    """Returns what older programs call: ``FloatTensor(indices, values, size)`` makes a sparse tensor of that dtype."""
    from .tensor_types import NAMES

    for dtype, kind in NAMES.items():
        if kind == name:
            return functools.partial(sparse_coo_tensor, dtype=getattr(_C, dtype))
    raise AttributeError(f"module 'vesta.sparse' has no attribute {name!r}")


def sparse_coo_tensor(
    indices: Data = None,
    values: Data = None,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """Returns the sparse tensor of ``values`` [nnz, *] at the places ``indices`` [s, nnz].

    Args:
        indices: integers: column k says where ``values[k]`` stands in the first s dimensions. A place may occur more
            than once; its values add up. Sizes alone, ``sparse_coo_tensor((2, 3))``, give a tensor of zeros.
        values: a tensor, or numbers.
        size: the sizes of all dimensions; without it the smallest that hold the indices.
        is_coalesced: promises that every place occurs once, in lexicographic order.
        pin_memory, check_invariants: accepted for PyTorch's sake; indices, and that promise, are always checked.

    Raises:
        RuntimeError: an index out of range, sizes that do not fit, or a promise that does not hold.

    Example::

        >>> import vesta
        >>> vesta.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if values is None:
        given = indices if size is None else size
        if not isinstance(given, (tuple, list)) or not all(isinstance(n, int) for n in given):
            raise TypeError(f"sparse_coo_tensor: expected sizes, got {type(given).__name__} (size).")
        return _zeros(tuple(given), dtype, device, requires_grad)
    if isinstance(values, Tensor):
        made = values if dtype is None and device is None else values.to(device or values.device, dtype or values.dtype)
    else:
        made = _C.tensor(values, dtype=dtype, device=device)
    where = indices if isinstance(indices, Tensor) else _C.tensor(indices)
    if where.numel() == 0 and where.dim() == 1:
        where = where.reshape(1, 0)
    if where.is_floating_point() or where.is_complex():
        raise RuntimeError(f"sparse_coo_tensor: indices must be integers, got {where.dtype}.")
    if where.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where.shape)}")
    where = where.to(made.device, _C.int64)
    if made.dim() == 0:
        made = made.expand(where.size(1))
    if made.size(0) != where.size(1):
        raise RuntimeError(
            f"sparse_coo_tensor: expected as many values as indices, got {made.size(0)} and {where.size(1)}."
        )
    if size is None:
        found = where.max(1).values + 1 if where.size(1) else where.new_zeros((where.size(0),))
        shape = (*found.tolist(), *made.shape[1:])
    else:
        expect("sparse_coo_tensor", "size", size, (tuple, list), "sizes")
        for n in size:
            expect("sparse_coo_tensor", "size", n, Integral, "sizes")
        shape = tuple(int(n) for n in size)
    _check_range(where, shape)
    if is_coalesced:
        _check_order(where, shape)
    result = _private._sparse_coo(where, made, shape, bool(is_coalesced))
    return result.detach().requires_grad_() if requires_grad else result


def _zeros(size: tuple[int, ...], dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    where = _C._ops.zeros((len(size), 0), dtype=_C.int64, device=device)
    result = _private._sparse_coo(where, _C._ops.zeros((0,), dtype=dtype, device=device), size, True)
    return result.requires_grad_() if requires_grad else result


def _check_order(where: Tensor, shape: tuple[int, ...]) -> None:
    """Raises RuntimeError unless each column of indices comes after the one before; products rely on it."""
    if where.is_meta or where.numel() == 0:
        return
    place = where[0]
    for row, size in zip(where[1:], shape[1:]):
        place = place * size + row
    if bool((place[1:] <= place[:-1]).any()):
        raise RuntimeError(
            "sparse_coo_tensor: cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor. "
            "Leave it out and call coalesce()."
        )


def _check_range(where: Tensor, shape: tuple[int, ...]) -> None:
    """Raises RuntimeError for an index that is negative or too large; on the meta device there are no values."""
    if where.is_meta:
        return
    if any(n < 0 for n in shape):
        raise RuntimeError(f"sparse_coo_tensor: expected sizes >= 0, got {list(shape)}.")
    if where.size(0) > len(shape):
        raise RuntimeError(
            f"number of dimensions must be sparse_dim ({where.size(0)}) + dense_dim, but got {len(shape)}"
        )
    if where.numel() == 0:
        return
    for dim, (low, high) in enumerate(zip(where.min(1).values.tolist(), where.max(1).values.tolist())):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
        if high >= shape[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {shape[dim]} but found index {high}"
            )


def sparse_csr_tensor(
    crow_indices: Data,
    col_indices: Data,
    values: Data,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns the matrix that is compressed by rows: row i has ``values[crow_indices[i] : crow_indices[i + 1]]``.

    Args:
        crow_indices: ``[n + 1]`` integers, rising from 0 to the number of values.
        col_indices: the column of each value; they rise along each row.
        values: ``[nnz, *]``, a tensor or numbers.
        size: ``(n, m, *)``; without it the smallest that holds the columns.
        pin_memory, check_invariants: accepted for PyTorch's sake; indices are always checked.

    Raises:
        RuntimeError: indices of another form, or sizes that do not fit.

    Example::

        >>> import vesta
        >>> vesta.sparse_csr_tensor([0, 1, 3], [2, 0, 1], [3.0, 4.0, 5.0], (2, 3)).to_dense()
        tensor([[0., 0., 3.],
                [4., 5., 0.]])
    """
    return _compressed("sparse_csr_tensor", True, crow_indices, col_indices, values, size, dtype, device, requires_grad)


def sparse_csc_tensor(
    ccol_indices: Data,
    row_indices: Data,
    values: Data,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns the matrix that is compressed by columns, as ``sparse_csr_tensor`` does by rows.

    Example::

        >>> import vesta
        >>> vesta.sparse_csc_tensor([0, 1, 3], [1, 0, 1], [3.0, 4.0, 5.0], (2, 2)).to_dense()
        tensor([[0., 4.],
                [3., 5.]])
    """
    return _compressed(
        "sparse_csc_tensor", False, ccol_indices, row_indices, values, size, dtype, device, requires_grad
    )


def sparse_compressed_tensor(
    compressed_indices: Data,
    plain_indices: Data,
    values: Data,
    size: Sequence[int] | None = None,
    *,
    dtype: DType | None = None,
    layout: _C.layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """Returns a matrix of the layout ``sparse_csr`` or ``sparse_csc``.

    Example::

        >>> import vesta
        >>> vesta.sparse_compressed_tensor([0, 1], [1], [3.0], (1, 2), layout=vesta.sparse_csr).to_dense()
        tensor([[0., 3.]])
    """
    if layout not in (_C.sparse_csr, _C.sparse_csc):
        raise RuntimeError(f"sparse_compressed_tensor: expected sparse_csr or sparse_csc, got {layout} (layout).")
    make = sparse_csr_tensor if layout is _C.sparse_csr else sparse_csc_tensor
    return make(
        compressed_indices, plain_indices, values, size, dtype=dtype, device=device, requires_grad=requires_grad
    )


def _compressed(
    op: str,
    by_rows: bool,
    compressed: Any,
    plain: Any,
    values: Any,
    size: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
) -> Tensor:
    def given(data: Any, **how: Any) -> Tensor:
        return data if isinstance(data, Tensor) else _C.tensor(data, **how)

    made = given(values, dtype=dtype, device=device)
    made = made.to(device or made.device, dtype or made.dtype)
    ends, places = (given(data, dtype=None).to(made.device) for data in (compressed, plain))
    if places.numel() == 0 and not isinstance(plain, Tensor):
        places = places.to(ends.dtype)  # an empty list has no dtype of its own
    if size is None:
        if ends.dim() != 1 or places.dim() != 1:
            raise RuntimeError(f"{op}: expected two vectors, got {list(ends.shape)} and {list(places.shape)}.")
        lines, length = max(ends.numel() - 1, 0), int(places.max()) + 1 if places.numel() else 0
        size = ((lines, length) if by_rows else (length, lines)) + tuple(made.shape[1:])
    expect(op, "size", size, (tuple, list), "sizes")
    for n in size:
        expect(op, "size", n, Integral, "sizes")
    result = _private._sparse_compressed(ends, places, made, tuple(int(n) for n in size), by_rows)
    return result.detach().requires_grad_() if requires_grad else result


@checked
def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """Returns the product of two matrices, at least one of them sparse; of two sparse ones, sparse.

    The gradient of a sparse matrix is sparse, with its places.

    Args:
        reduce: ``"mean"``, ``"amax"`` or ``"amin"`` of a row's terms in the place of their sum; for a matrix in CSR.

    Raises:
        RuntimeError: sizes that do not fit, two dense matrices, or another ``reduce``.

    Example::

        >>> import vesta
        >>> a = vesta.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
        >>> vesta.sparse.mm(a, vesta.ones(2, 1))
        tensor([[2.],
                [3.]])
    """
    if reduce not in (None, "sum", *_SEGMENTS):
        raise RuntimeError(f"sparse.mm: expected one of 'sum', 'mean', 'amax', 'amin', got {reduce!r} (reduce).")
    if mat1.layout is _C.strided and mat2.layout is _C.strided:
        raise RuntimeError("sparse.mm: expected a sparse matrix, got two dense ones. Use vesta.mm.")
    if reduce in (None, "sum"):
        return _C._ops.mm(mat1, mat2)
    if mat1.layout is not _C.sparse_csr or mat2.layout is not _C.strided or mat1.dense_dim() > 0:
        raise NotImplementedError("sparse.mm: expected a matrix in sparse_csr and a dense one (reduce).")
    if mat2.dim() != 2 or mat1.size(1) != mat2.size(0):
        raise RuntimeError(
            f"sparse.mm: expected matrices whose inner sizes agree, got {list(mat1.shape)} and {list(mat2.shape)}."
        )
    ends = mat1.crow_indices().to(_C.int64)
    terms = mat1.values().unsqueeze(1) * _C._ops.index_select(mat2, 0, mat1.col_indices().to(_C.int64))
    made = _C._ops.segment_reduce(terms, _SEGMENTS[reduce], offsets=ends)
    return _C._ops.where((ends[1:] == ends[:-1]).unsqueeze(1), 0, made)  # a row without elements


#: The reductions of a product's terms by their names in ``segment_reduce``.
_SEGMENTS = {"mean": "mean", "amax": "max", "amin": "min"}


@checked
def sampled_addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0, out: Tensor | None = None
) -> Tensor:
    """Returns ``beta * input + alpha * (mat1 @ mat2)`` at the places of ``input``, a matrix in CSR.

    Example::

        >>> import vesta
        >>> a = vesta.sparse_csr_tensor([0, 1, 1], [1], [5.0], (2, 2))
        >>> vesta.sparse.sampled_addmm(a, vesta.ones(2, 3), vesta.ones(3, 2)).values()
        tensor([8.])
    """
    if input.layout is not _C.sparse_csr:
        raise RuntimeError(f"sampled_addmm: Expected input in sparse_csr, got {input.layout} (input).")
    if mat1.dim() != 2 or mat2.dim() != 2 or mat1.size(1) != mat2.size(0):
        raise RuntimeError(
            f"sampled_addmm: expected matrices whose inner sizes agree, got {list(mat1.shape)} and {list(mat2.shape)}."
        )
    if input.shape != (mat1.size(0), mat2.size(1)):
        raise RuntimeError(
            f"sampled_addmm: expected input of the product's sizes [{mat1.size(0)}, {mat2.size(1)}], got "
            f"{list(input.shape)} (input)."
        )
    rows, columns = input.detach().to_sparse().indices()
    terms = _C._ops.index_select(mat1, 0, rows) * _C._ops.index_select(mat2.t(), 0, columns)
    values = input.values() * beta + terms.sum(1) * alpha
    made = _private._sparse_compressed(input.crow_indices(), input.col_indices(), values, tuple(input.shape), True)
    return made if out is None else out.copy_(made)


@checked
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Returns ``mm(input, mat2)``; two dense matrices are taken too."""
    return _C._ops.mm(input, mat2)


@checked
def addmm(mat: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    """Returns ``beta * mat + alpha * (mat1 @ mat2)`` for a sparse ``mat1``.

    Example::

        >>> import vesta
        >>> a = vesta.sparse_coo_tensor([[0], [1]], [2.0], (2, 2))
        >>> vesta.sparse.addmm(vesta.ones(2, 1), a, vesta.ones(2, 1))
        tensor([[3.],
                [1.]])
    """
    return mat * beta + mm(mat1, mat2) * alpha


@checked
def sum(input: Tensor, dim: int | tuple[int, ...] | list[int] | None = None, dtype: _C.dtype | None = None) -> Tensor:
    """Returns the sum of all elements, or over some dimensions: sparse if a sparse dimension is left.

    Example::

        >>> import vesta
        >>> a = vesta.sparse_coo_tensor([[0, 1], [1, 1]], [2.0, 3.0], (2, 2))
        >>> vesta.sparse.sum(a)
        tensor(5.)
        >>> vesta.sparse.sum(a, 0).to_dense()
        tensor([0., 5.])
    """
    if dim is None:
        return input.sum(dtype=dtype)
    dims = (int(dim),) if isinstance(dim, Integral) else tuple(dim)
    made = input.sum(dims) if input.layout is _C.strided else _private._sparse_sum(input, dims)
    return made if dtype is None else made.to(dtype)


@checked
def _convert_indices_from_coo_to_csr(input: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Returns where each of ``size`` rows begins, and the last one ends, among the sorted row numbers ``input``.

    Example::

        >>> import vesta
        >>> vesta.sparse._convert_indices_from_coo_to_csr(vesta.tensor([0, 0, 2]), 3)
        tensor([0, 2, 2, 3])
    """
    if input.dim() > 1:
        raise RuntimeError(f"Input is supposed to be a vector, but got {input.dim()} dimensional tensor.")
    kind = _C.int32 if out_int32 else _C.int64
    counts = _C._ops.bincount(input.reshape(-1), minlength=size)
    if counts.numel() > size:
        raise RuntimeError(
            f"_convert_indices_from_coo_to_csr: expected rows below {size} (size), got {counts.numel() - 1} (input)."
        )
    return _C._ops.cat([counts.new_zeros(1), counts.cumsum(0)]).to(kind)


@checked
def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Returns the row and the column of each element [2, nnz], rows first unless ``transpose``.

    Example::

        >>> import vesta
        >>> vesta.sparse._convert_indices_from_csr_to_coo(vesta.tensor([0, 2, 2, 3]), vesta.tensor([1, 2, 0]))
        tensor([[0, 0, 2],
                [1, 2, 0]])
    """
    if crow_indices.dim() != 1 or col_indices.dim() != 1:
        raise RuntimeError(
            "_convert_indices_from_csr_to_coo: expected two vectors, got "
            f"{list(crow_indices.shape)} (crow_indices) and {list(col_indices.shape)} (col_indices)."
        )
    counts = (crow_indices[1:] - crow_indices[:-1]).to(_C.int64)
    rows = _C._ops.repeat_interleave(_C._ops.arange(counts.numel(), device=counts.device), counts)
    kind = _C.int32 if out_int32 else _C.int64
    pair = [rows.to(kind), col_indices.to(kind)]
    return _C._ops.stack(pair[::-1] if transpose else pair)


@checked
def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: tuple[int, ...] | list[int], layout: _C.layout | None = None
) -> Tensor:
    """Returns a sparse matrix with rows of ``diagonals`` on its diagonals.

    Args:
        diagonals: ``[n, m]``, or ``[m]`` for one diagonal; column j of it goes into column j of the matrix.
        offsets: ``[n]`` integers, each another one: 0 for the main diagonal, positive above it.
        shape: the matrix's two sizes.
        layout: ``sparse_coo`` (if absent), ``sparse_csr`` or ``sparse_csc``.

    Raises:
        RuntimeError: shapes that do not fit, or an offset that comes twice.

    Example::

        >>> import vesta
        >>> vesta.sparse.spdiags(vesta.tensor([[1.0, 2.0], [3.0, 4.0]]), vesta.tensor([0, 1]), (2, 2)).to_dense()
        tensor([[1., 4.],
                [0., 2.]])
    """
    import vesta

    if layout not in (None, vesta.sparse_coo, vesta.sparse_csr, vesta.sparse_csc):
        raise NotImplementedError(f"spdiags: expected sparse_coo, sparse_csr or sparse_csc, got {layout} (layout).")
    rows = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    places = offsets.reshape(-1)
    if rows.dim() != 2 or len(shape) != 2 or places.numel() != rows.shape[0]:
        raise RuntimeError(
            "spdiags: expected a row of diagonals for each offset and a shape of 2 sizes, got "
            f"{list(diagonals.shape)}, {places.numel()} offsets and the shape {list(shape)}."
        )
    if places.unique().numel() != places.numel():
        raise RuntimeError(f"spdiags: expected each offset once, got {places.tolist()} (offsets).")
    column = vesta.arange(rows.shape[1], device=rows.device).expand(rows.shape)
    row = column - places.unsqueeze(1)
    inside = (row >= 0) & (row < shape[0]) & (column < shape[1])
    made = sparse_coo_tensor(vesta.stack([row[inside], column[inside]]), rows[inside], tuple(shape))
    return made if layout is None else made.to_sparse(layout=layout)


@checked
def softmax(input: Tensor, dim: int, *, dtype: _C.dtype | None = None) -> Tensor:
    """Returns the softmax along ``dim`` over the elements that are stored: a sparse tensor with the same places.

    Example::

        >>> import vesta
        >>> a = vesta.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
        >>> vesta.sparse.softmax(a, 1).values()
        tensor([0.5000, 0.5000])
    """
    where, shifted, total = _shifted("softmax", input, dim, dtype)
    return _private._sparse_coo(where, shifted.exp() / total, tuple(input.shape), True)


@checked
def log_softmax(input: Tensor, dim: int, *, dtype: _C.dtype | None = None) -> Tensor:
    """Returns the logarithm of ``softmax(input, dim)`` at the places that are stored.

    Example::

        >>> import vesta
        >>> a = vesta.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
        >>> vesta.sparse.log_softmax(a, 1).values()
        tensor([-0.6931, -0.6931])
    """
    where, shifted, total = _shifted("log_softmax", input, dim, dtype)
    return _private._sparse_coo(where, shifted - total.log(), tuple(input.shape), True)


def _shifted(op: str, input: Tensor, dim: int, dtype: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the places, the values less the maximum of their line, and the sums of the lines' exponentials."""
    if not input.is_sparse:
        raise RuntimeError(f"sparse.{op}: expected a tensor of the layout sparse_coo, got {input.layout} (input).")
    whole = input.coalesce()
    values = whole.values() if dtype is None else whole.values().to(dtype)
    group, count = _groups(whole.indices(), tuple(input.shape), dim)
    shifted = values - _largest(values, group, count)[group]
    total = shifted.new_zeros((count, *shifted.shape[1:])).index_add(0, group, shifted.exp())
    return whole.indices(), shifted, total[group]


def _groups(where: Tensor, shape: tuple[int, ...], dim: int) -> tuple[Tensor, int]:
    """Returns the number of the line along ``dim`` that each element lies in, and how many lines there are."""
    if not -len(shape) <= dim < len(shape):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got {dim})"
        )
    dim %= len(shape)
    if dim >= where.size(0):
        raise NotImplementedError(f"sparse.softmax: expected a sparse dimension, got the dense dimension {dim} (dim).")
    number, count = where.new_zeros((where.size(1),)), 1
    for other, size in enumerate(shape[: where.size(0)]):
        if other != dim:
            number, count = number * size + where[other], count * size
    lines, group = _unique(number)
    return group, lines


def _unique(number: Tensor) -> tuple[int, Tensor]:
    from ._shape_functions import unique

    found, inverse = unique(number, return_inverse=True)
    return found.numel(), inverse


def _largest(values: Tensor, group: Tensor, count: int) -> Tensor:
    """Returns the maximum of each group, without a gradient."""
    plain = values.detach()
    start = plain.new_full((count, *plain.shape[1:]), float("-inf"))
    return start.index_reduce(0, group, plain, "amax")


__dir__ = listing(globals())
