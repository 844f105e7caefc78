"""Layers, losses, initial values: PyTorch's ``torch.nn`` over Vesta's functions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vesta._names import listing

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "LinearCrossEntropyOptions",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "grad",
    "init",
    "modules",
    "parameter",
    "utils",
    *_layers,
]


if TYPE_CHECKING:  # what follows imports on first use
    from . import attention as attention
    from . import grad as grad
    from . import parallel as parallel
    from .modules.linear_cross_entropy_options import LinearCrossEntropyOptions as LinearCrossEntropyOptions
    from .parallel import DataParallel as DataParallel
else:

    def __getattr__(name: str) -> Any:
        """Imports what few programs use, on first use."""
        if name in ("attention", "grad"):
            return importlib.import_module(f".{name}", __name__)
        if name == "LinearCrossEntropyOptions":
            return modules.LinearCrossEntropyOptions
        if name not in ("DataParallel", "parallel"):
            raise AttributeError(f"module 'vesta.nn' has no attribute {name!r}")
        parallel = importlib.import_module(".parallel", __name__)
        return parallel if name == "parallel" else parallel.DataParallel


__dir__ = listing(globals(), "DataParallel", "attention", "grad", "parallel")
