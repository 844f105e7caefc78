"""Access to the recorded graph: hooks on the tensors it saves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from vesta import _C, Tensor
from vesta._C import Node

__all__ = ["Node", "disable_saved_tensors_hooks", "increment_version", "save_on_cpu", "saved_tensors_hooks"]

_disabled = threading.local()


class saved_tensors_hooks:
    """A context in which every tensor saved for backward goes through ``pack_hook`` and returns through
    ``unpack_hook``.

    Args:
        pack_hook: a function from the tensor to anything; must not change the tensor in place.
        unpack_hook: a function from that object to a tensor with the same values.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2, requires_grad=True)
        >>> with vesta.autograd.graph.saved_tensors_hooks(lambda t: print("saved") or t, lambda t: t):
        ...     y = x.exp()
        saved
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        message = getattr(_disabled, "message", None)
        if message is not None:
            raise RuntimeError(message)
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """A context in which tensors saved for backward are kept in host memory, to save device memory.

    Args:
        pin_memory: use memory that the device copies from without waiting.
        device_type: accepted for PyTorch's sake; a tensor goes back to where it was.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2, requires_grad=True)
        >>> with vesta.autograd.graph.save_on_cpu():
        ...     y = (x * x).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            host = tensor.detach().cpu()
            return tensor.device, host.pin_memory() if pin_memory and host is not tensor else host

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, host = packed
            return host.to(device=device)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Makes ``saved_tensors_hooks`` raise ``RuntimeError(error_message)`` inside a ``with`` block."""
    before = getattr(_disabled, "message", None)
    _disabled.message = error_message
    try:
        yield
    finally:
        _disabled.message = before


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Tells the tape that something else has written to a tensor's memory: another library, a kernel of one's own.

    A backward pass that needs the values that were there raises instead of using the new ones.

    Args:
        tensor: a tensor, or an iterable of tensors.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2)
        >>> vesta.autograd.graph.increment_version(x)
        >>> x._version
        1
    """
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        _C._increment_version(each)
