"""Where bytes are read from: files by descriptor, buffers in memory, file objects, and files of other kinds by name."""

from __future__ import annotations

import io
import os
import threading
from typing import Any

__all__ = ["Source", "open_source", "name_other_kind"]


class Source:
    """A block of bytes of a known size, read at any offset; threads may read at once.

    ``name`` says in errors what is read.
    """

    name: str
    size: int

    def read_into(self, offset: int, target: memoryview) -> int:
        """Fills ``target`` from ``offset`` on; returns how many bytes there were."""
        raise NotImplementedError

    def read(self, offset: int, count: int) -> bytes:
        """Returns ``count`` bytes from ``offset``, fewer at the end; ``count`` may be as large as a file claims."""
        count = max(0, min(count, self.size - offset))
        block = bytearray(count)
        return bytes(memoryview(block)[: self.read_into(offset, memoryview(block))])

    def finish(self, offset: int) -> None:
        """Leaves the caller's file object at ``offset``, behind what was read."""

    def close(self) -> None:
        """Closes what was opened here."""


class _Descriptor(Source):
    """A regular file, read by descriptor."""

    def __init__(self, descriptor: int, name: str, start: int = 0, owned: bool = False, file: Any = None) -> None:
        self.descriptor, self.name, self.start, self.owned, self.file = descriptor, name, start, owned, file
        self.size = max(0, os.fstat(descriptor).st_size - start)

    def read_into(self, offset: int, target: memoryview) -> int:
        done = 0
        while done < len(target):
            got = os.preadv(self.descriptor, [target[done : done + (1 << 30)]], self.start + offset + done)
            if got == 0:
                break
            done += got
        return done

    def finish(self, offset: int) -> None:
        if self.file is not None:
            self.file.seek(self.start + offset)

    def close(self) -> None:
        if self.owned:
            os.close(self.descriptor)


class _Memory(Source):
    """Bytes in memory."""

    def __init__(self, block: memoryview, name: str, file: Any = None, start: int = 0) -> None:
        self.block, self.name, self.file, self.start = block[start:], name, file, start
        self.size = len(self.block)

    def read_into(self, offset: int, target: memoryview) -> int:
        part = self.block[offset : offset + len(target)]
        target[: len(part)] = part
        return len(part)

    def finish(self, offset: int) -> None:
        if self.file is not None:
            self.file.seek(self.start + offset)

    def close(self) -> None:
        self.block.release()


class _Stream(Source):
    """A file object that can seek, from its position on."""

    def __init__(self, file: Any, name: str) -> None:
        self.file, self.name, self.lock = file, name, threading.Lock()
        self.start = file.tell()
        self.size = max(0, file.seek(0, os.SEEK_END) - self.start)
        file.seek(self.start)

    def read_into(self, offset: int, target: memoryview) -> int:
        done = 0
        with self.lock:
            self.file.seek(self.start + offset)
            while done < len(target):
                block = self.file.read(min(len(target) - done, 64 << 20))
                if not block:
                    break
                target[done : done + len(block)] = block
                done += len(block)
        return done

    def finish(self, offset: int) -> None:
        self.file.seek(self.start + offset)


def is_path(f: object) -> bool:
    """Returns whether ``f`` names a file."""
    return isinstance(f, (str, os.PathLike))


def open_source(f: Any) -> Source:
    """Opens what ``vesta.load`` was given: a path, or a file object from its position on.

    Raises:
        OSError: there is no such file; IsADirectoryError: it is a directory.
        TypeError: ``f`` is neither.
    """
    if is_path(f):
        path = os.fspath(f)
        name = os.fsdecode(path)
        if os.path.isdir(path):
            raise IsADirectoryError(21, f"load: expected a file, got a directory (f){_in_directory(name)}", name)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        return _regular(descriptor, name)
    if not hasattr(f, "read"):
        raise TypeError(
            f"load: expected a path or a file object with read(), got {type(f).__name__} (f). "
            "For bytes use io.BytesIO(data)."
        )
    name = str(getattr(f, "name", "")) or f"a {type(f).__name__}"
    if isinstance(f, io.BytesIO):
        return _Memory(f.getbuffer(), name, f, f.tell())
    if isinstance(f, (io.BufferedReader, io.BufferedRandom, io.FileIO)) and f.seekable():
        f.flush()
        return _Descriptor(f.fileno(), name, f.tell(), file=f)
    if callable(getattr(f, "seekable", None)) and not f.seekable():
        return _Memory(memoryview(f.read()), name)
    if not hasattr(f, "seek") or not hasattr(f, "tell"):
        return _Memory(memoryview(f.read()), name)
    return _Stream(f, name)


def _regular(descriptor: int, name: str) -> Source:
    """Returns the source of an open file; what has no size, like a pipe, is read to its end."""
    import stat

    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return _Descriptor(descriptor, name, owned=True)
    with open(descriptor, "rb") as file:
        return _Memory(memoryview(file.read()), name)


def _in_directory(name: str) -> str:
    """Says what a directory may be."""
    if os.path.exists(os.path.join(name, ".metadata")):
        return ". It looks like a checkpoint of torch.distributed.checkpoint, which is not available"
    if os.path.exists(os.path.join(name, "data.pkl")):
        return ". It looks like an unpacked .pt file: pack it again with zip, without compression"
    return ""


def name_other_kind(source: Source) -> str | None:
    """Returns a sentence about a file of another kind than PyTorch's, or None."""
    head = source.read(0, 512)
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return "it is an HDF5 file: read it with h5py"
    if head.startswith(b"\x93NUMPY"):
        return "it is a NumPy array (.npy): use vesta.from_numpy(numpy.load(file))"
    if len(head) > 9 and head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= source.size - 8:
        return "it is a safetensors file: use vesta.load_file"
    if head.startswith(b"\x1f\x8b"):
        return "it is compressed with gzip: open it with gzip.open and pass that"
    if head.startswith((b"GGUF", b"GGML", b"ggjt")):
        return "it is a GGUF file, which Vesta does not read"
    if head.startswith(b"version https://git-lfs"):
        return "it is a pointer of Git LFS, not the file: fetch the file with git lfs pull"
    if head.lstrip()[:15].lower().startswith((b"<!doctype html", b"<html")):
        return "it is a web page: the download has failed"
    return None
