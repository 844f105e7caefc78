"""Writes the type stubs of the package from the op list: ``python python/make_stubs.py FOLDER``.

``_C/`` has the extension: the Tensor class, what is bound by hand (types in ``stubs/extension.pyi``), and a stub for
each space of ops; ``__init__.pyi`` has what ``import vesta`` offers. Everything else is typed where it is written. The
build runs this after the extension, into ``build/python/vesta`` and into the wheel.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

# The sources beside this script are not the package: the package is built, and found by PYTHONPATH or installed.
HERE = Path(__file__).resolve().parent
sys.path = [str(HERE / "stubs"), *(p for p in sys.path if Path(p).resolve() != HERE)]

import vesta  # noqa: E402
from forms import Form, definitions, forms_of  # noqa: E402
from pybind import module_lines  # noqa: E402
from vesta import _C  # noqa: E402
from vesta.storage import CLASSES  # noqa: E402

HEAD = '"""{doc} Written by python/make_stubs.py from the op list; do not edit."""\n\n'
#: Modules of ops, and the space of their schemas.
SPACES = {"_ops": "", "_nn": "nn", "_linalg": "linalg", "_fft": "fft", "_special": "special", "_private": "private"}
#: Modules that pybind11 binds, when they are first asked for.
BOUND = ("_ddp", "_distributed", "_shared", "cpp_nn")
#: Stubs of the names that these modules take from the op list; their sources import them for type checkers.
DYNAMIC = {
    "_names_of_fft": "vesta.fft",
    "_names_of_functional": "vesta.nn.functional",
    "_names_of_linalg": "vesta.linalg",
    "_names_of_special": "vesta.special",
}
#: Operators of Tensor whose other operand may be a number, with their reversed and in-place forms.
OPERATORS = "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()
COMPARISONS = "lt le gt ge".split()
#: Names that a stub may not use for builtins, because a member or a constant has them, and what stands for them.
HIDDEN = {name: f"_{name}" for name in ("bool", "complex", "float", "int", "type", "device", "dtype", "layout")}
ALIASES = "bool as _bool, complex as _complex, float as _float, int as _int, type as _type"
TYPING = "from typing import Any, Literal, overload\n\nfrom typing_extensions import Self, deprecated\n"


class Registry:
    """The forms of the op list, by the names of functions and of methods."""

    def __init__(self) -> None:
        self.functions: dict[str, dict[str, list[Form]]] = {space: {} for space in SPACES.values()}
        self.methods: dict[str, list[Form]] = {}
        for entry in _C._registry():
            for name in (entry["name"], *entry["aliases"]):
                self.add(entry, name)

    def add(self, entry: dict[str, Any], name: str) -> None:
        """Adds a form under a name: the function, the method and the in-place method that it has."""
        space = self.functions[entry["space"]]
        own = name.endswith("_") and not name.endswith("__")  # an op that only writes into its argument: addmv_
        if entry["function"] or own:  # a method like clamp_ may be offered as a function too
            space.setdefault(name, []).extend(forms_of(entry, False))
        if entry["method"]:
            self.methods.setdefault(name, []).extend(forms_of(entry, True, own))
        if entry["inplace"]:
            plain = {**entry, "out": False, "fields": []}
            space.setdefault(f"{name}_", []).extend(forms_of(plain, False))
            if entry["method"]:
                self.methods.setdefault(f"{name}_", []).extend(forms_of(plain, True, True))


class _Visible(ast.NodeTransformer):
    """Replaces names that something else has taken."""

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(HIDDEN.get(node.id, node.id), node.ctx)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in ("_C", "vesta"):
            return self.visit(ast.Name(node.attr, node.ctx))
        return node


def visible(annotation: str) -> str:
    """Rewrites an annotation of a Python source for a place where ``int``, ``device`` and others are something else."""
    return ast.unparse(_Visible().visit(ast.parse(annotation, mode="eval")))


def meant(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function of this name in place of a method that hands all its arguments on to it."""
    kinds = {p.kind for p in inspect.signature(method).parameters.values()}
    hands_on = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= kinds
    function = getattr(vesta, name, None) if hands_on else None
    return function if inspect.isfunction(function) else method


def by_signature(name: str, function: Callable[..., Any]) -> str:
    """Writes a method that is written in Python, from its annotations."""
    signature = inspect.signature(function)
    parts, starred = ["self"], False
    for p in list(signature.parameters.values())[1:]:
        stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        default = "" if p.default is p.empty else f" = {p.default!r}".replace("'", '"')
        parts.append(f"{stars}{p.name}: {visible(p.annotation)}{default}")
    return f"def {name}({', '.join(parts)}) -> {visible(signature.return_annotation)}: ..."


def members(body: list[ast.stmt], source: list[str]) -> dict[str, list[str]]:
    """Returns the lines of each name that a body of statements defines, its overloads and setters together."""
    found: dict[str, list[str]] = {}
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            found.setdefault(node.name, []).extend(source[first - 1 : node.end_lineno])
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, []).extend(source[node.lineno - 1 : node.end_lineno])
    return found


def expect_same(what: str, written: set[str], there: set[str]) -> None:
    """Raises unless exactly what is there is written down."""
    if written != there:
        raise SystemExit(
            f"stubs/extension.pyi: expected a type for each {what}; missing: {sorted(there - written)}, "
            f"not in the extension: {sorted(written - there)}."
        )


class Extension:
    """The stub of ``vesta._C``: what is bound by hand, the methods of ops, the methods written in Python."""

    def __init__(self) -> None:
        text = (HERE / "stubs" / "extension.pyi").read_text(encoding="utf-8")
        self.source = text.splitlines()
        self.body = ast.parse(text).body[1:]  # without the docstring
        self.registry = Registry()
        self.tensor = next(node for node in self.body if isinstance(node, ast.ClassDef) and node.name == "Tensor")

    def text(self) -> str:
        """Returns the whole stub."""
        first = self.body[0].lineno - 1
        lines = [*self.source[first : self.tensor.lineno - 1], "class Tensor:"]
        lines += ["    " + line for line in self.methods()]
        lines += self.source[self.tensor.end_lineno :]
        lines += self.values()
        for name, forms in sorted(self.registry.functions["private"].items()):
            if hasattr(_C, name):
                lines += definitions(name, forms)
        self.check_names()
        return HEAD.format(doc="The C++ side of vesta.") + wrapped("\n".join(lines))

    def methods(self) -> Iterator[str]:
        """Writes the body of class Tensor."""
        by_hand = members(self.tensor.body, self.source)
        for lines in by_hand.values():
            yield from (line.removeprefix("    ") for line in lines)
        for op in OPERATORS:
            yield f"def __{op}__(self, value: Operand, /) -> Tensor: ..."
            yield f"def __r{op}__(self, value: Operand, /) -> Tensor: ..."
            yield f"def __i{op}__(self, value: Operand, /) -> Self: ..."
        for op in COMPARISONS:
            yield f"def __{op}__(self, value: Operand, /) -> Tensor: ..."
        for op in ("matmul", "rmatmul"):
            yield f"def __{op}__(self, value: Tensor | Array, /) -> Tensor: ..."
        for op in ("neg", "pos", "abs", "invert"):
            yield f"def __{op}__(self) -> Tensor: ..."
        python = set()
        for name, value in sorted(vars(vesta.Tensor).items()):
            if name in by_hand or name in self.registry.methods or keyword.iskeyword(name):
                continue
            if isinstance(value, property) and value.fget is not None:
                yield "@property"
                yield by_signature(name, value.fget)
            elif inspect.isfunction(value) and name not in ("__rdiv__", "__reduce_ex__"):
                yield by_signature(name, meant(name, value))
            else:
                continue
            python.add(name)
        for name, forms in sorted(self.registry.methods.items()):
            if name not in by_hand:
                yield from definitions(name, forms, method=True)
        there = {name for name in vars(vesta.Tensor) if not keyword.iskeyword(name)}
        public = {name for name in there if not name.startswith("__")}
        covered = set(by_hand) | set(self.registry.methods) | python
        expect_same("member of Tensor", covered & public | {n for n in by_hand if not hasattr(vesta.Tensor, n)}, public)

    def values(self) -> Iterator[str]:
        """Writes the constants and the classes of errors."""
        errors = [v for v in vars(_C).values() if isinstance(v, type) and issubclass(v, Exception)]
        for error in sorted(errors, key=lambda e: (len(e.__mro__), e.__name__)):
            names = {e: n for n, e in vars(_C).items() if isinstance(e, type)}
            yield f"class {names[error]}({', '.join(names.get(b, b.__name__) for b in error.__bases__)}): ..."
        for name, value in sorted(vars(_C).items()):
            if type(value) in (_C.dtype, _C.layout, _C.memory_format, _C.Generator):
                yield f"{name}: {HIDDEN.get(type(value).__name__, type(value).__name__)}"

    def check_names(self) -> None:
        """Raises if something that is bound by hand has no type, or the other way round."""
        types_only = {"_HookHandle"}
        written = {name for name in members(self.body, self.source) if not name.startswith("_") or hasattr(_C, name)}
        written |= {n.name for n in self.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))} - types_only
        ops = set(self.registry.functions["private"])
        there = {
            name
            for name, value in vars(_C).items()
            if callable(value) and name not in ops and not (isinstance(value, type) and issubclass(value, Exception))
        }
        expect_same("function and class", written, there - {"__getattr__", "__loader__", "__spec__"})


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
        lines += [f"{indent}    {part}," for part in re.split(r", (?![^\[(]*[\])])", parameters)]
        lines.append(indent + tail)
    return "\n".join(lines) + "\n"


def pruned(text: str) -> str:
    """Leaves out imports that nothing uses; ``import x as x`` is for others."""
    tree, lines = ast.parse(text), text.splitlines()
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in reversed(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            kept = [a for a in node.names if a.name == a.asname or (a.asname or a.name.split(".")[0]) in used]
            if len(kept) < len(node.names):
                node.names = kept
                lines[node.lineno - 1 : node.end_lineno] = [ast.unparse(node)] if kept else []
    return "\n".join(lines) + "\n"


def space_of_ops(module: str) -> str:
    """Writes the stub of one space of ops."""
    lines = [f"from builtins import {ALIASES}", "from collections.abc import Sequence", TYPING]
    lines += ["from . import Generator, Tensor, _return_types"]
    lines += ["from ._types import Device, DType, Layout, MemoryFormat, Number"]
    offered = {**vars(getattr(_C, module)), **(vars(vesta) if module == "_ops" else {})}
    for name, forms in sorted(Registry().functions[SPACES[module]].items()):
        if name in offered:
            lines += definitions(name, forms)
    return HEAD.format(doc=f"Ops of the space {SPACES[module] or 'vesta'}.") + wrapped("\n".join(lines))


def return_types() -> str:
    """Writes the stub of the named results."""
    lines = ["from typing import NamedTuple\n", "from . import Tensor\n"]
    for name, value in sorted(vars(_C._return_types).items()):
        if isinstance(value, type):
            fields = sorted(
                (f for f in vars(value) if inspect.ismemberdescriptor(vars(value)[f])),
                key=lambda f: value(range(value.n_fields)).__getattribute__(f),
            )
            lines += [f"class {name}(NamedTuple):", *(f"    {field}: Tensor" for field in fields)]
    return HEAD.format(doc="Named results of ops.") + "\n".join(lines) + "\n"


def home_of(name: str, value: Any) -> str:
    """Returns the line that gives a name of the package."""
    if isinstance(value, float):
        return f"{name}: _float"
    if name in vesta._LAZY:
        home = vesta._LAZY[name]
        if (
            Path(vesta.__file__).parent / home.replace(".", "/").strip("/") / f"{name}.py"
        ).is_file() and home:  # vmap of vesta.func.vmap
            home += f".{name}"
        private = "  # pyright: ignore[reportPrivateUsage]  (PyTorch offers it)" if home and name[0] == "_" else ""
        return f"from {home or '.'} import {name} as {name}{private}"
    if name in vars(_C._ops):
        return f"from ._C._ops import {name} as {name}"
    if getattr(_C, name, None) is value:
        return f"from ._C import {name} as {name}"
    return f"from .{value.__module__.removeprefix('vesta.')} import {value.__name__} as {name}"


def package() -> str:
    """Writes __init__.pyi."""
    lines = ["from builtins import float as _float", "from typing import Any as _Any\n"]
    lines += ["from ._C._types import Device as _Device", "from .storage import TypedStorage as _TypedStorage"]
    lines += ["from .tensor_types import TensorType as _TensorType\n"]
    lines += ["__version__: str", "newaxis: None"]
    types = [f"{name}Tensor" for name in vesta._TYPES]
    for name, value in sorted({**vars(vesta), **vesta._LAZY}.items()):
        lazy = name in vesta._LAZY
        if not lazy and name in (*types, "newaxis"):  # they have lines of their own
            continue
        if lazy or not (name.startswith("_") or inspect.ismodule(value)):
            lines.append(home_of(name, value))
    lines += [f"{name}: _TensorType" for name in types]
    lines += [f"from ._older_names import {name} as {name}" for name in vesta._OLDER]
    for name in sorted(CLASSES):
        lines += [f"class {name}(_TypedStorage):"]
        lines += ["    def __init__(self, *args: _Any, device: _Device = ...) -> None: ..."]
    return HEAD.format(doc="What `import vesta` offers.") + "\n".join(lines) + "\n"


def names_of(module: ModuleType) -> str:
    """Writes what a module takes from the op list when it is imported, which its source does not say."""
    lines = ["from . import " + ", ".join(SPACES)]
    by_identity = {id(f): (space, name) for space in SPACES for name, f in vars(getattr(_C, space)).items()}
    by_identity |= {id(getattr(vesta, name)): ("_ops", name) for name in vars(_C._ops) if hasattr(vesta, name)}
    for name in sorted(module.__all__):
        space, own = by_identity.get(id(getattr(module, name)), ("", ""))
        if own == name:
            lines.append(f"from .{space} import {name} as {name}")
        elif own:
            lines.append(f"{name} = {space}.{own}")
    return HEAD.format(doc=f"What `{module.__name__}` takes from the op list.") + "\n".join(lines) + "\n"


def stubs() -> dict[str, str]:
    """Returns every stub: its text by its path in the package."""
    texts = {"__init__.pyi": package(), "_C/__init__.pyi": Extension().text()}
    texts["_C/_types.pyi"] = (HERE / "stubs" / "types.pyi").read_text(encoding="utf-8")
    texts["_C/_return_types.pyi"] = return_types()
    for name, module in DYNAMIC.items():
        texts[f"_C/{name}.pyi"] = names_of(importlib.import_module(module))
    texts |= {f"_C/{module}.pyi": space_of_ops(module) for module in SPACES}
    texts |= {
        f"_C/{module}.pyi": HEAD.format(doc="What pybind11 binds.") + module_lines(getattr(_C, module))
        for module in BOUND
    }
    return {name: pruned(text) for name, text in texts.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the package")
    folder = parser.parse_args().folder
    (folder / "_C").mkdir(exist_ok=True)
    (folder / "_C.pyi").unlink(missing_ok=True)  # of older builds
    for name, text in stubs().items():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
