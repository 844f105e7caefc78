"""``load`` and ``load_inline``: extensions that are compiled when a program needs them.

Note [When a source is compiled again]
Each source has a file beside its object with the command that made it and the files that it read (the compiler's own
list). It is compiled again where the command differs or one of those files is younger than the object. The extension is
linked again after that, or where an object is younger than it, and imported under a new name: an interpreter cannot let
go of a module of C++. One lock per folder keeps several processes from building the same.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib.machinery
import importlib.util
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from vesta._arguments import checked

from . import compiler

__all__ = ["get_default_build_root", "load", "load_inline"]

#: Modules that were imported in this process, by folder and name.
_modules: dict[tuple[str, str], Any] = {}
_numbers = itertools.count(1)


def get_default_build_root() -> str:
    """Returns the folder in which extensions are built: ``TORCH_EXTENSIONS_DIR``, else one in the user's cache.

    Example::

        >>> from vesta.utils.cpp_extension import get_default_build_root
        >>> import os
        >>> os.path.isabs(get_default_build_root())
        True
    """
    named = os.environ.get("TORCH_EXTENSIONS_DIR")
    if named:
        return os.path.abspath(named)
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(os.path.abspath(cache), "vesta_extensions")


def _default_folder(name: str) -> Path:
    python = f"py{sys.version_info.major}{sys.version_info.minor}"
    return Path(get_default_build_root()) / python / name


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a folder."""
    with open(folder / "lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _files_read(record: Path) -> list[str]:
    """Returns the files that a compiler listed in a rule of make."""
    text = record.read_text(encoding="utf-8", errors="surrogateescape").replace("\\\n", " ")
    return [path.replace("\\ ", " ") for path in re.findall(r"(?:\\ |\S)+", text.partition(":")[2])]


def _is_current(target: Path, command: list[str]) -> bool:
    """Returns whether a target was made by this command and is younger than all that was read."""
    made_by, record = target.with_suffix(".command"), target.with_suffix(".d")
    try:
        if made_by.read_text(encoding="utf-8") != shlex.join(command):
            return False
        made = target.stat().st_mtime_ns
        return all(os.stat(path).st_mtime_ns <= made for path in _files_read(record))
    except OSError:
        return False


def _run(command: list[str], verbose: bool, what: str) -> None:
    """Runs a compiler; raises with its messages where it fails."""
    if verbose:
        print(shlex.join(command), flush=True)
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"Error building extension {what!r}: {shlex.join(command)}\n{done.stdout}{done.stderr}")
    if verbose and (done.stdout or done.stderr):
        print(done.stdout + done.stderr, end="", flush=True)


class _Build:
    """One extension in its folder."""

    def __init__(self, name: str, folder: Path, include: Sequence[str], with_cuda: bool, verbose: bool) -> None:
        self.name, self.folder, self.verbose = name, folder, verbose
        device = "cuda" if with_cuda else "cpu"
        folders = [*include, *compiler.include_paths(device), compiler.python_include()]
        self.common = [*compiler.definitions(name), *(f"-I{path}" for path in include)]
        for path in folders[len(include) :]:
            self.common += ["-isystem", path]
        self.links = [f"-L{path}" for path in compiler.library_paths(device)]
        self.links += [f"-Wl,-rpath,{path}" for path in compiler.library_paths(device)]
        self.links += ["-lvesta", *(["-lcudart"] if with_cuda else [])]

    def command_of(self, source: str, target: Path, cxx: Sequence[str], cuda: Sequence[str]) -> list[str]:
        record = ["-MD", "-MF", str(target.with_suffix(".d"))]
        if compiler.is_cuda_source(source):
            nvcc = str(Path(compiler.cuda_home()) / "bin" / "nvcc")
            options = [*compiler.NVCC_OPTIONS, *compiler.architectures(), *cuda]
            return [nvcc, *options, *self.common, *record, "-c", source, "-o", str(target)]
        return [compiler.get_cxx_compiler(), *compiler.CXX_OPTIONS, *self.common, *cxx, *record,
                "-c", source, "-o", str(target)]  # fmt: skip

    def objects(self, sources: Sequence[str], cxx: Sequence[str], cuda: Sequence[str]) -> tuple[list[Path], bool]:
        """Compiles what has changed; returns the objects, and whether anything was compiled."""
        targets = [self.folder / f"{i}_{Path(source).stem}.o" for i, source in enumerate(sources)]
        commands = [self.command_of(s, t, cxx, cuda) for s, t in zip(sources, targets)]
        stale = [(t, c) for t, c in zip(targets, commands) if not _is_current(t, c)]

        def build(job: tuple[Path, list[str]]) -> None:
            target, command = job
            target.with_suffix(".command").unlink(missing_ok=True)
            _run(command, self.verbose, self.name)
            target.with_suffix(".command").write_text(shlex.join(command), encoding="utf-8")

        jobs = min(len(os.sched_getaffinity(0)), max(1, int(os.environ.get("MAX_JOBS", 64))))
        with ThreadPoolExecutor(max_workers=jobs) as pool:
            list(pool.map(build, stale))
        return targets, bool(stale)

    def link(self, objects: Sequence[Path], flags: Sequence[str], target: Path, program: bool, stale: bool) -> bool:
        """Links what was compiled, if it is stale or the command is another; returns whether it did.

        An object that is younger than the target is left by a process that was killed before it linked.
        """
        made_by = target.with_suffix(".link")
        kind = [] if program else ["-shared"]
        partial = target.with_name(target.name + ".partial")
        command = [compiler.get_cxx_compiler(), *kind, *map(str, objects), *self.links, *flags, "-o", str(partial)]
        text = shlex.join(command)
        if not stale and target.exists() and made_by.is_file() and made_by.read_text(encoding="utf-8") == text:
            made = target.stat().st_mtime_ns
            if all(path.stat().st_mtime_ns <= made for path in objects):
                return False
        made_by.unlink(missing_ok=True)
        _run(command, self.verbose, self.name)
        partial.replace(target)
        made_by.write_text(text, encoding="utf-8")
        return True


def _import(name: str, path: Path, again: bool) -> Any:
    """Imports an extension module from its file; again under another path, which the loader does not know yet."""
    if again:
        copy = path.with_name(f"{name}_v{next(_numbers)}_{os.getpid()}.so")
        shutil.copy(path, copy)
        try:
            return _import(name, copy, again=False)
        finally:
            copy.unlink()
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _words(op: str, name: str, given: Any) -> list[str]:
    """Returns a list of options or paths; raises where it is a text, or holds anything else."""
    if given is None:
        return []
    if isinstance(given, (str, bytes)) or not all(isinstance(word, (str, os.PathLike)) for word in given):
        raise TypeError(f"{op}: expected a list of texts, got {given!r} ({name}).")
    return [os.fspath(word) for word in given]


def _check_name(op: str, name: str) -> None:
    if not name.isidentifier():
        raise ValueError(f"{op}: expected a name that is a Python identifier, got {name!r} (name).")


@checked
def load(
    name: str,
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> Any:
    """Compiles source files into an extension and imports it. What has not changed since is not compiled again.

    Args:
        name: the module's, for ``PYBIND11_MODULE(VESTA_EXTENSION_NAME, m)``.
        sources: files of C++, and of CUDA where they end in ``.cu``.
        extra_cflags: options of the C++ compiler, after Vesta's own.
        extra_cuda_cflags: options of nvcc.
        extra_ldflags: options of the linker.
        extra_include_paths: folders with headers.
        build_directory: an existing folder; by default one in ``get_default_build_root()``.
        verbose: whether commands and warnings are printed.
        with_cuda: whether CUDA's headers and runtime are used; by default where a source is CUDA's.
        is_python_module: False opens the library without importing it, and returns nothing.
        is_standalone: True makes a program, and returns its path.
        keep_intermediates: no meaning here: objects are kept, for the next time.

    Returns:
        The module; nothing, or a path, as the last arguments say.

    Raises:
        RuntimeError: a source does not compile; the text holds the compiler's messages.
        FileNotFoundError: there is no such source or folder.
        OSError: there is no compiler, no Python.h, or no CUDA toolkit for a source of CUDA.

    Example::

        >>> from vesta.utils.cpp_extension import load
        >>> ours = load("ours", ["ours.cpp"])  # doctest: +SKIP
    """
    _check_name("load", name)
    if extra_sycl_cflags or with_sycl:
        raise NotImplementedError("load: expected no SYCL, which Vesta has no backend for (with_sycl).")
    if not isinstance(sources, (str, os.PathLike, Iterable)):
        raise TypeError(f"load: expected texts, got {type(sources).__name__} (sources).")
    listed = [sources] if isinstance(sources, (str, os.PathLike)) else sources
    paths = [os.path.abspath(source) for source in _words("load", "sources", listed)]
    for path in paths:
        if not os.path.isfile(path):
            raise FileNotFoundError(f"load: expected a source file, found none at {path} (sources).")
    if not paths:
        raise ValueError("load: expected at least one source, got none (sources).")
    folder = Path(os.path.abspath(build_directory)) if build_directory is not None else _default_folder(name)
    if build_directory is None:
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        raise FileNotFoundError(f"load: expected a folder, found none at {folder} (build_directory).")
    cuda = any(map(compiler.is_cuda_source, paths)) if with_cuda is None else with_cuda
    given = {"extra_cflags": extra_cflags, "extra_cuda_cflags": extra_cuda_cflags, "extra_ldflags": extra_ldflags}
    options = [_words("load", argument, value) for argument, value in given.items()]
    key = (str(folder), name)
    target = folder / (name if is_standalone else f"{name}.so")
    with _locked(folder):
        build = _Build(name, folder, _words("load", "extra_include_paths", extra_include_paths), cuda, verbose)
        objects, changed = build.objects(paths, options[0], options[1])
        changed |= build.link(objects, options[2], target, is_standalone, changed)
        if is_standalone:
            return str(target)
        if not is_python_module:
            ctypes.CDLL(str(target), mode=ctypes.RTLD_GLOBAL)
            return None
        if key not in _modules or changed:
            _modules[key] = _import(name, target, again=key in _modules)
    return _modules[key]


_HEAD = "#include <vesta/extension.h>\n"


def _escaped(text: str) -> str:
    """Returns what stands between the quotes of a C++ string: UTF-8, by octal numbers where it is not plain ASCII."""
    plain = [32 <= byte < 127 and byte not in b'"\\' for byte in text.encode()]
    return "".join(chr(byte) if ok else f"\\{byte:03o}" for byte, ok in zip(text.encode(), plain))


def _bindings(functions: str | Sequence[str] | dict[str, str]) -> str:
    """Returns the definition of a module with these functions, and what their docstrings say."""
    if isinstance(functions, str):
        functions = [functions]
    if not isinstance(functions, dict):
        functions = {name: name for name in functions}
    lines = []
    for name, doc in functions.items():
        if not isinstance(name, str) or not name.isidentifier() or not isinstance(doc, str):
            raise ValueError(f"load_inline: expected names of functions and texts, got {name!r}: {doc!r} (functions).")
        lines.append(f'  m.def("{name}", &{name}, "{_escaped(doc)}");\n')
    return f"PYBIND11_MODULE(VESTA_EXTENSION_NAME, m) {{\n{''.join(lines)}}}\n"


@checked
def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: Any = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    build_directory: str | os.PathLike[str] | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
    gil_not_used: bool = False,
) -> Any:
    """Compiles texts of C++ and CUDA into an extension and imports it: ``load`` without files.

    Args:
        name: the module's.
        cpp_sources: texts of C++, put together after ``#include <vesta/extension.h>``.
        cuda_sources: texts of CUDA, put together after ``#include <vesta/core/tensor.h>`` and CUDA's runtime.
        functions: names of functions in ``cpp_sources`` for which bindings are written, or a dict from these names to
            docstrings. None: the sources define the module themselves.
        no_implicit_headers: whether nothing is put before the texts.

    The other arguments are those of ``load``; ``with_pytorch_error_handling``, ``use_pch`` and ``gil_not_used`` change
    nothing: errors are always translated, and an extension is called under the GIL.

    Returns:
        The module.

    Raises:
        RuntimeError: a source does not compile.
        ValueError: a name of a function that is none.

    Example::

        >>> from vesta.utils.cpp_extension import load_inline
        >>> source = "vesta::Tensor twice(const vesta::Tensor& x) { return x + x; }"
        >>> load_inline("twice", source, functions="twice").twice(vesta.ones(2))  # doctest: +SKIP
        tensor([2., 2.])
    """
    _check_name("load_inline", name)
    if sycl_sources or extra_sycl_cflags or with_sycl:
        raise NotImplementedError("load_inline: expected no SYCL, which Vesta has no backend for (with_sycl).")

    cpp, cuda = (
        [given] if isinstance(given, str) else _words("load_inline", argument, given)
        for argument, given in (("cpp_sources", cpp_sources), ("cuda_sources", cuda_sources))
    )
    if functions is not None:
        cpp.append(_bindings(functions))
    if not no_implicit_headers:
        cpp.insert(0, _HEAD)
        cuda.insert(0, "#include <vesta/core/tensor.h>\n#include <cuda_runtime.h>\n")
    folder = Path(os.path.abspath(build_directory)) if build_directory is not None else _default_folder(name)
    if build_directory is None:
        folder.mkdir(parents=True, exist_ok=True)
    elif not folder.is_dir():
        raise FileNotFoundError(f"load_inline: expected a folder, found none at {folder} (build_directory).")
    sources = [_write(folder / "main.cpp", "\n".join(cpp))]
    if cuda_sources:
        sources.append(_write(folder / "cuda.cu", "\n".join(cuda)))
    return load(
        name, sources, extra_cflags, extra_cuda_cflags, None, extra_ldflags, extra_include_paths, str(folder), verbose,
        with_cuda, is_python_module=is_python_module,
    )  # fmt: skip


def _write(path: Path, text: str) -> str:
    """Writes a source, and leaves one that says the same alone: it is not compiled again."""
    with _locked(path.parent):
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    return str(path)
