"""Python code of a graph."""

from __future__ import annotations

import builtins
import cmath
import dataclasses
import enum
import keyword
import math
import operator
import re
import sys
import types
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Union

import vesta

from .node import Node, _type_name, linked

if TYPE_CHECKING:
    from .graph import Graph

__all__ = ["Namespace", "PythonCode", "qualified_name", "write"]

#: Operators between two values, and before one, by the names of ``operator``.
INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "matmul": "@",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "gt": ">",
    "le": "<=",
    "ge": ">=",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}
PREFIX = {"pos": "+", "neg": "-", "invert": "~"}
_IN_PLACE = {
    "iadd": "+=",
    "isub": "-=",
    "imul": "*=",
    "imatmul": "@=",
    "itruediv": "/=",
    "ifloordiv": "//=",
    "imod": "%=",
    "ipow": "**=",
    "iand": "&=",
    "ior": "|=",
    "ixor": "^=",
    "ilshift": "<<=",
    "irshift": ">>=",
}
_NUMBERED = re.compile(r"(.*?)(?:_(\d+))?$", re.DOTALL)


class Namespace:
    """Names that are taken; gives each object one of its own."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._of: dict[int, tuple[Any, str]] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        """Returns the name of ``obj``: the candidate, with a number where it is taken."""
        known = self._of.get(id(obj))
        if obj is not None and known is not None:
            return known[1]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, _, number = _NUMBERED.match(candidate).group(1), None, _NUMBERED.match(candidate).group(2)  # type: ignore
        count = int(number or 0)
        while candidate in self._used or self._illegal(candidate, obj):
            count += 1
            candidate = f"{base}_{count}"
        self._used.add(candidate)
        if obj is not None:
            self._of[id(obj)] = (obj, candidate)
        return candidate

    def _illegal(self, name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if hasattr(builtins, name):
            return getattr(builtins, name) is not obj
        return name in ("torch", "device", "inf", "nan", "NoneType") and not isinstance(obj, _Builtin)


class _Builtin:
    """The mark of a name that is what it says in every code."""


@dataclasses.dataclass
class PythonCode:
    """Code of a graph.

    Attributes:
        src: the text of the function ``forward``.
        globals: the names that it needs.
    """

    src: str
    globals: dict[str, Any]


def snake_case(name: str) -> str:
    """Returns ``LikeThis`` as ``like_this``."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def name_of_target(target: Any) -> str:
    """Returns what a node is called after."""
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    return snake_case(name)


def _at(path: str) -> Any:
    """Returns the object of a dotted name; None if there is none."""
    module, _, rest = path.partition(".")
    found: Any = vesta if module == "torch" else sys.modules.get(module)
    for part in rest.split(".") if rest else ():
        found = getattr(found, part, None)
    return found


def qualified_name(func: Callable[..., Any]) -> str:
    """Returns the dotted name at which a function is found; its module and name where it is found nowhere."""
    name = getattr(func, "__qualname__", getattr(func, "__name__", type(func).__name__))
    module = getattr(func, "__module__", None) or ""
    module = {"_operator": "operator"}.get(module, module)
    own = f"{module}.{name}"
    places = [f"{place}.{name}" for place in ("torch", "torch.nn.functional", "torch.linalg", "math")]
    is_private = any(part.startswith("_") for part in module.split("."))
    for path in (*places, own) if is_private else (own, *places):
        if _at(path) is func:
            return path
    return own


class _Writer:
    """Writes the code of one graph."""

    def __init__(self, graph: Graph, root: str, is_wrapped: Callable[[Any], bool]) -> None:
        self.graph, self.root, self.is_wrapped = graph, root, is_wrapped
        self.globals: dict[str, Any] = {}
        self.wrapped: list[str] = []
        self.names = Namespace()
        for name, value in (("inf", math.inf), ("nan", math.nan), ("NoneType", type(None)), ("torch", vesta)):
            self.names.create_name(name, _Builtin())
            self.globals[name] = value
        self.globals["device"] = vesta.device
        for node in linked(graph._root):
            self.names.create_name(node.name, node)

    def name(self, node: Node) -> str:
        return self.names.create_name(node.name, node)

    def global_of(self, hint: str, value: Any) -> str:
        """Returns what the code calls an object that it needs from outside."""
        builtin = hint.removeprefix("builtins.")
        if getattr(builtins, builtin, self) is value:
            return builtin
        if hint.startswith("torch.") and _at(hint) is value:
            return hint
        name = self.names.create_name(hint.replace(".", "_"), value)
        self.globals[name] = value
        return name

    def type_of(self, kind: Any) -> str:
        if kind is None:
            return ""
        return f" : {self.type_text(kind)}"

    def type_text(self, kind: Any) -> str:
        """Returns a type as the code writes it; those of ``typing`` with their arguments."""
        if kind is type(None):
            return "NoneType"
        if kind == () or kind is ...:
            return "()" if kind == () else "..."
        origin, parts = getattr(kind, "__origin__", None), getattr(kind, "__args__", None)
        if isinstance(kind, types.UnionType):
            origin, parts = Union, kind.__args__
        if origin is None or parts is None:
            return self.global_of(_type_name(kind), kind)
        if not isinstance(origin, type):
            name = self.global_of(repr(origin), origin)
        elif getattr(kind, "__module__", "") == "typing" and getattr(kind, "_name", None):
            name = self.global_of(f"typing.{kind._name}", getattr(typing, kind._name))
        else:
            name = self.global_of(_type_name(origin), origin)
        return f"{name}[{','.join(map(self.type_text, parts)) or '()'}]"

    def value(self, a: Any) -> str:
        """Returns an argument as an expression."""
        if isinstance(a, Node):
            return self.name(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return f"{self.global_of(type(a).__name__, type(a))}({', '.join(map(self.value, a))})"
        if isinstance(a, vesta.Size):
            return f"torch.Size([{', '.join(map(self.value, a))}])"
        if isinstance(a, tuple):
            return f"({', '.join(map(self.value, a))}{',' if len(a) == 1 else ''})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.value, a))}]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{key!r}: {self.value(item)}" for key, item in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({', '.join(self.value(part) for part in (a.start, a.stop, a.step))})"
        if isinstance(a, enum.Enum):
            return f"{self.global_of(type(a).__name__, type(a))}.{a.name}"
        if isinstance(a, (vesta.dtype, vesta.layout, vesta.memory_format)):
            return f"torch.{str(a).rpartition('.')[2]}"
        if isinstance(a, complex) and (a.real == 0 or a.imag == 0 or not cmath.isfinite(a)):
            return f"complex({a.real!r}, {a.imag!r})"  # a sum loses the sign of zero
        if callable(a) and not isinstance(a, (vesta.nn.Module, vesta.device)):
            return self.global_of(qualified_name(a), a)
        return repr(a)

    def owner(self, a: Any) -> str:
        """Returns an argument as what stands before a dot."""
        return self.name(a) if isinstance(a, Node) else f"({self.value(a)})"

    def arguments(self, args: Any, kwargs: Any) -> str:
        return ", ".join([*map(self.value, args), *(f"{key} = {self.value(item)}" for key, item in kwargs.items())])

    def attribute(self, path: str) -> str:
        text = self.root
        for part in path.split("."):
            text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
        return text

    def expression(self, node: Node) -> str:
        """Returns what a node computes."""
        args, kwargs, target = node.args, node.kwargs, node.target
        if node.op == "get_attr":
            return self.attribute(str(target))
        if node.op == "call_module":
            return f"{self.attribute(str(target))}({self.arguments(args, kwargs)})"
        if node.op == "call_method":
            return f"{self.owner(args[0])}.{target}({self.arguments(args[1:], kwargs)})"
        name = getattr(target, "__name__", "")
        if getattr(operator, name, None) is target and not kwargs:
            if name in INFIX and len(args) == 2:
                left = self.value(args[0])
                if name == "pow" and left.startswith("-"):
                    left = f"({left})"  # -1 ** x is -(1 ** x)
                return f"{left} {INFIX[name]} {self.value(args[1])}"
            if name in PREFIX and len(args) == 1:
                return f"{PREFIX[name]}{self.value(args[0])}"
            if name == "getitem":
                return f"{self.value(args[0])}[{self.value(args[1])}]"
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{self.owner(args[0])}.{args[1]}"
        called = self.global_of(qualified_name(target), target)  # type: ignore[arg-type]
        if self.is_wrapped(target) and called not in self.wrapped:
            self.wrapped.append(called)
        return f"{called}({self.arguments(args, kwargs)})"

    def line(self, node: Node) -> str:
        name = getattr(node.target, "__name__", "")
        if name in _IN_PLACE and getattr(operator, name, None) is node.target and len(node.args) == 2:
            own = self.name(node)
            return f"{own} = {self.value(node.args[0])};  {own} {_IN_PLACE[name]} {self.value(node.args[1])}"
        return f"{self.name(node)}{self.type_of(node.type)} = {self.expression(node)}"

    def parameter(self, node: Node) -> str:
        default = f" = {self.value(node.args[0])}" if node.args else ""
        return f"{node.target}{self.type_of(node.type)}{default}"


def _last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """Returns for each node those that nobody takes after it."""
    seen: set[Node] = set()
    last: dict[Node, list[Node]] = {}
    for node in linked(graph._root, reverse=True):
        for taken in node.all_input_nodes:
            if taken not in seen:
                seen.add(taken)
                last.setdefault(node, []).append(taken)
    return last


def write(graph: Graph, root: str) -> PythonCode:
    """Returns the code of ``forward``, in which the module is called ``root``."""
    from ._symbolic_trace import is_wrapped

    writer, last = _Writer(graph, root, is_wrapped), _last_uses(graph)
    parameters, lines, returns = [root] if root else [], [], ""
    for node in linked(graph._root):
        freed = [writer.name(taken) for taken in last.get(node, ())]
        if node.op == "placeholder":
            parameters.append(writer.parameter(node))
            given = str(node.target).lstrip("*")
            if given != writer.name(node):
                lines.append(f"{writer.name(node)} = {given}")
            continue
        if node.op == "output":
            lines.append(f"return {writer.value(node.args[0])}")
            returns = f" -> {writer.type_of(node.type)[3:]}" if node.type is not None else ""
            continue
        if not node.users:
            freed.append(writer.name(node))
        rest = f";  {' = '.join([*freed, 'None'])}" if freed else ""
        lines.append(writer.line(node) + rest)
    body = "\n".join(f"    {line}" for line in lines or ["pass"])
    wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
    return PythonCode(f"\n{wraps}\n\ndef forward({', '.join(parameters)}){returns}:\n{body}\n    ", writer.globals)
