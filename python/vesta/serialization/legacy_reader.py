"""Loading of the formats before PyTorch 1.6: pickles and storages in a row (``legacy.py``), and the older tar files."""

from __future__ import annotations

import io
import pickle
from typing import Any

from vesta import Tensor

from . import rebuilding
from .legacy import MAGIC_NUMBER, PROTOCOL_VERSION
from .legacy_storages import SourceFile, Storages
from .options import local
from .source import Source
from .weights_unpickler import WeightsUnpickler

__all__ = ["load"]

_STEP = 1 << 16


class _Pickles:
    """The pickles at the beginning of a file, one after the other."""

    def __init__(self, source: Source, unpickling: Any) -> None:
        self.source, self.unpickling = source, unpickling
        self.at = 0

    def plain(self, persistent_load: Any = None) -> Any:
        """Reads a pickle with the interpreter of allowed names."""
        place = self.at

        def more() -> bytes:
            nonlocal place
            block = self.source.read(place, _STEP)
            place += len(block)
            return block

        machine = WeightsUnpickler(b"", persistent_load, self.unpickling.arguments["encoding"], more)
        value = machine.load()
        self.at += machine.consumed
        return value

    def object(self, persistent_load: Any) -> Any:
        """Reads the pickle of the object."""
        if self.unpickling.weights_only:
            return self.plain(persistent_load)
        file = io.BufferedReader(SourceFile(self.source), _STEP)
        file.seek(self.at)
        if self.unpickling.module is pickle:
            _check_memo(file)
            file.seek(self.at)
        value = self.unpickling.load_from(file, persistent_load)
        self.at = file.tell()
        return value


def _check_memo(file: Any) -> None:
    """Reads a pickle without running it. UnpicklingError: it is damaged.

    This format has no checksums, and Python's unpickler makes room for whatever place a damaged number names: one byte
    that is wrong can cost tens of gigabytes.
    """
    import pickletools

    count = 0
    try:
        for opcode, argument, _ in pickletools.genops(file):
            count += 1
            if opcode.name.endswith("PUT") and int(argument) > 2 * count + 1000:
                raise ValueError(f"it stores at place {argument} after {count} steps")
    except (ValueError, IndexError, OverflowError) as error:  # genops raises ValueError, UnicodeDecodeError included
        raise pickle.UnpicklingError(f"load: expected an intact pickle, but {error}") from error


def load(source: Source, map_location: Any, unpickling: Any) -> Any:
    """Returns the object of a file in an older format; the caller's file object is left behind it."""
    if source.read(257, 5) == b"ustar":
        from .legacy_tar import load_tar

        return load_tar(source, map_location, unpickling)
    pickles = _Pickles(source, unpickling)
    _check_head(pickles)
    storages = Storages(source, map_location)
    rebuilding.pending.marked, rebuilding.pending.sparse = [], []
    try:
        value = pickles.object(storages.load)
        keys = pickles.plain()
        if type(keys) is not list:
            storages.fail(f"expected a list of the keys of storages, got {type(keys).__name__}")
        at = pickles.at
        if not local.skip_data:
            for key in keys:
                at = storages.fill(key, at)
            missing = {key for key in storages.found if not isinstance(key, tuple)} - set(keys)
            if missing:
                storages.fail(f"expected the values of {len(missing)} more storages; the file is cut off or damaged")
        _resolve_marked(rebuilding.pending.marked)
        _check_sparse(rebuilding.pending.sparse)
    finally:
        rebuilding.pending.marked = rebuilding.pending.sparse = None
    source.finish(at)
    return value


def _check_head(pickles: _Pickles) -> None:
    """Reads what is in front of the object. RuntimeError: this is no such file."""
    source = pickles.source
    try:
        magic = pickles.plain()
    except pickle.UnpicklingError as error:
        if source.read(0, 1) == b"\x80":
            raise
        raise RuntimeError(
            "load: expected a file of vesta.save or torch.save, but it is of no kind that Vesta knows: it begins with "
            f"{source.read(0, 16)!r} ({source.name})."
        ) from error
    if magic != MAGIC_NUMBER:
        raise RuntimeError(
            "load: expected a file of vesta.save or torch.save, but it is a pickle without PyTorch's magic number: use "
            f"pickle.load if you trust it ({source.name})."
        )
    version = pickles.plain()
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"load: expected protocol version {PROTOCOL_VERSION}, got {version!r:.40} ({source.name}).")
    pickles.plain()  # byte order and sizes of the machine that wrote it: values are little-endian always


def _resolve_marked(marked: list[tuple[Tensor, dict[str, Any]]]) -> None:
    """Applies conjugation and negation, now that the values are there."""
    for tensor, metadata in marked:
        tensor.data = rebuilding.resolved(tensor.detach(), metadata)


def _check_sparse(made: list[tuple[tuple[Any, ...], bool]]) -> None:
    """Raises RuntimeError if a sparse tensor has indices out of range, now that they are there."""
    if made:
        from vesta.sparse import sparse_coo_tensor

        for parts, is_coalesced in made:
            sparse_coo_tensor(*parts, is_coalesced=is_coalesced)
