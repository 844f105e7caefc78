"""Loading of the tar files of PyTorch before 0.2: ``storages``, ``tensors`` and ``pickle`` in one archive.

``storages`` has their number, then for each (key, location, class), a pickle, and number of elements and values; at its
end a pickled list of views (key, root, offset, number of elements). ``tensors`` has their number, then for each (key,
key of its storage, class), a pickle, and in 8-byte numbers: dimensions, sizes, strides, offset. ``pickle`` refers to
tensors by key. Pickles in it name code, so that these files are read with ``weights_only=False`` only.
"""

from __future__ import annotations

import io
import struct
import tarfile
from typing import Any, NoReturn

from vesta import _C, Tensor

from . import rebuilding
from .legacy_storages import SourceFile, Storages
from .source import Source

__all__ = ["load_tar"]


class _Tar:
    """One file that is being loaded."""

    def __init__(self, source: Source, archive: tarfile.TarFile, map_location: Any, unpickling: Any) -> None:
        self.source, self.archive, self.unpickling = source, archive, unpickling
        self.storages = Storages(source, map_location)
        self.tensors: dict[Any, Tensor] = {}

    def fail(self, why: str) -> NoReturn:
        raise RuntimeError(f"load: expected an intact tar file of PyTorch, but {why} ({self.source.name}).")

    def member(self, name: str) -> io.BytesIO:
        """Returns a file of the archive; its size is at most the archive's."""
        try:
            file = self.archive.extractfile(name)
        except KeyError:
            file = None
        if file is None:
            self.fail(f"it has no file {name!r}")
        return io.BytesIO(file.read())

    def read(self, file: io.BytesIO, count: int) -> bytes:
        block = file.read(count) if 0 <= count <= self.source.size else b""
        if len(block) != count:
            self.fail(f"it is cut off: {count} bytes are missing")
        return block

    def numbers(self, file: io.BytesIO, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}q", self.read(file, 8 * count))

    def plain(self, file: io.BytesIO, *kinds: type) -> Any:
        """Reads a pickle of plain values."""
        value = self.unpickling.load_from(file, lambda key: self.fail("a plain value refers to another"))
        if not isinstance(value, kinds):
            self.fail(f"there is a {type(value).__name__} instead of a {kinds[0].__name__}")
        return value

    def load_storages(self) -> None:
        file = self.member("storages")
        for _ in range(self.plain(file, int)):
            key, location, kind = self.plain(file, tuple)
            (numel,) = self.numbers(file, 1)
            storage = self.storages.load(("storage", kind, key, location, numel, None))
            values = bytearray(self.read(file, storage.nbytes()))
            if values:
                loaded = _C.frombuffer(values, dtype=_C.uint8)
                storage._untyped_storage._bytes.copy_(loaded)
        for key, root, offset, numel in self.plain(file, list):
            if root not in self.storages.found:
                self.fail(f"a view has the storage {root!r:.40}, which is missing")
            self.storages.part(key, self.storages.found[root], offset, numel)

    def load_tensors(self) -> None:
        file = self.member("tensors")
        for _ in range(self.plain(file, int)):
            key, storage, _ = self.plain(file, tuple)
            (dimensions,) = struct.unpack("<i", self.read(file, 8)[:4])
            if not 0 <= dimensions <= 64 or storage not in self.storages.found:
                self.fail(f"a tensor has {dimensions} dimensions, or the storage {storage!r:.40} is missing")
            sizes, strides = self.numbers(file, dimensions), self.numbers(file, dimensions)
            (offset,) = self.numbers(file, 1)
            self.tensors[key] = rebuilding._rebuild_tensor(self.storages.found[storage], offset, sizes, strides)

    def persistent_load(self, key: Any) -> Any:
        if isinstance(key, tuple):  # a class of modules, with its code
            return key[0]
        found = self.tensors.get(int(key), self.storages.found.get(int(key)))
        if found is None:
            self.fail(f"the object refers to {key!r:.40}, which is missing")
        return found


def load_tar(source: Source, map_location: Any, unpickling: Any) -> Any:
    """Returns the object of a tar file. RuntimeError: the file is damaged, or ``weights_only=True``."""
    if unpickling.weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with files saved in the legacy .tar format. Use weights_only=False if "
            f"you trust the file ({source.name})."
        )
    try:
        with tarfile.open(fileobj=io.BufferedReader(SourceFile(source)), mode="r:") as archive:
            tar = _Tar(source, archive, map_location, unpickling)
            tar.load_storages()
            tar.load_tensors()
            return unpickling.load_from(tar.member("pickle"), tar.persistent_load)
    except tarfile.TarError as error:
        raise RuntimeError(f"load: expected an intact tar file, but {error} ({source.name}).") from error
