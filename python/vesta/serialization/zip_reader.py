"""The zip archive of a .pt file, for reading: the directory, checked as a whole, and records with their checksums.

The file may be damaged or hostile: each number is compared with the size of the file before it is used, and records may
not overlap, so that together they need no more memory than the file is long.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple, NoReturn

from . import checksum
from .source import Source

__all__ = ["Record", "ZipReader"]

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_END64, _LOCATOR64 = b"PK\x06\x06", b"PK\x06\x07"
_STORED, _DEFLATED = 0, 8


class Record(NamedTuple):
    """A record of the archive: where its bytes are, how they are packed, and their checksum (0: not computed)."""

    name: str
    offset: int
    packed: int
    size: int
    method: int
    checksum: int


class ZipReader:
    """The records of an archive, by name, without the folder that all of them are in.

    Args:
        source: the file; it begins with the archive.

    Raises:
        RuntimeError: the file is damaged; the message names the file and what is wrong with it.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.folder = ""
        self.records: dict[str, Record] = {}
        count, size, offset = self._find_directory()
        if offset + size > self.source.size:
            self._fail("its directory ends behind the end of the file")
        headers = self._headers(source.read(offset, size), count)
        self._locate(headers, offset)

    def _fail(self, why: str) -> NoReturn:
        raise RuntimeError(f"load: expected an intact zip archive, but {why} ({self.source.name}).")

    # ---- the directory ----

    def _find_directory(self) -> tuple[int, int, int]:
        """Returns the number of records, and size and offset of the directory."""
        tail_offset = max(0, self.source.size - 65557)
        tail = self.source.read(tail_offset, 65557)
        at = tail.rfind(_END)
        while at >= 0 and at + 22 + int.from_bytes(tail[at + 20 : at + 22], "little") != len(tail):
            at = tail.rfind(_END, 0, at)  # the mark as part of a comment
        if at < 0 or len(tail) < at + 22:
            self._fail(
                f"its directory is missing: the file is cut off after {self.source.size} bytes, or is no archive"
            )
        disk, start_disk, here, count, size, offset = struct.unpack_from("<4H2I", tail, at + 4)
        if at >= 20 and tail[at - 20 : at - 16] == _LOCATOR64:
            return self._find_directory64(int.from_bytes(tail[at - 12 : at - 4], "little"))
        if disk or start_disk or here != count:
            self._fail("it is a part of an archive in several files")
        return count, size, offset

    def _find_directory64(self, place: int) -> tuple[int, int, int]:
        end = self.source.read(place, 56)
        if len(end) < 56 or end[:4] != _END64:
            self._fail(f"there is no 64-bit end record at offset {place}")
        count, size, offset = struct.unpack_from("<3Q", end, 32)
        return count, size, offset

    def _headers(self, directory: bytes, count: int) -> list[tuple[str, int, int, int, int, int]]:
        """Reads the directory: (name, offset of the record's header, packed, size, method, checksum) of each record."""
        headers, at = [], 0
        while at < len(directory) and directory[at : at + 4] == _CENTRAL:
            if at + 46 > len(directory):
                self._fail("its directory is cut off")
            flags, method = struct.unpack_from("<2H", directory, at + 8)
            crc, packed, size, name_size, extra_size, note_size = struct.unpack_from("<3I3H", directory, at + 16)
            offset = int.from_bytes(directory[at + 42 : at + 46], "little")
            after = at + 46 + name_size
            raw = directory[at + 46 : after]
            if after + extra_size + note_size > len(directory):
                self._fail("its directory is cut off")
            if flags & 1:
                self._fail(f"the record {raw!r} is encrypted")
            try:
                name = raw.decode("utf-8")
            except UnicodeDecodeError:
                self._fail(f"the name of a record is no UTF-8: {raw[:64]!r}")
            extra = directory[after : after + extra_size]
            size, packed, offset = self._wide(extra, name, size, packed, offset)
            headers.append((name, offset, packed, size, method, crc))
            at = after + extra_size + note_size
        if len(headers) != count or at != len(directory):
            self._fail(f"its directory is damaged: it has {len(headers)} of {count} records")
        return headers

    def _wide(self, extra: bytes, name: str, *values: int) -> tuple[int, ...]:
        """Replaces the values that do not fit into 32 bits by those of the record's 64-bit extra field."""
        if 0xFFFFFFFF not in values:
            return values
        at = 0
        while at + 4 <= len(extra):
            tag, length = struct.unpack_from("<2H", extra, at)
            if tag == 1:
                wide = extra[at + 4 : at + 4 + length]
                found, place = [], 0
                for value in values:
                    if value == 0xFFFFFFFF:
                        if place + 8 > len(wide):
                            break
                        value = int.from_bytes(wide[place : place + 8], "little")
                        place += 8
                    found.append(value)
                if len(found) == len(values):
                    return tuple(found)
            at += 4 + length
        self._fail(f"the record {name!r} has no 64-bit sizes")

    # ---- records ----

    def _locate(self, headers: list[tuple[str, int, int, int, int, int]], end: int) -> None:
        """Finds where the bytes of each record begin, and checks that records neither overlap nor repeat a name."""
        self.folder = headers[0][0].split("/", 1)[0] if headers and "/" in headers[0][0] else ""
        prefix = f"{self.folder}/" if self.folder else ""
        before, last = 0, ""
        for name, header, packed, size, method, crc in sorted(headers, key=lambda entry: entry[1]):
            head = self.source.read(header, 30) if header < end else b""
            if len(head) < 30 or head[:4] != _LOCAL:
                self._fail(f"the record {name!r} should begin at offset {header}, and does not")
            name_size, extra_size = struct.unpack_from("<2H", head, 26)
            if self.source.read(header + 30, name_size) != name.encode("utf-8"):
                self._fail(f"the record {name!r} has another name at offset {header}")
            offset = header + 30 + name_size + extra_size
            if header < before:
                self._fail(f"the records {last!r} and {name!r} overlap")
            if offset + packed > end:
                self._fail(f"the record {name!r} of {packed} bytes at offset {offset} ends behind offset {end}")
            if method not in (_STORED, _DEFLATED):
                self._fail(f"the record {name!r} is packed by method {method}, which is unknown")
            if (method == _STORED and size != packed) or size > 1040 * packed + 64:
                self._fail(f"the record {name!r} of {packed} bytes claims to be {size} bytes")
            before, last = offset + packed, name
            if name.endswith("/") and not size:  # a folder, from another writer
                continue
            short = name[len(prefix) :] if name.startswith(prefix) else name
            if short in self.records:
                self._fail(f"there are two records {name!r}")
            self.records[short] = Record(name, offset, packed, size, method, crc)

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def read(self, name: str) -> bytes:
        """Returns a record's bytes. RuntimeError: there is none, it is cut off, or its checksum is another."""
        record = self.records.get(name)
        if record is None:
            self._fail(f"the record {name!r} is missing")
        block = bytearray(record.size)
        self.read_into(record, memoryview(block))
        return bytes(block)

    def read_into(self, record: Record, target: memoryview) -> None:
        """Reads a record into memory of its size, a long one in threads, and compares its checksum."""
        if record.method == _DEFLATED:
            crc = self._inflate(record, target)
        else:
            parts = [(i, target[i : i + checksum.PART]) for i in range(0, len(target), checksum.PART)]
            crc = checksum.of_parts(
                checksum.run_in_threads(lambda part: self.read_part(record, *part), parts, len(target))
            )
        self.compare(record, crc)

    def compare(self, record: Record, crc: int) -> None:
        """Compares a record's checksum with that of what was read. RuntimeError: it is another one."""
        if record.checksum and crc != record.checksum:
            self._fail(
                f"the record {record.name!r} is damaged: its checksum is {crc:08x}, not {record.checksum:08x}, as the "
                "directory says"
            )

    def read_part(self, record: Record, begin: int, target: memoryview) -> tuple[int, int]:
        """Reads a part of a record that is not packed; returns its checksum and its number of bytes."""
        crc = 0
        for i in range(0, len(target), checksum.STEP):
            step = target[i : i + checksum.STEP]
            if self.source.read_into(record.offset + begin + i, step) != len(step):
                self._fail(f"the record {record.name!r} is cut off")
            crc = zlib.crc32(step, crc) if record.checksum else 0
        return crc, len(target)

    def _inflate(self, record: Record, target: memoryview) -> int:
        """Unpacks a record, never more than it claims to be; returns its checksum."""
        unpack: Any = zlib.decompressobj(-15)
        done, at, crc = 0, 0, 0
        try:
            while at < record.packed and not unpack.eof:
                block = self.source.read(record.offset + at, min(1 << 20, record.packed - at))
                if not block:
                    break
                at += len(block)
                while block:
                    out = unpack.decompress(block, 4 << 20)
                    if done + len(out) > len(target):
                        self._fail(f"the record {record.name!r} is longer than the {record.size} bytes that it claims")
                    target[done : done + len(out)] = out
                    crc = zlib.crc32(out, crc)
                    done += len(out)
                    block = unpack.unconsumed_tail
        except zlib.error as error:
            self._fail(f"the record {record.name!r} cannot be unpacked ({error})")
        if done != len(target):
            self._fail(f"the record {record.name!r} is shorter than the {record.size} bytes that it claims")
        return crc
