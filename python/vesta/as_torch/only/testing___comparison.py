"""``torch.testing._comparison``: the tolerances of a comparison."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta.testing.comparison import _TOLERANCES, assert_allclose, assert_close

__all__ = ["assert_allclose", "assert_close", "default_tolerances", "get_tolerances"]


def default_tolerances(*inputs: Any, dtype_precisions: Any = None) -> tuple[float, float]:
    """Returns the widest (rtol, atol) of the dtypes of tensors, or of dtypes."""
    table = dtype_precisions or _TOLERANCES
    found = [table.get(x.dtype if isinstance(x, Tensor) else x, (0.0, 0.0)) for x in inputs]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def get_tolerances(*inputs: Any, rtol: float | None, atol: float | None, id: Any = ()) -> tuple[float, float]:
    """Returns (rtol, atol) if both are given, else those of the dtypes.

    Raises:
        ValueError: only one of them is given.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    return default_tolerances(*inputs) if rtol is None or atol is None else (rtol, atol)
