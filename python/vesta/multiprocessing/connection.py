"""Connections whose messages carry memory: ``Pipe``, and the parts of queues and pools."""

from __future__ import annotations

from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

from vesta._C import _shared

from . import reductions

__all__ = ["Connection", "Pipe"]


class Connection:
    """One end of a connection between processes, with the methods of ``multiprocessing.connection.Connection``.

    Tensors in a message arrive as tensors over the same memory. The message carries the memory, so the sender may drop
    it, or end, before it is received. The death of the other side ends every wait at once. A message is sent whole or
    not at all, and one of the readers gets all of it, whichever process is killed: any number of threads and processes
    may use an end without a lock.

    Args:
        channel: the socket that it takes over.
        readable, writable: which directions may be used.
    """

    def __init__(self, channel: Any, readable: bool = True, writable: bool = True) -> None:
        self._channel, self.readable, self.writable = channel, readable, writable
        self._keep = _shared.Attachments() if readable else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'closed' if self.closed else self.fileno()}>"

    def _check(self, writing: bool) -> Any:
        if self._channel.closed:
            raise OSError("handle is closed")
        if not (self.writable if writing else self.readable):
            raise OSError("connection is read-only" if writing else "connection is write-only")
        return self._channel

    @property
    def closed(self) -> bool:
        """Whether this end is closed."""
        return self._channel.closed

    def fileno(self) -> int:
        """Returns the descriptor of the socket."""
        if self._channel.closed:
            raise OSError("handle is closed")
        return self._channel.fileno()

    def close(self) -> None:
        """Closes this end."""
        self._channel.close()
        self._keep = None

    def send(self, obj: Any, timeout: float | None = None) -> None:
        """Sends an object.

        Args:
            obj: what ``pickle`` accepts; tensors are sent as handles.
            timeout: seconds after which TimeoutError is raised; None waits as long as the reader lives.
        """
        channel = self._check(True)
        with reductions.outgoing() as lease:
            data = ForkingPickler.dumps(obj)
            if not channel.send(data, lease.descriptors(), timeout):
                raise TimeoutError(f"send: the reader has not read anything for {timeout} s.")

    def recv(self, timeout: float | None = None) -> Any:
        """Receives an object; EOFError if the other side is gone and nothing is left to read.

        Args:
            timeout: seconds after which TimeoutError is raised; None waits as long as a writer lives.
        """
        message = self._check(False).receive(timeout)
        if message is None:
            raise TimeoutError(f"recv: nothing has arrived for {timeout} s.")
        with reductions.incoming(message, self._keep):
            return ForkingPickler.loads(message.bytes)

    def poll(self, timeout: float | None = 0.0) -> bool:
        """Returns whether there is something to receive within ``timeout`` seconds (None: waits)."""
        return self._check(False).poll(timeout)

    def send_bytes(self, buf: Any, offset: int = 0, size: int | None = None) -> None:
        """Sends the bytes of a buffer, with the descriptors of what was pickled inside ``reductions.outgoing()``."""
        view = memoryview(buf).cast("B")
        if offset < 0:
            raise ValueError("offset is negative")
        if offset > len(view):
            raise ValueError("buffer length < offset")
        if size is not None and size < 0:
            raise ValueError("size is negative")
        if size is not None and offset + size > len(view):
            raise ValueError("buffer length < offset + size")
        part = view[offset : len(view) if size is None else offset + size]
        lease = reductions.current_lease()
        try:
            self._check(True).send(part, lease.descriptors() if lease else [])
        finally:
            if lease:
                lease.close()

    def recv_message(self, timeout: float | None = None) -> Any:
        """Receives a raw message: ``.bytes``, and its descriptors until ``close()``; None at the timeout."""
        return self._check(False).receive(timeout)

    def recv_bytes(self, maxlength: int | None = None) -> bytes:
        """Receives the bytes of a message; tensors inside it are lost."""
        message = self.recv_message()
        message.close()
        if maxlength is not None and len(message.bytes) > maxlength:
            self.close()
            raise OSError("bad message length")
        return message.bytes

    def recv_bytes_into(self, buf: Any, offset: int = 0) -> int:
        """Receives the bytes of a message into a buffer; returns their number."""
        from multiprocessing import BufferTooShort

        data = self.recv_bytes()
        view = memoryview(buf).cast("B")
        if offset < 0 or offset > len(view):
            raise ValueError("negative offset" if offset < 0 else "offset too large")
        if len(data) > len(view) - offset:
            raise BufferTooShort(data)
        view[offset : offset + len(data)] = data
        return len(data)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), reduction.DupFd(self.fileno()), self.readable, self.writable)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _rebuild(kind: type[Connection], duplicate: Any, readable: bool, writable: bool) -> Connection:
    return kind(_shared.Channel(duplicate.detach()), readable, writable)


def Pipe(duplex: bool = True) -> tuple[Connection, Connection]:
    """Makes two connected ends; with ``duplex=False`` the first only receives and the second only sends."""
    first, second = _shared.Channel.pair()
    return Connection(first, True, duplex), Connection(second, duplex, True)
