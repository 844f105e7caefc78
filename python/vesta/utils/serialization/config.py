"""The settings of ``vesta.save`` and ``vesta.load`` for the whole process, under PyTorch's names.

Example::

    >>> from vesta.utils.serialization import config
    >>> config.save.compute_crc32
    True
"""

from __future__ import annotations

import mmap as _mmap
from typing import Any

__all__ = ["load", "save"]


class load:
    """Settings of ``vesta.load``."""

    #: Whether files are mapped where ``mmap=`` is not given.
    mmap: bool = False
    #: The byte order of files that name none (``vesta.serialization.LoadEndianness``); None: little.
    endianness: Any = None
    #: How files are mapped: ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``.
    mmap_flags: int | None = _mmap.MAP_PRIVATE
    #: Accepted for PyTorch's sake: offsets are always those that the file's directory gives.
    calculate_storage_offsets: bool = False


class save:
    """Settings of ``vesta.save``."""

    #: Whether the checksum of each record is computed and written.
    compute_crc32: bool = True
    #: Accepted for PyTorch's sake: copies from a GPU go through the backend's own page-locked memory.
    use_pinned_memory_for_d2h: bool = False
    #: Bytes to which the values of each storage are aligned in the file.
    storage_alignment: int = 64
