"""What the CPU can do: ``torch.backends.cpu``'s names."""

from __future__ import annotations

__all__ = ["get_cpu_capability"]

#: What kernels are compiled for, the best first, and the flags in /proc/cpuinfo that it needs.
_LEVELS = (
    ("AVX512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"}),
    ("AVX2", {"avx2", "fma", "f16c"}),
)


def get_cpu_capability() -> str:
    """Returns which of the compiled instruction sets this CPU has: "AVX512", "AVX2" or "DEFAULT".

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
    return next((name for name, needed in _LEVELS if needed <= flags), "DEFAULT")
