"""``torch.fx``: what decorates and marks does nothing; what records graphs refuses."""

from __future__ import annotations

from typing import Any

__all__ = ["has_side_effect", "wrap"]


def wrap(fn_or_name: Any) -> Any:
    """Returns its argument: there is no tracer from which a function could be kept."""
    return fn_or_name


def has_side_effect(fn: Any) -> Any:
    """Returns its argument."""
    return fn
