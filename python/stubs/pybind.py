"""Stubs of the modules that pybind11 binds, from the signatures that it writes into docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

HEAD = """import collections.abc
import datetime
import typing
from collections.abc import Callable
from typing import Any, overload

from typing_extensions import Buffer

from vesta import Tensor, device, dtype

from . import _distributed
"""
#: How pybind11 writes a type, and what is meant.
WORDS = (
    (r"typing\.SupportsInt \| typing\.SupportsIndex", "int"),
    (r"typing\.SupportsFloat \| typing\.SupportsIndex", "float"),
    (r"\b(object|handle)\b(?!:)", "Any"),
    (r"((?:\w+::)*)(\b[A-Z]\w+) = None", r"\2 | None = None"),
    (r"typing_extensions\.Buffer", "Buffer"),
    (r"collections\.abc\.Callable(?!\[)", "Callable[..., Any]"),
    (r"\b(list|tuple|dict)\b(?!\[)", {"list": "list[Any]", "tuple": "tuple[Any, ...]", "dict": "dict[Any, Any]"}),
    (r": str(?=[,) ])", ": str | bytes"),  # a std::string takes both
    (r"\*(args|kwargs)(?!:)", r"*\1: Any"),
    (r" = (datetime\.timedelta\([^)]*\)|<[^>]*>)", " = ..."),
)


def signatures(name: str, doc: str, module: str, method: bool) -> Iterator[str]:
    """Returns the parameters and the result of each form that a docstring shows."""
    for line in doc.splitlines():
        match = re.fullmatch(rf"(?:\d+\. )?{re.escape(name)}(\(.*\) -> .*)", line.strip())
        if not match:
            continue
        text = match[1]
        for pattern, meant in WORDS:
            text = re.sub(pattern, (lambda m, meant=meant: meant[m[0]]) if isinstance(meant, dict) else meant, text)
        text = text.replace("vesta.distributed.", "vesta._C._distributed.")  # the home that its classes name
        text = re.sub(rf"\bvesta\._C\.{module}\.", "", text).replace("vesta._C.", "")
        yield re.sub(r"\((self|arg0): [\w.]+", "(self", text, count=1) if method else text


def definition(name: str, value: Any, module: str, method: bool) -> Iterator[str]:
    """Writes a function or method with its overloads."""
    forms = list(signatures(name, value.__doc__ or "", module, method))
    if not forms:
        result = "None" if name == "__init__" else "Any"
        forms = [f"({'self, ' * method}*args: Any, **kwargs: Any) -> {result}"]
    for form in forms:
        if len(forms) > 1:
            yield "@overload"
        yield f"def {name}{form}: ..."


def class_lines(name: str, cls: type, module: str) -> Iterator[str]:
    """Writes a class: its methods, properties and the values of an enumeration."""
    bases = [base.__name__ for base in cls.__bases__ if base.__module__ == cls.__module__]
    yield f"class {name}({', '.join(bases)}):" if bases else f"class {name}:"
    for member, value in vars(cls).items():
        kept = not member.startswith("__") or member in ("__init__", "__enter__", "__exit__", "__len__", "__getitem__")
        if member.startswith("_pybind11") or not kept:
            continue
        if value is cls:  # another name of it
            yield f"    {member}: type[{name}]"
        elif isinstance(value, cls):
            yield f"    {member}: {name}"
        elif isinstance(value, property):
            result = next(signatures("", (value.fget.__doc__ or "").strip(), module, True), "(self) -> Any")
            yield "    @property"
            yield f"    def {member}{result}: ..."
            if value.fset is not None:
                yield f"    @{member}.setter"
                yield f"    def {member}(self, value: {result.rsplit('-> ', 1)[1]}) -> None: ..."
        elif callable(value) and not isinstance(value, type):
            static = isinstance(value, staticmethod)
            for line in definition(member, value, module, not static):
                if static and line.startswith("def"):
                    yield "    @staticmethod"
                yield f"    {line}"
    yield "    ..."


def module_lines(module: ModuleType) -> str:
    """Returns the stub of a module."""
    own = module.__name__.rsplit(".", 1)[-1]
    lines = [HEAD]
    for name, value in vars(module).items():
        if name.startswith("__"):
            continue
        if isinstance(value, type):
            lines += class_lines(name, value, own)
        elif callable(value):
            lines += definition(name, value, own, False)
        elif not isinstance(value, ModuleType):
            lines.append(f"{name}: {type(value).__name__}")
    return "\n".join(lines) + "\n"
