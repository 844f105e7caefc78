"""Reductions and normalizations of the elements that a mask selects, as PyTorch's ``torch.masked``.

A mask is a tensor of booleans that broadcasts to the input; True means that the element takes part. What is masked out
is replaced by an element that does not change the result, and has no gradient. A line without any element gives that
element: 0 for ``sum``, ``-inf`` for ``amax``. It is NaN for ``mean``, ``median``, ``var``, ``std`` and ``softmax``.

Example::

    >>> import vesta
    >>> x = vesta.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> mask = vesta.tensor([[True, False, True], [False, False, False]])
    >>> vesta.masked.sum(x, 1, mask=mask)
    tensor([4., 0.])
    >>> vesta.masked.amax(x, 1, mask=mask)
    tensor([3., -inf])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Callable, NamedTuple, Union

from vesta._names import listing
from vesta._types import DType

from . import _C
from ._arguments import expect
from ._C import Tensor, _linalg, _ops
from ._limits import finfo, iinfo

__all__ = [
    "MaskedTensor",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "as_masked_tensor",
    "cumprod",
    "cumsum",
    "is_masked_tensor",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "masked_tensor",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]

Dims = Union[int, Sequence[int], None]


# ---- masks and dimensions -----------------------------------------------------------------------------------------


def _checked(op: str, input: Any, name: str = "input") -> Tensor:
    if not isinstance(input, Tensor):
        raise TypeError(f"masked.{op}: expected a Tensor, got {type(input).__name__} ({name}).")
    if input.is_sparse:
        raise ValueError(f"masked.{op}: expected a dense tensor, got a sparse one ({name}). Use .to_dense().")
    return input


def _mask_of(op: str, input: Tensor, mask: Any, name: str = "mask") -> Tensor | None:
    """Returns a mask as booleans of the input's shape."""
    if mask is None:
        return None
    _checked(op, mask, name)
    if mask.dim() > input.dim():
        raise IndexError(
            f"masked.{op}: expected a mask of at most {input.dim()} dimensions, got shape {list(mask.shape)} ({name})."
        )
    return mask.to(_C.bool).expand(input.shape)


def _filled(op: str, input: Tensor, mask: Tensor | None, identity: Any) -> Tensor:
    """Replaces what is masked out by the element that does not change the result."""
    if mask is None:
        return input
    return input.masked_fill(~mask, identity(op, input.dtype) if callable(identity) else identity)


def _dims(op: str, input: Tensor, dim: Dims) -> list[int]:
    """Returns the dimensions of a reduction in ascending order; None and () are all of them."""
    expect(f"masked.{op}", "dim", dim, (Integral, list, tuple, type(None)), "int, a list of ints or None")
    given = [dim] if isinstance(dim, Integral) else list(dim or range(input.dim()))  # type: ignore[arg-type]
    n = max(input.dim(), 1)
    for d in given:
        if not isinstance(d, Integral):
            raise TypeError(f"masked.{op}: expected ints, got {type(d).__name__} (dim).")
        if not -n <= d < n:
            raise IndexError(f"masked.{op}: expected a dimension in [{-n}, {n - 1}], got {d} (dim).")
    found = sorted({d % n for d in given})
    if len(found) < len(given):
        raise RuntimeError(f"masked.{op}: expected each dimension once, got {dim} (dim).")
    return found


def _dtype(op: str, dtype: DType | None) -> Any:
    """Returns a dtype; Python's types stand for theirs."""
    kinds = {bool: _C.bool, int: _C.int64, float: _C.get_default_dtype(), complex: _C.complex64}
    dtype = kinds.get(dtype, dtype) if isinstance(dtype, type) else dtype
    expect(f"masked.{op}", "dtype", dtype, (_C.dtype, type(None)), "a dtype or None")
    return dtype


# ---- the table of operations ----------------------------------------------------------------------------------------


def _least(op: str, dtype: DType | None) -> Any:
    return -math.inf if dtype.is_floating_point else _ordered(op, dtype).min


def _greatest(op: str, dtype: DType | None) -> Any:
    return math.inf if dtype.is_floating_point else _ordered(op, dtype).max


def _ordered(op: str, dtype: DType | None) -> Any:
    if dtype.is_complex or dtype == _C.bool:
        raise NotImplementedError(f"masked.{op}: expected a real dtype other than bool, got {dtype} (input).")
    return iinfo(dtype)


#: Computes an operation of a filled input, over dimensions: (input, dims, keepdim, dtype, mask).
_Compute = Callable[[Tensor, "list[int]", bool, Any, Union[Tensor, None]], Tensor]


class _Operation(NamedTuple):
    """An operation: the element that does not change its result, and how it is computed once that is filled in."""

    identity: Any
    compute: _Compute
    #: Whether integers are computed as float64: they have no NaN and no infinity.
    in_floats: bool = False


def _prod(x: Tensor, dims: list[int], keepdim: bool, dtype: DType | None, mask: Tensor | None) -> Tensor:
    x = x if dtype is None else x.to(dtype)
    for d in reversed(dims):
        x = x.prod(d, keepdim)
    return x if dims else x.prod()


def _count(x: Tensor, dims: list[int], keepdim: bool, mask: Tensor | None) -> Tensor:
    """Returns how many elements take part in each result."""
    everything = _ops.ones((), dtype=_C.bool, device=x.device).expand(x.shape)
    return (everything if mask is None else mask).sum(dims, keepdim)


def _mean(x: Tensor, dims: list[int], keepdim: bool, dtype: DType | None, mask: Tensor | None) -> Tensor:
    dtype = x.dtype if dtype is None else dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"masked.mean: expected a floating-point or complex dtype, got {dtype}. Give one as dtype.")
    return x.sum(dims, keepdim, dtype=dtype) / _count(x, dims, keepdim, mask)


def _median(x: Tensor, dims: list[int], keepdim: bool, dtype: DType | None, mask: Tensor | None) -> Tensor:
    made = _ops.nanmedian(x, dims[0], keepdim).values
    whole = dtype is not None and not dtype.is_floating_point
    if whole and mask is not None and not bool(mask.any(dims[0]).all()):  # a device sync: an error depends on values
        raise ValueError("masked.median: expected an element in every line, or a floating-point dtype (mask).")
    return made if dtype is None else made.to(dtype)


def _by_cast(compute: Callable[[Tensor, list[int], bool], Tensor]) -> _Compute:
    """Makes an operation that computes in its own dtype and casts."""
    return lambda x, dims, keepdim, dtype, mask: compute(x, dims, keepdim).to(x.dtype if dtype is None else dtype)


def _of_places(op: str) -> _Compute:
    """Makes an operation that returns places, in the input's dtype, as PyTorch has it, if that holds them all."""
    function = getattr(_ops, op)

    def compute(x: Tensor, dims: list[int], keepdim: bool, dtype: Any, mask: Tensor | None) -> Tensor:
        kind = x.dtype if dtype is None else dtype
        count = x.shape[dims[0]] if len(dims) == 1 and x.dim() else x.numel()
        most = 2 / finfo(kind).eps if kind.is_floating_point else _ordered(op, kind).max
        if count - 1 > most:
            raise ValueError(
                f"masked.{op}: {kind} does not hold the places of {count} elements. Give dtype=vesta.int64."
            )
        return function(x, dims[0] if len(dims) == 1 else None, keepdim).to(kind)

    return compute


def _along(compute: Callable[..., Tensor]) -> _Compute:
    """Makes an operation along one dimension, in the input's dtype or in the one that is given."""
    return lambda x, dims, keepdim, dtype, mask: compute(x, dims[0], dtype=x.dtype if dtype is None else dtype)


_TABLE = {
    "sum": _Operation(0, lambda x, dims, keepdim, dtype, mask: x.sum(dims, keepdim, dtype=dtype)),
    "prod": _Operation(1, _prod),
    "mean": _Operation(0, _mean),
    "median": _Operation(math.nan, _median, in_floats=True),
    "amax": _Operation(_least, _by_cast(_ops.amax)),
    "amin": _Operation(_greatest, _by_cast(_ops.amin)),
    "argmax": _Operation(_least, _of_places("argmax")),
    "argmin": _Operation(_greatest, _of_places("argmin")),
    "logsumexp": _Operation(_least, _by_cast(_ops.logsumexp), in_floats=True),
    "cumsum": _Operation(0, _along(_ops.cumsum)),
    "cumprod": _Operation(1, _along(_ops.cumprod)),
    "softmax": _Operation(_least, _along(_ops.softmax)),
    "log_softmax": _Operation(_least, _along(_ops.log_softmax)),
    "softmin": _Operation(_greatest, _along(lambda x, dim, dtype: _ops.softmax(-x, dim, dtype=dtype))),
}


def _run(op: str, input: Any, dim: Dims, keepdim: Any, dtype: DType | None, mask: Any) -> Tensor:
    """Fills and computes."""
    identity, compute, in_floats = _TABLE[op]
    dtype = _dtype(op, dtype)
    dims, where = _dims(op, _checked(op, input), dim), _mask_of(op, input, mask)
    if in_floats and not (input.is_floating_point() or input.is_complex()):
        dtype = input.dtype if dtype is None else dtype
        input = input.to(_C.float64)
    return compute(_filled(op, input, where, identity), dims, bool(keepdim), dtype, where)


def _named(function: Callable[..., Tensor], op: str, doc: str, result: str) -> Callable[..., Tensor]:
    """Gives a function its name and its text; ``result`` is that of the example."""
    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"""{doc}

    Args:
        mask: booleans that broadcast to ``input``: True takes part.
        dtype: the dtype of the result.

    Example::

        >>> import vesta
        >>> x, mask = vesta.tensor([3.0, 1.0, 2.0]), vesta.tensor([True, False, True])
        >>> vesta.masked.{op}(x, 0, mask=mask)
        {result}
    """
    return function


def _reduction(op: str, doc: str, result: str) -> Callable[..., Tensor]:
    def reduce(
        input: Tensor, dim: Dims = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Tensor | None = None
    ) -> Tensor:
        return _run(op, input, dim, keepdim, dtype, mask)

    return _named(reduce, op, doc, result)


def _one_dim_reduction(op: str, doc: str, result: str, default: int | None = None) -> Callable[..., Tensor]:
    def reduce(
        input: Tensor,
        dim: int | None = default,
        *,
        keepdim: bool | None = False,
        dtype: Any = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if dim is not None or default is not None:
            _expect_dim(op, dim)
        return _run(op, input, dim, keepdim, dtype, mask)

    return _named(reduce, op, doc, result)


def _normalization(op: str, doc: str, result: str) -> Callable[..., Tensor]:
    def along(input: Tensor, dim: int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
        _expect_dim(op, dim)
        return _run(op, input, dim, False, dtype, mask)

    return _named(along, op, doc, result)


def _expect_dim(op: str, dim: Any) -> None:
    expect(f"masked.{op}", "dim", dim, Integral, "int")


sum = _reduction("sum", "Sums the elements that the mask selects; integers in int64. 0 for none.", "tensor(5.)")
prod = _reduction("prod", "Multiplies the elements that the mask selects; integers in int64. 1 for none.", "tensor(6.)")
mean = _reduction("mean", "Returns the mean of the elements that the mask selects. NaN for none.", "tensor(2.5000)")
amax = _reduction(
    "amax", "Returns the largest element that the mask selects; the least value of the dtype for none.", "tensor(3.)"
)
amin = _reduction(
    "amin", "Returns the least element that the mask selects; the greatest value of the dtype for none.", "tensor(2.)"
)
logsumexp = _reduction(
    "logsumexp", "Returns log(sum(exp(x))) of the elements that the mask selects. -inf for none.", "tensor(3.3133)"
)
argmax = _one_dim_reduction(
    "argmax", "Returns the place of the largest element that the mask selects, in the input's dtype.", "tensor(0.)"
)
argmin = _one_dim_reduction(
    "argmin", "Returns the place of the least element that the mask selects, in the input's dtype.", "tensor(2.)"
)
median = _one_dim_reduction(
    "median",
    "Returns the median, the lower of two, of the elements that the mask selects. NaN for none.",
    "tensor(2.)",
    -1,
)
cumsum = _normalization(
    "cumsum", "Sums the selected elements up to each place; what is masked out adds 0.", "tensor([3., 3., 5.])"
)
cumprod = _normalization(
    "cumprod", "Multiplies the selected elements up to each place; what is masked out counts 1.", "tensor([3., 3., 6.])"
)
softmax = _normalization(
    "softmax",
    "Returns the softmax of the selected elements; 0 where masked out, NaN for none.",
    "tensor([0.7311, 0.0000, 0.2689])",
)
log_softmax = _normalization(
    "log_softmax",
    "Returns the logarithm of ``softmax``; -inf where masked out, NaN for none.",
    "tensor([-0.3133,    -inf, -1.3133])",
)
softmin = _normalization(
    "softmin", "Returns ``softmax`` of -input; 0 where masked out, NaN for none.", "tensor([0.2689, 0.0000, 0.7311])"
)


# ---- operations with arguments of their own -------------------------------------------------------------------------


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """Returns log(exp(input) + exp(other)), elementwise; what a mask leaves out counts as ``-inf``.

    Example::

        >>> import vesta
        >>> x, y = vesta.tensor([-100.0, -200.0]), vesta.tensor([-1.0, -2.0])
        >>> mask = vesta.tensor([True, False])
        >>> vesta.masked.logaddexp(x, y, input_mask=mask, other_mask=mask)
        tensor([-1., -inf])
    """
    op, dtype = "logaddexp", _dtype("logaddexp", dtype)
    a = _filled(op, input, _mask_of(op, _checked(op, input), input_mask, "input_mask"), _least)
    b = _filled(op, other, _mask_of(op, _checked(op, other, "other"), other_mask, "other_mask"), _least)
    return _ops.logaddexp(a, b).to(input.dtype if dtype is None else dtype)


def norm(
    input: Tensor,
    ord: float | None = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns ``linalg.vector_norm`` of the elements that the mask selects; 0 for none, ``inf`` if ``ord`` < 0.

    Example::

        >>> import vesta
        >>> vesta.masked.norm(vesta.tensor([3.0, 1.0, 4.0]), mask=vesta.tensor([True, False, True]))
        tensor(5.)
    """
    dtype = _dtype("norm", dtype)
    dims, where = _dims("norm", _checked("norm", input), dim), _mask_of("norm", input, mask)
    expect("masked.norm", "ord", ord, (Real, type(None)), "a number or None")
    power = 2.0 if ord is None else ord
    filled = _filled("norm", input, where, math.inf if power < 0 else 0)
    return _linalg.vector_norm(filled, power, dims, bool(keepdim), dtype=dtype)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: DType | None = None, mask: Tensor | None = None
) -> Tensor:
    """Divides the selected elements by the larger of their ``norm`` along ``dim`` and ``eps``; 0 where masked out.

    Example::

        >>> import vesta
        >>> vesta.masked.normalize(vesta.tensor([3.0, 1.0, 4.0]), 2, 0, mask=vesta.tensor([True, False, True]))
        tensor([0.6000, 0.0000, 0.8000])
    """
    _expect_dim("normalize", dim)
    expect("masked.normalize", "eps", eps, Real, "a number")
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return _filled("normalize", input, _mask_of("normalize", input, mask), 0) / size.clamp_min(eps)


def _variance(
    op: str, input: Any, dim: Dims, unbiased: Any, correction: Any, keepdim: Any, dtype: DType | None, mask: Any
) -> Tensor:
    if unbiased is not None and correction is not None:
        raise ValueError(f"masked.{op}: expected unbiased or correction, got both.")
    expect(f"masked.{op}", "correction", correction, (Real, type(None)), "a number or None")
    dtype = _dtype(op, dtype)
    less = float((unbiased is None or bool(unbiased)) if correction is None else correction)
    dims, where = _dims(op, _checked(op, input), dim), _mask_of(op, input, mask)
    if dtype is None:
        dtype = input.dtype if input.is_floating_point() or input.is_complex() else _C.float32
    compute = dtype if dtype.is_floating_point or dtype.is_complex else _C.float32
    if input.dtype == _C.bool:
        raise NotImplementedError(f"masked.{op}: expected a dtype other than bool (input). Convert with .to().")
    x = _filled(op, input, where, 0)
    apart = _filled(op, x - x.sum(dims, True, dtype=dtype) / _count(x, dims, True, where), where, 0)
    total = (apart * apart.conj()).sum(dims, bool(keepdim), dtype=compute)
    count = _count(x, dims, bool(keepdim), where)
    if less != 0:
        count = (count.to(total.real.dtype if total.is_complex() else total.dtype) - less).clamp_min(0)
    return (total / count).to(dtype)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the variance of the elements that the mask selects: squares over their number less ``correction``.

    Args:
        unbiased: False is a correction of 0, True is 1, which is the default.

    Example::

        >>> import vesta
        >>> vesta.masked.var(vesta.tensor([3.0, 9.0, 5.0]), mask=vesta.tensor([True, False, True]))
        tensor(2.)
    """
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: int | None = None,
    keepdim: bool | None = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Returns the square root of ``var``.

    Example::

        >>> import vesta
        >>> vesta.masked.std(vesta.tensor([3.0, 9.0, 5.0]), unbiased=False, mask=vesta.tensor([True, False, True]))
        tensor(1.)
    """
    return _variance("std", input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


# ---- masked tensors, which there are not ----------------------------------------------------------------------------


class MaskedTensor:
    """The class of tensors that carry a mask. Not available: give ``mask`` to the functions of this module."""

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        raise NotImplementedError(
            "MaskedTensor is not available: keep data and mask apart, and give mask= to the functions of vesta.masked."
        )


def masked_tensor(data: Any, mask: Any, requires_grad: bool = False) -> MaskedTensor:
    """Raises NotImplementedError: there are no tensors that carry a mask."""
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Any, mask: Any) -> MaskedTensor:
    """Raises NotImplementedError: there are no tensors that carry a mask."""
    return MaskedTensor(data, mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Returns False: there are no tensors that carry a mask.

    Example::

        >>> import vesta
        >>> vesta.masked.is_masked_tensor(vesta.ones(2))
        False
    """
    return isinstance(obj, MaskedTensor)


__dir__ = listing(globals())
