"""Everything that is neither a layer nor an optimizer: data loading (``vesta.utils.data``), the handles of hooks, the
settings of saving, and the cache of weights.
"""

from __future__ import annotations

import importlib
from typing import Any

from vesta._names import listing

from . import hooks

__all__ = [
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "serialization",
    "tensorboard",
]
#: Modules that are imported on first use.
_LAZY = (
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "data",
    "dlpack",
    "flop_counter",
    "model_zoo",
    "serialization",
    "tensorboard",
)


def __getattr__(name: str) -> Any:
    """Imports a submodule on first use."""
    if name in _LAZY:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'vesta.utils' has no attribute {name!r}")


__dir__ = listing(globals(), *(name for name in _LAZY if name[0] != "_"))
