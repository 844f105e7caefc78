"""Everything that is neither a layer nor an optimizer: data loading (``vesta.utils.data``), the handles of hooks, the
settings of saving, and the cache of weights.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from vesta import _C
from vesta._names import listing

from . import hooks

__all__ = [
    "benchmark",
    "checkpoint",
    "cmake_prefix_path",
    "collect_env",
    "cpp_extension",
    "data",
    "dlpack",
    "flop_counter",
    "hooks",
    "model_zoo",
    "serialization",
    "tensorboard",
]


def _cmake_prefix_path() -> str:
    """Returns the folder in which CMake finds the package of C++: of a wheel, else of the build folder."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    build = os.path.dirname(os.path.dirname(os.path.abspath(_C.__file__ or "")))
    folders = [os.path.join(root, "share", "cmake") for root in (package, os.path.dirname(build))]
    return next((folder for folder in folders if os.path.isdir(folder)), folders[0])


#: What ``CMAKE_PREFIX_PATH`` names, for a program in C++: ``find_package(vesta)``.
cmake_prefix_path: str = _cmake_prefix_path()

#: Modules that are imported on first use.
_LAZY = (
    "_pytree",
    "benchmark",
    "checkpoint",
    "collect_env",
    "cpp_extension",
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
