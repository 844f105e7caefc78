"""The op list as the library tells it, by name: what the generated tests ask of it."""

from __future__ import annotations

from typing import Any

import vesta


def by_name() -> dict[str, dict[str, Any]]:
    """Returns the first form of each name of the op list that is not deprecated.

    Twins that the library makes of another op (``clamp_`` of ``clamp``) are left out: the rows of those ops test them.
    """
    names: dict[str, dict[str, Any]] = {}
    for entry in vesta._C._registry():
        if not entry["deprecated"]:
            names.setdefault(entry["name"], entry)
    return {n: e for n, e in names.items() if not (n.endswith("_") and n[:-1] in names and e["kind"] == "composite")}
