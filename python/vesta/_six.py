"""``torch._six``: names that programs of PyTorch 1.12 and older import instead of Python's own."""

from __future__ import annotations

import builtins
import collections.abc as container_abcs
from math import inf, nan

__all__ = ["PY2", "PY3", "PY37", "container_abcs", "inf", "int_classes", "istuple", "nan", "string_classes"]

PY2, PY3, PY37 = False, True, True
string_classes = (str, bytes)
int_classes = int
FileNotFoundError = builtins.FileNotFoundError


def istuple(obj: object) -> bool:
    """Returns whether an object is a tuple."""
    return isinstance(obj, tuple)


def get_function_from_type(cls: type, name: str) -> object:
    """Returns an attribute of a class, None if it has none."""
    return getattr(cls, name, None)


def bind_method(fn: object, obj: object, obj_type: type) -> object:
    """Returns a function as a method of an object."""
    import types

    return types.MethodType(fn, obj)  # type: ignore[arg-type]
