"""Schemas of operators: what their arguments and results are, from annotations or from text."""

from __future__ import annotations

import ast
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import vesta
from vesta import Tensor

__all__ = ["Argument", "OpSchema", "infer_schema", "parse_schema"]

_NUMBERS = typing.Union[int, float, bool]
#: The names that schemas have for Python's types.
_TYPES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    _NUMBERS: "Scalar",
    vesta.dtype: "ScalarType",
    vesta.device: "Device",
}
#: What an argument of a type may be.
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "Tensor": (Tensor,),
    "SymInt": (int,),  # these four by _number
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "str": (str,),
    "complex": (int, float, complex),
    "Scalar": (int, float, bool, complex),
    "ScalarType": (vesta.dtype,),
    "Device": (vesta.device, str),
    "Generator": (vesta.Generator,),
}
_NUMBER_OF: dict[str, type] = {"SymInt": int, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Argument:
    """An argument of an operator; ``type`` as schemas write it: ``Tensor``, ``SymInt[]``, ``float?``."""

    name: str
    type: str
    default: Any = inspect.Parameter.empty
    keyword_only: bool = False
    is_mutated: bool = False

    @property
    def has_default(self) -> bool:
        return self.default is not inspect.Parameter.empty

    @property
    def holds_tensors(self) -> bool:
        return self.type.startswith("Tensor")

    def convert(self, op: str, value: Any) -> Any:
        """Returns ``value`` as this argument's type. TypeError: it is of none that stands for it."""
        try:
            return _converted(self.type, value)
        except _Unfit:
            raise TypeError(f"{op}: expected {self.type}, got {type(value).__name__} ({self.name}).") from None

    def __str__(self) -> str:
        kind = re.sub("^Tensor", "Tensor(a!)", self.type) if self.is_mutated else self.type
        shown = f'"{self.default}"' if isinstance(self.default, str) else self.default
        return f"{kind} {self.name}" + (f"={shown}" if self.has_default else "")


class _Unfit(Exception):
    """A value does not stand for an argument's type."""


def _converted(kind: str, value: Any) -> Any:
    """Returns a value as a schema's type; numbers may come as numbers of NumPy's, or as tensors of one element."""
    if kind.endswith("?"):
        return None if value is None else _converted(kind[:-1], value)
    if kind.endswith("[]"):
        if not isinstance(value, (list, tuple, vesta.Size)):
            raise _Unfit
        return [_converted(kind[:-2], item) for item in value]
    if kind in _NUMBER_OF:
        return _number(kind, value)
    if not isinstance(value, _ACCEPTED[kind]):
        raise _Unfit
    return value


def _number(kind: str, value: Any) -> Any:
    """Returns an int, a float or a bool of what is one, or holds one."""
    wanted = _NUMBER_OF[kind]
    if type(value) is wanted:
        return value
    held = value
    if isinstance(value, Tensor) or type(value).__module__ == "numpy":
        count = value.numel() if isinstance(value, Tensor) else value.size
        held = value.item() if count == 1 else None
    if not isinstance(held, Real) and not hasattr(held, "__index__"):
        raise _Unfit
    if wanted is int and not hasattr(held, "__index__") and not (held is not value and float(held).is_integer()):
        raise _Unfit  # a fraction, or a float of Python's, as in PyTorch
    return wanted(held)


@dataclass(frozen=True)
class OpSchema:
    """The name, arguments and results of an operator."""

    name: str
    arguments: tuple[Argument, ...]
    returns: tuple[str, ...]
    returns_list: bool = False

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Returns the values of positional and of keyword-only arguments, with defaults. TypeError: they do not fit."""
        positional = [a for a in self.arguments if not a.keyword_only]
        if len(args) > len(positional):
            raise TypeError(f"{self.name}: expected at most {len(positional)} positional arguments, got {len(args)}.")
        given = dict(zip((a.name for a in positional), args))
        for name, value in kwargs.items():
            if name in given:
                raise TypeError(f"{self.name}: got several values for one argument ({name}).")
            if all(a.name != name for a in self.arguments):
                raise TypeError(f"{self.name}: got an unexpected argument ({name}).")
            given[name] = value
        for argument in self.arguments:
            if argument.name in given:
                given[argument.name] = argument.convert(self.name, given[argument.name])
            elif argument.has_default:
                given[argument.name] = argument.default
            else:
                raise TypeError(f"{self.name}: expected a value of type {argument.type}, got none ({argument.name}).")
        named = {a.name: given[a.name] for a in self.arguments if a.keyword_only}
        return [given[a.name] for a in positional], named

    def __str__(self) -> str:
        parts: list[str] = []
        for argument in self.arguments:
            if argument.keyword_only and "*" not in parts:
                parts.append("*")
            parts.append(str(argument))
        results = f"{self.returns[0]}[]" if self.returns_list else ", ".join(self.returns)
        if len(self.returns) != 1:
            results = f"({results})"
        return f"{self.name}({', '.join(parts)}) -> {results}"


# ---- from annotations ----


def _type_name(annotation: Any) -> str | None:
    """Returns a schema's name of an annotation; None where there is none."""
    if annotation in _TYPES:
        return _TYPES[annotation]
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Union or type(annotation).__name__ == "UnionType":
        rest = tuple(part for part in inner if part is not type(None))
        if set(rest) == {int, float, bool}:
            name: str | None = "Scalar"
        else:
            name = _type_name(rest[0]) if len(rest) == 1 else None
        return f"{name}?" if name and len(rest) < len(inner) else name
    if origin in (list, Sequence, typing.Sequence) and len(inner) == 1:
        name = _type_name(inner[0])
        return f"{name}[]" if name else None
    return None


def _returned(op: str, annotation: Any) -> tuple[tuple[str, ...], bool]:
    """Returns the types of the results, and whether they are one list of any length."""
    if annotation in (None, type(None)):
        return (), False
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    names = [_type_name(part) for part in (inner if origin is tuple else (annotation,))]
    if origin in (list, Sequence):
        names = [_type_name(inner[0])] if inner else [None]
    if any(name not in ("Tensor", "SymInt", "float", "bool", "Scalar") for name in names):
        raise ValueError(
            f"infer_schema(func): expected Tensor, a tuple or list of Tensors, a number or None as return annotation, "
            f"got {annotation} ({op})."
        )
    return tuple(str(name) for name in names), origin in (list, Sequence)


def read_function(function: Callable[..., Any], name: str, mutates_args: str | Iterable[str]) -> OpSchema:
    """Reads the schema of a function from its annotations; see ``infer_schema``."""
    signature = inspect.signature(function)
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ValueError(f"infer_schema(func): an annotation names what is not known: {error}. ({name})") from error
    unknown = mutates_args == "unknown"
    mutated = set() if isinstance(mutates_args, str) else set(mutates_args)
    if isinstance(mutates_args, str) and not unknown:
        raise ValueError(f"infer_schema(func): expected mutates_args as names in a sequence, got {mutates_args!r}.")
    arguments = []
    for parameter in signature.parameters.values():
        where = f"Parameter {parameter.name} of {name}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ValueError(f"infer_schema(func): {where} must have a name of its own; *args and **kwargs have none.")
        if parameter.name not in hints:
            raise ValueError(f"infer_schema(func): {where} must have a type annotation.")
        kind = _type_name(hints[parameter.name])
        if kind is None:
            raise ValueError(
                f"infer_schema(func): {where} has unsupported type {hints[parameter.name]}. Valid are Tensor, int, "
                "float, bool, str, complex, dtype, device, Optional and Sequence of them, and Union[int, float, bool]."
            )
        if parameter.name in mutated and not kind.startswith("Tensor"):
            raise ValueError(f"infer_schema(func): {where} is in mutates_args but is no Tensor.")
        arguments.append(
            Argument(
                parameter.name,
                kind,
                parameter.default,
                parameter.kind is parameter.KEYWORD_ONLY,
                parameter.name in mutated or (unknown and kind.startswith("Tensor")),
            )
        )
    if missing := mutated - {argument.name for argument in arguments}:
        raise ValueError(f"infer_schema(func): mutates_args names no argument of {name}: {sorted(missing)}.")
    if "return" not in hints:
        raise ValueError(f"infer_schema(func): {name} must have a return annotation.")
    return OpSchema(name, tuple(arguments), *_returned(name, hints["return"]))


def infer_schema(
    prototype_function: Callable[..., Any],
    /,
    *,
    mutates_args: str | Iterable[str],
    op_name: str | None = None,
    tags: Any = (),
) -> str:
    """Returns the schema of a function as text, from its annotations.

    Args:
        mutates_args: names of the tensors that it writes into, or ``"unknown"``: all of them.
        op_name: what stands before the arguments.

    Raises:
        ValueError: an argument or the result has no annotation, or one that schemas do not have.

    Example::

        >>> import vesta
        >>> def scaled(x: vesta.Tensor, by: float = 2.0) -> vesta.Tensor: ...
        >>> vesta.library.infer_schema(scaled, mutates_args=())
        '(Tensor x, float by=2.0) -> Tensor'
    """
    return str(read_function(prototype_function, op_name or "", mutates_args))


# ---- from text ----

_ARGUMENT = re.compile(r"(?P<type>\w+(?:\([^)]*\))?(?:\?|\[\d*\])*)\s+(?P<name>\w+)(?:\s*=\s*(?P<default>.+))?$")


def _split(text: str) -> list[str]:
    """Splits at commas that stand in no brackets and no quotes."""
    parts, depth, quoted, begin = [], 0, "", 0
    for place, char in enumerate(text):
        if quoted:
            quoted = "" if char == quoted else quoted
        elif char in "\"'":
            quoted = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def _kind(text: str) -> tuple[str, bool]:
    """Returns a type without its annotation of aliases, and whether that says that it is written to."""
    plain = re.sub(r"\([^)]*\)", "", text)
    plain = re.sub(r"\[\d+\]", "[]", plain)
    base = re.match(r"\w+", plain)
    if base is None or base[0] not in _ACCEPTED:
        raise ValueError(f"define: expected a type such as Tensor, int[] or float?, got {text!r}.")
    return plain, "!" in text


def parse_schema(text: str, name: str = "") -> OpSchema:
    """Reads a schema from text: ``"add(Tensor x, *, float alpha=1) -> Tensor"``. ValueError: it is no schema."""
    found = re.match(r"\s*(?P<name>[\w:.]*)\s*\((?P<arguments>.*)\)\s*->\s*(?P<returns>.+?)\s*$", text, re.DOTALL)
    if found is None:
        raise ValueError(f"define: expected a schema such as '(Tensor x, int n=2) -> Tensor', got {text!r}.")
    arguments, keyword_only = [], False
    for part in _split(found["arguments"]):
        if part == "*":
            keyword_only = True
            continue
        one = _ARGUMENT.match(part)
        if one is None:
            raise ValueError(f"define: expected an argument such as 'int n=2', got {part!r} in {text!r}.")
        kind, mutated = _kind(one["type"])
        default: Any = inspect.Parameter.empty
        if one["default"] is not None:
            words = {"true": True, "false": False, "None": None}
            try:
                default = words[one["default"]] if one["default"] in words else ast.literal_eval(one["default"])
            except (ValueError, SyntaxError) as error:
                raise ValueError(f"define: expected a plain value as default, got {part!r} in {text!r}.") from error
        arguments.append(Argument(one["name"], kind, default, keyword_only, mutated))
    results = found["returns"]
    each = _split(results[1:-1]) if results.startswith("(") else [results]
    kinds = [_kind(part.split()[0])[0] for part in each]
    as_list = len(kinds) == 1 and kinds[0].endswith("[]")
    return OpSchema(name or found["name"], tuple(arguments), tuple(k.removesuffix("[]") for k in kinds), as_list)
