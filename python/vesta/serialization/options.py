"""What ``vesta.save`` and ``vesta.load`` can be told for the whole process: byte order, checksums, mapping, no data."""

from __future__ import annotations

import mmap
import threading
from enum import Enum
from typing import Any

from vesta.utils.serialization import config

__all__ = [
    "LoadEndianness",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]


class LoadEndianness(Enum):
    """The byte order of a file that names none."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """Returns the byte order that files without a byte order have; None: little."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order that files without a byte order have. TypeError: not a LoadEndianness or None."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "set_default_load_endianness: expected a LoadEndianness or None, got "
            f"{type(endianness).__name__} (endianness)."
        )
    config.load.endianness = endianness


def get_crc32_options() -> bool:
    """Returns whether ``vesta.save`` computes the checksum of each record."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Sets whether ``vesta.save`` computes the checksum of each record.

    Without one, damage of the values is not noticed, and tools that unpack zip files may refuse the file.
    """
    config.save.compute_crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """Returns how ``vesta.load(mmap=True)`` maps a file: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Sets how ``vesta.load(mmap=True)`` maps a file; as a context manager, until its end.

    Args:
        flags: ``mmap.MAP_PRIVATE``, where writing to a tensor leaves the file as it is, or ``mmap.MAP_SHARED``, where
            it changes the file. ValueError: anything else.

    Example::

        >>> import mmap, vesta
        >>> with vesta.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     vesta.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"set_default_mmap_options: expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, got {flags!r} (flags)."
            )
        self.prev = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        config.load.mmap_flags = self.prev


class _Local(threading.local):
    skip_data = False


local = _Local()


class skip_data:
    """A context in which ``vesta.save`` leaves the place of all values empty, and ``vesta.load`` reads none.

    What is loaded has all sizes and dtypes, and values of 0.

    Args:
        materialize_fake_tensors: accepted for PyTorch's sake; there are no fake tensors.

    Example::

        >>> import io, vesta
        >>> file = io.BytesIO()
        >>> with vesta.serialization.skip_data():
        ...     vesta.save(vesta.ones(2), file)
        >>> _ = file.seek(0)
        >>> vesta.load(file)
        tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self._before = local.skip_data
        local.skip_data = True

    def __exit__(self, *error: Any) -> None:
        local.skip_data = self._before
