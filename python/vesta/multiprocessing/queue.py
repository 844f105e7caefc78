"""``Queue``, ``JoinableQueue`` and ``SimpleQueue`` whose messages carry the memory of the tensors in them."""

from __future__ import annotations

import multiprocessing.queues
from typing import Any

from . import reductions
from .connection import Connection, Pipe

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


class _Reader(Connection):
    """The reading end: a message's descriptors stay open until the queue has unpickled its bytes."""

    def recv_bytes(self, maxlength: int | None = None) -> bytes:
        message = self.recv_message()
        reductions.begin_message(message, self._keep)
        return message.bytes


def _ends() -> tuple[_Reader, Connection]:
    reader, writer = Pipe(duplex=False)
    return _Reader(reader._channel, True, False), writer


class _CarriesMemory:
    """What the queues share: their pipe is ours, and what they put and get is packed and unpacked around it."""

    def _replace_pipe(self: Any) -> None:
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = _ends()

    def get(self: Any, *args: Any, **kwargs: Any) -> Any:
        """Removes and returns an object, as the standard queue does."""
        try:
            return super().get(*args, **kwargs)
        finally:
            reductions.end_message()


class Queue(_CarriesMemory, multiprocessing.queues.Queue):
    """``multiprocessing.Queue``; what is put stays alive in the queue, also when its sender has ended."""

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        self._replace_pipe()
        self._reset()

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in; tensors in it move to shared memory when the queue's thread sends it."""
        super().put(_Parcel(obj), block, timeout)

    @staticmethod
    def _on_queue_feeder_error(error: BaseException, parcel: Any) -> None:
        multiprocessing.queues.Queue._on_queue_feeder_error(error, getattr(parcel, "content", parcel))


class JoinableQueue(_CarriesMemory, multiprocessing.queues.JoinableQueue):
    """``multiprocessing.JoinableQueue``: a Queue with ``task_done`` and ``join``."""

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        self._replace_pipe()
        self._reset()

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in; it counts as unfinished until ``task_done``."""
        super().put(_Parcel(obj), block, timeout)

    _on_queue_feeder_error = Queue._on_queue_feeder_error


class SimpleQueue(_CarriesMemory, multiprocessing.queues.SimpleQueue):
    """``multiprocessing.SimpleQueue``: a pipe with locks; ``put`` waits where the pipe is full."""

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self._replace_pipe()
        self._poll = self._reader.poll

    def put(self, obj: Any) -> None:
        """Puts an object in."""
        with reductions.outgoing():
            super().put(obj)
