"""Messages between a loader and its workers: batches are sent as handles to blocks of the worker's shared memory."""

from __future__ import annotations

import io
import pickle
import struct
import threading
from typing import Any

import vesta
from vesta import _C, Tensor
from vesta._C import _shared
from vesta._tensor import _Storage
from vesta.multiprocessing import reductions

__all__ = ["Receiver", "Sender", "Unreadable", "receive_order", "send_order"]

_SMALL = 1 << 10  # bytes of a tensor sent in the message: sharing a block costs more, and keeps an arena open
_LARGE = 1 << 13  # bytes of a pickle that goes through shared memory instead of the socket's buffer
_HEAD = struct.Struct("=c4q")  # how the rest is sent, then: pass, batch, kind of answer, position of the last sample
_ORDER = b"B"  # a pickle after the head
_BLOCK = b"L"  # the handle of a block with the pickle


class _Receiving(threading.local):
    """The message that this thread is unpickling, and what keeps arenas mapped."""

    message: Any = None
    keep: Any = None


_receiving = _Receiving()


def _tensor_at(index: int, handle: Any, dtype: Any, geometry: tuple[Any, ...]) -> Tensor:
    return _C._over(_receiving.message.attach(index, handle, _receiving.keep), dtype, *geometry)


def _tensor_of(data: bytes, dtype: Any, shape: tuple[int, ...]) -> Tensor:
    if not data:
        return vesta.empty(shape, dtype=dtype)
    return _C._over(_C._from_bytes(data), dtype, shape, _contiguous(shape), 0)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


class _BatchPickler(pickle.Pickler):
    """Pickles a batch; its tensors become handles to blocks of the arena."""

    sender: Sender
    lease: Any

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is Tensor:
            plain = obj.device.type == "cpu" and not obj.requires_grad and not obj.__dict__
            return self._handle_of(obj) if plain else NotImplemented
        if type(obj) is _Storage:
            return reductions._reduce_storage(obj)
        return NotImplemented

    def _handle_of(self, tensor: Tensor) -> tuple[Any, ...]:
        if tensor.numel() * tensor.element_size() <= _SMALL and tensor.is_contiguous():
            data = _C._to_bytes(_C._storage_bytes(tensor.clone())) if tensor.numel() else b""
            return _tensor_of, (data, tensor.dtype, tuple(tensor.shape))
        if not self.sender.made(tensor):
            copy = self.sender.empty(tuple(tensor.shape), tensor.dtype)
            tensor = copy.copy_(tensor)
        index, handle = self.lease.add(tensor)
        geometry = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        return _tensor_at, (index, handle, tensor.dtype, geometry)


class Sender:
    """The worker's side: makes tensors in shared memory and sends objects made of them.

    Args:
        channel: the channel to the loader.
    """

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._arena = _shared.Arena()
        self._made: set[int] = set()  # addresses of the blocks of the current batch

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Tensor:
        """Makes an uninitialised tensor in the arena."""
        tensor = self._arena.empty(shape, dtype)
        self._made.add(tensor.data_ptr())
        return tensor

    def made(self, tensor: Tensor) -> bool:
        """Returns whether a tensor lies in a block of the current batch; others may be written to later."""
        return bool(self._made) and _C._storage_bytes(tensor).data_ptr() in self._made

    def send(self, current: int, number: int, kind: int, position: int, content: Any) -> None:
        """Sends an answer; BrokenPipeError if the loader is gone.

        Content that cannot be pickled raises before anything is sent. The fields that identify the answer are outside
        of the pickle, so that the loader knows which answer it was if that cannot be unpickled.

        Args:
            current, number: the numbers of the pass and of the batch.
            kind: what the answer is.
            position: the position of the sample that was being made; -1 if there is none.
            content: the batch or the error, and the state of a stream.
        """
        head = current, number, kind, position
        try:
            with reductions.outgoing() as lease:
                body = self._pickled(content, lease, _HEAD.pack(_ORDER, *head))
                if len(body) > _LARGE:
                    block = self._arena.empty((len(body) - _HEAD.size,), vesta.uint8)
                    block.copy_(vesta.frombuffer(body[_HEAD.size :], dtype=vesta.uint8))
                    body = self._pickled(lease.add(block), lease, _HEAD.pack(_BLOCK, *head))
                self._channel.send(body, lease.descriptors(), None)
        finally:
            self._made.clear()

    def _pickled(self, thing: Any, lease: Any, head: bytes) -> Any:
        file = io.BytesIO()
        file.write(head)
        pickler = _BatchPickler(file, 5)
        pickler.sender, pickler.lease = self, lease
        pickler.dump(thing)
        return file.getbuffer()


class Unreadable:
    """The stand-in for an answer's content that could not be unpickled.

    Args:
        error: the reason.
    """

    def __init__(self, error: Exception) -> None:
        self.error = error


class Receiver:
    """The loader's side.

    Args:
        channel: the channel to a worker.
    """

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._keep = _shared.Attachments()

    def receive(self) -> tuple[int, int, int, int, Any] | None:
        """Receives an answer that has come, as the arguments of ``Sender.send``; None if nothing has come.

        Raises:
            EOFError: the worker is gone.
            OSError, RuntimeError: an answer is lost, and it is not known which.
        """
        message = self._channel.receive(0.0)
        if message is None:
            return None
        mark, current, number, kind, position = _HEAD.unpack_from(message.bytes)
        with reductions.incoming(message, self._keep):
            _receiving.message, _receiving.keep = message, self._keep
            try:
                body = memoryview(message.bytes)[_HEAD.size :]
                if mark == _BLOCK:
                    body = memoryview(message.attach(*pickle.loads(body), self._keep))
                content = pickle.loads(body)
            except Exception as error:  # from the user's code that rebuilds an object, or for lack of memory
                content = Unreadable(error)
            finally:
                _receiving.message = _receiving.keep = None
        return current, number, kind, position, content


def send_order(channel: Any, arena: Any, order: Any) -> bool:
    """Sends a worker a small object, or a longer one through shared memory. Returns False if the socket has no room."""
    body = _ORDER + pickle.dumps(order, 5)
    if len(body) <= _LARGE:
        return channel.send(body, [], 0.0)
    block = arena.empty((len(body),), vesta.uint8)
    block.copy_(vesta.frombuffer(bytearray(body), dtype=vesta.uint8))
    lease = _shared.Lease()
    try:
        return channel.send(_BLOCK + pickle.dumps(lease.add(block)), lease.descriptors(), 0.0)
    finally:
        lease.close()


def receive_order(channel: Any) -> Any:
    """Waits for what ``send_order`` sends; EOFError if the loader is gone."""
    message = channel.receive(None)
    try:
        body = memoryview(message.bytes)
        if body[:1] == _BLOCK:
            body = memoryview(message.attach(*pickle.loads(body[1:])))
        return pickle.loads(body[1:])
    finally:
        message.close()
