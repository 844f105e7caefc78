"""Named results of ops: ``vesta.max(x, 0)`` is a ``vesta.return_types.max`` with ``values`` and ``indices``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import tensor_types
from ._C import Tensor, _return_types

if TYPE_CHECKING:
    from ._C._return_types import *  # noqa: F403


def _shown(result: Any) -> str:
    fields = ",\n".join(f"{name}={value!r}" for name, value in zip(result._fields, result))
    return f"{tensor_types.PACKAGE}.return_types.{type(result).__name__}(\n{fields})"


class histogram(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

    __repr__ = _shown


class histogramdd(NamedTuple):
    hist: Tensor
    bin_edges: tuple[Tensor, ...]

    __repr__ = _shown


class linalg_inv_ex(NamedTuple):
    inverse: Tensor
    info: Tensor

    __repr__ = _shown


class linalg_lstsq(NamedTuple):
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor

    __repr__ = _shown


class linalg_solve_ex(NamedTuple):
    result: Tensor
    info: Tensor

    __repr__ = _shown


globals().update({name: value for name, value in vars(_return_types).items() if not name.startswith("_")})
