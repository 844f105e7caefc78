"""Everything that is neither a layer nor an optimizer: data loading (``vesta.utils.data``) and the handles of hooks."""

from __future__ import annotations

from . import data, hooks

__all__ = ["data", "hooks"]
