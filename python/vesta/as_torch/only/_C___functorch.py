"""``torch._C._functorch``: questions about wrapped tensors; a transformed function sees plain ones."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta.as_torch.missing import refused

__all__ = [
    "get_unwrapped",
    "is_batchedtensor",
    "is_functionaltensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_get_bdim",
    "maybe_get_level",
    "unwrap_if_dead",
]

#: What wraps tensors in PyTorch: it can be imported, and refuses when it is called.
_REFUSED = frozenset(
    """
    CFunctionalizeInterpreterPtr CGradInterpreterPtr CInterpreter CJvpInterpreterPtr CVmapInterpreterPtr DynamicLayer
    RandomnessType TransformType _add_batch_dim _assert_wrapped_functional _func_decrement_nesting
    _func_increment_nesting _grad_decrement_nesting _grad_increment_nesting _is_vmap_fallback_enabled
    _jvp_decrement_nesting _jvp_increment_nesting _maybe_unsafe_set_level _propagate_functional_input_mutation
    _remove_batch_dim _set_dynamic_layer_keys_included _set_vmap_fallback_enabled _set_vmap_fallback_warning_enabled
    _unwrap_batched _unwrap_for_grad _unwrap_functional_tensor _vmap_decrement_nesting _vmap_increment_nesting
    _wrap_for_grad _wrap_functional_tensor current_level dlevel get_dynamic_layer_stack_depth
    get_inplace_requires_grad_allowed get_interpreter_stack get_single_level_autograd_function_allowed
    is_dead_tensor_wrapper maybe_current_level peek_interpreter_stack pop_dynamic_layer_stack
    pop_dynamic_layer_stack_and_undo_to_depth push_dynamic_layer_stack reshape_dim_into reshape_dim_outof
    set_inplace_requires_grad_allowed set_single_level_autograd_function_allowed unwrap_dead_wrappers
    """.split()
)


def is_batchedtensor(tensor: Tensor) -> bool:
    """Returns False: ``vmap`` calls a function with one example at a time."""
    return False


def is_legacy_batchedtensor(tensor: Tensor) -> bool:
    """Returns False, as ``is_batchedtensor``."""
    return False


def is_gradtrackingtensor(tensor: Tensor) -> bool:
    """Returns False: derivatives go through the tape, and no tensor is wrapped."""
    return False


def is_functionaltensor(tensor: Tensor) -> bool:
    """Returns False: there are no such wrappers."""
    return False


def is_functorch_wrapped_tensor(tensor: Tensor) -> bool:
    """Returns False: no tensor is wrapped."""
    return False


def maybe_get_level(tensor: Tensor) -> int:
    """Returns -1: the tensor belongs to no level."""
    return -1


def maybe_get_bdim(tensor: Tensor) -> int:
    """Returns -1: the tensor has no hidden dimension."""
    return -1


def get_unwrapped(tensor: Tensor) -> Tensor:
    """Raises RuntimeError, as PyTorch does for a tensor that is not wrapped."""
    raise RuntimeError("No wrappers present!")


def unwrap_if_dead(tensor: Tensor) -> Tensor:
    """Returns the tensor itself."""
    return tensor


def __getattr__(name: str) -> Any:
    if name not in _REFUSED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return refused(f"torch._C._functorch.{name}")
