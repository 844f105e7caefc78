"""How an extension is compiled: compilers, folders, options."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path

from vesta import _C
from vesta._arguments import checked

__all__ = ["CUDA_HOME", "get_cxx_compiler", "include_paths", "library_paths"]

_PACKAGE = Path(__file__).absolute().parents[2]


def _find_cuda_home() -> str | None:
    """Returns the folder of the CUDA toolkit: CUDA_HOME, that of nvcc on the path, or its usual place; or None."""
    named = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if named:
        return named
    nvcc = shutil.which("nvcc")
    if nvcc:
        return str(Path(nvcc).resolve().parents[1])
    return "/usr/local/cuda" if os.path.isdir("/usr/local/cuda") else None


#: The folder of the CUDA toolkit; None where there is none.
CUDA_HOME: str | None = _find_cuda_home()


def cuda_home() -> str:
    """Returns the folder of the CUDA toolkit. OSError: there is none with nvcc."""
    if CUDA_HOME is None or not (Path(CUDA_HOME) / "bin" / "nvcc").is_file():
        raise OSError(
            "cpp_extension: expected a CUDA toolkit with nvcc, found none. Install it, or set CUDA_HOME to its folder."
        )
    return CUDA_HOME


def get_cxx_compiler() -> str:
    """Returns the C++ compiler: the environment variable ``CXX``, else ``c++``.

    Example::

        >>> from vesta.utils.cpp_extension import get_cxx_compiler
        >>> bool(get_cxx_compiler())
        True
    """
    return os.environ.get("CXX", "c++")


def _pybind11() -> str:
    """Returns the folder of pybind11's headers."""
    found = importlib.util.find_spec("pybind11")
    if found is None or found.origin is None:
        raise ModuleNotFoundError(
            "cpp_extension: expected the package pybind11, found none. Run: pip install 'pybind11>=3'.", name="pybind11"
        )
    return str(Path(found.origin).parent / "include")


@checked
def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Returns the folders with the headers that an extension includes, without Python's.

    Args:
        device_type: "cpu", or "cuda" for those of the CUDA toolkit too.
        torch_include_dirs: whether Vesta's own folders are among them.

    Raises:
        OSError: for "cuda" where there is no CUDA toolkit.
        ModuleNotFoundError: pybind11 is not installed.

    Example::

        >>> import os
        >>> from vesta.utils.cpp_extension import include_paths
        >>> os.path.isfile(os.path.join(include_paths()[0], "vesta", "extension.h"))
        True
    """
    # A wheel has the headers in the package; a build folder beside its packages.
    build = Path(_C.__file__ or "").absolute().parents[2]
    ours = next((str(f) for f in (_PACKAGE / "include", build / "include") if f.is_dir()), str(_PACKAGE / "include"))
    folders = [ours, _pybind11()] if torch_include_dirs else []
    if device_type == "cuda":
        folders.append(str(Path(cuda_home()) / "include"))
    return folders


@checked
def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Returns the folders with the libraries that an extension links.

    Args:
        device_type: "cpu", or "cuda" for that of the CUDA runtime too.
        torch_include_dirs: whether Vesta's own folder is among them.

    Raises:
        OSError: for "cuda" where there is no CUDA toolkit.

    Example::

        >>> import os
        >>> from vesta.utils.cpp_extension import library_paths
        >>> os.path.isfile(os.path.join(library_paths()[0], "libvesta.so"))
        True
    """
    build = Path(_C.__file__ or "").absolute().parents[2]
    ours = str(next((f for f in (_PACKAGE, build / "lib") if (f / "libvesta.so").is_file()), _PACKAGE))
    folders = [ours] if torch_include_dirs else []
    if device_type == "cuda":
        home = Path(cuda_home())
        folders.append(str(next((home / name for name in ("lib64", "lib") if (home / name).is_dir()), home / "lib64")))
    return folders


def definitions(name: str) -> list[str]:
    """Returns the macros with the name of the extension module, for PYBIND11_MODULE."""
    return [f"-DVESTA_EXTENSION_NAME={name}", f"-DTORCH_EXTENSION_NAME={name}"]


#: Options of the C++ compiler for every source; -fvisibility=hidden because pybind11 asks for it.
CXX_OPTIONS = ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden"]
#: Those of nvcc.
NVCC_OPTIONS = ["-std=c++20", "-O2", "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC,-fvisibility=hidden"]


def architectures() -> list[str]:
    """Returns nvcc's options for the GPUs that code is made for: TORCH_CUDA_ARCH_LIST, else the one at hand."""
    listed = os.environ.get("TORCH_CUDA_ARCH_LIST", "")
    if not listed:
        from vesta import cuda

        if not cuda.is_available():
            return []  # nvcc's own choice
        major, minor = cuda.get_device_capability()
        listed = f"{major}.{minor}"
    options = []
    for wanted in listed.replace(";", " ").split():
        number = wanted.partition("+")[0].replace(".", "")
        options.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        if wanted.endswith("+PTX"):
            options.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return options


def is_cuda_source(path: str) -> bool:
    return path.endswith((".cu", ".cuh"))


def python_include() -> str:
    """Returns the folder of Python.h."""
    folder = sysconfig.get_paths()["include"]
    if not (Path(folder) / "Python.h").is_file():
        raise OSError(f"cpp_extension: expected Python.h in {folder}, found none. Install python3-dev.")
    return folder
