"""The surroundings of a program, for a report of an error: ``python -m vesta.utils.collect_env``.

The report names the libraries that Vesta finds, and where: it opens those that are opened at their first use.
"""

from __future__ import annotations

import importlib.metadata
import locale
import os
import platform
import subprocess
import sys
from typing import Any, NamedTuple

import vesta
from vesta import __config__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "pretty_str"]

#: Packages whose versions are listed.
_PACKAGES = ("numpy", "scipy", "vesta", "vesta-cuda", "tensorboardX", "safetensors", "pybind11")


class SystemEnv(NamedTuple):
    """What is known of the surroundings, as texts."""

    torch_version: str
    is_debug_build: str
    cuda_compiled_version: str
    gcc_version: str
    cmake_version: str
    os: str
    libc_version: str
    python_version: str
    python_platform: str
    is_cuda_available: str
    nvidia_gpu_models: str
    nvidia_driver_version: str
    cudnn_version: str
    pip_packages: list[str]
    cpu_info: str


def _first_line(*command: str) -> str:
    """Returns the first line that a command prints; "not found" if it does not run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return "not found"
    return done.stdout.strip().split("\n")[0] if done.returncode == 0 else "not found"


def _packages() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name}=={importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _version() -> str:
    """Returns the version; of a program under ``vesta.as_torch`` that of PyTorch which it sees, and Vesta's own."""
    as_torch = sys.modules.get("vesta.as_torch")
    if as_torch is None or not as_torch.is_installed():
        return str(vesta.__version__)
    return f"{as_torch.VESTA_VERSION} as PyTorch {vesta.__version__}"


def _cpu() -> str:
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding=locale.getpreferredencoding(False)) as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        model = names[0] if names else model
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores, {vesta.get_num_threads()} used by Vesta"


def get_env_info() -> SystemEnv:
    """Returns what is known of the surroundings.

    Example::

        >>> import vesta.utils.collect_env
        >>> vesta.utils.collect_env.get_env_info().python_version.startswith("3.")
        True
    """
    cuda = vesta.cuda.is_available()
    devices = [f"GPU {i}: {vesta.cuda.get_device_name(i)}" for i in range(vesta.cuda.device_count())]
    return SystemEnv(
        torch_version=_version(),
        is_debug_build=str(vesta.version.debug),
        cuda_compiled_version=vesta.version.cuda or "None",
        gcc_version=_first_line("gcc", "--version"),
        cmake_version=_first_line("cmake", "--version"),
        os=platform.platform(),
        libc_version="-".join(platform.libc_ver()),
        python_version=f"{sys.version} ({sys.maxsize.bit_length() + 1}-bit runtime)".replace("\n", " "),
        python_platform=platform.platform(),
        is_cuda_available=str(cuda),
        nvidia_gpu_models="\n".join(devices) or "none",
        nvidia_driver_version=_first_line("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        cudnn_version=str(vesta.backends.cudnn.version()),
        pip_packages=_packages(),
        cpu_info=_cpu(),
    )


def pretty_str(envinfo: SystemEnv) -> str:
    """Returns the surroundings as a readable text."""
    labels: dict[str, Any] = {
        "Vesta version": envinfo.torch_version,
        "Is debug build": envinfo.is_debug_build,
        "CUDA used to build Vesta": envinfo.cuda_compiled_version,
        "OS": envinfo.os,
        "GCC version": envinfo.gcc_version,
        "CMake version": envinfo.cmake_version,
        "Libc version": envinfo.libc_version,
        "Python version": envinfo.python_version,
        "Python platform": envinfo.python_platform,
        "Is CUDA available": envinfo.is_cuda_available,
        "GPU models and configuration": envinfo.nvidia_gpu_models,
        "Nvidia driver version": envinfo.nvidia_driver_version,
        "cuDNN version": envinfo.cudnn_version,
        "CPU": envinfo.cpu_info,
    }
    lines = [f"{label}: {value}" for label, value in labels.items()]
    packages = [f"[pip3] {package}" for package in envinfo.pip_packages]
    return "\n".join([*lines, "", "Versions of relevant libraries:", *packages])


def get_pretty_env_info() -> str:
    """Returns the surroundings as a readable text, with the libraries in use and the files they come from."""
    __config__._open_optional_libraries()
    return f"{pretty_str(get_env_info())}\n\n{__config__.show()}"


def main() -> None:
    """Prints the surroundings."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
