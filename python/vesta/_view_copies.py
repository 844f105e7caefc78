"""``narrow_copy`` and its like: what a view shows, in memory of its own, also into ``out``."""

from __future__ import annotations

import inspect
from typing import Any, Callable

from . import _C
from ._C import Tensor, _ops


def _view(input: Tensor, size: Any) -> Tensor:
    if isinstance(size, _C.dtype):
        return input.view(size)
    return input.reshape(size)


def _slice(input: Tensor, dim: int, start: int | None, end: int | None, step: int) -> Tensor:
    if not -input.dim() <= dim < input.dim():
        raise IndexError(f"slice_copy: expected a dimension in [{-input.dim()}, {input.dim() - 1}], got {dim} (dim).")
    return input[(slice(None),) * (dim % input.dim()) + (slice(start, end, step),)]


#: The view of which each function returns a copy, with PyTorch's arguments.
VIEWS: dict[str, Callable[..., Any]] = {
    "alias_copy": lambda input: input,
    "as_strided_copy": lambda input, size, stride, storage_offset=None: _ops.as_strided(
        input, size, stride, storage_offset
    ),
    "detach_copy": lambda input: input,  # with its history, as PyTorch's
    "diagonal_copy": lambda input, offset=0, dim1=0, dim2=1: _ops.diagonal(input, offset, dim1, dim2),
    "expand_copy": lambda input, size, *, implicit=False: input.expand(size),
    "indices_copy": lambda input: input.indices(),
    "narrow_copy": lambda input, dim, start, length: _ops.narrow(input, dim, start, length),
    "permute_copy": lambda input, dims: _ops.permute(input, dims),
    "select_copy": lambda input, dim, index: _ops.select(input, dim, index),
    "slice_copy": lambda input, dim=0, start=None, end=None, step=1: _slice(input, dim, start, end, step),
    "split_copy": lambda input, split_size, dim=0: _ops.split(input, split_size, dim),
    "split_with_sizes_copy": lambda input, split_sizes, dim=0: _ops.split_with_sizes(input, split_sizes, dim),
    "squeeze_copy": lambda input, dim=None: _ops.squeeze(input) if dim is None else _ops.squeeze(input, dim),
    "t_copy": lambda input: _ops.t(input),
    "transpose_copy": lambda input, dim0, dim1: _ops.transpose(input, dim0, dim1),
    "unbind_copy": lambda input, dim=0: _ops.unbind(input, dim),
    "unfold_copy": lambda input, dimension, size, step: input.unfold(dimension, size, step),
    "unsqueeze_copy": lambda input, dim: _ops.unsqueeze(input, dim),
    "values_copy": lambda input: input.values(),
    "view_as_complex_copy": lambda input: _ops.view_as_complex(input),
    "view_as_real_copy": lambda input: _ops.view_as_real(input),
    "view_copy": _view,
}


def write(op: str, made: Tensor, out: Any) -> Tensor:
    """Writes a result into ``out``, which must have its dtype, and its shape unless it is empty."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if _C.is_grad_enabled() and (made.requires_grad or out.requires_grad):
        raise RuntimeError(
            f"{op}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if out.dtype != made.dtype:
        raise RuntimeError(f"{op}: Expected out tensor to have dtype {made.dtype}, but got {out.dtype} instead.")
    if out.shape != made.shape:
        if out.numel():
            raise RuntimeError(
                f"{op}: expected out of shape {list(made.shape)}, got {list(out.shape)}. An out tensor is resized only "
                "when it is empty."
            )
        out.resize_(made.shape)
    return out.copy_(made)


def _write_all(op: str, made: tuple[Tensor, ...], out: Any) -> None:
    if not isinstance(out, (list, tuple)) or len(out) != len(made):
        got = f"{len(out)} of them" if isinstance(out, (list, tuple)) else type(out).__name__
        raise RuntimeError(f"{op}: expected a list of {len(made)} tensors, got {got} (out).")
    for view, target in zip(made, out):
        write(op, view, target)


def _copying(op: str, view: Callable[..., Any]) -> Callable[..., Any]:
    view.__name__ = view.__qualname__ = op  # an error of its arguments names it

    def copied(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        given = args[0] if args else kwargs.get("input")
        if not isinstance(given, Tensor):
            raise TypeError(f"{op}(): argument 'input' (position 1) must be Tensor, not {type(given).__name__}")
        made = view(*args, **kwargs)
        if out is not None:
            return write(op, made, out) if isinstance(made, Tensor) else _write_all(op, made, out)
        if isinstance(made, Tensor):
            return made.clone(memory_format=_C.contiguous_format)
        return tuple(part.clone(memory_format=_C.contiguous_format) for part in made)

    signature = inspect.signature(view)
    parameter = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
    copied.__signature__ = signature.replace(parameters=[*signature.parameters.values(), parameter])  # type: ignore
    copied.__name__ = copied.__qualname__ = op
    copied.__doc__ = (
        f"Returns a copy of ``{op[: -len('_copy')]}`` of a tensor: no memory is shared, rows are contiguous."
    )
    return copied


globals().update({op: _copying(op, view) for op, view in VIEWS.items()})
__all__ = list(VIEWS)
