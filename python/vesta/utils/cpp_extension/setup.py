"""``CppExtension``, ``CUDAExtension`` and ``BuildExtension``: extensions in a ``setup.py``.

setuptools is imported when one of them is asked for; it is no dependency of Vesta.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from . import compiler

__all__ = ["CUDAExtension", "CppExtension"]


def _extension(name: str, sources: list[str], device: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from setuptools import Extension

    kwargs["include_dirs"] = [*(kwargs.get("include_dirs") or ()), *compiler.include_paths(device)]
    kwargs["library_dirs"] = [*(kwargs.get("library_dirs") or ()), *compiler.library_paths(device)]
    kwargs["runtime_library_dirs"] = [*(kwargs.get("runtime_library_dirs") or ()), *compiler.library_paths(device)]
    libraries = ["vesta", "cudart"] if device == "cuda" else ["vesta"]
    kwargs["libraries"] = [*(kwargs.get("libraries") or ()), *libraries]
    kwargs["language"] = "c++"
    return Extension(name, sources, *args, **kwargs)


def CppExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> Any:
    """Returns a ``setuptools.Extension`` with Vesta's headers and library, for a ``setup.py``.

    Args:
        name: the module's, with its package: ``"ours._C"``.
        sources: files of C++.
        args: further arguments of ``setuptools.Extension``, as are the named ones (``extra_compile_args``, ...).

    Example::

        >>> from vesta.utils.cpp_extension import BuildExtension, CppExtension
        >>> from setuptools import setup  # doctest: +SKIP
        >>> modules = [CppExtension("ours", ["ours.cpp"])]  # doctest: +SKIP
        >>> setup(name="ours", ext_modules=modules, cmdclass={"build_ext": BuildExtension})  # doctest: +SKIP
    """
    return _extension(name, sources, "cpu", args, kwargs)


def CUDAExtension(name: str, sources: list[str], *args: Any, **kwargs: Any) -> Any:
    """Returns a ``setuptools.Extension`` for sources of C++ and CUDA; ``BuildExtension`` compiles them.

    Args:
        name: the module's, with its package.
        sources: files of C++, and of CUDA where they end in ``.cu``.
        args: further arguments of ``setuptools.Extension``. ``extra_compile_args`` may be a dict with the lists "cxx"
            and "nvcc".

    Raises:
        OSError: there is no CUDA toolkit.

    Example::

        >>> from vesta.utils.cpp_extension import CUDAExtension
        >>> modules = [CUDAExtension("ours", ["ours.cpp", "kernels.cu"])]  # doctest: +SKIP
    """
    return _extension(name, sources, "cuda", args, kwargs)


def _build_extension() -> type:
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):
        """The command ``build_ext`` of a ``setup.py``, with the options that Vesta's headers need, and nvcc.

        Example::

            >>> from vesta.utils.cpp_extension import BuildExtension
            >>> command = {"build_ext": BuildExtension}  # doctest: +SKIP
        """

        @classmethod
        def with_options(cls, **options: Any) -> Any:
            """Returns the class itself: PyTorch's options (``use_ninja``, ...) change nothing here."""
            return cls

        def build_extensions(self) -> None:
            self.compiler.src_extensions += [".cu"]
            compile_one = self.compiler._compile

            def with_nvcc(obj: str, src: str, ext: str, cc_args: list[str], options: Any, pp_opts: list[str]) -> None:
                given = options if isinstance(options, dict) else {"cxx": list(options or ()), "nvcc": []}
                if compiler.is_cuda_source(src):
                    nvcc = str(Path(compiler.cuda_home()) / "bin" / "nvcc")
                    flags = [*compiler.NVCC_OPTIONS, *compiler.architectures(), *given.get("nvcc", ())]
                    includes = [arg for arg in [*cc_args, *pp_opts] if arg.startswith(("-I", "-D"))]
                    subprocess.run([nvcc, *flags, *includes, "-c", os.fspath(src), "-o", obj], check=True)
                else:
                    flags = [*compiler.CXX_OPTIONS, *given.get("cxx", ())]
                    compile_one(obj, src, ext, cc_args, flags, pp_opts)

            self.compiler._compile = with_nvcc
            super().build_extensions()

        def build_extension(self, ext: Any) -> None:
            name = ext.name.rpartition(".")[2]
            arguments = ext.extra_compile_args
            macros = compiler.definitions(name)
            if isinstance(arguments, dict):
                ext.extra_compile_args = {kind: [*arguments.get(kind, ()), *macros] for kind in ("cxx", "nvcc")}
            else:
                ext.extra_compile_args = {"cxx": [*arguments, *macros], "nvcc": macros}
            super().build_extension(ext)

    return BuildExtension


def __getattr__(name: str) -> Any:
    """Makes the class when it is first asked for: its base is setuptools'."""
    if name == "BuildExtension":
        globals()[name] = value = _build_extension()
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
