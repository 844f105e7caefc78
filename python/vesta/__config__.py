"""What Vesta runs on, as texts: ``vesta.__config__.show()``.

The environment variable ``VESTA_SHOW_CONFIG=1`` prints the text when a program ends, with the libraries that it opened.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys

import vesta

__all__ = ["libraries", "parallel_info", "show"]

#: Libraries that Vesta links or opens when it needs them, by their files' names.
_LIBRARIES = {
    "Vesta": r"libvesta\.so",
    "Vesta for CUDA": r"libvesta_cuda(_emulation)?\.so",
    "Vesta for Gloo": r"libvesta_gloo\.so",
    "SLEEF": r"libsleef\b.*\.so",
    "LAPACK": r"lib(scipy_)?(openblas|lapack|mkl_rt|blis|flexiblas)\w*[.-]",
    "Gloo": r"libgloo\b.*\.so",
    "CUDA driver": r"libcuda\.so",
    "cuBLASLt": r"libcublasLt\.so",
    "cuDNN": r"libcudnn\.so",
    "NCCL": r"libnccl\.so",
}


def libraries() -> dict[str, list[str]]:
    """Returns the files of the libraries that this process has opened so far, by what they are; none where none is.

    Several files of one kind are a sign of trouble to come: two builds of Vesta know nothing of each other.

    Example::

        >>> import vesta
        >>> [path.endswith("libvesta.so") for path in vesta.__config__.libraries()["Vesta"]]
        [True]
    """
    found: dict[str, list[str]] = {what: [] for what in _LIBRARIES}
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
            paths = {line.rstrip("\n").split(maxsplit=5)[5] for line in file if "/" in line}
    except OSError:  # not on Linux
        return found
    for path in sorted(paths):
        for what, pattern in _LIBRARIES.items():
            if re.match(pattern, os.path.basename(path)):
                found[what].append(path)
    return found


def _open_optional_libraries() -> None:
    """Opens the libraries that the first operation which needs them would open."""
    with contextlib.suppress(RuntimeError):
        vesta.linalg.qr(vesta.ones(1, 1))
    vesta.distributed.is_gloo_available()
    if vesta.cuda.is_available():
        with contextlib.suppress(RuntimeError):
            vesta.backends.cudnn.version()
        with contextlib.suppress(RuntimeError):
            vesta.ones(2, 2, device="cuda") @ vesta.ones(2, 2, device="cuda")


def _settings() -> list[str]:
    """Returns the environment variables that change what is in use."""
    names = [name for name in os.environ if name.startswith(("VESTA_", "OMP_", "GOMP_", "CUDA_VISIBLE_DEVICES"))]
    return [f"{name}={os.environ[name]}" for name in sorted(names)]


def show() -> str:
    """Returns a readable text of the version, the machine, and what is used on it: instructions, threads, libraries.

    A library that no operation has needed yet is not open and stands there as such.

    Example::

        >>> import vesta
        >>> vesta.__config__.show().splitlines()[0].startswith("Vesta")
        True
    """
    cuda = "available" if vesta.cuda.is_available() else "not available"
    lines = [
        f"Vesta {vesta.__version__}, built with:",
        f"  - C++20; Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        f"  - instructions of the CPU: {vesta.backends.cpu.get_cpu_capability()}",
        f"  - CUDA: {cuda}",
        f"  - threads: {vesta.get_num_threads()}",
        *(f"  - {what}: {', '.join(paths) or 'not open'}" for what, paths in libraries().items()),
        f"  - settings: {', '.join(_settings()) or 'none'}",
    ]
    return "\n".join(lines) + "\n"


def _show_at_the_end() -> None:
    """Prints what a program used (``VESTA_SHOW_CONFIG=1``)."""
    print(show(), end="", file=sys.stderr)


def parallel_info() -> str:
    """Returns a readable text of how many threads are used, and what they could use."""
    names = ("OMP_NUM_THREADS",)
    settings = [f"\t{name} : {os.environ.get(name, '[not set]')}" for name in names]
    head = ["Parallel:", f"\tget_num_threads() : {vesta.get_num_threads()}"]
    tail = [f"cores : {os.cpu_count()}", "Environment variables:", *settings]
    return "\n".join([*head, *tail, "parallel backend: native thread pool"]) + "\n"
