"""Writes python/vesta/as_torch/names.txt: the modules of PyTorch and their public names. Run it beside a PyTorch.

    python tests/as_torch/record_torch_names.py python/vesta/as_torch/names.txt

A name whose object is also in a package above is written ``name@package``. Modules that need something that is not
installed are listed without names, and so are those inside of PyTorch (``torch._inductor.config``), of which programs
import some.
"""

from __future__ import annotations

import collections.abc
import importlib
import os
import sys
import types
import typing
import warnings

import torch

#: Parts of PyTorch that are far from what programs import.
_LEFT_OUT = ("testing._internal", "_vendor", "contrib", "_C_flatbuffer", "bin", "include", "lib", "share", "test")
#: Folders inside of PyTorch whose modules are listed to the first level only.
_INSIDE = ("_inductor", "_dynamo", "_functorch", "_export", "_refs", "_numpy", "_strobelight", "_native")


def modules() -> list[str]:
    """Returns the names of all modules that PyTorch has as files."""
    root = os.path.dirname(torch.__file__)
    found = {"torch", "torch._C", "torch._C._nn", "torch.ops", "torch.classes"}
    for folder, _, files in os.walk(root):
        parts = [part for part in os.path.relpath(folder, root).split(os.sep) if part != "."]
        if "__pycache__" in parts or ".".join(parts).startswith(_LEFT_OUT) or any("-" in part for part in parts):
            continue
        if parts and "__init__.py" not in files:
            continue
        depth = 1 if parts and parts[0] in _INSIDE else 9
        if len(parts) > depth:
            continue
        for file in files:
            stem, end = os.path.splitext(file)
            if end == ".py" and stem not in ("__main__", "setup") and not stem.startswith("_test"):
                found.add(".".join(["torch", *parts, *([] if stem == "__init__" else [stem])]))
    return sorted(found)


#: Modules inside of PyTorch whose names programs use.
_USED = ("torch._tensor", "torch._utils", "torch._jit_internal", "torch._tensor_str", "torch._ops", "torch._lowrank")


def public(name: str) -> list[str]:
    """Returns the names that a module offers: no modules, nothing of the standard library."""
    if name in ("torch.ops", "torch.classes"):
        return []
    private = any(part.startswith("_") for part in name.split(".")) and name not in _USED
    if private or name.startswith("torch.utils.benchmark.examples"):
        return []
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit):
        return []
    listed = set(getattr(module, "__all__", ())) if isinstance(vars(module).get("__all__"), (list, tuple)) else set()
    found = []
    for key in {*vars(module), *listed}:
        value = getattr(module, key, None)
        place = getattr(value, "__module__", None)
        own = isinstance(place, str) and (place == name or place.startswith(f"{name}._"))
        hidden = key.startswith("_") and key not in listed and name != "torch" and not own
        if key.startswith("__") or hidden or isinstance(value, types.ModuleType) or key == "annotations":
            continue
        home = getattr(value, "__module__", None)
        home = home if isinstance(home, str) else "torch"
        alias = home in ("typing", "types") and not any(
            hasattr(known, key) for known in (typing, types, collections.abc)
        )
        plain = home == "builtins" and not isinstance(value, type)
        if key in listed or home.startswith("torch") or plain or alias:
            found.append(key + above(name, key, value))
    return sorted(found)


def above(name: str, key: str, value: object) -> str:
    """Returns ``@package`` for the nearest package above that has the same object."""
    parent = name.rpartition(".")[0]
    while parent and callable(value):
        if vars(importlib.import_module(parent)).get(key) is value:
            return f"@{parent}"
        parent = parent.rpartition(".")[0]
    return ""


def main(path: str) -> None:
    """Writes the table."""
    warnings.simplefilter("ignore")
    with open(path, "w", encoding="utf-8") as file:
        for name in modules():
            print(f"{name}: {' '.join(public(name))}".rstrip(), file=file)


if __name__ == "__main__":
    main(sys.argv[1])
