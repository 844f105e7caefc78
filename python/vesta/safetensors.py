"""Files of named tensors in the safetensors format, which other libraries read too."""

from __future__ import annotations

import os
from collections.abc import Mapping

from vesta import _C, Tensor
from vesta._names import listing
from vesta._types import Device

__all__ = ["load_file", "load_metadata", "save_file"]


def save_file(
    tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes ``tensors`` to ``filename``; after a failure or a crash the old file is still complete.

    Args:
        metadata: texts to store beside the tensors.

    Raises:
        TypeError: a name is not a str, or a value is not a tensor.
        OSError: the file cannot be written.

    Example::

        >>> import tempfile, vesta
        >>> path = tempfile.mkdtemp() + "/weights.safetensors"
        >>> vesta.save_file({"w": vesta.ones(2)}, path)
        >>> vesta.load_file(path)
        {'w': tensor([1., 1.])}
    """
    if not isinstance(tensors, Mapping):
        raise TypeError(f"save_file: expected a dict of tensors, got {type(tensors).__name__} (tensors).")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"save_file: expected a dict of texts, got {type(metadata).__name__} (metadata).")
    _C._save_safetensors(dict(tensors), filename, None if metadata is None else dict(metadata))


def load_file(filename: str | os.PathLike[str], device: Device = "cpu") -> dict[str, Tensor]:
    """Reads the tensors of a file, in its order. Everything the file claims is checked before it is used.

    Raises:
        ValueError: the file is not a valid safetensors file.
        OSError: it cannot be read.

    Example::

        >>> import tempfile, vesta
        >>> path = tempfile.mkdtemp() + "/weights.safetensors"
        >>> vesta.save_file({"w": vesta.ones(2)}, path)
        >>> vesta.load_file(path)["w"]
        tensor([1., 1.])
    """
    tensors = _C._load_safetensors(filename)[0]
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def load_metadata(filename: str | os.PathLike[str]) -> dict[str, str]:
    """Reads the texts that ``save_file`` stored beside the tensors."""
    return _C._load_safetensors(filename)[1]


__dir__ = listing(globals())
