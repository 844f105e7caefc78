"""Forms of ops as a type checker sees them: parameters, results, overloads.

A ``Form`` is one way to call a function. ``overloads`` turns the forms of a name into the fewest definitions that a
type checker accepts without complaint: forms that another one covers go, and forms that differ in the type of one
parameter become one.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

#: The types that a parameter takes, by its kind in the schema.
KINDS: dict[str, tuple[str, ...]] = {
    "Tensor": ("Tensor",),
    "Tensor[]": ("Sequence[Tensor]",),
    "Tensor?[]": ("Sequence[Tensor | None]",),
    "int": ("_int",),
    "int[]": ("Sequence[_int]",),
    "int[1]": ("_int", "Sequence[_int]"),
    "float": ("_float",),
    "bool": ("_bool",),
    "Scalar": ("Number",),
    "dtype": ("DType",),
    "device": ("Device",),
    "str": ("str",),
    "memory_format": ("MemoryFormat",),
    "Generator": ("Generator",),
    "any": ("Any",),
}
#: What every factory takes besides the parameters of its schema.
FACTORY = {"requires_grad": "_bool", "pin_memory": "_bool", "layout": "Layout"}
#: Types that take every value of another one.
WIDER = {"_bool": ("_int", "_float", "Number"), "_int": ("_float", "Number"), "_float": ("Number",)}
#: Names under which a list of sizes may also be spread over positions: ``view(2, 3)``.
SPREAD = ("size", "dims", "shape", "repeats")
DEPRECATED = "An order of arguments from old versions of PyTorch: numbers come last, by keyword."


@dataclass(frozen=True)
class Parameter:
    """A parameter and the types that it takes; one that is ``spread`` takes any number of positions."""

    name: str
    types: tuple[str, ...]
    default: str | None = None
    keyword_only: bool = False
    spread: bool = False

    def text(self) -> str:
        """Returns the parameter as it stands in a definition."""
        name = f"{self.name}_" if keyword.iskeyword(self.name) else self.name
        annotation = " | ".join(self.types)
        return f"{'*' * self.spread}{name}: {annotation}" + ("" if self.default is None else f" = {self.default}")

    def covers(self, other: Parameter) -> bool:
        """Tells whether it takes everything that the other one takes."""
        return all(t in self.types or any(w in self.types for w in WIDER.get(t, ())) for t in other.types)


@dataclass(frozen=True)
class Form:
    """One way to call a function; a method's self is not among the parameters."""

    parameters: tuple[Parameter, ...]
    result: str
    deprecated: bool = False

    def text(self, name: str, method: bool) -> str:
        """Returns the definition."""
        parts, starred = ["self"] if method else [], False
        by_position = any(keyword.iskeyword(p.name) for p in self.parameters)  # random_(from, to)
        for p in self.parameters:
            if p.keyword_only and not starred:
                parts += ["/"] * by_position + ["*"]
                by_position, starred = False, True
            parts.append(p.text())
            starred |= p.spread
        return f"def {name}({', '.join(parts + ['/'] * by_position)}) -> {self.result}: ..."

    def covers(self, other: Form) -> bool:
        """Tells whether every call of the other form is one of this form, with the same result."""
        if self.result != other.result or (self.deprecated and not other.deprecated):
            return False
        mine, theirs = ([p for p in form.parameters if not p.keyword_only] for form in (self, other))
        names = {p.name: p for p in self.parameters}
        if any(p.spread for p in mine + theirs) or len(mine) < len(theirs):
            return False
        if any(a.name != b.name or not a.covers(b) for a, b in zip(mine, theirs)):
            return False
        if any(p.name not in names or not names[p.name].covers(p) for p in other.parameters):
            return False
        given = {p.name: p for p in other.parameters}
        return all(p.default is not None or (p.name in given and given[p.name].default is None) for p in names.values())

    def joined(self, other: Form) -> Form | None:
        """Returns the form that takes what both take, where they differ in the types of one parameter only."""
        mine, theirs = self.parameters, other.parameters
        if (self.result, self.deprecated, len(mine)) != (other.result, other.deprecated, len(theirs)):
            return None
        for a, b in zip(mine, theirs):
            same = (a.name, a.keyword_only, a.spread, a.default is None)
            if same != (b.name, b.keyword_only, b.spread, b.default is None):
                return None
        apart = [i for i, (a, b) in enumerate(zip(mine, theirs)) if set(a.types) != set(b.types)]
        if len(apart) > 1:
            return None
        parameters = list(mine)
        for i in apart:
            parameters[i] = replace(mine[i], types=union(mine[i].types + theirs[i].types))
        return replace(self, parameters=tuple(parameters))


def union(types: Iterable[str]) -> tuple[str, ...]:
    """Returns the types without repetitions and without those that another one includes; None comes last."""
    kept = list(dict.fromkeys(types))
    kept = [t for t in kept if not any(w in kept for w in WIDER.get(t, ()))]
    return tuple(sorted(kept, key=lambda t: t == "None"))


def forms_of(entry: dict[str, Any], method: bool, inplace: bool = False) -> Iterator[Form]:
    """Returns the forms of an entry of the op list as a function or as a method."""
    given = entry["parameters"][1 if method else 0 :]
    parameters = [_parameter(p) for p in given]
    if entry["out"] and not method:
        parameters.append(Parameter("out", (_out(entry), "None"), "None", True))
    if entry["factory"]:
        parameters += [Parameter(name, (kind, "None"), "None", True) for name, kind in FACTORY.items()]
    named = f"_return_types.{'linalg_' * (entry['space'] == 'linalg')}{entry['name']}"
    result = "Self" if inplace else named if entry["fields"] else entry["returns"].replace("bool", "_bool")
    form = Form(tuple(parameters), result, entry["deprecated"])
    spread = _spread(entry, given)
    if spread is not None:
        before, p, after = parameters[:spread], parameters[spread], parameters[spread + 1 :]
        yield replace(form, parameters=(*before, replace(p, types=("_int",), spread=True), *after))
        yield replace(form, parameters=(*before, replace(p, types=("Sequence[_int]",)), *after))
    elif " | " in result:  # a bool chooses: nonzero(as_tuple=True)
        for choice, kind in zip(("Literal[False]", "Literal[True]", "_bool"), (*result.split(" | "), result)):
            chosen = [replace(p, types=(choice,)) if p.types == ("_bool",) else p for p in parameters]
            yield replace(form, parameters=tuple(chosen), result=kind)
    else:
        yield form


def _parameter(given: dict[str, Any]) -> Parameter:
    kind = given["type"]
    types = KINDS[kind.removesuffix("?")] + ("Number",) * given["number"] + ("None",) * kind.endswith("?")
    default = "..." if (given["default"] or "").startswith("vesta.") else given["default"]
    if default is not None and default.startswith("'"):
        default = f'"{default[1:-1]}"'
    return Parameter(given["name"], types, default, given["keyword_only"])


def _out(entry: dict[str, Any]) -> str:
    return "Sequence[Tensor]" if entry["returns"].startswith("tuple") else "Tensor"


def _spread(entry: dict[str, Any], given: list[dict[str, Any]]) -> int | None:
    """Returns the place of the parameter that may be spread over positions."""
    for i, p in enumerate(given):
        last = all(later["keyword_only"] for later in given[i + 1 :])
        if p["type"].startswith("int[") and p["name"] in SPREAD and last:
            return i if i == 0 else None
    return None


def overloads(forms: Iterable[Form]) -> list[Form]:
    """Returns the fewest forms that take the same calls."""
    left = list(dict.fromkeys(forms))
    while True:
        for i, form in enumerate(left):
            others = left[:i] + left[i + 1 :]
            if any(other.covers(form) for other in others):
                left = others
                break
            pairs = ((j, form.joined(other)) for j, other in enumerate(left[i + 1 :], i + 1))
            found = next(((j, made) for j, made in pairs if made is not None), None)
            if found is not None:
                left[i] = found[1]
                del left[found[0]]
                break
        else:
            return left


def definitions(name: str, forms: Iterable[Form], method: bool = False, doc: str = "") -> Iterator[str]:
    """Writes the definitions of a name, with overloads where one does not say it all."""
    written = overloads(forms)
    for form in written:
        if len(written) > 1:
            yield "@overload"
        if form.deprecated:
            yield f'@deprecated("{DEPRECATED}")'
        yield form.text(name, method)
