"""The device beside the CPU, whatever it is: ``torch.accelerator``'s names. Here it is CUDA, or there is none."""

from __future__ import annotations

from typing import Any

import vesta
from vesta._deprecated import deprecated
from vesta._names import listing
from vesta._types import Device

from . import _C

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]


def is_available() -> bool:
    """Returns whether there is an accelerator to use."""
    return vesta.cuda.is_available()


def device_count() -> int:
    """Returns the number of accelerators; 0 if there is none."""
    return vesta.cuda.device_count()


def current_accelerator(check_available: bool = False) -> vesta.device | None:
    """Returns the kind of accelerator as a device without a number; None if there is none.

    Example::

        >>> import vesta
        >>> device = vesta.accelerator.current_accelerator() or vesta.device("cpu")
        >>> device.type in ("cuda", "cpu")
        True
    """
    return _C.device("cuda") if is_available() else None


def _number(device: Any) -> Any:
    """Returns a device without its type; RuntimeError: it is another kind of device."""
    if device is None or isinstance(device, int):
        return device
    device = _C.device(device)
    if device.type != "cuda":
        raise RuntimeError(f"{device.type} doesn't match the current accelerator {current_accelerator()}.")
    return device.index


def _current_device_index() -> int:
    """Returns the number of the current accelerator."""
    return vesta.cuda.current_device()


def _set_device_index(device: Device, /) -> None:
    """Makes an accelerator current for this thread."""
    vesta.cuda.set_device(_number(device))


_CURRENT, _SET = "vesta.accelerator.current_device_", "vesta.accelerator.set_device_"
current_device_index = deprecated(f"{_CURRENT}index", "vesta.accelerator.current_device")(_current_device_index)
current_device_idx = deprecated(f"{_CURRENT}idx", "vesta.accelerator.current_device")(_current_device_index)
set_device_index = deprecated(f"{_SET}index", "vesta.accelerator.set_device")(_set_device_index)
set_device_idx = deprecated(f"{_SET}idx", "vesta.accelerator.set_device")(_set_device_index)


def current_stream(device: Device | None = None, /) -> vesta.cuda.Stream:
    """Returns the current stream of a device."""
    return vesta.cuda.current_stream(_number(device))


def set_stream(stream: vesta.cuda.Stream) -> None:
    """Makes a stream current, and its device."""
    vesta.cuda.set_device(stream.device)
    vesta.cuda.set_stream(stream)


def synchronize(device: Device | None = None, /) -> None:
    """Waits for all work on a device; does nothing without an accelerator."""
    if is_available():
        vesta.cuda.synchronize(_number(device))


class device_index(vesta.cuda.device):
    """A context in which an accelerator is current; None changes nothing."""

    def __init__(self, device: int | None, /) -> None:
        super().__init__(device)


def empty_cache() -> None:
    """Returns memory that no tensor uses to the driver."""
    vesta.cuda.empty_cache()


def memory_stats(device_index: Device | None = None, /) -> dict[str, int]:
    """Returns the counters of a device's allocator; empty without an accelerator."""
    return vesta.cuda.memory_stats(_number(device_index))


def memory_allocated(device_index: Device | None = None, /) -> int:
    """Returns the bytes of live tensors."""
    return vesta.cuda.memory_allocated(_number(device_index))


def max_memory_allocated(device_index: Device | None = None, /) -> int:
    """Returns the most bytes of live tensors."""
    return vesta.cuda.max_memory_allocated(_number(device_index))


def memory_reserved(device_index: Device | None = None, /) -> int:
    """Returns the bytes taken from the driver."""
    return vesta.cuda.memory_reserved(_number(device_index))


def max_memory_reserved(device_index: Device | None = None, /) -> int:
    """Returns the most bytes taken from the driver."""
    return vesta.cuda.max_memory_reserved(_number(device_index))


def reset_accumulated_memory_stats(device_index: Device | None = None, /) -> None:
    """Sets the counts of allocated and freed bytes to zero."""
    vesta.cuda.reset_accumulated_memory_stats(_number(device_index))


def reset_peak_memory_stats(device_index: Device | None = None, /) -> None:
    """Sets every peak to the current value."""
    vesta.cuda.reset_peak_memory_stats(_number(device_index))


def get_memory_info(device_index: Device | None = None, /) -> tuple[int, int]:
    """Returns the (free, total) bytes of a device."""
    return vesta.cuda.mem_get_info(_number(device_index))


__dir__ = listing(globals())
