"""``pack=True``: Python objects of a dataset in one sealed block of shared memory.

Note [Why reading grows a worker]
Reading a Python object writes its reference count, and a page that a forked process writes to becomes its own: a pass
over a list of a million dicts copies all of it into every worker. A packed container keeps its elements pickled, one by
one, in memory without reference counts; an element is made anew each time it is read. The block is a memfd, sealed
against writing, which every worker maps.

What changes for the dataset: a packed list is read-only and not a ``list`` (it is a ``Sequence``, a packed dict is a
``Mapping``), and a change to an element after it was read is lost.
"""

from __future__ import annotations

import array
import fcntl
import mmap
import numbers
import os
import pickle
import types
import warnings
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from vesta import Tensor
from vesta.utils.data.shipping import attached, passed

__all__ = ["Block", "PackedDict", "PackedSequence", "pack_dataset"]

_LARGE = 4096  # number of elements, including elements of elements, from which a container is packed
_DEPTH = 4  # levels of objects, dicts and lists that are searched for large containers
_F_ADD_SEALS, _SEALS = 1033, 0x1 | 0x2 | 0x4 | 0x8  # seal, shrink, grow, write: <linux/fcntl.h>


class Block:
    """Memory that is written once, then read by any process that maps it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        size = os.fstat(descriptor).st_size
        self._memory = mmap.mmap(descriptor, size, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ)
        self.view = memoryview(self._memory)

    def close(self) -> None:
        """Frees the memory; what was packed in it cannot be read any more."""
        self.view.release()
        self._memory.close()
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def __del__(self) -> None:
        if getattr(self, "_descriptor", -1) >= 0:
            os.close(self._descriptor)

    def __reduce__(self) -> tuple[Any, ...]:
        number = passed(self._descriptor)
        return (_block_of, (number,)) if number is not None else (_block_of_bytes, (bytes(self.view),))


def _block_of(number: int) -> Block:
    return Block(os.dup(attached(number)))


def _block_of_bytes(data: bytes) -> Block:
    writer = _Writer()
    writer.write(data)
    return writer.seal()


class _Writer:
    """A writer that fills a block from its start to its end."""

    def __init__(self) -> None:
        self._descriptor = os.memfd_create("vesta-pack", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        self._buffer = bytearray()
        self.size = 0

    def write(self, data: Any) -> int:
        """Appends bytes; returns their offset."""
        place = self.size
        self._buffer += data
        self.size += len(data)
        if len(self._buffer) > 1 << 22:
            self._flush()
        return place

    def write_numbers(self, values: array.array) -> int:
        """Appends 64-bit integers, aligned; returns their offset."""
        self.write(bytes(-self.size % 8))
        return self.write(values.tobytes())

    def _flush(self) -> None:
        view = memoryview(self._buffer)
        while view:
            view = view[os.write(self._descriptor, view) :]  # ENOSPC and ENOMEM raise here, before any read
        self._buffer = bytearray()

    def seal(self) -> Block:
        """Ends the writing."""
        self.write(b"\0")  # an empty file cannot be mapped
        self._flush()
        fcntl.fcntl(self._descriptor, _F_ADD_SEALS, _SEALS)
        return Block(self._descriptor)

    def abandon(self) -> None:
        """Drops the unfinished block."""
        os.close(self._descriptor)


def _numbers(block: Block, place: int, count: int) -> memoryview:
    return block.view[place : place + 8 * count].cast("q")


class PackedSequence(Sequence):
    """A list or tuple whose elements are made when they are read.

    Args:
        block: the block of the elements.
        ends: the offset of the numbers that say where each element ends.
        length: the number of elements.
        kind: ``list`` or ``tuple``: the type of a slice.
    """

    def __init__(self, block: Block, ends: int, length: int, kind: type) -> None:
        self._block = block
        self._parts = (ends, length, kind)
        self._kind = kind
        self._length = length
        self._ends = _numbers(block, ends, length + 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedSequence, (self._block, *self._parts)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._kind(self[i] for i in range(*index.indices(self._length)))
        try:
            i = index.__index__()
        except AttributeError:
            raise TypeError(f"{self._kind.__name__} indices must be integers or slices, not {type(index)}") from None
        if i < 0:
            i += self._length
        if not 0 <= i < self._length:
            raise IndexError(f"{self._kind.__name__} index out of range")
        return pickle.loads(self._block.view[self._ends[i] : self._ends[i + 1]])

    def __iter__(self) -> Iterator[Any]:
        view, ends = self._block.view, self._ends
        return (pickle.loads(view[ends[i] : ends[i + 1]]) for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, tuple, PackedSequence)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __add__(self, other: Any) -> Any:
        return self[:] + self._kind(other)

    def __radd__(self, other: Any) -> Any:
        return self._kind(other) + self[:]

    def __repr__(self) -> str:
        return f"<packed {self._kind.__name__} of {self._length}>"

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(f"{self!r} is read-only: pack=True has moved it into shared memory. Pass pack=False.")

    __setitem__ = __delitem__ = __iadd__ = append = extend = insert = pop = remove = sort = reverse = clear = _refuse


def _stable_hash(key: Any) -> int:
    """Returns a hash that is the same in every process and for equal keys; TypeError for other kinds of keys."""
    if isinstance(key, str):
        return zlib.crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, bytes):
        return zlib.crc32(key, 1)
    if isinstance(key, numbers.Number):
        return hash(key) & 0xFFFFFFFFFFFF
    if key is None:
        return 1
    if isinstance(key, tuple):
        mixed = len(key)
        for part in key:
            mixed = (mixed * 1000003 ^ _stable_hash(part)) & 0xFFFFFFFFFFFF
        return mixed
    raise TypeError(f"unpackable key: {type(key)}")


class PackedDict(Mapping):
    """A dict whose entries are made when they are read.

    Args:
        block: the block of the entries.
        ends: the offset of the numbers that say where each key and each value ends.
        table: the offset of the hash table: numbers of entries, -1 for none.
        length: the number of entries.
    """

    def __init__(self, block: Block, ends: int, table: int, length: int) -> None:
        self._block = block
        self._parts = (ends, table, length)
        self._length = length
        self._ends = _numbers(block, ends, 2 * length + 1)
        self._table = _numbers(block, table, _table_size(length))

    def __reduce__(self) -> tuple[Any, ...]:
        return PackedDict, (self._block, *self._parts)

    def __len__(self) -> int:
        return self._length

    def _part(self, i: int) -> Any:
        return pickle.loads(self._block.view[self._ends[i] : self._ends[i + 1]])

    def _find(self, key: Any) -> int:
        """Returns the number of an entry, -1 if there is none."""
        hash(key)  # raises for a key that a dict would not accept
        try:
            place = _stable_hash(key) % len(self._table)
        except TypeError:
            return -1
        while (entry := self._table[place]) >= 0 and self._part(2 * entry) != key:
            place = (place + 1) % len(self._table)
        return entry

    def __getitem__(self, key: Any) -> Any:
        entry = self._find(key)
        if entry < 0:
            raise KeyError(key)
        return self._part(2 * entry + 1)

    def __contains__(self, key: object) -> bool:
        return self._find(key) >= 0

    def __iter__(self) -> Iterator[Any]:
        return (self._part(2 * i) for i in range(self._length))

    def __repr__(self) -> str:
        return f"<packed dict of {self._length}>"

    def _refuse(self, *_: Any) -> Any:
        raise TypeError(f"{self!r} is read-only: pack=True has moved it into shared memory. Pass pack=False.")

    __setitem__ = __delitem__ = __ior__ = update = pop = popitem = setdefault = clear = _refuse


def _table_size(length: int) -> int:
    return max(8, 1 << (3 * length // 2).bit_length())


def _is_object_array(value: Any) -> bool:
    return type(value).__module__ == "numpy" and hasattr(value, "dtype") and value.dtype.kind == "O" and value.ndim == 1


def _weight(value: Any) -> int:
    """Counts the elements of a container, including elements of elements; stops once it is large."""
    total = len(value)
    if total >= _LARGE:
        return total
    for element in value.values() if isinstance(value, dict) else value:
        if type(element) in (list, tuple, dict):
            total += len(element)
    return total


class _Packer:
    """The move of an object's large containers into one block."""

    def __init__(self) -> None:
        self._writer = _Writer()
        self._made: list[Callable[[Block, list[Any]], Any]] = []  # what to make when the block is finished
        self._seen: set[int] = set()
        self._changes: list[tuple[Any, Any, int]] = []  # (holder, attribute or key, number in _made)

    def look(self, holder: Any, name: str, depth: int = 0) -> None:
        """Finds what to pack among the attributes of an object, or the members of a small container."""
        if depth > _DEPTH or id(holder) in self._seen:
            return
        self._seen.add(id(holder))
        for key, value in _members(holder):
            path = f"{name}.{key}" if isinstance(key, str) and not isinstance(holder, dict) else f"{name}[{key!r}]"
            number = self.pack(value, path)
            if number is not None:
                self._changes.append((holder, key, number))
            else:
                self.look(value, path, depth + 1)

    def pack(self, value: Any, path: str) -> int | None:
        """Writes a large container; returns its number, None for anything else."""
        kind = type(value)
        if kind is tuple and len(value) < _LARGE and any(type(part) in (list, tuple, dict) for part in value):
            return self._small_tuple(value, path)
        if not (kind in (list, tuple, dict, OrderedDict) or _is_object_array(value)) or _weight(value) < _LARGE:
            return None
        if len(value) < _LARGE and any(map(_is_whole, value.values() if isinstance(value, dict) else value)):
            return None  # a dict of large lists, a list of datasets: their contents are packed instead
        try:
            self._made.append(self._dict(value) if isinstance(value, dict) else self._sequence(value))
        except Exception as error:
            warnings.warn(f"pack: {path} is not packed: {error}", stacklevel=2)
            return None
        return len(self._made) - 1

    def _small_tuple(self, value: tuple, path: str) -> int | None:
        """Packs the large members of a tuple, which becomes another tuple; None if there are none."""
        members = {i: number for i, part in enumerate(value) if (number := self.pack(part, f"{path}[{i}]")) is not None}
        if not members:
            return None
        make = lambda _, packed: tuple(packed[members[i]] if i in members else part for i, part in enumerate(value))
        self._made.append(make)
        return len(self._made) - 1

    def _sequence(self, value: Any) -> Callable[[Block, list[Any]], Any]:
        ends = array.array("q", [self._writer.size])
        for element in value:
            self._writer.write(pickle.dumps(element, 5))
            ends.append(self._writer.size)
        kind = tuple if isinstance(value, tuple) else list
        place, length = self._writer.write_numbers(ends), len(value)
        return lambda block, _: PackedSequence(block, place, length, kind)

    def _dict(self, value: dict) -> Callable[[Block, list[Any]], Any]:
        size = _table_size(len(value))
        table = array.array("q", [-1]) * size
        ends = array.array("q", [self._writer.size])
        for entry, (key, element) in enumerate(value.items()):
            place = _stable_hash(key) % size
            while table[place] >= 0:
                place = (place + 1) % size
            table[place] = entry
            for part in (key, element):
                self._writer.write(pickle.dumps(part, 5))
                ends.append(self._writer.size)
        places, length = (self._writer.write_numbers(ends), self._writer.write_numbers(table)), len(value)
        return lambda block, _: PackedDict(block, *places, length)

    def finish(self) -> list[Any]:
        """Seals the block and replaces the containers by the packed ones; returns these."""
        if not self._made:
            self._writer.abandon()
            return []
        block = self._writer.seal()
        packed: list[Any] = []
        for make in self._made:
            packed.append(make(block, packed))
        for holder, key, number in self._changes:
            if isinstance(holder, (dict, list)):
                holder[key] = packed[number]
            else:
                vars(holder)[key] = packed[number]
        return packed


def _is_holder(value: Any) -> bool:
    """Returns whether a user's object may hold containers in its attributes."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.MethodType, Tensor, Block)):
        return False
    return hasattr(value, "__dict__") and type(value).__module__.split(".")[0] not in ("builtins", "numpy")


def _is_whole(element: Any) -> bool:
    """Returns whether an element should be packed by itself instead of read as a whole."""
    return _is_holder(element) or (type(element) in (list, tuple, dict, OrderedDict) and _weight(element) >= _LARGE)


def _members(holder: Any) -> list[tuple[Any, Any]]:
    if type(holder) in (dict, OrderedDict):
        return list(holder.items()) if len(holder) < _LARGE else []
    if type(holder) in (list, tuple):
        return list(enumerate(holder)) if len(holder) < _LARGE else []
    if isinstance(holder, (PackedSequence, PackedDict)) or not _is_holder(holder):
        return []
    return list(vars(holder).items())


def pack_dataset(dataset: Any) -> Any:
    """Packs the containers of a dataset, in its attributes and in those of datasets inside; returns the dataset.

    A dataset that is itself a large list or dict is not changed: the result is its packed copy.

    Example::

        >>> from vesta.utils.data.pack import pack_dataset
        >>> packed = pack_dataset([{"name": i} for i in range(5000)])
        >>> packed, packed[4711]
        (<packed list of 5000>, {'name': 4711})
    """
    packer = _Packer()
    if packer.pack(dataset, "dataset") is not None:
        return packer.finish()[0]
    packer.look(dataset, "dataset")
    packer.finish()
    return dataset
