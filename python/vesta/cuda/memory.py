"""The caching allocator's counters and history, with ``torch.cuda.memory``'s names. Sizes are in bytes.

Without a device the counters are 0, and what would change them does nothing: programs call these whatever they run on.
"""

from __future__ import annotations

import json
import os
import pickle
from typing import Any

from vesta._deprecated import deprecated
from vesta._types import Device

from . import native as port


def _no_device() -> bool:
    """Returns whether there is no device, so that there is nothing to count."""
    from vesta.cuda import is_available

    return not is_available()


def memory_stats(device: Device | None = None) -> dict[str, int]:
    """Returns the counters of a device's allocator: ``allocated_bytes.all.current`` and the like; empty without one."""
    if _no_device():
        return {}
    return dict(port.native().memory_stats(port.index(device)))


def _one(name: str, device: Any) -> int:
    return memory_stats(device).get(name, 0)


def memory_allocated(device: Device | None = None) -> int:
    """Returns the bytes of live tensors."""
    return _one("allocated_bytes.all.current", device)


def max_memory_allocated(device: Device | None = None) -> int:
    """Returns the most bytes of live tensors since the start or the last ``reset_peak_memory_stats``."""
    return _one("allocated_bytes.all.peak", device)


def memory_reserved(device: Device | None = None) -> int:
    """Returns the bytes taken from the driver: live tensors and cache."""
    return _one("reserved_bytes.all.current", device)


def max_memory_reserved(device: Device | None = None) -> int:
    """Returns the most bytes taken from the driver since the start or the last ``reset_peak_memory_stats``."""
    return _one("reserved_bytes.all.peak", device)


memory_cached = deprecated("vesta.cuda.memory_cached", "vesta.cuda.memory_reserved")(memory_reserved)
max_memory_cached = deprecated("vesta.cuda.max_memory_cached", "vesta.cuda.max_memory_reserved")(max_memory_reserved)


def reset_peak_memory_stats(device: Device | None = None) -> None:
    """Sets every peak to the current value."""
    if _no_device():
        return
    port.native().reset_peak_memory_stats(port.index(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Device | None = None) -> None:
    """Sets the counts of allocated and freed bytes to zero."""
    if _no_device():
        return
    port.native().reset_accumulated_memory_stats(port.index(device))


def empty_cache() -> None:
    """Returns memory that no tensor uses to the driver, on all devices."""
    if _no_device():
        return
    port.native().empty_cache()


def mem_get_info(device: Device | None = None) -> tuple[int, int]:
    """Returns the (free, total) bytes of a device, as its driver counts them."""
    return port.native().memory_info(port.index(device))


def set_per_process_memory_fraction(fraction: float, device: Device | None = None) -> None:
    """Limits the allocator to a part of the device's memory, 0 < fraction <= 1."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    port.native().set_memory_fraction(port.index(device), fraction)


def caching_allocator_alloc_conf() -> str:
    """Returns the allocator's settings, as given by VESTA_CUDA_ALLOC_CONF."""
    return os.environ.get("VESTA_CUDA_ALLOC_CONF", "")


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """Returns the segments of the current device's allocator, with their blocks.

    Args:
        mempool_id: accepted if None: there is one pool.
        include_traces: accepted; segments hold no traces.
    """
    if mempool_id is not None:
        raise NotImplementedError("cuda.memory_snapshot: expected no pool, as there is one, got one (mempool_id).")
    return [] if _no_device() else _snapshot()["segments"]


def _snapshot(device: Any = None) -> dict[str, Any]:
    """Returns segments and history in the layout of PyTorch's memory_viz."""
    return port.native().memory_snapshot(port.index(device))


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """Writes a snapshot that PyTorch's memory_viz can open; as JSON if the name ends in ``.json``."""
    found = _snapshot()
    if filename.endswith(".json"):
        with open(filename, "w", encoding="utf-8") as file:
            json.dump(found, file)
    else:
        with open(filename, "wb") as file:
            pickle.dump(found, file)


def _record_memory_history(
    enabled: str | None = "all", max_entries: int = 100_000, device: Any = None, **_: Any
) -> None:
    """Keeps the last ``max_entries`` events from now on; None stops."""
    port.native().record_memory_history(port.index(device), enabled is not None, max_entries)


def _readable(size: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 8192 or unit == "GiB":
            return f"{size} {unit}"
        size //= 1024
    raise AssertionError


def memory_summary(device: Device | None = None, abbreviated: bool = False) -> str:
    """Returns a readable table of the allocator's counters."""
    stats = memory_stats(device)
    rows = [(f"{kind} memory", f"{kind.lower()}_bytes") for kind in ("Allocated", "Active", "Reserved", "Requested")]
    counts = [("Allocations", "allocation"), ("Active allocs", "active"), ("Segments", "segment")]
    line = "|" + "-" * 75 + "|"
    where = "no device" if _no_device() else f"cuda:{port.index(device)}"
    title = f"CUDA memory of {where}; out of memory: {stats.get('num_ooms', 0)}"
    out = [line, f"| {title:<73} |", line, f"| {'':<21} |{'current':>12} |{'peak':>12} |{'total':>11} |{'freed':>10} |"]
    for kinds, show in ((rows, _readable), (counts, str)):
        for label, name in kinds:
            for pool in ("all",) if abbreviated else ("all", "large_pool", "small_pool"):
                row = [
                    show(stats.get(f"{name}.{pool}.{what}", 0)) for what in ("current", "peak", "allocated", "freed")
                ]
                shown = label if pool == "all" else "  " + pool.replace("_", " ")
                out.append(f"| {shown:<21} |{row[0]:>12} |{row[1]:>12} |{row[2]:>11} |{row[3]:>10} |")
    return "\n".join([*out, line])
