"""The comparison of Vesta's signatures with the recorded ones of PyTorch.

Overloads are paired by the names of their parameters. What a pair may say in other words is no difference: ``int[2]``
and ``int[1]``, ``dtype`` and ``dtype?`` with the default None, ``1`` and ``1.0``, a parameter without a type. (One int
stands for ``int[1]`` and for ``int[2]``, not for ``int[]``.) An overload of PyTorch need not be there if one of Vesta,
for the same names, takes all of its calls: as a tensor operand may be a number, ``eq(input, Tensor other)`` stands for
``eq(input, Scalar other)`` too.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .notation import (
    FACTORY_OPTIONS,
    FLAGS,
    MODULES,
    Forms,
    Overload,
    Parameter,
    overload_of_function,
    overloads_of_class,
    surface,
)

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
        # A complex factor has a form of its own, with the parameters of the first one.
        if entry["space"] == "private" or entry["overload"].startswith("complex_"):
            continue
        overload = overload_of_entry(entry)
        for name in (entry["name"], *entry["aliases"]):
            if entry["function"] or (entry["method"] and name.endswith("_")):
                prefix = "" if "." in name else PREFIXES[entry["space"]]
                functions.setdefault(prefix + name, []).append(overload)
            if "." in name:
                continue
            if entry["method"]:
                methods.setdefault(name, []).append(overload.as_method())
            if entry["inplace"] and (entry["function"] or not entry["method"]):
                prefix = PREFIXES[entry["space"]]
                functions.setdefault(prefix + f"{name}_", []).append(replace(overload, out=False))
            if entry["inplace"] and entry["method"]:
                methods.setdefault(f"{name}_", []).append(overload.as_method())
    names = {*functions, *methods}
    return {name: Forms(tuple(functions.get(name, ())), tuple(methods.get(name, ()))) for name in names}


def forms_by_hand(entries: Iterable[Mapping[str, Any]]) -> dict[str, Forms]:
    """Returns the forms of the functions and methods that the extension has besides ops."""
    functions: dict[str, list[Overload]] = {}
    methods: dict[str, list[Overload]] = {}
    for entry in entries:
        parameters = tuple(
            Parameter(p["name"], p["type"], p["default"], p["keyword_only"]) for p in entry["parameters"]
        )
        if entry["method"]:
            methods.setdefault(entry["name"], []).append(Overload(parameters[1:]))
        else:
            functions.setdefault(entry["name"], []).append(Overload(parameters))
    names = {*functions, *methods}
    return {name: Forms(tuple(functions.get(name, ())), tuple(methods.get(name, ()))) for name in names}


def forms_of_package(package: Any) -> dict[str, Forms]:
    """Returns the forms of all public functions, classes and methods of a package: of the op list, by hand, in Python.

    What has no signature is left out.
    """
    registry = package._C._registry()
    ops, bound = forms_of_registry(registry), forms_by_hand(package._C._by_hand())
    private = forms_of_registry({**entry, "space": ""} for entry in registry if entry["space"] == "private")
    found: dict[str, Forms] = {}
    for path in MODULES:
        module = importlib.import_module(f"{package.__name__}.{path}".rstrip("."))
        older = {name: getattr(module, name) for name in getattr(module, "_OLDER", ())}  # which dir() does not show
        for last, value in {**surface(module), **older}.items():
            name = f"{path}.{last}".lstrip(".")
            plain = getattr(value, "__name__", last)
            if isinstance(value, type):
                forms = overloads_of_class(value)
            elif inspect.isfunction(value):
                forms = (overload_of_function(value),)
            elif inspect.isroutine(value):
                keys = (name, plain, f"nn.functional.{plain}")
                known = (of.get(key, Forms()).function for of in (ops, bound, private) for key in keys)
                forms = next(filter(None, known), ())
            else:
                continue
            found[name] = Forms(forms)
    for name in dir(package.Tensor):
        method = inspect.getattr_static(package.Tensor, name)
        if name.startswith("_") or not inspect.isroutine(method):
            continue
        of_op = ops.get(name, Forms()).method or bound.get(name, Forms()).method
        forms = of_op or (overload_of_function(method, method=True),) if inspect.isfunction(method) else of_op
        found[name] = replace(found.get(name, Forms()), method=forms)
    return found


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
    """Whether two plain types are equal, or one of them says nothing; None may be taken besides."""
    return vesta in (torch, f"{torch}?") or "any" in (torch, vesta) or torch.replace("float", "Scalar") == vesta


def takes(vesta: Parameter, torch: Parameter) -> bool:
    """Whether a parameter takes every argument that another one takes."""
    wide, narrow = plain_type(vesta), plain_type(torch)
    if narrow.endswith("?") and not wide.endswith("?") and vesta.default != "None":
        return False
    wide, narrow = wide.rstrip("?"), narrow.rstrip("?")
    return same_type(narrow, wide) or narrow in TAKEN_TOO.get(wide, ())


# ---- two overloads ----


def by_name(overload: Overload) -> dict[str, Parameter]:
    """Returns the parameters by name: ``self`` is ``input``, ``out`` is left to the flag, ``*args`` is ``*``."""
    named = {"input" if p.name == "self" else stars(p) or p.name: p for p in overload.parameters}
    named.pop("out", None)
    return named


def stars(p: Parameter) -> str:
    """Returns the stars before a name, which itself is no part of the interface."""
    return p.name[: len(p.name) - len(p.name.lstrip("*"))]


def positional(overload: Overload) -> list[str]:
    """Returns the names of the parameters that may be given by position."""
    return [name for name, p in by_name(overload).items() if not p.keyword_only]


def covers(vesta: Overload, torch: Overload) -> bool:
    """Whether every call that an overload of PyTorch takes is one of Vesta's overload, which may have more options."""
    ours, theirs = by_name(vesta), by_name(torch)
    order = positional(torch)
    more = [p for name, p in ours.items() if name not in theirs]
    return (
        {*theirs} <= {*ours}
        and all(p.default is not None or p.variadic for p in more)
        and positional(vesta)[: len(order)] == order
        and all(
            takes(ours[name], p) and (p.default is None or ours[name].default is not None) for name, p in theirs.items()
        )
        and vesta.out >= torch.out
        and vesta.factory >= torch.factory
    )


def joined_differences(torch: list[Overload], vesta: Overload) -> list[str]:
    """Returns what an overload that takes the calls of several of PyTorch's takes besides."""
    found = []
    for name, p in by_name(vesta).items():
        having = [by_name(overload)[name] for overload in torch if name in by_name(overload)]
        if not having:
            found.append(f"{name} is only in Vesta")
            continue
        if not p.keyword_only and all(q.keyword_only for q in having):
            found.append(f"{name} is keyword-only in PyTorch, positional in Vesta")
        everywhere = len(having) == len(torch)  # else its absence stands for a default that no signature tells
        if everywhere and plain_default(p) not in [plain_default(q) for q in having]:
            found.append(f"{name} {told_default(having[0])} in PyTorch, {told_default(p)} in Vesta")
    for flag in ("out", "factory"):
        if getattr(vesta, flag) and not any(getattr(overload, flag) for overload in torch):
            found.append(f"PyTorch has no {flag} form, Vesta has one")
    return found


def told_default(p: Parameter) -> str:
    """Says what the default of a parameter is."""
    return "is required" if p.default is None else f"has default {p.default}"


def parameter_differences(name: str, torch: Parameter, vesta: Parameter) -> list[str]:
    """Returns the facts in which two parameters differ."""
    found = []
    if torch.keyword_only != vesta.keyword_only:
        kinds = ("positional", "keyword-only")
        found.append(f"{name} is {kinds[torch.keyword_only]} in PyTorch, {kinds[vesta.keyword_only]} in Vesta")
    if plain_default(torch) != plain_default(vesta):
        found.append(f"{name} {told_default(torch)} in PyTorch, {told_default(vesta)} in Vesta")
    if not same_type(plain_type(torch), plain_type(vesta)):
        found.append(f"{name} is {torch.type} in PyTorch, {vesta.type} in Vesta")
    elif torch.type.rstrip("?") == "int[]" and vesta.type.rstrip("?") == "int[1]":
        found.append(f"{name} is no single int in PyTorch, may be one in Vesta")
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
    # A form with the parameter async, a keyword of Python, cannot be called.
    theirs, ours = ([o for o in side if not any(p.name == "async" for p in o.parameters)] for side in (torch, vesta))
    exact = []
    for fewest in (0, 1, 2, 99):  # those with the fewest floats for numbers first
        for t, v in [(t, v) for t in theirs for v in ours]:
            adapted, floats = scalar_floats(t, v)
            same = by_name(t).keys() == by_name(v).keys() and t in theirs and v in ours
            if same and len(floats) <= fewest and not overload_differences(t, adapted):
                theirs.remove(t)
                ours.remove(v)
                exact.append(adapted)
                report.scalar_floats += [f"{name} {what} {t}: {parameter}" for parameter in floats]
    theirs = [t for t in theirs if not any(covers(v, t) for v in exact)]
    lines = []
    for v in list(ours):
        covered = [t for t in theirs if covers(v, t)]
        if len(covered) > 1:
            lines += [f"{what} {v}: {fact}" for fact in joined_differences(covered, v)]
            ours.remove(v)
            theirs = [t for t in theirs if t not in covered]
    groups: dict[frozenset[str], tuple[list[Overload], list[Overload]]] = {}
    for side, overloads in enumerate((theirs, ours)):
        for overload in overloads:
            groups.setdefault(frozenset(by_name(overload)), ([], []))[side].append(overload)
    for group in groups.values():
        lines += compare_group(*group, what)
    return lines


def compare_group(theirs: list[Overload], ours: list[Overload], what: str) -> list[str]:
    """Returns how overloads of the same parameter names differ: those alike are paired first, the rest is left over."""
    pairs = []
    for i, torch in enumerate(theirs):
        for j, vesta in enumerate(ours):
            found = overload_differences(torch, scalar_floats(torch, vesta)[0])
            pairs.append((len(found), i, j, found))
    lines: list[str] = []
    paired: dict[int, int] = {}
    for _, i, j, found in sorted(pairs):
        if i not in paired and j not in paired.values():
            paired[i] = j
            lines += [f"{what} {theirs[i]}: {fact}" for fact in found]
    lines += [f"{what} {torch} is missing" for i, torch in enumerate(theirs) if i not in paired]
    lines += [f"{what} {vesta} is only in Vesta" for j, vesta in enumerate(ours) if j not in paired.values()]
    return lines


def compare(table: Mapping[str, Forms], vesta: Mapping[str, Forms], unsigned: Collection[str] = ()) -> Report:
    """Compares the names of Vesta with those of PyTorch's table, but for functions of it that have no signature."""
    report = Report()
    for name, ours in sorted(vesta.items()):
        theirs = table.get(name)
        if theirs is None:
            report.differences[name] = ["PyTorch has no such name"]
            continue
        lines: list[str] = []
        for what in ("function", "method"):
            their_forms, our_forms = getattr(theirs, what), getattr(ours, what)
            if what == "function" and name in unsigned:
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
