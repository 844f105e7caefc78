"""How times and sizes of memory are written in profiles."""

from __future__ import annotations


def _format_time(time_us: float) -> str:
    if time_us >= 1e6:
        return f"{time_us / 1e6:.3f}s"
    return f"{time_us / 1e3:.3f}ms" if time_us >= 1e3 else f"{time_us:.3f}us"


def _format_time_share(time_us: float, total_time_us: float) -> str:
    return f"{time_us * 100.0 / total_time_us:.2f}%" if total_time_us else "NaN"


def _format_memory(nbytes: float) -> str:
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(nbytes) >= unit:
            return f"{nbytes / unit:.2f} {name}"
    return f"{nbytes:.0f} B"


def _in_unit(time_us: float, unit: str | None) -> str:
    """Returns a time in the given unit ("s", "ms" or "us"), or in the one that suits it."""
    scale = {"s": 1e6, "ms": 1e3, "us": 1.0}.get(unit or "")
    return _format_time(time_us) if scale is None else f"{time_us / scale:.3f}{unit}"
