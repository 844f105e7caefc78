"""Vesta: eager tensors with automatic differentiation and PyTorch's names."""

# ruff: noqa: F401  (what is imported here is what the package offers)

from __future__ import annotations

import importlib
from typing import Any

from . import _C
from ._C import *  # noqa: F403
from ._C import Tensor, _ops

__version__ = "0.1.0"

#: Ops of the op list that only serve other functions; they stay in ``vesta._C._ops``.
_PARTS = {
    "arange_range",
    "cross_entropy_rows",
    "index_tensors",
    "log_softmax_float",
    "mT",
    "normalize",
    "max_dim",
    "min_dim",
    "slice",
    "softmax_float",
    "to_copy",
}
#: Other names of ops, from PyTorch and NumPy; also for methods.
_ALIASES = {
    "absolute": "abs",
    "negative": "neg",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "swapaxes": "transpose",
    "swapdims": "transpose",
}
#: The modules of names that are imported on first use; an empty text: the name is a module itself.
_LAZY = {
    **dict.fromkeys(("amp", "autograd", "backends", "cpu", "cuda", "nn", "optim", "safetensors", "utils"), ""),
    **dict.fromkeys(("distributed", "futures", "multiprocessing"), ""),
    **dict.fromkeys(("enable_grad", "inference_mode", "no_grad", "set_grad_enabled"), ".autograd"),
    **dict.fromkeys(("finfo", "iinfo"), "._limits"),
    **dict.fromkeys(("GradScaler", "autocast"), ".amp"),
    **dict.fromkeys(("get_autocast_cpu_dtype", "get_autocast_gpu_dtype"), ".amp.autocast_mode"),
    **dict.fromkeys(("set_autocast_cpu_dtype", "set_autocast_gpu_dtype"), ".amp.autocast_mode"),
    **dict.fromkeys(("is_autocast_cpu_enabled", "set_autocast_cpu_enabled"), ".amp.autocast_mode"),
    **dict.fromkeys(("load_file", "save_file"), ".safetensors"),
    "set_default_tensor_type": ".tensor_types",
}
#: Classes of tensors by dtype, from ``tensor_types.CPU``.
_TYPES = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")

for _name in _LAZY:  # set_grad_enabled of C++ only switches; the lazy one is also a context manager
    globals().pop(_name, None)
for _name, _function in vars(_ops).items():
    if not _name.startswith("_") and not _name.endswith("_") and _name not in _PARTS:
        globals()[_name] = _function
for _alias, _name in _ALIASES.items():
    globals()[_alias] = getattr(_ops, _name)
    if hasattr(Tensor, _name):
        setattr(Tensor, _alias, getattr(Tensor, _name))
del _name, _function, _alias

from . import _tensor  # noqa: E402  (puts the methods written in Python into Tensor)
from ._functions import (  # noqa: E402
    allclose,
    asarray,
    clamp_,
    equal,
    is_complex,
    is_floating_point,
    is_tensor,
    isclose,
    max,
    min,
    nonzero,
    norm,
    numel,
    randint,
    std,
    typename,
    var,
    where,
)

_tensor.install()


def __getattr__(name: str) -> Any:
    """Imports a submodule, or a name of one, on first use."""
    home = _LAZY.get(name)
    if name.endswith("Tensor") and name[: -len("Tensor")] in _TYPES:
        from .tensor_types import CPU

        globals().update(CPU)
        return CPU[name]
    if home is None:
        raise AttributeError(f"module 'vesta' has no attribute {name!r}")
    try:
        module = importlib.import_module(home or f".{name}", __name__)
    except ModuleNotFoundError as error:
        raise AttributeError(f"module 'vesta' has no attribute {name!r}") from error
    globals()[name] = value = module if not home else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *(f"{name}Tensor" for name in _TYPES)})
