"""Saving and loading of objects, in PyTorch's .pt files: ``vesta.save``, ``vesta.load`` and what goes with them."""

from __future__ import annotations

from vesta._names import listing

from .legacy_storages import SourceChangeWarning
from .loading import get_unsafe_globals_in_checkpoint, load
from .locations import default_restore_location, location_tag, register_package, validate_cuda_device
from .options import (
    LoadEndianness,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from .safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .saving import save
from .torch_names import StorageType

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2


__dir__ = listing(
    globals(),
    hidden="checksum legacy legacy_reader legacy_storages loading locations options pickler "
    "read_ahead rebuilding saving source torch_names weights_unpickler zip_archive zip_reader zip_writer",
)
