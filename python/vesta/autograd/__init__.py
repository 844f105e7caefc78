"""The tape from Python: gradients of functions, modes, operations with a gradient of one's own, checks."""

from __future__ import annotations

from . import function, grad_mode
from .function import Function, once_differentiable
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = [
    "Function",
    "enable_grad",
    "function",
    "grad_mode",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "set_grad_enabled",
]
