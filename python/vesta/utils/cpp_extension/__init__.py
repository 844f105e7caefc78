"""Operations of one's own in C++ and CUDA, compiled where they are used: ``torch.utils.cpp_extension``'s names.

``load`` compiles source files into an extension module and imports it; ``load_inline`` does the same with texts;
``CppExtension``, ``CUDAExtension`` and ``BuildExtension`` are for a ``setup.py``. A source file includes
``<vesta/extension.h>``, in which tensors, dtypes and devices are arguments and results of pybind11's functions.
pybind11 3 (PyPI) and g++ 12 are needed, nvcc only for CUDA.

Example::

    >>> from vesta.utils.cpp_extension import load_inline
    >>> source = "vesta::Tensor twice(const vesta::Tensor& x) { return x + x; }"
    >>> twice = load_inline("twice", source, functions="twice").twice  # doctest: +SKIP
    >>> twice(vesta.ones(2))  # doctest: +SKIP
    tensor([2., 2.])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vesta._names import listing

from .compiler import CUDA_HOME, get_cxx_compiler, include_paths, library_paths
from .jit import get_default_build_root, load, load_inline
from .setup import CppExtension, CUDAExtension

if TYPE_CHECKING:
    from .setup import BuildExtension

__all__ = [
    "CUDA_HOME",
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "get_cxx_compiler",
    "get_default_build_root",
    "include_paths",
    "library_paths",
    "load",
    "load_inline",
]


def __getattr__(name: str) -> Any:
    """Imports setuptools for ``BuildExtension``, when it is asked for."""
    if name == "BuildExtension":
        from . import setup

        return setup.BuildExtension
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = listing(globals(), "BuildExtension")
