"""Functions of ``vesta.linalg`` whose arguments may be numbers, texts or tensors."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from vesta._types import DType, Ints, Number, Real, Shape

from . import _C, return_types
from ._arguments import called, checked, expect, python_numbers
from ._C import Tensor, _linalg, _ops

__all__ = [
    "cond",
    "diagonal",
    "inv_ex",
    "lstsq",
    "matrix_norm",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "solve_ex",
    "tensorinv",
    "tensorsolve",
    "vecdot",
]


_EXACT = ("inv_ex", "matrix_norm", "multi_dot", "norm", "solve_ex", "vecdot")  # as PyTorch has them


def _written(op: str, made: Any, out: Any) -> Any:
    """Returns a result or several, written into ``out`` where that is given; some take it of their dtype only."""
    return made if out is None else _C._write_out(f"linalg.{op}", made, out, op in _EXACT)


def _expect_matrices(op: str, A: Any, name: str = "input") -> None:
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg.{op}(): argument {name!r} (position 1) must be Tensor, not {type(A).__name__}")
    if A.dim() < 2:
        which = "The input tensor" if name == "input" else f"The input tensor {name}"
        raise RuntimeError(f"linalg.{op}: {which} must have at least 2 dimensions, got {tuple(A.shape)}.")


def _as_tensor(op: str, value: Any, like: Tensor) -> Tensor | None:
    """Returns a tolerance as a tensor of ``like``'s real dtype; None stays None."""
    if value is None or isinstance(value, Tensor):
        return value
    if not isinstance(value, (int, float)):
        raise TypeError(f"linalg.{op}: expected a number or a tensor as tolerance, got {type(value).__name__}.")
    real = {_C.complex64: _C.float32, _C.complex128: _C.float64}.get(like.dtype, like.dtype)
    return _C.tensor(value, dtype=real, device=like.device)


@checked
def pinv(
    input: Tensor,
    rcond: Real | None = None,
    hermitian: bool = False,
    *,
    atol: Real | None = None,
    rtol: Real | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the pseudoinverses ``[*, n, m]`` of matrices ``[*, m, n]``, from their singular values.

    Singular values up to ``max(atol, rtol * largest)`` count as 0 (Golub and Van Loan, "Matrix Computations", 5.5.2).

    Args:
        input: float32, float64 or complex.
        rcond: another name for ``rtol``.
        hermitian: takes the eigenvalues of Hermitian matrices instead.
        atol, rtol: numbers or tensors ``[*]``; without both ``rtol`` is ``max(m, n)`` times the dtype's epsilon.

    Raises:
        RuntimeError: ``input`` has fewer than 2 dimensions.

    Example::

        >>> import vesta
        >>> vesta.linalg.pinv(vesta.tensor([[2.0, 0.0], [0.0, 0.0]]))
        tensor([[0.5000, 0.0000],
                [0.0000, 0.0000]])
    """
    _expect_matrices("pinv", input)
    relative = rcond if rtol is None else rtol
    return _written(
        "pinv",
        _C._linalg_pinv(input, _as_tensor("pinv", atol, input), _as_tensor("pinv", relative, input), hermitian),
        out,
    )


@checked
def matrix_rank(
    input: Tensor,
    tol: Real | None = None,
    hermitian: bool = False,
    *,
    atol: Real | None = None,
    rtol: Real | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns the ranks ``[*]`` (int64) of matrices ``[*, m, n]``: how many singular values exceed the tolerance.

    Args:
        tol: another name for ``atol``, with ``rtol`` 0.
        hermitian: takes the absolute eigenvalues of Hermitian matrices instead.
        atol, rtol: as in ``pinv``.

    Example::

        >>> import vesta
        >>> vesta.linalg.matrix_rank(vesta.ones(3, 3))
        tensor(1)
    """
    _expect_matrices("matrix_rank", input)
    if tol is not None:
        atol, rtol = tol, 0.0
    limits = (_as_tensor("matrix_rank", atol, input), _as_tensor("matrix_rank", rtol, input))
    return _written("matrix_rank", _C._linalg_matrix_rank(input, *limits, hermitian), out)


def _solved_by_qr(A: Tensor, right: Tensor, limit: float) -> Tensor | None:
    """Solves least squares by a QR decomposition, a tenth of the work of singular values; None where the smallest of
    these may be up to ``limit`` times the largest.

    The largest is at most the Frobenius norm of R, and the smallest at least 1 over that of its inverse.
    """
    m, n = A.shape[-2:]
    if not A.numel():
        return None
    Q, R = _linalg.qr(A if m >= n else A.mH)
    plain = R.detach()
    ones = _ops.eye(min(m, n), dtype=A.dtype, device=A.device).expand(plain.shape)
    inverse = _linalg.solve_triangular(plain, ones, upper=True)
    condition = matrix_norm(plain) * matrix_norm(inverse)
    if not bool((condition * max(limit, _epsilon(A)) < 1).all()):  # of NaN as well
        return None
    if m >= n:
        return _linalg.solve_triangular(R, Q.mH @ right, upper=True)
    return Q @ _linalg.solve_triangular(R.mH, right, upper=False)


@checked
def lstsq(
    input: Tensor,
    b: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: Sequence[Tensor] | None = None,
) -> return_types.linalg_lstsq:
    """Solves ``min |A X - B|`` for A = ``input [*, m, n]`` and B = ``b [*, m, k]``; the smallest X of several.

    The solution comes from A's singular values, those up to ``rcond`` times the largest counting as 0. On CUDA, with
    ``"gels"`` or without a driver, from a QR decomposition where that shows that none does.

    Args:
        b: ``[*, m, k]``, or vectors ``[*, m]``.
        rcond: ``max(m, n)`` times the dtype's epsilon without it.
        driver: ``"gelsy"`` (as without), ``"gels"``, ``"gelsd"`` or ``"gelss"``; says which of the other results there
            are, as in PyTorch.

    Returns:
        a named tuple ``(solution, residuals, rank, singular_values)``: residuals ``[*, k]`` are squared errors where
        m > n and all ranks are n, else empty; rank ``[*]``, and singular values for ``"gelsd"`` and ``"gelss"``.

    Raises:
        RuntimeError: shapes that do not fit, an unknown driver.

    Example::

        >>> import vesta
        >>> A = vesta.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
        >>> vesta.linalg.lstsq(A, vesta.tensor([[1.0], [4.0], [5.0]])).solution
        tensor([[1.],
                [2.]])
    """
    _expect_matrices("lstsq", input)
    A, B = input, b
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got {driver!r}."
        )
    vector = B.dim() == A.dim() - 1 and B.shape == A.shape[:-1]
    right = B.unsqueeze(-1) if vector else B
    m, n = A.shape[-2:]
    if right.dim() < 2 or right.shape[-2] != m:
        raise RuntimeError(
            f"linalg.lstsq: b.size(-2) should match input.size(-2), got {tuple(A.shape)} and {tuple(B.shape)}."
        )
    if A.dtype != B.dtype:
        raise RuntimeError(f"linalg.lstsq: Expected input and b to have the same dtype, got {A.dtype} and {B.dtype}.")
    limit = _epsilon(A) * max(m, n) if rcond is None else rcond
    solution = _solved_by_qr(A, right, limit) if A.is_cuda and driver in (None, "gels") else None
    if solution is not None:
        residuals = solution.flatten()[:0].abs()
        if m > n and driver == "gels":
            residuals = (A @ solution - right).abs().square().sum(-2)
        sizes = A.shape[:-2] if driver is None else (0,)
        rank = _ops.full(sizes, min(m, n), dtype=_C.int64, device=A.device)
        values = _ops.empty(0, dtype=residuals.dtype, device=A.device)
        made = solution.squeeze(-1) if vector else solution
        return return_types.linalg_lstsq(*_written("lstsq", (made, residuals, rank, values), out))
    S = _linalg.svdvals(A.detach())
    kept = limit * S.amax(-1, keepdim=True) < S if S.shape[-1] else S > 0
    rank = kept.sum(-1)
    # The pseudo-inverse's gradient has no pole at equal singular values.
    solution = _C._linalg_pinv(A, None, _as_tensor("lstsq", limit, A), False) @ right
    residuals = solution.flatten()[:0].abs()  # none, of the graph as PyTorch's
    if m > n and driver in ("gels", "gelsd", "gelss") and bool((rank == n).all()):
        residuals = (A @ solution - right).abs().square().sum(-2)
    values = S if driver in ("gelsd", "gelss") else _ops.empty(0, dtype=S.dtype, device=A.device)
    if driver == "gels":
        rank = _ops.empty(0, dtype=rank.dtype, device=A.device)
    made = solution.squeeze(-1) if vector else solution
    return return_types.linalg_lstsq(*_written("lstsq", (made, residuals, rank, values), out))


def _epsilon(A: Tensor) -> float:
    return 2.0**-23 if A.dtype in (_C.float32, _C.complex64) else 2.0**-52


def _largest(sizes: Tensor, dim: int, keepdim: bool = False) -> Tensor:
    """Returns the largest of numbers that are not negative: 0 of none."""
    return sizes.amax(dim, keepdim) if sizes.size(dim) else sizes.sum(dim, keepdim)


@checked
def matrix_norm(
    input: Tensor,
    ord: Number | str = "fro",
    dim: Shape = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Returns norms of the matrices that two dimensions of ``input`` make.

    Args:
        ord: ``"fro"`` (the root of the sum of squares), ``"nuc"`` (the sum of singular values), ``inf``, ``-inf`` (the
            largest and smallest sum of a row's absolute values), 1 and -1 (of a column's), 2 and -2 (the largest and
            the smallest singular value).

    Raises:
        RuntimeError: another ``ord``, other than two dimensions.

    Example::

        >>> import vesta
        >>> vesta.linalg.matrix_norm(vesta.tensor([[1.0, -2.0], [3.0, 4.0]]), float("inf"))
        tensor(7.)
    """
    _expect_matrices("matrix_norm", input)
    ord, dim = python_numbers(ord), python_numbers(dim)
    if isinstance(ord, complex):
        raise RuntimeError(f"linalg.matrix_norm: Expected a non-complex scalar as the order of norm, got {ord} (ord).")
    expect("linalg.matrix_norm", "ord", ord, (str, numbers.Real), "a number, 'fro' or 'nuc'")
    expect("linalg.matrix_norm", "dim", dim, (tuple, list), "a tuple of ints")
    if len(dim) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple of ints. Got {dim}.")
    for d in dim:
        expect("linalg.matrix_norm", "dim", d, numbers.Integral, "ints")
    first, second = (d + input.dim() if d < 0 else d for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {tuple(dim)}.")
    if ord in ("fro", "f"):
        return _written("matrix_norm", _linalg.vector_norm(input, 2, (first, second), keepdim, dtype=dtype), out)
    x = input if dtype is None else input.to(dtype)
    if ord in ("nuc", 2, -2):
        values = _linalg.svdvals(_ops.movedim(x, (first, second), (-2, -1)))
        made = values.sum(-1) if ord == "nuc" else _largest(values, -1) if ord == 2 else values.amin(-1)
        for d in sorted((first, second)) if keepdim else ():
            made = made.unsqueeze(d)
        return _written("matrix_norm", made, out)
    if not isinstance(ord, str) and abs(ord) in (1, math.inf):
        summed, sought = (first, second) if abs(ord) == 1 else (second, first)
        sums = x.abs().sum(summed, keepdim=True)
        made = _largest(sums, sought, True) if ord > 0 else sums.amin(sought, keepdim=True)
        return _written("matrix_norm", made if keepdim else made.squeeze((first, second)), out)
    raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")


@checked
def norm(
    input: Tensor,
    ord: Number | str | None = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """Returns norms of vectors or matrices: ``vector_norm`` along one dimension, ``matrix_norm`` over two.

    Without ``dim`` and ``ord`` it is the 2-norm of all elements; with ``ord`` alone ``input`` is a vector or a matrix.

    Example::

        >>> import vesta
        >>> vesta.linalg.norm(vesta.tensor([3.0, 4.0]))
        tensor(5.)
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"linalg.norm(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    if ord is None:
        made = _linalg.vector_norm(input, 2, dim, keepdim, dtype=dtype)
        return _written("norm", made, out)
    if dim is None:
        if input.dim() not in (1, 2):
            raise RuntimeError(
                "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got " f"{input.dim()}D."
            )
        dim = (0,) if input.dim() == 1 else (0, 1)
    dim = python_numbers(dim)
    expect("linalg.norm", "dim", dim, (int, tuple, list), "an integer or a tuple of them")
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dim) == 2:
        return matrix_norm(input, ord, dim, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: ord={ord!r} is for matrices, got {len(dim)} dimension(s) (dim).")
    return _written("norm", _linalg.vector_norm(input, ord, dim, keepdim, dtype=dtype), out)


@checked
def cond(input: Tensor, p: Number | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """Returns condition numbers ``[*]``: ``norm(input, p) * norm(inv(input), p)``; for 2 and -2 from singular values.

    Example::

        >>> import vesta
        >>> vesta.linalg.cond(vesta.tensor([[2.0, 0.0], [0.0, 1.0]]))
        tensor(2.)
    """
    _expect_matrices("cond", input)
    if p in (None, 2, -2):
        values = _linalg.svdvals(input)
        largest, smallest = values[..., 0], values[..., -1]
        return _written("cond", smallest / largest if p == -2 else largest / smallest, out)
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise ValueError(f"linalg.cond: expected 'fro', 'nuc' or a number, got an invalid norm type: {p!r} (p).")
    inverse, info = inv_ex(input)
    made = matrix_norm(input, p) * matrix_norm(inverse, p)
    return _written("cond", _ops.where(info == 0, made, math.inf), out)


@checked
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Sequence[Tensor] | None = None) -> Any:
    """Returns ``(inverse, info)``: inverses of matrices ``[*, n, n]``, and int32 numbers ``[*]``, 0 where there is one.

    Example::

        >>> import vesta
        >>> vesta.linalg.inv_ex(vesta.eye(2)).info
        tensor(0, dtype=vesta.int32)
    """
    _expect_matrices("inv_ex", A, "A")
    one = _ops.eye(A.shape[-1], dtype=A.dtype, device=A.device).expand(A.shape)
    return return_types.linalg_inv_ex(
        *_written("inv_ex", called("linalg.inv_ex", lambda: solve_ex(A, one, check_errors=check_errors)), out)
    )


@checked
def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Sequence[Tensor] | None = None
) -> Any:
    """Returns ``(result, info)``: the solution of ``A X = B``, and int32 numbers ``[*]``, 0 where A is invertible.

    Example::

        >>> import vesta
        >>> vesta.linalg.solve_ex(vesta.eye(2), vesta.ones(2, 1)).info
        tensor(0, dtype=vesta.int32)
    """
    _expect_matrices("solve_ex", A, "A")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(f"linalg.solve_ex: A must be batches of square matrices, but they are {tuple(A.shape)}.")
    LU, pivots, info = _linalg.lu_factor_ex(A, check_errors=check_errors)
    vector = B.dim() == 1 or (B.dim() == A.dim() - 1 and B.shape == A.shape[:-1])
    made = _linalg.lu_solve(LU, pivots, B.unsqueeze(-1) if vector else B, left=left)
    return return_types.linalg_solve_ex(*_written("solve_ex", (made.squeeze(-1) if vector else made, info), out))


@checked
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Returns the sums of ``conj(x) * y`` along ``dim``, with broadcasting.

    Example::

        >>> import vesta
        >>> vesta.linalg.vecdot(vesta.tensor([1.0, 2.0]), vesta.tensor([3.0, 4.0]))
        tensor(11.)
    """
    if x.dtype != y.dtype:
        raise RuntimeError(f"linalg.vecdot: expected x and y of one dtype, got {x.dtype} and {y.dtype}.")
    return _written("vecdot", (_ops.conj(x) * y).sum(dim), out)


@checked
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Returns the product of two or more matrices, in the order with the fewest multiplications.

    Args:
        tensors: matrices; the first and the last may be vectors.

    The order is found by dynamic programming (Cormen et al., "Introduction to Algorithms", 15.2).

    Example::

        >>> import vesta
        >>> vesta.linalg.multi_dot([vesta.ones(2, 3), vesta.ones(3, 4), vesta.ones(4)])
        tensor([12., 12.])
    """
    expect("linalg.multi_dot", "tensors", tensors, (tuple, list), "a tuple of Tensors")
    given = list(tensors)
    if len(given) < 2:
        raise RuntimeError(f"linalg.multi_dot: expected at least 2 tensors but got {len(given)}.")
    for i, t in enumerate(given):
        if not isinstance(t, Tensor):
            raise TypeError(f"linalg.multi_dot: expected tensors, got {type(t).__name__} (tensors[{i}]).")
    many = [given[0].unsqueeze(0) if given[0].dim() == 1 else given[0], *given[1:]]
    many[-1] = many[-1].unsqueeze(-1) if many[-1].dim() == 1 else many[-1]
    for i, t in enumerate(many):
        if t.dim() != 2:
            raise RuntimeError(f"linalg.multi_dot: expected matrices, got a {given[i].dim()}-D tensor (tensors[{i}]).")
        if i and t.shape[0] != many[i - 1].shape[1]:
            raise RuntimeError(
                f"linalg.multi_dot: tensors {i - 1} and {i} of shapes {tuple(many[i - 1].shape)} and {tuple(t.shape)} "
                "cannot be multiplied."
            )
    sizes, n = [many[0].shape[0], *(t.shape[1] for t in many)], len(many)
    costs = {(i, i): 0 for i in range(n)}
    split = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            each = [costs[i, k] + costs[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            costs[i, j] = min(each)
            split[i, j] = i + each.index(costs[i, j])

    def product(i: int, j: int) -> Tensor:
        return many[i] if i == j else product(i, split[i, j]) @ product(split[i, j] + 1, j)

    made = product(0, n - 1)
    made = made.squeeze(0) if given[0].dim() == 1 else made
    return _written("multi_dot", made.squeeze(-1) if given[-1].dim() == 1 else made, out)


@checked
def tensorinv(input: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """Returns the inverse of ``input`` as a map from its last dimensions to the first ``ind``.

    Raises:
        RuntimeError: the two sets of dimensions have other numbers of elements, a singular map.

    Example::

        >>> import vesta
        >>> vesta.linalg.tensorinv(vesta.eye(6).reshape(2, 3, 6), ind=2).shape
        vesta.Size([6, 2, 3])
    """
    if ind <= 0:
        raise RuntimeError(f"linalg.tensorinv: expected a strictly positive integer for ind, got {ind}.")
    first, last = input.shape[:ind], input.shape[ind:]
    if math.prod(first) != math.prod(last):
        raise RuntimeError(
            f"linalg.tensorinv: expected equal numbers of elements, got {tuple(first)} and {tuple(last)}."
        )
    return _written("tensorinv", _linalg.inv(input.reshape(math.prod(first), -1)).reshape([*last, *first]), out)


@checked
def tensorsolve(input: Tensor, other: Tensor, dims: Shape | None = None, *, out: Tensor | None = None) -> Tensor:
    """Returns X with ``tensordot(input, X, X.dim()) = other``; ``dims`` of ``input`` are moved to its end first.

    Example::

        >>> import vesta
        >>> vesta.linalg.tensorsolve(vesta.eye(6).reshape(2, 3, 6), vesta.ones(2, 3)).shape
        vesta.Size([6])
    """
    expect("linalg.tensorsolve", "dims", dims, (tuple, list, type(None)), "a tuple of integers")
    moved = (
        input if dims is None else _ops.movedim(input, list(dims), list(range(input.dim() - len(dims), input.dim())))
    )
    rest = moved.shape[other.dim() :]
    if math.prod(rest) != math.prod(other.shape):
        raise RuntimeError(
            "linalg.tensorsolve: expected input to satisfy prod(input.shape[other.dim():]) = prod(other.shape), got "
            f"{tuple(input.shape)} and {tuple(other.shape)}."
        )
    return _written(
        "tensorsolve", _linalg.solve(moved.reshape(-1, math.prod(rest)), other.reshape(-1)).reshape(list(rest)), out
    )


@checked
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Returns ``vesta.diagonal`` of the last two dimensions.

    Example::

        >>> import vesta
        >>> vesta.linalg.diagonal(vesta.eye(2))
        tensor([1., 1.])
    """
    return _ops.diagonal(A, offset, dim1, dim2)
