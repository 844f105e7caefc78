"""Devices of storages: the tags by which a file names them, and where ``map_location`` puts them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Optional

import vesta
from vesta import Tensor
from vesta.storage import TypedStorage, UntypedStorage

__all__ = [
    "default_restore_location",
    "location_tag",
    "register_package",
    "placer",
    "validate_cuda_device",
]

Tagger = Callable[[Any], Optional[str]]
Restorer = Callable[[Any, str], Any]
_packages: list[tuple[int, Tagger, Restorer]] = []


def register_package(priority: int, tagger: Tagger, deserializer: Restorer) -> None:
    """Registers how storages of a kind of device are named in a file, and brought back.

    Args:
        priority: lower ones are asked first; 10 is the CPU, 20 CUDA.
        tagger: ``tagger(storage)`` returns the tag of a storage's device, or None if it does not know it.
        deserializer: ``deserializer(storage, tag)`` returns the storage where the tag says, or None.

    Example::

        >>> import vesta
        >>> vesta.serialization.register_package(11, lambda storage: None, lambda storage, tag: None)
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """Returns the tag of a storage's device: ``cpu``, ``cuda:0``. RuntimeError: no package knows the device."""
    for _, tagger, _ in _packages:
        tag = tagger(storage)
        if tag:
            return tag
    raise RuntimeError(f"location_tag: expected a device that a package knows, got {storage.device} (storage).")


def default_restore_location(storage: Any, location: str) -> Any:
    """Returns ``storage`` on the device that the tag ``location`` names. RuntimeError: no package knows the tag."""
    for _, _, deserializer in _packages:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(
        f"load: expected a device of this build, got {location!r} in the file (map_location). "
        "Use vesta.load(..., map_location='cpu')."
    )


def validate_cuda_device(location: str) -> int:
    """Returns the number of the GPU that a tag names. RuntimeError: there is no such GPU."""
    if not vesta.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but vesta.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use vesta.load with map_location=vesta.device('cpu') "
            "to map your storages to the CPU."
        )
    index = vesta.device(location).index
    index = vesta.cuda.current_device() if index is None else index
    count = vesta.cuda.device_count()
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {index} but vesta.cuda.device_count() is {count}. "
            "Please use vesta.load with map_location to map your storages to an existing device."
        )
    return index


def _cpu_tag(storage: Any) -> str | None:
    return "cpu" if storage.device.type == "cpu" else None


def _restore_cpu(storage: Any, location: str) -> Any:
    return storage if location == "cpu" else None


def _cuda_tag(storage: Any) -> str | None:
    return f"cuda:{storage.device.index}" if storage.device.type == "cuda" else None


def _restore_cuda(storage: Any, location: str) -> Any:
    if location == "cuda" or re.fullmatch(r"cuda:[0-9]{1,3}", location):
        return storage.to(vesta.device("cuda", validate_cuda_device(location)))
    return None


def _restore_meta(storage: Any, location: str) -> Any:
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


register_package(10, _cpu_tag, _restore_cpu)
register_package(20, _cuda_tag, _restore_cuda)
register_package(22, lambda storage: "meta" if storage.device.type == "meta" else None, _restore_meta)


def _restorer(map_location: Any) -> Restorer:
    """Returns what puts a storage where ``map_location`` says.

    Raises:
        TypeError: ``map_location`` is no str, device, dict or callable.
    """
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes)):
        target = map_location.decode() if isinstance(map_location, bytes) else map_location
        return lambda storage, location: default_restore_location(storage, target)
    if isinstance(map_location, vesta.device):
        return lambda storage, location: default_restore_location(storage, str(map_location))
    if not callable(map_location):
        raise TypeError(
            "load: expected None, str, vesta.device, dict or a callable, got "
            f"{type(map_location).__name__} (map_location)."
        )

    def by_callable(storage: Any, location: str) -> Any:
        placed = map_location(storage, location)
        return default_restore_location(storage, location) if placed is None else placed

    return by_callable


def placer(map_location: Any) -> Callable[[UntypedStorage, str, str], UntypedStorage]:
    """Returns what brings a storage of the file ``name`` from host memory to its place: ``place(storage, tag, name)``.

    Raises:
        TypeError: ``map_location`` is no str, device, dict or callable.
    """
    restore = _restorer(map_location)

    def place(storage: UntypedStorage, location: str, name: str) -> UntypedStorage:
        placed = restore(storage, location)
        if isinstance(placed, TypedStorage):
            placed = placed.untyped()
        elif isinstance(placed, Tensor):
            placed = UntypedStorage._of(placed)
        if not isinstance(placed, UntypedStorage) or placed.nbytes() != storage.nbytes():
            raise RuntimeError(
                f"load: expected map_location to return None or a storage of {storage.nbytes()} bytes, got "
                f"{type(placed).__name__} ({name})."
            )
        return placed

    return place
