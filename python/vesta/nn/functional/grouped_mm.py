"""Products of groups of rows with a matrix each, as layers of experts compute them."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta._types import DType

__all__ = ["grouped_mm"]

_DTYPES = (vesta.float32, vesta.bfloat16, vesta.float16)


@checked
def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DType | None = None,
) -> Tensor:
    """Returns the products of groups of two operands; a group of an operand of two dimensions is a part of it.

    Args:
        mat_a, mat_b: [groups, m, k] and [groups, k, n], with a result [groups, m, n]. An operand without the dimension
            of groups is divided by ``offs``: rows of ``mat_a`` [rows, k], with a result [rows, n]; columns of ``mat_b``
            [k, columns], with a result [m, columns]; in both the dimension k, with a result [groups, m, n].
        offs: int32 [groups]: where each group ends. What lies behind the last one is 0 in the result.
        bias: None: there is none yet.
        out_dtype: the operands' dtype, or None.

    Example::

        >>> import vesta
        >>> rows, experts = vesta.ones(3, 2), vesta.arange(1.0, 3.0).reshape(2, 1, 1).expand(2, 2, 1)
        >>> vesta.nn.functional.grouped_mm(rows, experts, offs=vesta.tensor([1, 3], dtype=vesta.int32)).tolist()
        [[2.0], [4.0], [4.0]]
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return vesta.bmm(mat_a, mat_b)
    ends = offs.tolist()
    parts = list(zip([0, *ends[:-1]], ends))
    if mat_a.dim() == 2 and mat_b.dim() == 2:
        return vesta.stack([mat_a[:, start:end] @ mat_b[start:end] for start, end in parts])
    divided, dim = (mat_a, 0) if mat_a.dim() == 2 else (mat_b, 1)
    size = divided.size(dim)
    if dim == 0:
        results = [mat_a[start:end] @ mat for (start, end), mat in zip(parts, mat_b)]
        rest = [max(size - ends[-1], 0), mat_b.size(-1)]
    else:
        results = [mat @ mat_b[:, start:end] for (start, end), mat in zip(parts, mat_a)]
        rest = [mat_a.size(-2), max(size - ends[-1], 0)]
    return vesta.cat([*results, mat_a.new_zeros(rest)], dim)


def _check(mat_a: Tensor, mat_b: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: DType | None) -> None:
    for name, mat in (("mat_a", mat_a), ("mat_b", mat_b)):
        if mat.dim() not in (2, 3):
            raise RuntimeError(f"grouped_mm: {name} has to be 2 or 3d, got {list(mat.shape)} ({name}).")
        if mat.dtype not in _DTYPES:
            raise RuntimeError(f"grouped_mm: expected float32, bfloat16 or float16, got {mat.dtype} ({name}).")
    if mat_a.dtype != mat_b.dtype:
        raise RuntimeError(f"grouped_mm: expected one dtype, got {mat_a.dtype} (mat_a) and {mat_b.dtype} (mat_b).")
    if mat_a.size(-1) != mat_b.size(-2):
        raise RuntimeError(
            "grouped_mm: contraction dimension of mat_a and mat_b must match, got "
            f"{list(mat_a.shape)} (mat_a) and {list(mat_b.shape)} (mat_b)."
        )
    if (offs is None) != (mat_a.dim() == 3 and mat_b.dim() == 3):
        raise RuntimeError(
            "grouped_mm: Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d (offs)."
        )
    if bias is not None:
        raise RuntimeError("grouped_mm: Bias not supported yet; add it to the result (bias).")
    if out_dtype not in (None, mat_a.dtype):
        raise RuntimeError(f"grouped_mm: expected the dtype of mat_a, {mat_a.dtype}, got {out_dtype} (out_dtype).")
    groups = [mat.size(0) for mat in (mat_a, mat_b) if mat.dim() == 3]
    if offs is None:
        if groups[0] != groups[1]:
            raise RuntimeError(f"grouped_mm: matrix batch sizes have to match, got {groups[0]} and {groups[1]}.")
        return
    if offs.dtype != vesta.int32 or offs.dim() != 1:
        raise RuntimeError(
            f"grouped_mm: Offsets have to be int32, of one dimension, got {offs.dtype} {list(offs.shape)} (offs)."
        )
    if groups and groups[0] != offs.size(0):
        raise RuntimeError(
            f"grouped_mm: matrix batch sizes have to match, got {groups[0]} matrices and {offs.size(0)} offsets (offs)."
        )
