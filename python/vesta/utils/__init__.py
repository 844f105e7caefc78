"""Everything that is neither a layer nor an optimizer: data loading (``vesta.utils.data``), the handles of hooks, the
settings of saving, and the cache of weights.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import data, hooks

__all__ = ["data", "hooks", "model_zoo", "serialization"]


def __getattr__(name: str) -> Any:
    """Imports a submodule on first use."""
    if name in ("model_zoo", "serialization"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'vesta.utils' has no attribute {name!r}")
