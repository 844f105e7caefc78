"""``torch.nn._reduction``: names of reductions, which losses of older programs ask for."""

from __future__ import annotations

import warnings

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """Returns the number of a reduction: 0 for ``"none"``, 1 for ``"mean"``, 2 for ``"sum"``."""
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Use reduction='mean'.", stacklevel=2)
        reduction = "mean"
    if reduction not in _NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _NUMBERS[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """Returns the reduction that the two arguments before ``reduction`` meant; None counts as True."""
    chosen = "none" if reduce is False else "sum" if size_average is False else "mean"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{chosen}' instead.", stacklevel=2
        )
    return chosen


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """Returns the number of ``legacy_get_string``'s reduction."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
