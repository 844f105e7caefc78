"""How a dataset gets to its workers: pickled once, into memory that all of them map.

Arrays and tensors are not copied through the pickle: they lie after it in the same memory, and a worker's are views of
a private mapping. So workers share the pages that they only read. Descriptors that objects need (a packed block's) are
passed beside it.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import os
import pickle
import struct
import threading
from collections.abc import Iterator
from typing import Any

import vesta
from vesta import Tensor
from vesta._C import _shared
from vesta._tensor import _Storage

__all__ = ["Shipment", "attached", "passed", "unpack"]

_ALIGNMENT = 64
_LARGE = 1 << 16  # bytes of a tensor that is stored beside the pickle


class _Passing(threading.local):
    """Descriptors of the shipment that is being packed or unpacked in this thread."""

    sent: list[int] | None = None
    lease: Any = None  # the lease of tensors in shared memory
    received: list[int] | None = None


_passing = _Passing()


def passed(descriptor: int) -> int | None:
    """Adds a descriptor to the shipment; returns its number there, None if nothing is being shipped."""
    if _passing.sent is None:
        return None
    if descriptor not in _passing.sent:
        _passing.sent.append(descriptor)
    return _passing.sent.index(descriptor)


def attached(number: int) -> int:
    """Returns the descriptor with a number in the shipment that is being unpacked."""
    if _passing.received is None:
        raise RuntimeError("pack: expected to be unpickled in a worker of a loader.")
    return _passing.received[number]


def _storage_at(number: int, handle: Any) -> _Storage:
    return _Storage(_shared.attach(attached(number), handle))


def _storage_over(buffer: Any) -> _Storage:
    return _Storage(vesta.frombuffer(buffer, dtype=vesta.uint8))


@contextlib.contextmanager
def _packing() -> Iterator[list[int]]:
    """Collects the descriptors that are passed inside; tensors' memory in flight is kept meanwhile."""
    before = _passing.sent, _passing.lease
    _passing.sent, _passing.lease = [], _shared.Lease()
    try:
        yield _passing.sent
    finally:
        _passing.lease.close()
        _passing.sent, _passing.lease = before


class _Pickler(pickle.Pickler):
    """A pickler that leaves the memory of tensors beside the pickle, as protocol 5 does with that of arrays."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not _Storage:
            return NotImplemented
        if _shared.is_shared(obj.bytes):  # stays shared, as share_memory_() guarantees
            index, handle = _passing.lease.add(obj.bytes)
            return _storage_at, (passed(_passing.lease.descriptors()[index]), handle)
        if obj.bytes.numel() >= _LARGE:
            return _storage_over, (pickle.PickleBuffer(obj.bytes),)
        return NotImplemented


class Shipment:
    """An object, pickled, in its own memory until it is closed.

    Args:
        thing: the object to ship.
        name: its name in errors.
    """

    def __init__(self, thing: Any, name: str = "dataset") -> None:
        buffers: list[pickle.PickleBuffer] = []
        file = io.BytesIO()
        with _packing() as descriptors:
            try:
                _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(thing)
            except Exception as error:
                raise _explained(error, thing, name) from error
            self._descriptors = [_written(file.getbuffer(), [buffer.raw() for buffer in buffers])]
            self._descriptors += [os.dup(descriptor) for descriptor in descriptors]

    @property
    def descriptors(self) -> list[int]:
        """The descriptors a receiver needs: the memory's, then those that objects passed."""
        return self._descriptors

    def close(self) -> None:
        """Releases the memory; receivers keep it."""
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors = []


def _written(data: Any, buffers: list[memoryview]) -> int:
    """Writes a pickle and its buffers to a new memory file, after the list of their sizes."""
    sizes = [len(data), *map(len, buffers)]
    header = struct.pack(f"{len(sizes) + 1}Q", len(sizes), *sizes)
    descriptor = os.memfd_create("vesta-dataset", os.MFD_CLOEXEC)
    try:
        place = 0
        for part in (header, data, *buffers):
            if len(part):
                os.posix_fallocate(descriptor, place, len(part))  # an error here, never a signal later
            view = memoryview(part)
            while view:
                count = os.pwrite(descriptor, view[: 1 << 30], place)
                place, view = place + count, view[count:]
            place += -place % _ALIGNMENT
        os.ftruncate(descriptor, max(place, 1))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def unpack(descriptors: list[int]) -> Any:
    """Makes the object of a shipment. Its large arrays live in the mapping, private to this process."""
    memory = mmap.mmap(
        descriptors[0],
        os.fstat(descriptors[0]).st_size,
        flags=mmap.MAP_PRIVATE,
        prot=mmap.PROT_READ | mmap.PROT_WRITE,
    )
    view = memoryview(memory)
    (count,) = struct.unpack_from("Q", view)
    sizes = struct.unpack_from(f"{count}Q", view, 8)
    place = 8 * (count + 1)
    parts = []
    for size in sizes:
        place += -place % _ALIGNMENT
        parts.append(view[place : place + size])
        place += size
    _passing.received = descriptors[1:]
    try:
        return pickle.loads(parts[0], buffers=parts[1:])
    finally:
        _passing.received = None


def _explained(error: Exception, thing: Any, name: str) -> Exception:
    """Returns an error that names the part that cannot be pickled."""
    path, part = _culprit(thing, name, 0)
    what = _described(part)
    return TypeError(
        f"DataLoader: {path} cannot be sent to a worker: {what} ({type(error).__name__}: {error}). Define it in a "
        'module, or pass multiprocessing_context="fork".'
    )


def _described(part: Any) -> str:
    code = getattr(part, "__code__", None)
    if code is not None:
        return f"{part.__qualname__} at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"
    return f"a {type(part).__module__}.{type(part).__qualname__}"


def _culprit(thing: Any, path: str, depth: int) -> tuple[str, Any]:
    """Finds the smallest part that cannot be pickled."""
    if depth < 12:
        for member, value in _parts(thing, path):
            if not _picklable(value):
                return _culprit(value, member, depth + 1)
    return path, thing


def _parts(thing: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(thing, dict):
        return [(f"{path}[{key!r}]", value) for key, value in thing.items()]
    if isinstance(thing, (list, tuple)) and not hasattr(thing, "_fields"):
        return [(f"{path}[{i}]", value) for i, value in enumerate(thing)]
    if isinstance(thing, (type, Tensor)) or isinstance(getattr(thing, "__code__", None), type(_parts.__code__)):
        return []
    return [(f"{path}.{key}", value) for key, value in getattr(thing, "__dict__", {}).items()]


def _picklable(value: Any) -> bool:
    with _packing():
        try:
            _Pickler(io.BytesIO(), protocol=5, buffer_callback=lambda buffer: None).dump(value)
        except Exception:
            return False
    return True
