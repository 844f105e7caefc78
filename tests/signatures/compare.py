"""The comparison of Vesta's signatures with the recorded ones of PyTorch.

Overloads are paired by the names of their parameters. What a pair may say in other words is no difference: ``int[2]``
and ``int[]``, ``dtype`` and ``dtype?`` with the default None, ``1`` and ``1.0``, a parameter without a type. An
overload of PyTorch need not be there if one of Vesta, for the same names, takes all of its calls: as a tensor operand
may be a number, ``eq(input, Tensor other)`` stands for ``eq(input, Scalar other)`` too.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .notation import FACTORY_OPTIONS, FLAGS, Forms, Overload, Parameter, overload_of_function

#: What stands before a public name of a space of the registry.
PREFIXES = {"": "", "nn": "nn.functional.", "linalg": "linalg.", "fft": "fft.", "special": "special."}

#: Types that an argument of a type may have besides it: a tensor operand may be a number.
TAKEN_TOO = {"Tensor": ("Scalar", "float", "int"), "Scalar": ("float", "int"), "float": ("int",), "int[]": ("int",)}


@dataclass
class Report:
    """What differs, by public name; and where PyTorch takes any number (Scalar) but Vesta a float."""

    differences: dict[str, list[str]] = field(default_factory=dict)
    scalar_floats: list[str] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Returns all differences, each with its name in front."""
        return [f"{name}: {line}" for name, lines in sorted(self.differences.items()) for line in lines]


# ---- Vesta's forms ----


def overload_of_entry(entry: Mapping[str, Any]) -> Overload:
    """Returns the overload that an entry of the registry describes."""
    given = entry["parameters"]
    parameters = tuple(
        Parameter(p["name"], p["type"], p["default"], p["keyword_only"])
        for p in given
        if not (entry["factory"] and p["name"] in FACTORY_OPTIONS)
    )
    return Overload(parameters, entry["out"], entry["factory"], entry["deprecated"])


def forms_of_registry(entries: Iterable[Mapping[str, Any]]) -> dict[str, Forms]:
    """Returns the forms of each public name of a registry: functions, methods and in-place methods, aliases too."""
    functions: dict[str, list[Overload]] = {}
    methods: dict[str, list[Overload]] = {}
    for entry in entries:
        if entry["space"] == "private":
            continue
        overload = overload_of_entry(entry)
        for name in (entry["name"], *entry["aliases"]):
            if entry["function"]:
                prefix = "" if "." in name else PREFIXES[entry["space"]]
                functions.setdefault(prefix + name, []).append(overload)
            if "." in name:
                continue
            if entry["method"]:
                methods.setdefault(name, []).append(overload.as_method())
            if entry["inplace"] and not entry["method"]:
                functions.setdefault(prefix + f"{name}_", []).append(replace(overload, out=False))
            elif entry["inplace"]:
                methods.setdefault(f"{name}_", []).append(overload.as_method())
    names = {*functions, *methods}
    return {name: Forms(tuple(functions.get(name, ())), tuple(methods.get(name, ()))) for name in names}


def forms_of_module(module: Any, prefix: str) -> dict[str, Forms]:
    """Returns the forms of the public functions that a module defines in Python."""
    own = {name: f for name, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__}
    return {prefix + name: Forms((overload_of_function(f),)) for name, f in own.items() if not name.startswith("_")}


# ---- facts about a parameter ----


def plain_type(parameter: Parameter) -> str:
    """Returns a type without the length of lists, and without ``?`` where the default None says it."""
    kind = re.sub(r"\[\d+\]", "[]", parameter.type)
    return kind.removesuffix("?") if parameter.default == "None" else kind


def plain_default(parameter: Parameter) -> Any:
    """Returns a default so that two ways to write it are equal; an empty list is None."""
    if parameter.default is None:
        return inspect.Parameter.empty
    try:
        value = ast.literal_eval(parameter.default)
    except (ValueError, SyntaxError):
        return parameter.default.replace("vesta.", "torch.")
    return None if value in ((), []) else tuple(value) if isinstance(value, list) else value


def same_type(torch: str, vesta: str) -> bool:
    """Whether two plain types are equal, or one of them says nothing."""
    return torch == vesta or "any" in (torch, vesta) or torch.replace("float", "Scalar") == vesta


def takes(vesta: Parameter, torch: Parameter) -> bool:
    """Whether a parameter takes every argument that another one takes."""
    wide, narrow = plain_type(vesta), plain_type(torch)
    if narrow.endswith("?") and not wide.endswith("?") and vesta.default != "None":
        return False
    wide, narrow = wide.rstrip("?"), narrow.rstrip("?")
    return same_type(narrow, wide) or narrow in TAKEN_TOO.get(wide, ())


# ---- two overloads ----


def by_name(overload: Overload) -> dict[str, Parameter]:
    """Returns the parameters by name: ``self`` is ``input``, and ``out`` is left to the flag."""
    named = {"input" if p.name == "self" else p.name: p for p in overload.parameters}
    named.pop("out", None)
    return named


def positional(overload: Overload) -> list[str]:
    """Returns the names of the parameters that may be given by position."""
    return [name for name, p in by_name(overload).items() if not p.keyword_only]


def covers(vesta: Overload, torch: Overload) -> bool:
    """Whether every call that an overload of PyTorch takes is one of Vesta's overload of the same parameters."""
    ours, theirs = by_name(vesta), by_name(torch)
    order = positional(torch)
    return (
        positional(vesta)[: len(order)] == order
        and all(
            takes(ours[name], p) and (p.default is None or ours[name].default is not None) for name, p in theirs.items()
        )
        and vesta.out >= torch.out
        and vesta.factory >= torch.factory
    )


def parameter_differences(name: str, torch: Parameter, vesta: Parameter) -> list[str]:
    """Returns the facts in which two parameters differ."""
    found = []
    if torch.keyword_only != vesta.keyword_only:
        kinds = ("positional", "keyword-only")
        found.append(f"{name} is {kinds[torch.keyword_only]} in PyTorch, {kinds[vesta.keyword_only]} in Vesta")
    if plain_default(torch) != plain_default(vesta):
        told = [f"has default {p.default}" if p.default is not None else "is required" for p in (torch, vesta)]
        found.append(f"{name} {told[0]} in PyTorch, {told[1]} in Vesta")
    if not same_type(plain_type(torch), plain_type(vesta)):
        found.append(f"{name} is {torch.type} in PyTorch, {vesta.type} in Vesta")
    return found


def overload_differences(torch: Overload, vesta: Overload) -> list[str]:
    """Returns the facts in which two overloads of the same parameter names differ."""
    ours, theirs = by_name(vesta), by_name(torch)
    found = []
    shared = [name for name in positional(torch) if name in positional(vesta)]
    order = [name for name in positional(vesta) if name in shared]
    if shared != order:
        found.append(f"the order is {', '.join(shared)} in PyTorch, {', '.join(order)} in Vesta")
    for name, parameter in theirs.items():
        found += parameter_differences(name, parameter, ours[name])
    for flag in FLAGS:
        if getattr(torch, flag) != getattr(vesta, flag):
            article = "an" if flag == "out" else "a"
            has = f"{article} {flag} form, Vesta has none" if getattr(torch, flag) else f"no {flag} form, Vesta has one"
            found.append(f"PyTorch has {has}")
    return found


def scalar_floats(torch: Overload, vesta: Overload) -> tuple[Overload, list[str]]:
    """Returns Vesta's overload with Scalar for float where PyTorch says Scalar, and the names of these parameters."""
    theirs = by_name(torch)
    changed, names = [], []
    for name, p in by_name(vesta).items():
        if name in theirs and p.type != "any":
            wanted = p.type.replace("float", "Scalar")
            if wanted != p.type and plain_type(theirs[name]) == plain_type(replace(p, type=wanted)):
                p = replace(p, type=wanted)
                names.append(name)
        changed.append(p)
    return replace(vesta, parameters=tuple(changed)), names


# ---- all of them ----


def compare_overloads(
    torch: Iterable[Overload], vesta: Iterable[Overload], report: Report, name: str, what: str
) -> list[str]:
    """Returns how the overloads of one function or method differ; ``what`` is the word for it."""
    lines: list[str] = []
    groups: dict[frozenset[str], tuple[list[Overload], list[Overload]]] = {}
    for side, overloads in enumerate((torch, vesta)):
        for overload in overloads:
            groups.setdefault(frozenset(by_name(overload)), ([], []))[side].append(overload)
    for theirs, ours in groups.values():
        lines += compare_group(theirs, ours, report, f"{name} {what}", what)
    return lines


def compare_group(theirs: list[Overload], ours: list[Overload], report: Report, where: str, what: str) -> list[str]:
    """Returns how overloads of the same parameter names differ: those alike are paired first, the rest is left over."""
    pairs = []
    for i, torch in enumerate(theirs):
        for j, vesta in enumerate(ours):
            adapted, floats = scalar_floats(torch, vesta)
            pairs.append((len(overload_differences(torch, adapted)), len(floats), i, j, adapted, floats))
    lines: list[str] = []
    paired: dict[int, int] = {}
    exact: list[Overload] = []
    for count, _, i, j, adapted, floats in sorted(pairs, key=lambda pair: pair[:4]):
        if i in paired or j in paired.values() or (count and any(covers(o, theirs[i]) for o in exact)):
            continue
        paired[i] = j
        report.scalar_floats += [f"{where} {theirs[i]}: {parameter}" for parameter in floats]
        if count == 0:
            exact.append(adapted)
        lines += [f"{what} {theirs[i]}: {fact}" for fact in overload_differences(theirs[i], adapted)]
    for i, torch in enumerate(theirs):
        if i not in paired and not any(covers(o, torch) for o in exact):
            lines.append(f"{what} {torch} is missing")
    lines += [f"{what} {vesta} is only in Vesta" for j, vesta in enumerate(ours) if j not in paired.values()]
    return lines


def compare(table: Mapping[str, Forms], vesta: Mapping[str, Forms]) -> Report:
    """Compares the names of Vesta with those of PyTorch's table.

    A function that PyTorch has beside an in-place method (``torch.exp_``) is not asked for.
    """
    report = Report()
    for name, ours in sorted(vesta.items()):
        theirs = table.get(name)
        if theirs is None:
            report.differences[name] = ["PyTorch has no such name"]
            continue
        lines: list[str] = []
        for what in ("function", "method"):
            their_forms, our_forms = getattr(theirs, what), getattr(ours, what)
            if what == "function" and name.endswith("_") and not our_forms:
                continue
            if their_forms and not our_forms:
                lines.append(f"there is no {what}")
            elif our_forms and not their_forms:
                lines.append(f"PyTorch has no such {what}")
            else:
                lines += compare_overloads(their_forms, our_forms, report, name, what)
        if lines:
            report.differences[name] = lines
    return report
