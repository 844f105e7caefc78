"""``Queue``, ``JoinableQueue`` and ``SimpleQueue`` whose messages carry the memory of the tensors in them."""

from __future__ import annotations

import multiprocessing.queues
from multiprocessing.reduction import ForkingPickler
from queue import Empty
from typing import Any

import vesta
from vesta import Tensor
from vesta._C import _shared

from . import reductions
from .connection import Pipe

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]


class _Parcel:
    """An object in a queue's buffer: the thread that pickles it starts a lease, which ``send_bytes`` then sends."""

    def __init__(self, content: Any) -> None:
        self.content = content

    def __reduce__(self) -> tuple[Any, ...]:
        reductions.begin_lease()
        return _unpack, (self.content,)


def _unpack(content: Any) -> Any:
    return content


class _NoLock:
    """A stand-in for the locks of the standard queues: messages are whole by themselves, so none is needed."""

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        return True

    def release(self) -> None:
        pass

    def __enter__(self) -> bool:
        return True

    def __exit__(self, *_: Any) -> None:
        pass


class _Slots:
    """The free slots of a queue, counted in shared memory, with the methods of a standard semaphore."""

    def __init__(self, count: int) -> None:
        self._free = _shared.empty((1,), vesta.int32).fill_(count)
        self._semlock = self

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        return _shared.take_slot(self._free, timeout if block else 0.0)

    def release(self) -> None:
        _shared.give_slot(self._free)

    def _get_value(self) -> int:
        return int(self._free.item())

    def _is_zero(self) -> bool:
        return self._get_value() == 0

    def __getstate__(self) -> Tensor:
        return self._free

    def __setstate__(self, free: Tensor) -> None:
        self._free, self._semlock = free, self


class _CarriesMemory:
    """The common part of the queues: the pipe is ours and needs no locks; a message is unpacked while its memory is
    there."""

    def _replace_pipe(self: Any) -> None:
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._rlock = self._wlock = _NoLock()

    def _take(self: Any, timeout: float | None) -> Any:
        """Returns the next message and frees its slot; ``queue.Empty`` at the timeout."""
        message = self._reader.recv_message(timeout)
        if message is None:
            raise Empty
        if hasattr(self, "_sem"):
            self._sem.release()
        with reductions.incoming(message, self._reader._keep):
            return ForkingPickler.loads(message.bytes)


class Queue(_CarriesMemory, multiprocessing.queues.Queue):
    """The queue of ``multiprocessing.Queue``; what is put in stays alive, also when its sender has ended."""

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        self._replace_pipe()
        self._sem = _Slots(min(self._maxsize, 2**31 - 1))
        self._reset()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Removes and returns the oldest object; ``queue.Empty`` if there is none within ``timeout`` seconds."""
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")
        return self._take((None if timeout is None else max(timeout, 0.0)) if block else 0.0)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in; tensors in it move to shared memory when the queue's thread sends it."""
        super().put(_Parcel(obj), block, timeout)

    @staticmethod
    def _on_queue_feeder_error(error: BaseException, parcel: Any) -> None:
        multiprocessing.queues.Queue._on_queue_feeder_error(error, getattr(parcel, "content", parcel))


class JoinableQueue(Queue, multiprocessing.queues.JoinableQueue):
    """The queue of ``multiprocessing.JoinableQueue``: a Queue with ``task_done`` and ``join``."""


class SimpleQueue(_CarriesMemory, multiprocessing.queues.SimpleQueue):
    """The queue of ``multiprocessing.SimpleQueue`` without its locks: ``put`` waits while the pipe is full."""

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self._replace_pipe()
        self._poll = self._reader.poll

    def get(self) -> Any:
        """Removes and returns the oldest object, waiting for it."""
        return self._take(None)

    def put(self, obj: Any) -> None:
        """Puts an object in."""
        with reductions.outgoing():
            super().put(obj)
