"""What the CPU can do: ``torch.backends.cpu``'s names."""

from __future__ import annotations

import os

__all__ = ["get_cpu_capability"]

#: What kernels are compiled for, the best first, and the flags in /proc/cpuinfo that it needs.
_LEVELS = (
    ("AVX512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"}),
    ("AVX2", {"avx2", "fma", "f16c"}),
)


def get_cpu_capability() -> str:
    """Returns which of the compiled instruction sets is used on this CPU: "AVX512", "AVX2" or "DEFAULT".

    The environment variable ``VESTA_ISA``, set to ``avx512``, ``avx2`` or ``baseline`` before a program starts, asks
    for less than the CPU has; ``avx512`` does without the instructions for bfloat16, and ``avx512_bf16`` without those
    for tiles (AMX), which have no name here.

    Example::

        >>> import vesta
        >>> vesta.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
        True
    """
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            line = next((line for line in file if line.startswith("flags")), "")
    except OSError:
        return "DEFAULT"
    flags = set(line.split())
    wish = {"avx2": 1, "baseline": len(_LEVELS)}.get(os.environ.get("VESTA_ISA", ""), 0)
    return next((name for name, needed in _LEVELS[wish:] if needed <= flags), "DEFAULT")
