"""How Vesta was built, as texts: ``vesta.__config__.show()``."""

from __future__ import annotations

import os
import platform

import vesta

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Returns a readable text of the version, the machine, and what can be used on it.

    Example::

        >>> import vesta
        >>> vesta.__config__.show().splitlines()[0].startswith("Vesta")
        True
    """
    cuda = "available" if vesta.cuda.is_available() else "not available"
    lines = [
        f"Vesta {vesta.__version__}, built with:",
        f"  - C++20, OpenMP; Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        f"  - instructions of the CPU: {vesta.backends.cpu.get_cpu_capability()}",
        f"  - CUDA: {cuda}",
        f"  - threads: {vesta.get_num_threads()}",
    ]
    return "\n".join(lines) + "\n"


def parallel_info() -> str:
    """Returns a readable text of how many threads are used, and what they could use."""
    names = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OMP_PROC_BIND")
    settings = [f"\t{name} : {os.environ.get(name, '[not set]')}" for name in names]
    head = ["Parallel:", f"\tget_num_threads() : {vesta.get_num_threads()}"]
    tail = [f"cores : {os.cpu_count()}", "Environment variables:", *settings]
    return "\n".join([*head, *tail, "parallel backend: OpenMP"]) + "\n"
