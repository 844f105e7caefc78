"""CUDA devices: ``torch.cuda``'s names.

``import vesta`` uses nothing of this; the CUDA library is loaded by the first call that needs it. Without a GPU,
``is_available()`` is False and everything else raises a ``vesta.DeviceError`` that says why.
"""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

import vesta
from vesta._C import OutOfMemoryError, Tensor
from vesta._names import listing
from vesta._types import Device

from . import native as _port
from .memory import (
    caching_allocator_alloc_conf,
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from .streams import Event, ExternalStream, Stream, StreamContext, current_stream, default_stream, set_stream, stream

__all__ = [
    "Event",
    "ExternalStream",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "caching_allocator_alloc_conf",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_sync_debug_mode",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_summary",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "set_device",
    "set_per_process_memory_fraction",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
]

#: Modules and names that are imported on first use.
_LAZY = {
    "amp": "vesta.cuda.amp",
    "nccl": "vesta.cuda.nccl",
    "nvtx": "vesta.cuda.nvtx",
    "profiler": "vesta.cuda.profiler",
    "random": "vesta.cuda.random",
}
_RANDOM = (
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
)


def is_available() -> bool:
    """Returns whether tensors can be made on a CUDA device. Never raises; warns if the CUDA library cannot be used."""
    extension = _port.if_there()
    return extension is not None and extension.is_available()


def device_count() -> int:
    """Returns the number of usable CUDA devices; 0 without a GPU, a driver or the CUDA library."""
    extension = _port.if_there()
    return 0 if extension is None else extension.device_count()


def init() -> None:
    """Loads CUDA now rather than with the first call that needs it. Error: there is no device."""
    _port.native().current_device()


def _lazy_init() -> None:
    """Does what ``init`` does."""
    init()


def _is_in_bad_fork() -> bool:
    """Returns False: devices are not used in forked processes, and the error there says so."""
    return False


def is_current_stream_capturing() -> bool:
    """Returns False: work is not captured as graphs."""
    return False


def is_initialized() -> bool:
    """Returns whether there is a device to use; loading does not show in any other way."""
    return is_available()


def current_device() -> int:
    """Returns the number of this thread's current device."""
    return _port.native().current_device()


def set_device(device: Device) -> None:
    """Makes ``device`` (a number, a str, a vesta.device) current for this thread; a negative number does nothing."""
    index = _port.index(device, optional=False)
    if index >= 0:
        _port.native().set_device(index)


def synchronize(device: Device | None = None) -> None:
    """Waits for all work queued on a device and raises the errors that kernels reported (IndexError for an index)."""
    _port.native().synchronize(_port.index(device))


class device:
    """A context in which a device is current. ``device``: a number (None or negative: no change) or a device."""

    def __init__(self, device: Device | None) -> None:
        self.idx = -1 if device is None else _port.index(device, optional=False)
        self.prev_idx = -1

    def __enter__(self) -> device:
        if self.idx >= 0:
            self.prev_idx = _port.native().current_device()
            _port.native().set_device(self.idx)
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self.idx >= 0:
            _port.native().set_device(self.prev_idx)


class device_of(device):
    """A context in which a tensor's device is current; a CPU tensor changes nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class _CudaDeviceProperties:
    """The properties of a device, with the attributes of PyTorch's ``_CudaDeviceProperties``."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count={self.multi_processor_count}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def get_device_properties(device: Device | None = None) -> _CudaDeviceProperties:
    """Returns a device's name, compute capability, memory in bytes and the like."""
    return _CudaDeviceProperties(_port.native().device_info(_port.index(device)))


def get_device_name(device: Device | None = None) -> str:
    return get_device_properties(device).name


def get_device_capability(device: Device | None = None) -> tuple[int, int]:
    """Returns the compute capability: (9, 0) for an H100 or H200."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Returns whether a device can read the memory of another directly."""
    return _port.native().can_access_peer(_port.index(device), _port.index(peer_device))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns whether the current device computes in bfloat16 (by itself from compute capability 8.0 on)."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def get_arch_list() -> list[str]:
    """Returns the architectures that the CUDA library was compiled for."""
    return ["sm_90"] if is_available() and _port.native().implementation() == "CUDA" else []


_SYNC_DEBUG = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Sets what happens when an op makes the host wait for the device (``item()``, ``nonzero()``, a copy to the host).

    Args:
        debug_mode: 0 or ``"default"``: nothing; 1 or ``"warn"``: a UserWarning; 2 or ``"error"``: a RuntimeError.
            ``synchronize()`` is not affected, since its purpose is to wait.
    """
    mode = _SYNC_DEBUG.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"set_sync_debug_mode: expected 0, 1, 2, 'default', 'warn' or 'error', got {debug_mode!r} (debug_mode)."
        )
    _port.native().set_sync_debug_mode(mode)


def get_sync_debug_mode() -> int:
    """Returns the mode that ``set_sync_debug_mode`` set, as a number."""
    return _port.native().sync_debug_mode()


def ipc_collect() -> None:
    """Does nothing: memory on devices is not shared between processes here."""


def __getattr__(name: str) -> Any:
    """Imports what is rarely needed, on first use."""
    if name in _LAZY:
        return importlib.import_module(_LAZY[name])
    if name.endswith("Tensor"):
        from vesta.tensor_types import CUDA

        if name in CUDA:
            return CUDA[name]
    if name == "_initialized":  # a variable in PyTorch, which programs look at
        return is_initialized()
    if name == "default_generators":
        return tuple(vesta._C._default_generator(vesta.device("cuda", i)) for i in range(device_count()))
    if name in _RANDOM:
        return getattr(importlib.import_module("vesta.cuda.random"), name)
    raise AttributeError(f"module 'vesta.cuda' has no attribute {name!r}")


__dir__ = listing(globals(), *_LAZY, *_RANDOM, "default_generators", hidden="native")
