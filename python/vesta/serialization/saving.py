"""``vesta.save``."""

from __future__ import annotations

import io
import os
import pickle
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import IO, Any

from vesta import _C
from vesta.storage import UntypedStorage
from vesta.utils.serialization import config

from . import legacy
from .options import local
from .pickler import Storages, dump
from .source import is_path
from .zip_writer import ZipWriter, archive_name

__all__ = ["save"]

_temporary = count()


def save(
    obj: object,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Saves an object to a file that PyTorch's ``torch.load`` and ``vesta.load`` read.

    Tensors that share memory share it in the file too, and a view of a part brings all of its storage along: clone a
    small view of a large tensor first. What is on a GPU is copied, and says where it was.

    A path is replaced at once: the file is written beside it, brought to the disk and renamed, so that an error or a
    crash leaves the old file whole.

    Args:
        obj: tensors, and containers, numbers, texts, NumPy arrays and any other objects that ``pickle`` takes; usually
            a ``state_dict()``.
        f: a path, or a file object with ``write`` (it need not seek).
        pickle_module: ``pickle``, or a module like it; PyTorch reads what ``pickle`` and ``dill`` write.
        pickle_protocol: of the objects; with 2, PyTorch reads the file with ``weights_only=True``.
        _use_new_zipfile_serialization: False writes the format of PyTorch before 1.6.
        _disable_byteorder_record: leaves out the record that names the byte order.

    Raises:
        OSError: the file cannot be written.
        AttributeError: ``f`` is neither a path nor has ``write``.
        RuntimeError: tensors of two dtypes share a storage.

    Example::

        >>> import io, vesta
        >>> file = io.BytesIO()
        >>> vesta.save({"weight": vesta.ones(2)}, file)
        >>> _ = file.seek(0)
        >>> vesta.load(file)
        {'weight': tensor([1., 1.])}
    """
    if not is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            f"save: expected a path or a file object with write(), got {type(f).__name__} (f). Use io.BytesIO()."
        )
    if not _use_new_zipfile_serialization and local.skip_data:
        raise RuntimeError("save: expected the zip format in skip_data(), got _use_new_zipfile_serialization=False.")
    with _opened(f) as (file, own):
        if _use_new_zipfile_serialization:
            name = archive_name(os.fsdecode(os.fspath(f))) if is_path(f) else "archive"
            _save_zip(
                obj,
                ZipWriter(file, name, config.save.compute_crc32, config.save.storage_alignment, own),
                pickle_module,
                pickle_protocol,
                not _disable_byteorder_record,
            )
        else:
            legacy.save(obj, file, pickle_module, pickle_protocol)


@contextmanager
def _opened(f: Any) -> Iterator[tuple[Any, bool]]:
    """Opens what ``save`` writes to, and whether it is a file of its own."""
    if not is_path(f):
        yield f, False
        if callable(getattr(f, "flush", None)):
            f.flush()
        return
    path = os.path.realpath(os.fsdecode(os.fspath(f)))  # a link stays a link
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):  # a pipe, /dev/null
        with open(path, "wb") as file:
            yield file, False
        return
    if os.path.isdir(path):
        raise IsADirectoryError(21, "save: expected the name of a file, got a directory (f)", os.fsdecode(f))
    with replacing(path) as file:
        yield file, True


@contextmanager
def replacing(path: str) -> Iterator[Any]:
    """Opens a temporary file beside ``path`` which takes its place at the end, or vanishes after an error."""
    temporary = f"{path}.tmp{os.getpid()}.{next(_temporary)}"
    try:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise type(error)(error.errno, f"save: {error.strerror}", path) from None
    try:
        with open(descriptor, "wb", 1 << 16) as file:
            if os.path.exists(path):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(path))


def _sync_folder(folder: str) -> None:
    """Brings a folder's entries to the disk, where the file system can do that."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _save_zip(obj: Any, archive: ZipWriter, pickle_module: Any, protocol: int, byte_order: bool) -> None:
    storages = Storages(lambda key, kind, location, numel: ("storage", kind, key, location, numel), str)
    data = io.BytesIO()
    dump(obj, data, pickle_module, protocol, storages)
    archive.add("data.pkl", data.getbuffer())
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", str(archive.alignment).encode())
    if byte_order:
        archive.add("byteorder", sys.byteorder.encode())
    for key, (storage, _) in storages.found.items():
        if local.skip_data:
            archive.add_empty_space(f"data/{key}", storage.nbytes())
        else:
            archive.add(f"data/{key}", bytes_of(storage))
    archive.finish()


def bytes_of(storage: UntypedStorage) -> memoryview:
    """Returns a storage's bytes in host memory."""
    return _C._lend(storage.cpu()._bytes)
