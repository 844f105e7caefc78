"""The zip archive of a .pt file, for writing, byte for byte as PyTorch lays it out.

Each record is stored, not packed. It begins with a header that leaves size and checksum to a descriptor behind the
values (so that a file which cannot seek can be written), and is filled up with an extra field ``FB`` so that the values
begin at a multiple of 64 bytes. The directory follows all records, and always ends with the 64-bit records.

    PK 3 4 | archive/data/0 | FB ZZZ... | values | PK 7 8 checksum size size | ... | directory | ends
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Any

from . import checksum

__all__ = ["ZipWriter", "archive_name", "write_all"]

_LIMIT = 0xFFFFFFFF
#: Bytes of a record that is written at once with what is around it.
_SHORT = 1 << 12
#: Record names are UTF-8; sizes and checksum follow the values.
_UTF8, _DESCRIPTOR = 0x0800, 0x0008


def archive_name(path: str) -> str:
    """Returns the folder inside the archive: the file's name without its last extension, as PyTorch has it."""
    stem = path.rsplit("/", 1)[-1].rsplit("\\", 1)[-1]
    stem = stem.rsplit(".", 1)[0] if "." in stem else stem
    return stem if stem and stem.isascii() else "archive"


class ZipWriter:
    """An archive that is being written, record by record.

    Args:
        file: where ``write`` appends bytes or a memoryview.
        folder: the folder that all records are in.
        compute_crc32: whether checksums are computed.
        alignment: of the values, in bytes.
        own: whether ``file`` is an empty regular file that nobody else writes to: long records are then written in
            threads.
    """

    def __init__(
        self, file: Any, folder: str, compute_crc32: bool = True, alignment: int = 64, own: bool = False
    ) -> None:
        self.file, self.folder, self.compute_crc32, self.alignment, self.own = (
            file,
            folder,
            compute_crc32,
            alignment,
            own,
        )
        self.cursor = 0
        self.directory: list[bytes] = []
        self.identity = [0, 0]  # of names and of contents

    def add(self, name: str, values: Any) -> None:
        """Adds a record of bytes, or of a one-dimensional memoryview of bytes."""
        self._add(name, len(values), memoryview(values))

    def add_empty_space(self, name: str, size: int) -> None:
        """Adds a record whose values are left out: zeros, which occupy no space where the file can have holes."""
        self._add(name, size, None)

    def _add(self, name: str, size: int, values: memoryview | None) -> None:
        full = f"{self.folder}/{name}".encode()
        place, flags = self.cursor, _UTF8 | (_DESCRIPTOR if size else 0)
        extra = _wide_extra(size, place) + _padding(place, len(full), size, self.alignment)
        head = struct.pack("<4s5H3I2H", b"PK\x03\x04", 0, flags, 0, 0, 0, 0, 0, 0, len(full), len(extra))
        wide = size >= _LIMIT or place >= _LIMIT
        form = "<4sIQQ" if wide else "<4sIII"
        if values is not None and 0 < size <= _SHORT:
            crc = zlib.crc32(values) if self.compute_crc32 else 0
            tail = struct.pack(form, b"PK\x07\x08", crc, size, size)
            self._emit(b"".join((head, full, extra, values, tail)))
        else:
            self._emit(head + full + extra)
            crc = self._emit_values(values) if values is not None else self._emit_zeros(size)
            if size:
                self._emit(struct.pack(form, b"PK\x07\x08", crc, size, size))
        self.directory.append(_directory_entry(full, flags, crc, size, place))
        if name != ".data/serialization_id":
            self.identity[0] ^= zlib.crc32(full) << 32 | zlib.crc32(full[::-1])
            self.identity[1] = (self.identity[1] * 0x9E3779B97F4A7C15 + crc) & (1 << 64) - 1

    def _emit(self, block: Any) -> None:
        write_all(self.file, block)
        self.cursor += len(block)

    def _emit_values(self, values: memoryview) -> int:
        """Writes a record's values; returns their checksum."""
        if not self.own or len(values) < 2 * checksum.PART:
            self._emit(values)
            return checksum.of_block(values) if self.compute_crc32 else 0
        self.file.flush()
        descriptor, place = self.file.fileno(), self.cursor

        def put(part: tuple[int, memoryview]) -> tuple[int, int]:
            begin, block = part
            crc = done = 0
            while done < len(block):
                step = block[done : done + checksum.STEP]
                count = os.pwrite(descriptor, step, place + begin + done)
                crc = zlib.crc32(step[:count], crc) if self.compute_crc32 else 0
                done += count
            return crc, len(block)

        parts = [(i, values[i : i + checksum.PART]) for i in range(0, len(values), checksum.PART)]
        crc = checksum.of_parts(checksum.run_in_threads(put, parts, len(values)))
        self.cursor += len(values)
        self.file.seek(self.cursor)
        return crc if self.compute_crc32 else 0

    def _emit_zeros(self, size: int) -> int:
        if self.own:
            self.cursor = self.file.seek(self.cursor + size)
            return 0
        while size:
            block = bytes(min(size, 1 << 20))
            self._emit(block)
            size -= len(block)
        return 0

    def finish(self) -> None:
        """Writes the version, the identity of the contents, and the directory."""
        self.add("version", b"3\n")
        self.add(".data/serialization_id", b"%020d%020d" % tuple(self.identity))
        begin = self.cursor
        for entry in self.directory:
            self._emit(entry)
        size, end, count = self.cursor - begin, self.cursor, len(self.directory)
        self._emit(struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 0x031E, 45, 0, 0, count, count, size, begin))
        self._emit(struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1))
        few, short, near = min(count, 0xFFFF), min(size, _LIMIT), min(begin, _LIMIT)
        self._emit(struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, few, few, short, near, 0))


def write_all(file: Any, block: Any) -> None:
    """Writes a block, again and again where ``write`` takes only a part of it, as that of an unbuffered file may."""
    rest = memoryview(block)
    while len(rest):
        count = file.write(rest)
        if not isinstance(count, int) or count >= len(rest):  # some files do not say
            return
        rest = rest[count:]


def _wide_extra(size: int, place: int) -> bytes:
    """Returns the extra field with what does not fit into 32 bits."""
    if size < _LIMIT > place:
        return b""
    wide = struct.pack("<2Q", size, size) if size >= _LIMIT else b""
    wide += struct.pack("<Q", place) if place >= _LIMIT else b""
    return struct.pack("<2H", 1, len(wide)) + wide


def _padding(place: int, name_size: int, size: int, alignment: int) -> bytes:
    """Returns the extra field that fills up a header so that the values behind it are aligned."""
    start = place + 30 + name_size + 4 + len(_wide_extra(size, place))
    fill = -start % alignment
    return b"FB" + struct.pack("<H", fill) + b"Z" * fill


def _directory_entry(name: bytes, flags: int, crc: int, size: int, place: int) -> bytes:
    extra = _wide_extra(size, place)
    short, near = min(size, _LIMIT), min(place, _LIMIT)
    head = struct.pack(
        "<4s6H3I5H2I", b"PK\x01\x02", 0, 0, flags, 0, 0, 0, crc, short, short, len(name), len(extra), 0, 0, 0, 0, near
    )
    return head + name + extra
