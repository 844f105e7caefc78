"""Copies of what views show: ``narrow_copy`` for ``narrow``, and so on, in new memory, row-major."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vesta import _C
from vesta._arguments import expect
from vesta._C import Tensor, _ops
from vesta._types import DType, Ints, Shape


def _one(name: str, input: Tensor, view: Callable[[], Tensor], out: Tensor | None) -> Tensor:
    """Copies a view, into ``out`` where that is given."""
    expect(name, "input", input, Tensor, "Tensor")
    shown = view()
    return shown.clone(memory_format=_C.contiguous_format) if out is None else _C._write_out(name, shown, out, True)


def _several(name: str, input: Tensor, view: Callable[[], Sequence[Tensor]], out: Sequence[Tensor] | None) -> Any:
    """Copies several views; returns nothing where they go into ``out``."""
    expect(name, "input", input, Tensor, "Tensor")
    shown = view()
    if out is None:
        return tuple(part.clone(memory_format=_C.contiguous_format) for part in shown)
    expect(name, "out", out, (list, tuple), "a list of Tensors")
    if len(out) != len(shown):
        raise RuntimeError(f"{name}: expected {len(shown)} tensors, got {len(out)} (out).")
    _C._write_out(name, shown, out, True)
    return None


def _slice(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    expect("slice_copy", "dim", dim, int, "int")
    if not -input.dim() <= dim < input.dim():
        raise IndexError(f"slice_copy: expected a dimension in [{-input.dim()}, {input.dim() - 1}], got {dim} (dim).")
    at: list[Any] = [slice(None)] * input.dim()
    at[dim] = slice(start, end, step)
    return input[tuple(at)]


def _view(input: Tensor, size: Ints | None = None, dtype: DType | None = None) -> Tensor:
    if (size is None) == (dtype is None):
        raise TypeError("view_copy: expected either size or dtype.")
    given = size if dtype is None else dtype
    return input.view(given) if isinstance(given, _C.dtype) else input.reshape(given)


def alias_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``alias`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.alias_copy(vesta.tensor([1, 2]))
        tensor([1, 2])
    """
    return _one("alias_copy", input, lambda: input, out)


def as_strided_copy(
    input: Tensor, size: Shape, stride: Shape, storage_offset: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Returns a copy of what ``as_strided`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.as_strided_copy(vesta.arange(4), (2,), (2,))
        tensor([0, 2])
    """
    return _one("as_strided_copy", input, lambda: _ops.as_strided(input, size, stride, storage_offset), out)


def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``detach`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.detach_copy(vesta.ones(2))
        tensor([1., 1.])
    """
    return _one("detach_copy", input, lambda: input, out)


def diagonal_copy(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``diagonal`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.diagonal_copy(vesta.eye(2))
        tensor([1., 1.])
    """
    return _one("diagonal_copy", input, lambda: _ops.diagonal(input, offset, dim1, dim2), out)


def expand_copy(input: Tensor, size: Shape, *, implicit: bool = False, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``expand`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.expand_copy(vesta.tensor([1]), (2,))
        tensor([1, 1])
    """
    return _one("expand_copy", input, lambda: input.expand(size), out)


def ccol_indices_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``ccol_indices`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.ccol_indices_copy(vesta.tensor([[0, 5]]).to_sparse_csc())
        tensor([0, 0, 1])
    """
    return _one("ccol_indices_copy", input, lambda: input.ccol_indices(), out)


def col_indices_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``col_indices`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.col_indices_copy(vesta.tensor([[0, 5]]).to_sparse_csr())
        tensor([1])
    """
    return _one("col_indices_copy", input, lambda: input.col_indices(), out)


def crow_indices_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``crow_indices`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.crow_indices_copy(vesta.tensor([[0, 5]]).to_sparse_csr())
        tensor([0, 1])
    """
    return _one("crow_indices_copy", input, lambda: input.crow_indices(), out)


def indices_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``indices`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.indices_copy(vesta.tensor([0, 5]).to_sparse())
        tensor([[1]])
    """
    return _one("indices_copy", input, lambda: input.indices(), out)


def narrow_copy(input: Tensor, dim: int, start: int, length: int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``narrow`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.narrow_copy(vesta.arange(4), 0, 1, 2)
        tensor([1, 2])
    """
    return _one("narrow_copy", input, lambda: _ops.narrow(input, dim, start, length), out)


def permute_copy(input: Tensor, dims: Shape, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``permute`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.permute_copy(vesta.zeros(2, 3), (1, 0)).shape
        vesta.Size([3, 2])
    """
    return _one("permute_copy", input, lambda: _ops.permute(input, dims), out)


def row_indices_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``row_indices`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.row_indices_copy(vesta.tensor([[0, 5]]).to_sparse_csc())
        tensor([0])
    """
    return _one("row_indices_copy", input, lambda: input.row_indices(), out)


def select_copy(input: Tensor, dim: int, index: int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``select`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.select_copy(vesta.arange(4), 0, 1)
        tensor(1)
    """
    return _one("select_copy", input, lambda: _ops.select(input, dim, index), out)


def slice_copy(
    input: Tensor,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Returns a copy of what ``slice`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.slice_copy(vesta.arange(4), 0, 1, 3)
        tensor([1, 2])
    """
    return _one("slice_copy", input, lambda: _slice(input, dim, start, end, step), out)


def split_copy(
    input: Tensor, split_size: int, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Returns a copy of what ``split`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.split_copy(vesta.arange(3), 2)
        (tensor([0, 1]), tensor([2]))
    """
    return _several("split_copy", input, lambda: _ops.split(input, split_size, dim), out)


def split_with_sizes_copy(
    input: Tensor, split_sizes: Shape, dim: int = 0, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """Returns a copy of what ``split_with_sizes`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.split_with_sizes_copy(vesta.arange(3), [1, 2])
        (tensor([0]), tensor([1, 2]))
    """
    return _several("split_with_sizes_copy", input, lambda: _ops.split_with_sizes(input, split_sizes, dim), out)


def squeeze_copy(input: Tensor, dim: Ints | None = None, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``squeeze`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.squeeze_copy(vesta.zeros(1, 2)).shape
        vesta.Size([2])
    """
    return _one("squeeze_copy", input, lambda: _ops.squeeze(input) if dim is None else _ops.squeeze(input, dim), out)


def t_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``t`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.t_copy(vesta.zeros(2, 3)).shape
        vesta.Size([3, 2])
    """
    return _one("t_copy", input, lambda: _ops.t(input), out)


def transpose_copy(input: Tensor, dim0: int, dim1: int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``transpose`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.transpose_copy(vesta.zeros(2, 3), 0, 1).shape
        vesta.Size([3, 2])
    """
    return _one("transpose_copy", input, lambda: _ops.transpose(input, dim0, dim1), out)


def unbind_copy(input: Tensor, dim: int = 0, *, out: Sequence[Tensor] | None = None) -> tuple[Tensor, ...]:
    """Returns a copy of what ``unbind`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.unbind_copy(vesta.tensor([1, 2]))
        (tensor(1), tensor(2))
    """
    return _several("unbind_copy", input, lambda: _ops.unbind(input, dim), out)


def unfold_copy(input: Tensor, dimension: int, size: int, step: int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``unfold`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.unfold_copy(vesta.arange(3), 0, 2, 1)
        tensor([[0, 1],
                [1, 2]])
    """
    return _one("unfold_copy", input, lambda: input.unfold(dimension, size, step), out)


def unsqueeze_copy(input: Tensor, dim: int, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``unsqueeze`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.unsqueeze_copy(vesta.zeros(2), 0).shape
        vesta.Size([1, 2])
    """
    return _one("unsqueeze_copy", input, lambda: _ops.unsqueeze(input, dim), out)


def values_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``values`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.values_copy(vesta.tensor([0, 5]).to_sparse())
        tensor([5])
    """
    return _one("values_copy", input, lambda: input.values(), out)


def view_as_complex_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``view_as_complex`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.view_as_complex_copy(vesta.tensor([1.0, 2.0]))
        tensor(1.+2.j)
    """
    return _one("view_as_complex_copy", input, lambda: _ops.view_as_complex(input), out)


def view_as_real_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Returns a copy of what ``view_as_real`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.view_as_real_copy(vesta.tensor(1 + 2j))
        tensor([1., 2.])
    """
    return _one("view_as_real_copy", input, lambda: _ops.view_as_real(input), out)


def view_copy(
    input: Tensor, size: Shape | DType | None = None, dtype: DType | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Returns a copy of what ``view`` shows, of the same arguments: new memory, row-major.

    Example::

        >>> import vesta
        >>> vesta.view_copy(vesta.arange(4), (2, 2)).shape
        vesta.Size([2, 2])
    """
    return _one("view_copy", input, lambda: _view(input, size, dtype), out)
