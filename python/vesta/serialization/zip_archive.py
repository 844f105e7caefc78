"""Loading of the zip format: the object from ``data.pkl``, and its storages from the records ``data/...``."""

from __future__ import annotations

import io
import mmap as mmap_module
import os
import pickle
import sys
from typing import Any, NoReturn

import vesta
from vesta import _C, Tensor
from vesta.storage import TypedStorage, UntypedStorage

from . import locations, safe_globals
from .options import LoadEndianness, get_default_load_endianness, get_default_mmap_options, local
from .read_ahead import ReadAhead
from .torch_names import StorageType, find
from .weights_unpickler import WeightsUnpickler
from .zip_reader import Record, ZipReader

__all__ = ["Unpickling", "load"]


class Unpickling:
    """How pickles are read: by the interpreter of allowed names, or by a module like ``pickle``."""

    def __init__(self, weights_only: bool, pickle_module: Any, arguments: dict[str, Any]) -> None:
        self.weights_only, self.module, self.arguments = weights_only, pickle_module, arguments

    def load(self, data: bytes, persistent_load: Any) -> Any:
        """Returns the object of a pickle."""
        if self.weights_only:
            return WeightsUnpickler(data, persistent_load, self.arguments["encoding"]).load()
        return self.load_from(io.BytesIO(data), persistent_load)

    def load_from(self, file: Any, persistent_load: Any) -> Any:
        """Returns the object of the pickle at the position of ``file``, by the module."""

        class Unpickler(self.module.Unpickler):  # type: ignore[name-defined]
            def find_class(self, module: str, name: str) -> Any:
                if module == "torch" or module.startswith("torch."):
                    return find(module, name)
                return super().find_class(module, name)

            def persistent_load(self, description: Any) -> Any:
                return persistent_load(description)

        safe_globals.calls()  # functions of the file call them
        try:
            return Unpickler(file, **self.arguments).load()
        except EOFError as error:
            raise pickle.UnpicklingError(f"load: expected an intact pickle, but it is cut off ({error})") from error


def dtype_of(kind: Any) -> Any:
    """Returns the dtype of a class of storages in a file. NotImplementedError: Vesta does not have it."""
    if kind is UntypedStorage:
        return _C.uint8
    if isinstance(kind, StorageType):
        return kind.dtype
    if hasattr(kind, "refuse"):
        kind.refuse()
    raise RuntimeError(f"load: expected a class of storages, got {type(kind).__name__} in the file. It is damaged.")


def text(value: Any) -> str:
    """Returns a text of the file, which Python 2 may have written as bytes."""
    value = value.decode("ascii", "replace") if isinstance(value, bytes) else value
    if not isinstance(value, str):
        raise RuntimeError(f"load: expected a text, got {type(value).__name__} in the file. It is damaged.")
    return value


def swap_bytes(values: Tensor, dtype: Any) -> None:
    """Reverses the bytes of each number in place."""
    width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    if width > 1:
        old = bytes(memoryview(values))
        new = bytearray(len(old))
        whole = len(old) - len(old) % width
        for i in range(width):
            new[i:whole:width] = old[width - 1 - i : whole : width]
        memoryview(values)[:whole] = new[:whole]


class _Storages:
    """The storages of an archive, made when the pickle first refers to them."""

    def __init__(self, reader: ZipReader, map_location: Any, ahead: ReadAhead, mapped: memoryview | None) -> None:
        self.reader, self.ahead, self.mapped = reader, ahead, mapped
        self.place = locations.placer(map_location)
        self.to_meta = str(map_location) == "meta" and isinstance(map_location, (str, vesta.device))
        self.other_order = _byte_order(reader) != sys.byteorder
        self.found: dict[str, TypedStorage] = {}

    def _fail(self, why: str) -> NoReturn:
        raise RuntimeError(f"load: {why} ({self.reader.source.name}).")

    def load(self, description: Any) -> TypedStorage:
        """Returns the storage that ("storage", class, key, location, number of elements) describes."""
        if type(description) is not tuple or len(description) != 5 or text(description[0]) != "storage":
            self._fail(f"expected a reference to a storage, got {type(description).__name__} in data.pkl")
        _, kind, key, location, numel = description
        dtype, key, location = dtype_of(kind), text(key), text(location)
        if type(numel) is not int or numel < 0:
            self._fail(f"expected a number of elements, got {type(numel).__name__} for the storage {key[:40]!r}")
        found = self.found.get(key)
        if found is None:
            found = TypedStorage(wrap_storage=self._make(key, dtype, location, numel), dtype=dtype)
            self.found[key] = found
        if found.dtype == dtype:
            self._check(key, found.nbytes(), numel, dtype)
            return found
        if found.nbytes() and found.nbytes() != numel * dtype.itemsize:
            self._fail(f"expected {found.nbytes()} bytes in the storage {key!r}, got {numel} elements of {dtype}")
        return TypedStorage(wrap_storage=found._untyped_storage, dtype=dtype)

    def _check(self, key: str, nbytes: int, numel: int, dtype: Any) -> None:
        """Compares what the pickle claims with what there is: all elements, and no whole one more."""
        if not 0 <= nbytes - numel * dtype.itemsize < dtype.itemsize:
            self._fail(
                f"expected {numel} elements of {dtype} in the storage {key!r}, as data.pkl claims, got a record of "
                f"{nbytes} bytes"
            )

    def _make(self, key: str, dtype: Any, location: str, numel: int) -> Any:
        record = self.reader.records.get(f"data/{key}")
        if record is None:
            self._fail(f"expected a record data/{key[:40]}, which data.pkl refers to; it is missing")
        self._check(key, record.size, numel, dtype)
        if self.to_meta:
            return UntypedStorage(record.size, device="meta")
        if local.skip_data:
            values = _C._ops.zeros((record.size,), dtype=_C.uint8)
        elif self.mapped is not None and not record.method and record.offset % dtype.itemsize == 0:
            values = self._map(record)
        else:
            values = self.ahead.take(record)
        if self.other_order and not local.skip_data:
            swap_bytes(values, dtype)
        return self.place(UntypedStorage._of(values), location, self.reader.source.name)

    def _map(self, record: Record) -> Tensor:
        assert self.mapped is not None
        if not record.size:
            return _C._ops.empty((0,), dtype=_C.uint8)
        if record.offset + record.size > len(self.mapped):
            self._fail(f"expected {record.offset + record.size} bytes in the file, got {len(self.mapped)}")
        return _C.frombuffer(self.mapped[record.offset : record.offset + record.size], dtype=_C.uint8)


def _byte_order(reader: ZipReader) -> str:
    """Returns the byte order of the values."""
    if "byteorder" in reader:
        order = reader.read("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError(f"load: expected the byte order little or big, got {order!r:.40} ({reader.source.name}).")
        return order.decode()
    default = get_default_load_endianness()
    if default is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if default is LoadEndianness.BIG else "little"


def _other_archive(reader: ZipReader) -> str:
    """Says what an archive without ``data.pkl`` is."""
    names = list(reader.records)
    if names and all(name.endswith(".npy") for name in names):
        return "it is a NumPy archive (.npz): use vesta.from_numpy on the arrays of numpy.load(file)"
    if "model.json" in names:
        return "it is a TorchScript archive of PyTorch 1.0, which Vesta does not run"
    if "[Content_Types].xml" in names or "META-INF/MANIFEST.MF" in names:
        return "it is a zip archive of another program"
    if len(names) == 1 and names[0].endswith((".pt", ".pth")):
        return f"it is a zip archive with the file {names[0]!r}: unpack it first"
    if any(name.endswith("/data.pkl") for name in names):
        return "its records are in several folders: pack the folder of data.pkl alone"
    return f"it is a zip archive without a record data.pkl, of {len(names)} records"


def load(reader: ZipReader, map_location: Any, unpickling: Unpickling, mmap: bool) -> Any:
    """Returns the object of an archive."""
    name = reader.source.name
    if "constants.pkl" in reader:
        raise RuntimeError(
            "load: expected a file of vesta.save or torch.save, but it is a TorchScript archive (it has constants.pkl)"
            f", which Vesta does not run. Save the state_dict() of the module in PyTorch ({name})."
        )
    if "data.pkl" not in reader:
        raise RuntimeError(f"load: expected a file of vesta.save or torch.save, but {_other_archive(reader)} ({name}).")
    mapped = _map_file(name) if mmap else None
    with ReadAhead(reader) as ahead:
        storages = _Storages(reader, map_location, ahead, mapped)
        return unpickling.load(reader.read("data.pkl"), storages.load)


def _map_file(path: str) -> memoryview:
    """Maps a file: private, so that writing to tensors does not change it, unless the settings say otherwise."""
    shared = get_default_mmap_options() == mmap_module.MAP_SHARED
    descriptor = os.open(path, (os.O_RDWR if shared else os.O_RDONLY) | os.O_CLOEXEC)
    try:
        access = mmap_module.ACCESS_WRITE if shared else mmap_module.ACCESS_COPY
        return memoryview(mmap_module.mmap(descriptor, 0, access=access))
    finally:
        os.close(descriptor)


def names_in(data: bytes) -> set[str]:
    """Returns the names of classes and functions in a pickle, without running it."""
    import pickletools

    found, texts, memo, last = set(), [], {}, None
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "GLOBAL":
                found.add(str(argument).replace(" ", ".", 1))
            elif opcode.name == "STACK_GLOBAL" and len(texts) > 1:
                found.add(f"{texts[-2]}.{texts[-1]}")
            elif opcode.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT"):
                memo[len(memo) if argument is None else argument] = last
            elif opcode.name in ("BINGET", "LONG_BINGET"):
                last = memo.get(argument)
                texts.append(last)
            else:
                last = argument if isinstance(argument, str) else None
                if last is not None:
                    texts.append(last)
    except ValueError as error:
        raise pickle.UnpicklingError(f"load: expected an intact pickle, got one where {error}.") from error
    return found
