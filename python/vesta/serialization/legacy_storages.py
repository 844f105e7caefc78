"""The storages of files of the formats before 1.6, and a source as a file for those that read one."""

from __future__ import annotations

import inspect
import io
import struct
import warnings
from typing import Any

from vesta import _C
from vesta.storage import TypedStorage, UntypedStorage

from . import locations
from .options import local
from .source import Source
from .zip_archive import dtype_of, text

__all__ = ["SourceChangeWarning", "SourceFile", "Storages"]


class SourceChangeWarning(Warning):
    """The code of a module's class is another one than when the module was saved."""


class SourceFile(io.RawIOBase):
    """A source as a file that is read from the beginning."""

    def __init__(self, source: Source) -> None:
        self.source, self.at = source, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        count = self.source.read_into(self.at, memoryview(target).cast("B"))
        self.at += count
        return count

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = offset + (0, self.at, self.source.size)[whence]
        return self.at

    def tell(self) -> int:
        return self.at


class Storages:
    """The storages of a file: made when the object refers to them, filled afterwards."""

    def __init__(self, source: Source, map_location: Any) -> None:
        self.source = source
        self.restore = locations.placer(map_location)
        self.found: dict[Any, TypedStorage] = {}
        self.claimed = 0

    def fail(self, why: str) -> Any:
        raise RuntimeError(f"load: {why} ({self.source.name}).")

    def load(self, description: Any) -> Any:
        """Returns what ("storage", class, key, location, number of elements, view) or ("module", ...) describes."""
        if type(description) is not tuple or not description:
            self.fail(f"expected a reference to a storage, got {type(description).__name__}")
        if text(description[0]) == "module" and len(description) == 4:
            _compare_code(*description[1:])
            return description[1]
        if text(description[0]) != "storage" or len(description) != 6:
            self.fail(f"expected a reference to a storage, got one of {len(description)} parts")
        _, kind, key, location, numel, view = description
        dtype = dtype_of(kind)
        if type(numel) is not int or numel < 0 or not isinstance(key, (str, bytes, int)):
            self.fail("expected a key and a number of elements of a storage, got something else")
        root = self.found.get(key)
        if root is None:
            root = self.found[key] = self._make(dtype, text(location), numel)
        elif root.dtype != dtype and root.nbytes() != numel * dtype.itemsize:
            self.fail(f"expected {root.nbytes()} bytes in the storage {key!r:.40}, got {numel} elements of {dtype}")
        storage = TypedStorage(wrap_storage=root._untyped_storage, dtype=dtype)
        return storage if view is None else self._view(storage, view)

    def _make(self, dtype: Any, location: str, numel: int) -> TypedStorage:
        nbytes = numel * dtype.itemsize
        self.claimed += nbytes
        if self.claimed > self.source.size:
            self.fail(
                f"expected storages that fit into the {self.source.size} bytes of the file, got {numel} of {dtype}"
            )
        values = _C._ops.empty((nbytes,), dtype=_C.uint8)
        if local.skip_data:
            values.zero_()
        return TypedStorage(
            wrap_storage=self.restore(UntypedStorage._of(values), location, self.source.name), dtype=dtype
        )

    def _view(self, root: TypedStorage, view: Any) -> TypedStorage:
        """Returns a part of a storage, as files of very old versions have it: (key, offset, number of elements)."""
        if type(view) is not tuple or len(view) != 3 or type(view[1]) is not int or type(view[2]) is not int:
            self.fail("expected a view of a storage as (key, offset, number of elements), got something else")
        key, offset, numel = view
        return self.part(("view", key), root, offset, numel)

    def part(self, key: Any, root: TypedStorage, offset: int, numel: int) -> TypedStorage:
        """Returns a part of a storage, the same object for the same key."""
        if key not in self.found:
            if not 0 <= offset <= offset + numel <= root.size():
                self.fail(f"expected a part of {root.size()} elements, got {numel} from {offset}")
            if root.device.type != "cpu":
                self.fail("expected storages of the CPU where one is a part of another; use map_location='cpu'")
            size = root.dtype.itemsize
            part = memoryview(root._untyped_storage._bytes)[offset * size : (offset + numel) * size]
            values = _C.frombuffer(part, dtype=_C.uint8) if numel else _C._ops.empty((0,), dtype=_C.uint8)
            self.found[key] = TypedStorage(wrap_storage=UntypedStorage._of(values), dtype=root.dtype)
        return self.found[key]

    def fill(self, key: Any, at: int) -> int:
        """Reads the values of a storage at an offset; returns the offset behind them."""
        storage = self.found.get(key)
        if storage is None:
            self.fail(f"expected storages that the object refers to, got the key {key!r:.40}")
        head = self.source.read(at, 8)
        if len(head) < 8:
            self.fail(f"expected the storage {key!r:.40} at offset {at}, but the file is cut off")
        (numel,) = struct.unpack("<q", head)
        if numel != storage.size():
            self.fail(f"expected {storage.size()} elements in the storage {key!r:.40} at offset {at}, got {numel}")
        untyped = storage._untyped_storage
        on_host = untyped.device.type == "cpu"
        values = untyped._bytes if on_host else _C._ops.empty((untyped.nbytes(),), dtype=_C.uint8)
        if self.source.read_into(at + 8, _C._lend(values)) != untyped.nbytes():
            self.fail(f"expected {untyped.nbytes()} bytes at offset {at + 8}, but the file is cut off")
        if not on_host:
            untyped._bytes.copy_(values)
        return at + 8 + untyped.nbytes()


def _compare_code(cls: Any, file: Any, saved: Any) -> None:
    """Warns if the code of a module's class has changed since it was saved."""
    if not file or not saved or cls.__module__.startswith("vesta."):
        return
    try:
        current = inspect.getsource(cls)
    except (OSError, TypeError):
        return
    if current != saved:
        warnings.warn(f"source code of class '{cls.__qualname__}' has changed.", SourceChangeWarning, stacklevel=2)
