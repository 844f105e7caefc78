"""How tensors are sent between processes: as handles to shared memory, with a lease that keeps the memory alive on the
way.

Storages are registered with the standard ``ForkingPickler``; tensors, parameters and modules are made from them. Where
the descriptors of a lease go depends on the pickler: into the message of a connection of this package, to a process
that is being started, or, for any other transport, to the standard resource sharer.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from multiprocessing import context, reduction, resource_sharer  # noqa: F401  (the sharer: before any fork)
from multiprocessing.reduction import ForkingPickler
from typing import Any

from vesta import Tensor, _tensor
from vesta._C import _shared

__all__ = ["incoming", "outgoing", "reduce_tensor"]


class _Travel(threading.local):
    """What the thread packs (a lease) and unpacks (a message and what it keeps mapped)."""

    lease: Any = None
    message: Any = None
    keep: Any = None


_travel = _Travel()


@contextlib.contextmanager
def outgoing() -> Iterator[Any]:
    """Collects the lease of what is pickled inside; yields the lease, whose descriptors go with the message."""
    before, lease = _travel.lease, _shared.Lease()
    _travel.lease = lease
    try:
        yield lease
    finally:
        _travel.lease = before
        lease.close()


def current_lease() -> Any:
    """Returns the lease that the thread collects, or None."""
    return _travel.lease


def begin_lease() -> None:
    """Starts a new lease of the thread, for a pickler that is not ours; the connection that sends it closes it."""
    _travel.lease = _shared.Lease()


@contextlib.contextmanager
def incoming(message: Any, keep: Any = None) -> Iterator[None]:
    """Gives what is unpickled inside access to the descriptors of ``message``; closes them at the end."""
    before = _travel.message, _travel.keep
    _travel.message, _travel.keep = message, keep
    try:
        yield
    finally:
        _travel.message, _travel.keep = before
        message.close()


class _Inherited:
    """A lease's descriptor that a new process inherits, or fetches from its sender; pickled once per arena."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return _receive_inherited, (reduction.DupFd(self._descriptor),)


class _Received:
    """A descriptor that is open as long as something is being rebuilt from it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self, close: Any = os.close) -> None:
        close(self.descriptor)


def _receive_inherited(duplicate: Any) -> _Received:
    try:
        return _Received(duplicate.detach())
    except (OSError, EOFError) as error:
        raise RuntimeError(
            "A tensor cannot be received: the process that sent it has ended, or was out of descriptors, before its "
            f"memory was fetched ({type(error).__name__}: {error}). Send it through a Queue or Pipe of "
            "vesta.multiprocessing, whose messages carry the memory with them."
        ) from error


def _lease_of_start(popen: Any) -> tuple[Any, list[Any]]:
    """Returns the lease of a process that is being started, kept on the object that starts it, and the carriers of its
    descriptors."""
    if not hasattr(popen, "_vesta_lease"):
        popen._vesta_lease = _shared.Lease(), []
    return popen._vesta_lease


def end_lease_of_start(popen: Any) -> None:
    """Closes descriptors that a new process has inherited by now (None: it was not started)."""
    if hasattr(popen, "_vesta_lease"):
        popen._vesta_lease[0].close()
        del popen._vesta_lease


def _reduce_storage(storage: _tensor._Storage) -> tuple[Any, ...]:
    whole = storage.bytes
    if whole.numel() == 0:
        return storage.__reduce__()
    if not _shared.is_shared(whole):
        _shared.share(whole)
    if _travel.lease is not None:
        return _attach_message, _travel.lease.add(whole)
    popen = context.get_spawning_popen()
    if popen is None:
        lease = _shared.Lease()
        _, handle = lease.add(whole)
        shared = reduction.DupFd(lease.descriptors()[0])  # a separate duplicate
        return _attach_fetched, (shared, handle)
    lease, carriers = _lease_of_start(popen)
    index, handle = lease.add(whole)
    if index == len(carriers):
        carriers.append(_Inherited(lease.descriptors()[index]))
    return _attach_inherited, (carriers[index], handle)


def _made(bytes_of_block: Tensor) -> _tensor._Storage:
    return _tensor._Storage(bytes_of_block)


def _attach_message(index: int, handle: Any) -> _tensor._Storage:
    if _travel.message is None:
        raise RuntimeError(
            "A tensor cannot be rebuilt: its bytes came without the message that carried its memory. Use recv() or "
            "get(), not recv_bytes() and pickle.loads()."
        )
    return _made(_travel.message.attach(index, handle, _travel.keep))


def _attach_inherited(received: _Received, handle: Any) -> _tensor._Storage:
    return _made(_shared.attach(received.descriptor, handle))


def _attach_fetched(duplicate: Any, handle: Any) -> _tensor._Storage:
    return _attach_inherited(_receive_inherited(duplicate), handle)


def reduce_tensor(tensor: Tensor) -> Any:
    """Returns the pickled form of a tensor for ``ForkingPickler``: its geometry over a storage that is sent as a
    handle."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    if tensor.device.type == "cpu" and tensor.numel():
        _shared.share(tensor)
    return tensor.__reduce_ex__(2)


def register() -> None:
    """Registers the reductions with ``ForkingPickler``; done when ``vesta.multiprocessing`` is imported."""
    ForkingPickler.register(_tensor._Storage, _reduce_storage)
    ForkingPickler.register(Tensor, reduce_tensor)  # parameters and buffers are made from a tensor
