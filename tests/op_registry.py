"""The op list as the library tells it, by name: what the generated tests ask of it."""

from __future__ import annotations

from typing import Any

import vesta


def by_name() -> dict[str, dict[str, Any]]:
    """Returns the first form of each name of the op list that is not deprecated."""
    names: dict[str, dict[str, Any]] = {}
    for entry in vesta._C._registry():
        if not entry["deprecated"]:
            names.setdefault(entry["name"], entry)
    return names


def is_twin(name: str, names: dict[str, dict[str, Any]]) -> bool:
    """Whether the library makes an in-place op of another one (``clamp_`` of ``clamp``), whose row tests both."""
    return name.endswith("_") and name[:-1] in names and names[name]["kind"] == "composite"
