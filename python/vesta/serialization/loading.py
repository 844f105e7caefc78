"""``vesta.load``."""

from __future__ import annotations

import os
import pickle
import re
import warnings
from typing import IO, Any

import vesta
from vesta.utils.serialization import config

from . import legacy_reader, zip_archive
from .safe_globals import user_allowed
from .source import is_path, name_other_kind, open_source
from .torch_names import weights_only_globals
from .zip_reader import ZipReader

__all__ = ["get_unsafe_globals_in_checkpoint", "load"]

_TRUE = ("1", "y", "yes", "true")
_UNSAFE = (
    "Re-running `vesta.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary "
    "code execution. Do it only if you got the file from a trusted source."
)


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Loads an object that ``vesta.save`` or PyTorch's ``torch.save`` has saved, in the zip format or an older one.

    Storages are read into host memory and brought to where they were saved from, or where ``map_location`` says. The
    checksum of each record is compared, except with ``mmap``.

    Args:
        f: a path, or a file object; one that cannot seek is read to its end first.
        map_location: None, a device or its name for everything, a dict from devices in the file to others, or a
            callable that is given each storage, in host memory, and the name of its device, and returns the storage in
            its place, or None for the place in the file.
        pickle_module: for ``weights_only=False``: ``pickle``, or the module that the file was saved with.
        weights_only: whether only tensors, plain containers and what ``vesta.serialization.add_safe_globals`` has
            allowed may be in the file. False runs whatever code the file names: for files that you trust. True by
            default, unless a ``pickle_module`` is given.
        mmap: whether the file is mapped instead of read: values come from the disk when they are used. The file must
            not be truncated meanwhile. Only paths, only the zip format.
        pickle_load_args: for ``weights_only=False``: passed to the unpickler, as ``encoding``.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file.
        pickle.UnpicklingError: the file names what is not allowed, or its pickle is damaged.
        RuntimeError: the file is damaged, cut off, or of another kind; or there is no such device.
        NotImplementedError: the file has what Vesta has not, as quantized tensors.
        EOFError: the file is empty.

    Example::

        >>> import os, tempfile, vesta
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "layer.pt")
        ...     vesta.save(vesta.nn.Linear(2, 1).state_dict(), path)
        ...     list(vesta.load(path, map_location="cpu"))
        ['weight', 'bias']
    """
    weights_only = _settle_weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    mmap = config.load.mmap if mmap is None else mmap
    if is_path(f) and os.fsdecode(os.fspath(f)).endswith(".safetensors"):
        return _load_safetensors(f, map_location)
    if mmap and not is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    pickle_load_args.setdefault("encoding", "utf-8")
    unpickling = zip_archive.Unpickling(weights_only, pickle_module or pickle, pickle_load_args)
    source = open_source(f)
    try:
        return _load(source, map_location, unpickling, mmap)
    except pickle.UnpicklingError as error:
        message = _advice(str(error)) if weights_only else str(error)
        raise pickle.UnpicklingError(f"{message} ({source.name})") from error.__cause__
    finally:
        source.close()


def _settle_weights_only(weights_only: bool | None, pickle_module: Any) -> bool:
    """Applies the default and the environment variables."""
    force = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    forbid = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if force and forbid:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both "
            "were set."
        )
    if force:
        return True
    if weights_only is None and forbid:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not "
            "explicitly passed to `vesta.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    return pickle_module is None if weights_only is None else bool(weights_only)


def _load_safetensors(f: Any, map_location: Any) -> Any:
    if isinstance(map_location, dict) or not isinstance(map_location, (str, bytes, vesta.device, type(None))):
        raise RuntimeError(
            "load: expected None, a device or its name for a safetensors file, got "
            f"{type(map_location).__name__} (map_location)."
        )
    loaded = vesta.load_file(f)
    if map_location is None:
        return loaded
    place = map_location.decode() if isinstance(map_location, bytes) else map_location
    return {name: tensor.to(place) for name, tensor in loaded.items()}


def _load(source: Any, map_location: Any, unpickling: Any, mmap: bool) -> Any:
    head = source.read(0, 4)
    if not head:
        raise EOFError(f"load: expected a file of vesta.save or torch.save, got an empty one ({source.name}).")
    if head == b"PK\x03\x04":
        return zip_archive.load(ZipReader(source), map_location, unpickling, mmap)
    other = name_other_kind(source)
    if other:
        raise RuntimeError(f"load: expected a file of vesta.save or torch.save, but {other} ({source.name}).")
    if mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with `vesta.save(_use_new_zipfile_serialization=True)`, please "
            "save your checkpoint with this option in order to use mmap."
        )
    return legacy_reader.load(source, map_location, unpickling)


def _advice(message: str) -> str:
    """Adds to an error of ``weights_only=True`` what can be done, in PyTorch's words."""
    if re.search(r"GLOBAL (\S+) was not an allowed global by default", message):
        return (
            "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps "
            f"only if you trust the source of the checkpoint. \n\t(1) {_UNSAFE}\n\t(2) Alternatively, to load with "
            "`weights_only=True` please check the recommended steps in the following error message.\n\t"
            f"WeightsUnpickler error: {message}"
        )
    if "expected an intact pickle" in message:
        return message
    return f"Weights only load failed. {_UNSAFE}\n\n{message}"


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Returns the names in a file of the zip format that ``weights_only=True`` would refuse.

    Nothing is run: the pickle is only read. Names that it would put together while it runs are not found.

    Args:
        f: as in ``vesta.load``.

    Raises:
        ValueError: the file is not of the zip format, or a TorchScript archive.

    Example::

        >>> import collections, io, vesta
        >>> file = io.BytesIO()
        >>> vesta.save(collections.deque([1]), file)
        >>> _ = file.seek(0)
        >>> vesta.serialization.get_unsafe_globals_in_checkpoint(file)
        ['collections.deque']
    """
    from .safe_globals import plain_globals

    source = open_source(f)
    try:
        if source.read(0, 4) != b"PK\x03\x04":
            raise ValueError("Expected input to be a checkpoint returned by vesta.save")
        reader = ZipReader(source)
        if "constants.pkl" in reader:
            raise ValueError(
                "Expected input to be a checkpoint returned by vesta.save but got a torchscript checkpoint"
            )
        names = zip_archive.names_in(reader.read("data.pkl"))
    finally:
        source.close()
    return sorted(names - {*weights_only_globals(), *plain_globals(), *user_allowed()})
