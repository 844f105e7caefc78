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
    """Finds what wraps tensors in PyTorch: it can be imported, and refuses when it is called."""
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return refused(f"torch._C._functorch.{name}")
