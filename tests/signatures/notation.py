"""The notation of signatures, and the table of PyTorch's that is written in it.

An overload is a line of text, its parameters in their order: ``(Tensor input, int dim, *, dtype? dtype=None) out``.
What stands behind ``*`` is given by keyword only; ``*tensors`` takes any number of arguments. A parameter without a
type takes ``any``; ``int[2]`` is a list of ints or one int for two; ``?`` says that None is taken. Flags stand behind
the bracket: ``out`` (there is a form with ``out=``), ``factory`` (it takes dtype, layout, device, pin_memory and
requires_grad, which are not listed), ``deprecated``.

A name of the table (``max``, ``linalg.det``, ``nn.functional.relu``) has the lists ``function`` and ``method`` of its
overloads; ``"method": true`` says that the overloads of the method are those of the function without ``input``.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable

TABLE = Path(__file__).with_name("torch_signatures.json")

#: Modules whose functions and classes are compared, below the package.
MODULES = (
    "",
    *("accelerator", "amp", "autograd", "autograd.forward_ad", "autograd.functional", "autograd.graph"),
    *("autograd.profiler", "backends.cuda", "cpu", "cuda", "distributed", "distributions", "distributions.constraints"),
    *("distributions.transforms", "fft", "func", "futures", "hub", "library", "linalg", "masked", "multiprocessing"),
    *("nn", "nn.attention", "nn.attention.flex_attention", "nn.functional", "nn.grad", "nn.init", "nn.parallel"),
    *("nn.utils", "nn.utils.parametrizations", "nn.utils.parametrize", "nn.utils.prune", "nn.utils.rnn"),
    *("nn.utils.stateless", "optim", "optim.lr_scheduler", "optim.swa_utils", "overrides", "profiler", "quasirandom"),
    *("random", "serialization", "signal.windows", "sparse", "special", "storage", "testing", "types", "utils"),
    *("utils.benchmark", "utils.checkpoint", "utils.data", "utils.dlpack", "utils.hooks"),
)

#: What the flag ``factory`` stands for.
FACTORY_OPTIONS = frozenset(("dtype", "layout", "device", "pin_memory", "requires_grad"))

FLAGS = ("out", "factory", "deprecated")


@dataclass(frozen=True)
class Parameter:
    """A parameter; ``default`` is Python text, None where the parameter is required."""

    name: str
    type: str = "any"
    default: str | None = None
    keyword_only: bool = False

    @property
    def variadic(self) -> bool:
        """Whether it takes any number of arguments: ``*tensors``, ``**options``."""
        return self.name.startswith("*")

    def __str__(self) -> str:
        declared = self.name if self.type == "any" else f"{self.type} {self.name}"
        return declared if self.default is None else f"{declared}={self.default}"


@dataclass(frozen=True)
class Overload:
    """One way to call a function or a method."""

    parameters: tuple[Parameter, ...]
    out: bool = False
    factory: bool = False
    deprecated: bool = False

    def __str__(self) -> str:
        parts: list[str] = []
        starred = False
        for parameter in self.parameters:
            if parameter.keyword_only and not starred and not parameter.variadic:
                parts.append("*")
                starred = True
            parts.append(str(parameter))
            starred = starred or parameter.variadic
        return " ".join([f"({', '.join(parts)})", *(flag for flag in FLAGS if getattr(self, flag))])

    @property
    def says_something(self) -> bool:
        """Whether it is not that of a function that hands on whatever it gets."""
        names = [p.name for p in self.parameters]
        return "**kwargs" not in names or any(not p.variadic for p in self.parameters)

    def as_method(self) -> Overload:
        """Returns the form that a method of ``input`` has: without ``input``, and without ``out``."""
        rest = tuple(parameter for parameter in self.parameters if parameter.name != "input")
        return replace(self, parameters=rest, out=False)


@dataclass(frozen=True)
class Forms:
    """The overloads of a public name, as a function and as a method; none where it is not one."""

    function: tuple[Overload, ...] = ()
    method: tuple[Overload, ...] = ()


# ---- reading and writing ----


def split_parameters(text: str) -> Iterator[str]:
    """Yields the parts of ``text`` between commas, apart from commas inside brackets and quotes."""
    depth, quote, start = 0, "", 0
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[i - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character == "," and depth == 0:
            yield text[start:i].strip()
            start = i + 1
        else:
            depth += (character in "([{<") - (character in ")]}>")
    if text[start:].strip():
        yield text[start:].strip()


def parse_parameter(text: str, keyword_only: bool = False) -> Parameter:
    """Reads ``int dim=0``."""
    declared, equals, default = text.partition("=")
    kind, _, name = declared.strip().rpartition(" ")
    return Parameter(name, kind or "any", default if equals else None, keyword_only)


def parse_overload(text: str) -> Overload:
    """Reads a line of the notation; the inverse of ``str``."""
    inside, _, flags = text.rpartition(")")
    parameters: list[Parameter] = []
    keyword_only = False
    for part in split_parameters(inside[1:]):
        if part != "*":
            parameters.append(parse_parameter(part, keyword_only or part.startswith("**")))
        keyword_only = keyword_only or part.startswith("*")
    return Overload(tuple(parameters), **dict.fromkeys(flags.split(), True))


def methods_of(functions: Iterable[Overload]) -> tuple[Overload, ...]:
    """Returns the method forms that forms of a function have, each once."""
    return tuple(dict.fromkeys(overload.as_method() for overload in functions))


def read_others(path: Path = TABLE) -> set[str]:
    """Reads the public names of the table that have no signature."""
    return {
        f"{module}.{name}".lstrip(".")
        for module, names in json.loads(path.read_text())["others"].items()
        for name in names
    }


def read_table(path: Path = TABLE) -> dict[str, Forms]:
    """Reads the table: a public name, as ``max`` or ``linalg.det``, and its forms."""
    table: dict[str, Forms] = {}
    for name, entry in json.loads(path.read_text())["names"].items():
        function = tuple(parse_overload(text) for text in entry.get("function", ()))
        method = entry.get("method", ())
        parsed = methods_of(function) if method is True else tuple(parse_overload(text) for text in method)
        table[name] = Forms(function, parsed)
    return table


def write_table(table: dict[str, Forms], others: dict[str, list[str]], version: str, path: Path) -> None:
    """Writes the table, one name a line, and the names without signature, one module a line."""
    lines = []
    for name, forms in sorted(table.items()):
        entry: dict[str, Any] = {}
        if forms.function:
            entry["function"] = [str(overload) for overload in forms.function]
        if forms.method:
            same = set(forms.method) == set(methods_of(forms.function))
            entry["method"] = same or [str(overload) for overload in forms.method]
        lines.append(f"{json.dumps(name)}: {json.dumps(entry)}")
    rest = [f"{json.dumps(module)}: {json.dumps(sorted(names))}" for module, names in sorted(others.items()) if names]
    parts = (
        f'{{"torch": {json.dumps(version)}, "names": {{',
        ",\n".join(lines),
        '}, "others": {',
        ",\n".join(rest),
        "}}",
    )
    path.write_text("\n".join(parts) + "\n")


# ---- public names ----


def surface(module: Any) -> dict[str, Any]:
    """Returns the public names of a module and what they are, but for what it imports from other packages."""
    package = module.__name__.partition(".")[0]
    names = {name: getattr(module, name, None) for name in dir(module) if not name.startswith("_")}
    return {name: value for name, value in names.items() if _is_of(package, value)}


def _is_of(package: str, value: Any) -> bool:
    """Whether something is defined in a package; numbers and the like are."""
    home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
    named = inspect.ismodule(value) or callable(value) or type(value).__module__ in ("typing", "__future__")
    return not (named and isinstance(home, str)) or home.partition(".")[0] == package


# ---- functions written in Python ----

_ANNOTATIONS = {
    "Tensor": "Tensor",
    "torch.Tensor": "Tensor",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "Number": "Scalar",
    "DType": "dtype",
    "torch.dtype": "dtype",
}


def type_of_annotation(text: str) -> str:
    """Returns the notation's type for an annotation, ``any`` where it has none."""
    text = text.strip("'\" ")
    optional = re.fullmatch(r"Optional\[(.*)\]|(.*) \| None", text)
    if optional:
        inner = type_of_annotation(optional[1] or optional[2])
        return inner if inner == "any" else f"{inner}?"
    several = re.fullmatch(r"(?:list|List|BroadcastingList(\d))\[(\w+)\]", text)
    if several and several[2] in _ANNOTATIONS:
        return f"{_ANNOTATIONS[several[2]]}[{several[1] or ''}]"
    return _ANNOTATIONS.get(text, "any")


def annotations_of(function: Callable[..., Any]) -> dict[str, str]:
    """Returns the annotations of a function's parameters as its source writes them."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    if not isinstance(tree, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return {}
    arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    return {a.arg: ast.unparse(a.annotation) for a in arguments if a.annotation is not None}


def text_of_default(value: Any) -> str | None:
    """Returns Python text for a default."""
    if value is inspect.Parameter.empty:
        return None
    named = callable(value) or inspect.ismodule(value)
    if named and hasattr(value, "__name__"):
        return f"<{value.__name__}>"
    if hasattr(type(value), "__members__"):  # an enumeration
        return f"<{value.name}>"
    if isinstance(value, tuple):
        return repr(tuple(value))
    text = repr(value)
    if text.startswith(f"{type(value).__name__}."):  # an enumeration of another kind
        return f"<{text.rpartition('.')[2]}>"
    return f"<{type(value).__name__}>" if " at 0x" in text else text


def overload_of_function(function: Callable[..., Any], method: bool = False) -> Overload:
    """Returns the signature of a function written in Python; parameters with an underscore in front are left out.

    Args:
        method: leaves out ``self`` too.
    """
    deprecated = hasattr(function, "__deprecated__")
    function = inspect.unwrap(function)
    annotations = annotations_of(function)
    parameters: list[Parameter] = []
    out = False
    for i, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        out = out or name == "out"
        if name.startswith("_") or (method and i == 0) or (name == "out" and parameter.kind is parameter.KEYWORD_ONLY):
            continue
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        keyword_only = parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        kind = "any" if stars else type_of_annotation(annotations.get(name, ""))
        parameters.append(Parameter(stars + name, kind, text_of_default(parameter.default), keyword_only))
    factory = {p.name for p in parameters if p.keyword_only} >= FACTORY_OPTIONS
    kept = tuple(p for p in parameters if not (factory and p.name in FACTORY_OPTIONS))
    return Overload(kept, out, factory, deprecated)


def overloads_of_class(kind: type) -> tuple[Overload, ...]:
    """Returns the signatures of a class's constructor: those of its ``overload``, or the one that it has.

    None where it is not written in Python, or only hands on what it gets.
    """
    for name in ("__new__", "__init__"):
        owner = next(parent for parent in kind.__mro__ if name in vars(parent))
        made = vars(owner)[name]
        made = getattr(made, "__func__", made)  # __new__ is a static method
        if inspect.isfunction(made):
            declared = getattr(typing, "get_overloads", lambda _: [])(made)  # Python 3.11
            forms = [overload_of_function(f, method=True) for f in declared or (made,)]
            forms = [form for form in forms if form.says_something]
            if forms:
                return tuple(forms)
    return (Overload(()),) if kind.__init__ is object.__init__ and kind.__new__ is object.__new__ else ()
