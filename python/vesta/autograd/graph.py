"""Access to the recorded graph: hooks on the tensors it saves, and on the gradients of several tensors at once."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from vesta import _C, Tensor
from vesta._arguments import expect
from vesta._C import Node
from vesta._names import listing
from vesta.utils.hooks import RemovableHandle

__all__ = [
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

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


class _Copy:
    """A copy of a saved tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor.detach().clone()

    def get(self) -> Tensor:
        if self.tensor is None:
            raise RuntimeError("allow_mutation_on_saved_tensors: the copy that backward needs has been cleared.")
        return self.tensor


class _Copies:
    """The copies that a context of ``allow_mutation_on_saved_tensors`` has made and graphs still hold."""

    def __init__(self) -> None:
        self._made: weakref.WeakSet[_Copy] = weakref.WeakSet()

    def _keep(self, tensor: Tensor) -> _Copy:
        copy = _Copy(tensor)
        self._made.add(copy)
        return copy

    def clear(self) -> None:
        """Frees the copies; a graph that needs them cannot be walked any more."""
        for copy in self._made:
            copy.tensor = None


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_Copies]:
    """A context in which tensors that were saved for backward may be written to: backward sees what was saved.

    Every saved tensor is copied, which costs its memory once more; PyTorch copies those that are written to. What
    ``with`` gives has a method ``clear()``, which frees the copies.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2, requires_grad=True)
        >>> with vesta.autograd.graph.allow_mutation_on_saved_tensors():
        ...     y = x * 2
        ...     z = y.sin()
        ...     _ = y.mul_(5)
        ...     z.sum().backward()
        >>> x.grad
        tensor([-0.8323, -0.8323])
    """
    copies = _Copies()
    with saved_tensors_hooks(copies._keep, _Copy.get):
        yield copies


class _Gradients:
    """The gradients of one backward run that a hook of several tensors has seen."""

    def __init__(self, count: int) -> None:
        self.seen: list[Tensor | None] = [None] * count
        self.arrived = 0
        self.told = False


class _MultiGradHook(RemovableHandle):
    """A hook of several tensors, which waits for their gradients; it is its own handle."""

    def __init__(self, tensors: Sequence[Tensor], fn: Callable[..., None], each: bool) -> None:
        self.fn, self.each, self.count = fn, each, len(tensors)
        self.run = threading.local()
        self.handles = tuple(tensor.register_hook(self._receiver(i)) for i, tensor in enumerate(tensors))

    def _receiver(self, i: int) -> Callable[[Tensor], None]:
        return lambda grad: self._receive(i, grad)

    def _receive(self, i: int, grad: Tensor) -> None:
        # The run itself owns what has arrived: a run that ends with an error leaves nothing behind for the next one.
        known = getattr(self.run, "gradients", None)
        gradients = known() if known is not None else None
        if gradients is None or gradients.seen[i] is not None:
            gradients = _Gradients(self.count)
            self.run.gradients = weakref.ref(gradients)
            _C._queue_callback(lambda of_this_run=gradients: self._tell(of_this_run))
        gradients.seen[i] = grad
        gradients.arrived += 1
        if self.each or gradients.arrived == self.count:
            self._tell(gradients)

    def _tell(self, gradients: _Gradients) -> None:
        if not gradients.told:
            gradients.told = True
            self.fn(next(g for g in gradients.seen if g is not None) if self.each else tuple(gradients.seen))

    def remove(self) -> None:
        """Removes the hook; a second call does nothing."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return (self.handles, self.fn, self.each, self.count)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.handles, self.fn, self.each, self.count = state
        self.run = threading.local()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., None], *, mode: str = "all"
) -> RemovableHandle:
    """Registers a function that a backward run calls once, with the gradients of several tensors.

    Args:
        tensors: those whose gradients are waited for; each requires grad.
        fn: with ``mode="all"`` it gets a tuple with a gradient for each tensor, None for those that the run does not
            reach, when the last one is there, or at the end of a run that does not reach all; with ``mode="any"`` it
            gets the first gradient alone. It must not change them in place; what it returns is ignored.
        mode: ``"all"`` or ``"any"``.

    Returns:
        a handle whose ``remove()`` removes the hook.

    Example::

        >>> import vesta
        >>> a, b = vesta.ones(2, requires_grad=True), vesta.ones(2, requires_grad=True)
        >>> handle = vesta.autograd.graph.register_multi_grad_hook([a, b], lambda grads: print(len(grads)))
        >>> (a * b).sum().backward()
        2
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: expects mode to be one of ('all', 'any') but got {mode}.")
    expect("register_multi_grad_hook", "tensors", tensors, Iterable, "a sequence of Tensors")
    tensors = tuple(tensors)
    for i, tensor in enumerate(tensors):
        expect("register_multi_grad_hook", f"tensors[{i}]", tensor, Tensor, "Tensor")
    return _MultiGradHook(tensors, fn, mode == "any")


__dir__ = listing(globals())
