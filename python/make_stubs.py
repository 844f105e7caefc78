"""Writes the type stubs of the package from the op list: ``python python/make_stubs.py FOLDER``.

``_C.pyi`` has the Tensor class and every function of C++; ``__init__.pyi`` has what ``import vesta`` offers. The build
runs this after the extension, into ``build/python/vesta`` and into the wheel.
"""

from __future__ import annotations

import argparse
import inspect
import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# The sources beside this script are not the package: the package is built, and found by PYTHONPATH or installed.
sys.path = [p for p in sys.path if Path(p).resolve() != Path(__file__).resolve().parent]

import vesta  # noqa: E402
from vesta import _C  # noqa: E402

HEAD = '"""{doc} Written by python/make_stubs.py from the op list; do not edit."""\n\n'
#: The annotation of a parameter by its kind; ``?`` behind a kind is ``| None``.
TYPES = {
    "Tensor": "Tensor",
    "Tensor[]": "Sequence[Tensor]",
    "Tensor?[]": "Sequence[Tensor | None]",
    "int": "builtins.int",
    "int[]": "builtins.int | Sequence[builtins.int]",
    "float": "builtins.float",
    "bool": "builtins.bool",
    "Scalar": "Number",
    "dtype": "dtype",
    "device": "device | str | builtins.int",
    "str": "str",
    "memory_format": "memory_format",
    "Generator": "Generator",
    "any": "Any",
}
#: Modules of functions, and the space of their schemas.
MODULES = {"_ops": "", "_nn": "nn", "_linalg": "linalg", "_fft": "fft", "_special": "special", "_private": "private"}
#: Operators of Tensor and the type of their other operand.
OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
COMPARISONS = "lt le eq ne gt ge".split()


def annotation(parameter: dict[str, Any]) -> str:
    """Returns the annotation of a parameter."""
    kind = parameter["type"]
    text = TYPES[kind.removesuffix("?")] + (" | Number" if parameter["number"] else "")
    return f"{text} | None" if kind.endswith("?") else text


def typed(entry: dict[str, Any], method: bool) -> str:
    """Writes a form's parameter list; a method's first parameter is self."""
    given = entry["parameters"]
    parts = ["self"] if method else []
    if any(keyword.iskeyword(p["name"]) for p in given):  # random_(from, to): by position only
        return ", ".join([*parts, "*args: Any", "**kwargs: Any"])
    starred = False
    for i, p in enumerate(given):
        if method and i == 0:
            continue
        last = all(later["keyword_only"] for later in given[i + 1 :])
        if p["type"] == "int[]" and last and p["name"] in ("size", "dims", "shape"):  # view(2, 3)
            parts.append(f"*{p['name']}: Any")
            starred = True
            continue
        if p["keyword_only"] and not starred:
            parts.append("*")
            starred = True
        default = "..." if (p["default"] or "").startswith("vesta.") else p["default"]
        parts.append(f"{p['name']}: {annotation(p)}" + ("" if default is None else f" = {default}"))
    extra = ["out: Any = None"] if entry["out"] and not method else []
    if entry["factory"]:
        extra += ["requires_grad: builtins.bool = False", "pin_memory: builtins.bool = False", "layout: Any = None"]
    return ", ".join(parts + (["*"] if extra and not starred else []) + extra)


def result(entry: dict[str, Any]) -> str:
    """Returns the annotation of a form's result."""
    return re.sub(r"\bbool\b", "builtins.bool", entry["returns"])


def def_lines(name: str, forms: list[tuple[str, str]]) -> Iterator[str]:
    """Writes the forms of a function, (parameters, result), as overloads if there are several."""
    forms = list(dict.fromkeys(forms))
    for shown, returned in forms:
        if len(forms) > 1:
            yield "@overload"
        yield f"def {name}({shown}) -> {returned}: ..."


class Registry:
    """The forms of the op list, by the names of functions and of methods."""

    def __init__(self) -> None:
        self.functions: dict[str, dict[str, list[tuple[str, str]]]] = {space: {} for space in MODULES.values()}
        self.methods: dict[str, list[tuple[str, str]]] = {}
        for entry in _C._registry():
            for name in (entry["name"], *entry["aliases"]):
                self.add(entry, name)

    def add(self, entry: dict[str, Any], name: str) -> None:
        """Adds a form under a name: the function, the method and the in-place method that it has."""
        space = self.functions[entry["space"]]
        if entry["function"]:
            space.setdefault(name, []).append((typed(entry, False), result(entry)))
        if entry["method"]:
            self.methods.setdefault(name, []).append((typed(entry, True), result(entry)))
        if entry["inplace"] and not entry["method"]:
            space.setdefault(f"{name}_", []).append((typed(entry, False), "Tensor"))
        elif entry["inplace"]:
            self.methods.setdefault(f"{name}_", []).append((typed(entry, True), "Tensor"))


def by_hand(name: str, value: Any, method: bool) -> str:
    """Writes a function or method that is not an op, from its own signature."""
    try:
        names = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return f"def {name}({'self, ' if method else ''}*args: Any, **kwargs: Any) -> Any: ..."
    parts = []
    for p in names[1:] if method else names:
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and "*" not in parts and not any(part.startswith("*") for part in parts):
            parts.append("*")
        default = " = ..." if p.default is not p.empty else ""
        parts.append(f"{star}{p.name}: Any{default}")
    return f"def {name}({', '.join((['self'] if method else []) + parts)}) -> Any: ..."


def tensor_lines() -> Iterator[str]:
    """Writes the body of class Tensor."""
    registry = Registry()
    yield "def __init__(self, *args: Any) -> None: ..."
    for op in OPERATORS:
        for form in ("", "r", "i"):
            yield f"def __{form}{op}__(self, other: Any) -> Tensor: ..."
    for op in COMPARISONS:
        note = "  # type: ignore[override]" if op in ("eq", "ne") else ""
        yield f"def __{op}__(self, other: Any) -> Tensor: ...{note}"
    yield "def __matmul__(self, other: Tensor) -> Tensor: ..."
    for op in ("neg", "pos", "abs", "invert"):
        yield f"def __{op}__(self) -> Tensor: ..."
    for op, kind in {
        "bool": "bool",
        "int": "int",
        "float": "float",
        "index": "int",
        "len": "int",
        "hash": "int",
    }.items():
        yield f"def __{op}__(self) -> {'builtins.' + kind}: ..."
    yield "def __getitem__(self, key: Any) -> Tensor: ..."
    yield "def __setitem__(self, key: Any, value: Any) -> None: ..."
    yield "def __iter__(self) -> Iterator[Tensor]: ..."
    yield "def __contains__(self, value: Any) -> builtins.bool: ..."
    for name, value in sorted(vars(vesta.Tensor).items()):
        if name.startswith("__") or keyword.iskeyword(name):
            continue
        if inspect.isgetsetdescriptor(value) or isinstance(value, property):
            yield "@property"
            yield f"def {name}(self) -> Any: ..."
            if name in ("grad", "data", "requires_grad"):
                yield f"@{name}.setter"
                yield f"def {name}(self, value: Any) -> None: ..."
        elif name in registry.methods:
            yield from def_lines(name, registry.methods[name])
        elif callable(value) or isinstance(value, staticmethod):
            yield by_hand(name, value, not isinstance(value, staticmethod))


def values() -> Iterator[str]:
    """Writes the small types and constants."""
    yield "Number = Union[builtins.bool, builtins.int, builtins.float, complex]"
    for name in ("dtype", "layout", "memory_format"):
        yield f"class {name}: ..."
    yield "class device:\n    type: str\n    index: builtins.int | None"
    yield "    def __init__(self, type: Any, index: Any = ...) -> None: ..."
    yield "class Size(tuple[builtins.int, ...]):\n    def numel(self) -> builtins.int: ..."
    yield "class Generator:\n    def __init__(self, device: Any = ...) -> None: ..."
    for name in ("manual_seed", "seed", "initial_seed", "get_state", "set_state"):
        yield f"    def {name}(self, *args: Any) -> Any: ..."
    yield "class Node:\n    def __getattr__(self, name: str) -> Any: ..."
    for name, value in sorted(vars(_C).items()):
        if isinstance(value, type) and issubclass(value, Exception):
            yield f"class {name}({', '.join(base.__name__ for base in value.__bases__)}): ..."
        elif type(value) in (_C.dtype, _C.layout, _C.memory_format, _C.Generator):
            yield f"{name}: {type(value).__name__}"


def wrapped(text: str) -> str:
    """Breaks definitions of more than 120 columns: one parameter per line."""
    lines = []
    for line in text.splitlines():
        match = re.fullmatch(r"( *)(def \w+\()(.*)(\) -> .*)", line)
        if len(line) <= 120 or not match:
            lines.append(line)
            continue
        indent, head, parameters, tail = match.groups()
        lines.append(indent + head)
        lines += [f"{indent}    {part}," for part in re.split(r", (?![^\[]*\])", parameters)]
        lines.append(indent + tail)
    return "\n".join(lines) + "\n"


def extension() -> str:
    """Writes _C.pyi."""
    registry = Registry()
    lines = ["import builtins", "from collections.abc import Iterator, Sequence"]
    lines += ["from typing import Any, Union, overload", ""]
    lines += values()
    lines += ["class Tensor:"] + ["    " + line.replace("\n", "\n    ") for line in tensor_lines()]
    for name, value in sorted(vars(_C).items()):
        if callable(value) and not isinstance(value, type) and name not in registry.functions["private"]:
            lines.append(by_hand(name, value, False))
    for name, forms in sorted(registry.functions["private"].items()):
        if name.startswith("_"):
            lines += def_lines(name, forms)
    for module, space in MODULES.items():
        lines.append(f"class {module}:")
        for name, forms in sorted(registry.functions[space].items()):
            for line in def_lines(name, forms):
                lines += (["    @staticmethod"] if line.startswith("def") else []) + ["    " + line]
        lines.append("    ...")
    return HEAD.format(doc="The C++ side of vesta.") + wrapped("\n".join(lines))


def package() -> str:
    """Writes __init__.pyi."""
    registry = Registry()
    lines = ["import builtins", "from collections.abc import Sequence", "from typing import Any, overload", ""]
    for name, home in sorted(vesta._LAZY.items()):  # what is imported when it is first asked for
        if not name.startswith("_"):
            lines.append(f"from {home or '.'} import {name} as {name}")
    lines += ["from ._C import Number as Number", "newaxis: None"]
    for name, value in sorted(vars(vesta).items()):
        if name.startswith("_") or inspect.ismodule(value) or name in (*vesta._LAZY, "newaxis"):
            continue
        if isinstance(value, float):
            lines.append(f"{name}: builtins.float")
            continue
        if getattr(_C, name, None) is value:
            lines.append(f"from ._C import {name} as {name}")
        elif getattr(value, "__module__", "") == "vesta._functions":
            lines.append(f"from ._functions import {value.__name__} as {name}")
        elif name in registry.functions[""]:
            lines += def_lines(name, registry.functions[""][name])
    lines.append("__version__: str")
    return HEAD.format(doc="What `import vesta` offers.") + wrapped("\n".join(lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the package")
    folder = parser.parse_args().folder
    for name, text in (("_C.pyi", extension()), ("__init__.pyi", package())):
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
