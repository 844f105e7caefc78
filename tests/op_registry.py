"""The op list as the library tells it, by name: what the generated tests ask of it.

A name is the one below ``vesta`` for ops of ``vesta.linalg``, ``fft`` and ``special`` ("linalg.qr"), else the bare one.
"""

from __future__ import annotations

from typing import Any

import vesta
from op_db_row import qualified


def is_row(entry: dict[str, Any]) -> bool:
    """Whether rows stand for a form: it is not deprecated, nor the first one again for complex factors."""
    return not entry["deprecated"] and not entry["overload"].startswith("complex_")


def by_name() -> dict[str, dict[str, Any]]:
    """Returns the first form of each name of the op list that is not deprecated."""
    names: dict[str, dict[str, Any]] = {}
    for entry in vesta._C._registry():
        if is_row(entry):
            names.setdefault(qualified(entry["name"], entry["space"]), entry)
    return names


def forms() -> dict[str, list[dict[str, Any]]]:
    """Returns all forms of each name that are not deprecated."""
    names: dict[str, list[dict[str, Any]]] = {}
    for entry in vesta._C._registry():
        if is_row(entry):
            names.setdefault(qualified(entry["name"], entry["space"]), []).append(entry)
    return names


def with_out() -> set[str]:
    """Returns the names of which every form takes ``out=``, the deprecated ones aside."""
    takes: dict[str, bool] = {}
    for entry in vesta._C._registry():
        if is_row(entry):
            name = qualified(entry["name"], entry["space"])
            takes[name] = takes.get(name, True) and entry["function"] and entry["out"]
    return {name for name, out in takes.items() if out}


def is_twin(name: str, names: dict[str, dict[str, Any]]) -> bool:
    """Whether the library makes an in-place op of another one (``clamp_`` of ``clamp``), whose row tests both."""
    return name.endswith("_") and name[:-1] in names and names[name]["kind"] == "composite"
