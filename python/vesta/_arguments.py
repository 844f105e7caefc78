"""Checks of arguments by their annotations, for functions and constructors that are written in Python.

``@checked`` reads the annotations once; a call then costs a comparison of types per argument. What an annotation does
not say (a range, a combination) the function checks itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable as AnyCallable
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, Callable, TypeVar

from ._C import Tensor

__all__ = ["checked", "expect"]

F = TypeVar("F", bound=Callable[..., Any])

#: What an annotation admits: the classes, and how an error names them.
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((Tensor,), "Tensor"),
    "float": ((Real, Tensor), "float"),
    "Real": ((Real, Tensor), "float"),  # the alias of vesta._C._types
    "int": ((Integral,), "int"),
    "str": ((str,), "str"),
}
_ITERABLE = ("Iterable[", "Sequence[", "list[", "tuple[")


def expect(op: str, name: str, value: Any, classes: Any, wanted: str) -> None:
    """Raises a TypeError that names the argument unless ``value`` is of one of ``classes``."""
    if not isinstance(value, classes):
        raise TypeError(f"{op}: expected {wanted}, got {type(value).__name__} ({name}).")


def _rule(annotation: Any, scope: dict[str, Any]) -> tuple[tuple[type, ...], str] | None:
    """Returns what an annotation admits; nothing where it says too much to be checked here."""
    classes: tuple[type, ...] = ()
    names = []
    for part in str(annotation).split(" | "):
        if part == "None":
            classes += (type(None),)
            names.append("None")
        elif part in _KINDS:
            classes += _KINDS[part][0]
            names.append(_KINDS[part][1])
        elif part.startswith(_ITERABLE):
            classes += (Iterable,)
            names.append("an iterable")
        elif part.startswith("Callable"):
            classes += (AnyCallable,)
            names.append("a callable")
        elif isinstance(scope.get(part), type) and part not in ("Any", "bool"):
            classes += (scope[part],)
            names.append(part)
        else:
            return None
    return classes, " or ".join(names)


def _parameters(function: Any) -> tuple[dict[str, Any], int | None]:
    """Returns the annotations of all parameters in their order, and the place of ``*args``.

    It reads what ``inspect.signature`` reads; that module takes a sixth of the time of ``import vesta``.
    """
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    count, named = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    takes_many, takes_names = bool(code.co_flags & 0x04), bool(code.co_flags & 0x08)
    names = list(code.co_varnames[: named + takes_many + takes_names])
    if takes_many:  # stands behind the parameters that are given by name
        names.insert(count, names.pop(named))
    return {name: function.__annotations__.get(name) for name in names}, count if takes_many else None


def checked(function: F) -> F:
    """Makes a function, or a constructor, raise a TypeError that names an argument of the wrong kind.

    Example::

        >>> from vesta._arguments import checked
        >>> @checked
        ... def twice(count: int) -> int:
        ...     return 2 * count
        >>> twice(2)
        4
    """
    parameters, many = _parameters(function)
    op = function.__qualname__.rsplit(".__init__", 1)[0].rsplit(".", 1)[-1]
    rules = {
        name: None if annotation is None else _rule(annotation, function.__globals__)
        for name, annotation in parameters.items()
    }
    names = list(rules)
    last = len(names) - 1 if many is None else many  # the parameter that takes all further arguments

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for i, value in enumerate(args):
            name = names[min(i, last)]
            rule = rules[name]
            if rule and not isinstance(value, rule[0]):
                expect(op, name, value, *rule)
        for name, value in kwargs.items():
            rule = rules.get(name)
            if rule and not isinstance(value, rule[0]):
                expect(op, name, value, *rule)
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]
