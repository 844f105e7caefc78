"""Transformations of functions: gradients, Jacobians and maps over a dimension, with ``torch.func``'s names."""

from __future__ import annotations

from vesta._names import listing

from .jacobians import hessian, jacfwd, jacrev
from .modules import functional_call, stack_module_state
from .transforms import functionalize, grad, grad_and_value, jvp, linearize, vjp
from .vmap import vmap

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]

__dir__ = listing(globals(), hidden="jacobians levels modules transforms")
