"""Functions of any number of tensors, ``meshgrid(a, b)``, and of results whose number depends on flags, ``unique``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, overload

from vesta._types import Device, DType, Layout, Shape

from . import _C
from ._arguments import called, python_number, python_numbers
from ._C import Size, Tensor
from ._functions import _expect_tensor


def _tensors_of(op: str, given: tuple[Any, ...]) -> list[Tensor]:
    """Returns the tensors of a call ``op(a, b)`` or ``op([a, b])``."""
    many = list(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else list(given)
    for number, value in enumerate(many):
        if not isinstance(value, Tensor):
            raise TypeError(f"{op}: expected Tensors, got {type(value).__name__} at position {number}.")
    return many


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """Returns the shape to which tensors of these shapes broadcast; a number is a shape of one dimension.

    Raises:
        RuntimeError: two sizes of a dimension differ and neither is 1, or a size is negative.

    Example::

        >>> import vesta
        >>> vesta.broadcast_shapes((2, 1), (3,))
        vesta.Size([2, 3])
    """
    lists = [_shape("broadcast_shapes", s) for s in shapes]
    result = [1] * max((len(s) for s in lists), default=0)
    for index, shape in enumerate(lists):
        for place, size in enumerate(shape, len(result) - len(shape)):
            if size < 0:
                raise RuntimeError(f"broadcast_shapes: expected sizes of at least 0, got {size} in {shape}.")
            if size != 1 and result[place] not in (1, size):
                raise RuntimeError(
                    f"broadcast_shapes: Attempting to broadcast a dimension of length {size} at "
                    f"{place - len(result)}! Mismatching argument at index {index} had {shape}; but expected shape "
                    f"should be broadcastable to {result}"
                )
            if size != 1:
                result[place] = size
    return _C.Size(result)


def _shape(op: str, given: Any) -> tuple[int, ...]:
    """Returns a shape that is given as one size or as a list of sizes."""
    sizes = (given,) if isinstance(given, Integral) else given
    if not isinstance(sizes, (tuple, list)) or not all(isinstance(size, Integral) for size in sizes):
        raise TypeError(f"{op}: expected ints or lists of ints, got {given!r:.80} (shapes).")
    return tuple(sizes)


def broadcast_tensors(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Expands tensors to the shape to which they broadcast; what has it already is returned as it is.

    Example::

        >>> import vesta
        >>> [tuple(t.shape) for t in vesta.broadcast_tensors(vesta.zeros(2, 1), vesta.zeros(3))]
        [(2, 3), (2, 3)]
    """
    many = _tensors_of("broadcast_tensors", tensors)
    size = called("broadcast_tensors", broadcast_shapes, *(t.shape for t in many))
    return tuple(t if t.shape == size else t.expand(size) for t in many)


def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Returns the coordinates of a grid: for vectors of sizes n, m, ... as many tensors of shape [n, m, ...].

    Args:
        tensors: vectors or numbers, of one dtype and device.
        indexing: ``"ij"``, as here and by default, or ``"xy"``: the first two dimensions swapped, as NumPy has it.

    Example::

        >>> import vesta
        >>> rows, columns = vesta.meshgrid(vesta.arange(2), vesta.arange(3), indexing="ij")
        >>> columns
        tensor([[0, 1, 2],
                [0, 1, 2]])
    """
    many = _tensors_of("meshgrid", tensors)
    if not many:
        raise ValueError("meshgrid: expected at least one tensor, got none.")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f"meshgrid: expected indexing to be 'xy' or 'ij', got {indexing!r}.")
    for t in many:
        if t.dim() > 1:
            raise RuntimeError(f"meshgrid: expected vectors or numbers, got shape {list(t.shape)}.")
        if t.dtype != many[0].dtype or t.device != many[0].device:
            raise RuntimeError(
                f"meshgrid: expected one dtype and device, got {many[0].dtype} on {many[0].device} and {t.dtype} on "
                f"{t.device}."
            )
    swapped = indexing == "xy" and len(many) >= 2
    if swapped:
        many[:2] = many[1::-1]
    size = [t.numel() for t in many]
    grids = [t.reshape([-1 if d == n else 1 for d in range(len(many))]).expand(size) for n, t in enumerate(many)]
    if swapped:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def _at_least(op: str, dims: int, tensors: tuple[Any, ...]) -> Any:
    def extended(t: Tensor) -> Tensor:
        if t.dim() == 0:
            t = t.reshape(1)
        if t.dim() == 1 and dims >= 2:
            t = t.unsqueeze(0)
        return t.unsqueeze(-1) if t.dim() == 2 and dims == 3 else t

    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return extended(tensors[0])
    return tuple(extended(t) for t in _tensors_of(op, tensors))


@overload
def atleast_1d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]: ...
def atleast_1d(*tensors: Any) -> Any:
    """Views a tensor, or each of several, with at least one dimension.

    Example::

        >>> import vesta
        >>> vesta.atleast_1d(vesta.tensor(1.0))
        tensor([1.])
    """
    return _at_least("atleast_1d", 1, tensors)


@overload
def atleast_2d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]: ...
def atleast_2d(*tensors: Any) -> Any:
    """Views a tensor, or each of several, with at least two dimensions; vectors become rows.

    Example::

        >>> import vesta
        >>> vesta.atleast_2d(vesta.tensor([1, 2]))
        tensor([[1, 2]])
    """
    return _at_least("atleast_2d", 2, tensors)


@overload
def atleast_3d(tensor: Tensor, /) -> Tensor: ...
@overload
def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]: ...
def atleast_3d(*tensors: Any) -> Any:
    """Views a tensor, or each of several, with at least three dimensions; a new one comes last, as in NumPy.

    Example::

        >>> import vesta
        >>> vesta.atleast_3d(vesta.tensor([1, 2])).shape
        vesta.Size([1, 2, 1])
    """
    return _at_least("atleast_3d", 3, tensors)


def block_diag(*tensors: Tensor) -> Tensor:
    """Returns the matrix with the given matrices along its diagonal and zeros elsewhere; vectors are rows.

    Example::

        >>> import vesta
        >>> vesta.block_diag(vesta.tensor([[1, 2]]), vesta.tensor(3))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    blocks = [_at_least("block_diag", 2, (t,)) for t in _tensors_of("block_diag", tensors)]
    for block in blocks:
        if block.dim() > 2:
            raise RuntimeError(f"block_diag: expected tensors of at most two dimensions, got {list(block.shape)}.")
    width = sum(block.shape[1] for block in blocks)
    rows, before = [], 0
    for block in blocks:
        height, columns = block.shape
        left, right = block.new_zeros(height, before), block.new_zeros(height, width - before - columns)
        rows.append(_C._ops.cat([left, block, right], 1))
        before += columns
    return _C._ops.cat(rows, 0) if rows else _C._ops.empty((1, 0))


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Returns all tuples of one element of each vector, as rows in the order of ``itertools.product``.

    Example::

        >>> import vesta
        >>> vesta.cartesian_prod(vesta.tensor([1, 2]), vesta.tensor([3, 4]))
        tensor([[1, 3],
                [1, 4],
                [2, 3],
                [2, 4]])
    """
    many = _tensors_of("cartesian_prod", tensors)
    for one in many:
        if one.dim() != 1:
            raise RuntimeError(f"cartesian_prod: expected 1-d tensors, got shape {list(one.shape)} (tensors).")
    if len(many) == 1:
        return many[0]
    return _C._ops.stack([grid.reshape(-1) for grid in meshgrid(*many, indexing="ij")], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Returns all combinations of r elements of a vector, as rows in the order of ``itertools.combinations``.

    Example::

        >>> import vesta
        >>> vesta.combinations(vesta.tensor([1, 2, 3]))
        tensor([[1, 2],
                [1, 3],
                [2, 3]])
    """
    if not isinstance(input, Tensor) or input.dim() != 1:
        raise RuntimeError("combinations: expected a 1-d tensor (input).")
    r = python_number(r)
    if not isinstance(r, Integral):
        raise TypeError(f"combinations: expected int, got {type(r).__name__} (r).")
    if r < 0:
        raise RuntimeError(f"combinations: expected a non-negative number, got {r} (r).")
    if r == 0:
        return input.new_empty(0)
    count = input.numel()
    rows = math.comb(count + r - 1 if with_replacement and count else count, r)
    if rows * r >= 1 << 60:
        raise ValueError(f"combinations: {rows} rows of {r} elements are too many.")
    input.new_empty((rows, r))  # raises before the list of places is made for more than there is memory for
    if r == 2:
        return input[_C._ops.triu_indices(count, count, 0 if with_replacement else 1, device=input.device).t()]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = list(choose(range(count), r))
    index = _C.tensor(places, dtype=_C.int64, device=input.device).reshape(len(places), r)
    return input[index]


def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Tensor | None = None) -> Tensor:
    """Returns the first ``size`` rows of ``nonzero(input)``; rows that are missing are ``fill_value``.

    Example::

        >>> import vesta
        >>> vesta.nonzero_static(vesta.tensor([0, 5, 7]), size=3)
        tensor([[ 1],
                [ 2],
                [-1]])
    """
    _expect_tensor("nonzero_static", input)
    for name, value in (("size", size), ("fill_value", fill_value)):
        if not isinstance(value, Integral):
            raise TypeError(f"nonzero_static: expected int, got {type(value).__name__} ({name}).")
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}.")
    made = _C._ops.full((size, input.dim()), fill_value, dtype=_C.int64, device=input.device)
    if not input.is_meta:
        found = _C._ops.nonzero(input.detach())[:size]
        made[: found.shape[0]] = found
    return made if out is None else _C._write_out("nonzero_static", made, out, True)


def empty_permuted(
    size: Shape,
    physical_layout: Shape,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Returns a tensor with any values, whose dimensions lie in memory in the given order, outermost first.

    Example::

        >>> import vesta
        >>> vesta.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
        (15, 1, 3)
    """
    for name, given in (("size", size), ("physical_layout", physical_layout)):
        if isinstance(given, Integral):
            raise TypeError(f"empty_permuted: expected a tuple of ints, got {type(given).__name__} ({name}).")
    shape, order = _shape("empty_permuted", size), _shape("empty_permuted", physical_layout)
    if len(shape) != len(order):
        raise RuntimeError(
            f"empty_permuted: Number of dimensions in size does not match the length of the physical_layout, got "
            f"{len(shape)} and {len(order)}."
        )
    if sorted(order) != list(range(len(shape))):
        raise RuntimeError(f"empty_permuted: expected each of 0 to {len(shape) - 1} once, got {list(order)}.")
    strides, step = [0] * len(shape), 1
    for d in reversed(order):
        strides[d], step = step, step * max(shape[d], 1)
    return _C._ops.empty_strided(
        shape, strides, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, requires_grad=requires_grad
    )


# ---- values that occur ------------------------------------------------------------------------------------------


def _runs(rows: Tensor) -> Tensor:
    """Tells of each row but the first whether it differs from the one before."""
    changed = rows[1:] != rows[:-1]
    return changed.flatten(1).any(1) if changed.dim() > 1 else changed


def _begins(rows: Tensor) -> Tensor:
    """Tells of each row whether a run begins with it."""
    return _C._ops.cat([_C._ops.ones(min(1, rows.shape[0]), dtype=_C.bool, device=rows.device), _runs(rows)])


def _result(values: Tensor, inverse: Tensor | None, counts: Tensor | None) -> Any:
    found = tuple(part for part in (values, inverse, counts) if part is not None)
    return found[0] if len(found) == 1 else found


@overload
def unique_consecutive(
    input: Tensor, return_inverse: Literal[False] = False, return_counts: Literal[False] = False, dim: int | None = None
) -> Tensor: ...
@overload
def unique_consecutive(
    input: Tensor, *, return_inverse: Literal[True], return_counts: bool = False, dim: int | None = None
) -> tuple[Tensor, ...]: ...
@overload
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, *, return_counts: Literal[True], dim: int | None = None
) -> tuple[Tensor, ...]: ...
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Returns the first element of each run of equal ones.

    Args:
        input: any shape; without ``dim`` it is flattened first.
        return_inverse: also return the place in the result of each element of ``input``.
        return_counts: also return the length of each run.
        dim: compare slices along this dimension instead of elements.

    Example::

        >>> import vesta
        >>> vesta.unique_consecutive(vesta.tensor([1, 1, 2, 2, 3, 1]), return_counts=True)
        (tensor([1, 2, 3, 1]), tensor([2, 2, 1, 1]))
    """
    _expect_tensor("unique_consecutive", input)
    dim = python_number(dim)
    rows = input.detach().reshape(-1) if dim is None else _slices("unique_consecutive", input.detach(), dim)
    values, inverse, counts = _grouped(rows)
    if dim is not None:
        values = values.movedim(0, dim)
    elif return_inverse:
        inverse = inverse.reshape(input.shape)
    values = _without_derivative("unique_consecutive", input, values)
    return _result(values, inverse if return_inverse else None, counts if return_counts else None)


def _without_derivative(op: str, input: Tensor, made: Tensor) -> Tensor:
    if not input.requires_grad:
        return made
    from ._without_derivative import marked

    return marked(op, input, made)


def _slices(op: str, x: Tensor, dim: int) -> Tensor:
    """Views the slices along a dimension as the entries of dimension 0."""
    _dimension(op, dim, x)
    if x.numel() == 0 and x.shape[dim] != 0:
        raise RuntimeError(f"{op}: expected slices with elements along dim, got shape {list(x.shape)}.")
    return x.movedim(dim, 0)


def _grouped(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the first of each run of rows, the number of each row's run, and the lengths of the runs."""
    n = rows.shape[0]
    if n == 0:
        empty = rows.new_zeros(0, dtype=_C.int64)
        return rows.clone(), empty, empty.clone()
    begins = _begins(rows)
    inverse = begins.cumsum(0) - 1
    starts = begins.nonzero().reshape(-1)
    ends = _C._ops.cat([starts[1:], starts.new_full((1,), n)])
    return rows.index_select(0, starts), inverse, ends - starts


@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: int | None = None,
) -> Tensor: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    *,
    return_inverse: Literal[True],
    return_counts: bool = False,
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...
@overload
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    *,
    return_counts: Literal[True],
    dim: int | None = None,
) -> tuple[Tensor, ...]: ...
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Returns the different elements, always in ascending order; every NaN is one of its own.

    Args:
        input: any shape and any real dtype; without ``dim`` it is flattened first.
        sorted: has no effect: the result is sorted.
        return_inverse: also return the place in the result of each element of ``input``.
        return_counts: also return how often each value occurs.
        dim: compare slices along this dimension instead of elements.

    Example::

        >>> import vesta
        >>> vesta.unique(vesta.tensor([[3, 1], [3, 2]]), return_counts=True)
        (tensor([1, 2, 3]), tensor([1, 1, 2]))
    """
    _expect_tensor("unique", input)
    dim = python_number(dim)
    plain = input.detach()
    if dim is None:
        rows, order = plain.reshape(-1).sort(stable=True)
    else:
        rows = _slices("unique", plain, dim)
        order = _order_of_rows(rows.flatten(1) if rows.dim() > 1 else rows.unsqueeze(1))
        rows = rows.index_select(0, order)
    if dim is None and not (return_inverse or return_counts):
        return _without_derivative("unique", input, rows[_begins(rows)])
    values, group, counts = _grouped(rows)
    inverse = None
    if return_inverse:
        inverse = _C._ops.empty_like(order)
        inverse[order] = group
        if dim is None:
            inverse = inverse.reshape(input.shape)
    if dim is not None:
        values = values.movedim(0, dim)
    return _result(_without_derivative("unique", input, values), inverse, counts if return_counts else None)


def _order_of_rows(rows: Tensor) -> Tensor:
    """Returns the indices that put rows into the order of their first elements, then of their second, ..."""
    order = _C._ops.arange(rows.shape[0], device=rows.device)
    for column in range(rows.shape[1] - 1, -1, -1):  # stable: the most significant column last
        order = order[rows[:, column].index_select(0, order).argsort(stable=True)]
    return order


# ---- products over named dimensions -----------------------------------------------------------------------------


def tensordot(
    a: Tensor, b: Tensor, dims: int | Tensor | Sequence[Sequence[int]] = 2, out: Tensor | None = None
) -> Tensor:
    """Sums products over dimensions of two tensors; the other dimensions of ``a`` come first, then those of ``b``.

    Args:
        dims: the number of last dimensions of ``a`` and first ones of ``b``, or two lists of dimensions.

    Raises:
        RuntimeError: the lists or the sizes of paired dimensions differ.

    Example::

        >>> import vesta
        >>> vesta.tensordot(vesta.ones(2, 3), vesta.ones(3, 4), dims=1).shape
        vesta.Size([2, 4])
    """
    for name, t in (("a", a), ("b", b)):
        if not isinstance(t, Tensor):
            raise TypeError(f"tensordot(): argument {name!r} must be Tensor, not {type(t).__name__}")
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot: expected dims in [0, {min(a.dim(), b.dim())}], got {dims} (dims).")
        first, second = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        pair = list(dims) if isinstance(dims, (tuple, list)) else []
        if len(pair) != 2:
            raise RuntimeError(f"tensordot: expected int or two lists of ints, got {dims!r:.80} (dims).")
        if not all(isinstance(part, (tuple, list)) for part in pair):
            raise TypeError(f"tensordot: expected two lists of ints, got {dims!r:.80} (dims).")
        first, second = (python_numbers(list(part)) for part in pair)
    if len(first) != len(second):
        raise RuntimeError(f"tensordot: expected as many dimensions of a as of b, got {first} and {second} (dims).")
    first = [_dimension("tensordot", d, a) for d in first]
    second = [_dimension("tensordot", d, b) for d in second]
    for i, k in zip(first, second):
        if a.shape[i] == 1:  # a dimension of size 1 is repeated: the other tensor's is summed first
            b = b.sum(k, keepdim=True)
        elif b.shape[k] == 1:
            a = a.sum(i, keepdim=True)
        elif a.shape[i] != b.shape[k]:
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, got {a.shape[i]} at dim {i} of a and {b.shape[k]} "
                f"at dim {k} of b."
            )
    rest_a = [d for d in range(a.dim()) if d not in first]
    rest_b = [d for d in range(b.dim()) if d not in second]
    inner = math.prod(a.shape[d] for d in first)
    left = a.permute(rest_a + first).reshape(math.prod(a.shape[d] for d in rest_a), inner)
    right = b.permute(second + rest_b).reshape(inner, math.prod(b.shape[d] for d in rest_b))
    made = (left @ right).reshape([a.shape[d] for d in rest_a] + [b.shape[d] for d in rest_b])
    return made if out is None else _C._write_out("tensordot", made, out)


def _dimension(op: str, d: int, t: Tensor) -> int:
    if not isinstance(d, Integral):
        raise TypeError(f"{op}: expected int, got {type(d).__name__} (dim).")
    if not -t.dim() <= d < t.dim():
        raise IndexError(f"{op}: expected a dimension in [{-t.dim()}, {t.dim() - 1}], got {d}.")
    return d % t.dim()
