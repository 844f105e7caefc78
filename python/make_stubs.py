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
#: The Python types of C++ parameters.
TYPES = {
    "Tensor": "Tensor",
    "MaybeTensor": "Tensor | None",
    "IntList": "int | Sequence[int]",
    "MaybeDims": "int | Sequence[int] | None",
    "int64_t": "int",
    "MaybeInt": "int | None",
    "double": "float",
    "bool": "bool",
    "Scalar": "Number",
    "MaybeScalar": "Number | None",
    "MaybeDType": "dtype | None",
    "MaybeDevice": "device | str | int | None",
    "Text": "str",
    "MaybeText": "str | None",
    "TensorList": "Sequence[Tensor]",
    "Generator": "Generator | None",
}
#: Operators of Tensor and the type of their other operand.
OPERATORS = "add sub mul truediv floordiv mod pow and or xor".split()
COMPARISONS = "lt le eq ne gt ge".split()


def typed(parameters: list[tuple[str, str, str | None, bool]], method: bool, varargs: bool) -> str:
    """Writes a parameter list; a method's first parameter is self."""
    parts = ["self"] if method else []
    if any(keyword.iskeyword(name) for name, *_ in parameters):  # random_(from, to): by position only
        return ", ".join([*parts, "*args: Any", "**kwargs: Any"])
    for i, (name, kind, default, number) in enumerate(parameters):
        if method and i == 0:
            continue
        annotation = TYPES[kind] + (" | Number" if number else "")
        if varargs and kind == "IntList" and name in ("size", "dims", "shape"):
            parts.append(f"*{name}: Any")
            varargs = False
            continue
        parts.append(f"{name}: {annotation}" + ("" if default is None else f" = {default}"))
    return ", ".join(parts)


def takes_varargs(parameters: list[tuple[str, str, str | None, bool]]) -> bool:
    """Returns whether a list of sizes may be spread over the positions: view(2, 3)."""
    options = ("MaybeDType", "MaybeDevice", "Generator")
    kinds = [(name, kind) for name, kind, _, _ in parameters if kind not in options]
    return bool(kinds) and kinds[-1][1] == "IntList" and kinds[-1][0] in ("size", "dims", "shape")


def op_lines(name: str, entry: dict[str, Any], method: bool) -> Iterator[str]:
    """Writes an op of the op list, as a function or as a method with its in-place form."""
    parameters = entry["parameters"]
    varargs = takes_varargs(parameters)
    shown = typed(parameters, method, varargs)
    if not method:
        factory = {"dtype", "device"} <= {p[0] for p in parameters}
        extra = (["out: Any = None"] if entry["out"] else []) + (["requires_grad: bool = False"] if factory else [])
        star = [] if "*" in shown else ["*"]
        shown = ", ".join(([shown] if shown else []) + (star + extra if extra else []))
    yield f"def {name}({shown}) -> {entry['returns']}: ..."
    if method and entry["inplace"]:
        yield f"def {name}_({shown}) -> Tensor: ..."


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
    registry = _C._registry()
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
        elif name in registry:
            yield from op_lines(name, registry[name], True)
        elif name.endswith("_") and registry.get(name[:-1], {}).get("inplace"):
            continue  # written beside its op
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
    registry = _C._registry()
    lines = ["import builtins", "from collections.abc import Iterator, Sequence", "from typing import Any, Union", ""]
    lines += values()
    lines += ["class Tensor:"] + ["    " + line.replace("\n", "\n    ") for line in tensor_lines()]
    for name, value in sorted(vars(_C).items()):
        if callable(value) and not isinstance(value, type) and name not in registry:
            lines.append(by_hand(name, value, False))
    lines += ["class _ops:"]
    for name, entry in sorted(registry.items()):
        lines += ["    @staticmethod"] + ["    " + line for line in op_lines(name, entry, False)]
    lines += ["_nn = _ops"]
    return HEAD.format(doc="The C++ side of vesta.") + wrapped("\n".join(lines))


def package() -> str:
    """Writes __init__.pyi."""
    registry = _C._registry()
    lines = ["from collections.abc import Sequence", "from typing import Any", ""]
    lines += ["from . import amp as amp, autograd as autograd, cpu as cpu, cuda as cuda, nn as nn, optim as optim"]
    lines += ["from . import utils as utils"]
    lines += ["from .amp import GradScaler as GradScaler, autocast as autocast"]
    lines += ["from .autograd import enable_grad as enable_grad, inference_mode as inference_mode, no_grad as no_grad"]
    lines += ["from .autograd import set_grad_enabled as set_grad_enabled"]
    lines += ["from ._limits import finfo as finfo, iinfo as iinfo"]
    lines += ["from ._C import Number as Number"]
    for name, value in sorted(vars(vesta).items()):
        if name.startswith("_") or inspect.ismodule(value) or name in vesta._LAZY:
            continue
        if getattr(_C, name, None) is value:
            lines.append(f"from ._C import {name} as {name}")
        elif getattr(value, "__module__", "") == "vesta._functions":
            lines.append(f"from ._functions import {value.__name__} as {name}")
        elif name in registry:
            lines += op_lines(name, registry[name], False)
        elif name in vesta._ALIASES:
            lines.append(f"{name} = {vesta._ALIASES[name]}")
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
