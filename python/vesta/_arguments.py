"""Checks of arguments by their annotations, for functions and constructors that are written in Python.

``@checked`` reads the annotations once; a call then costs a comparison of types per argument. What an annotation does
not say (a range, a combination) the function checks itself.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable as AnyCallable
from collections.abc import Iterable
from numbers import Integral, Number, Real
from operator import index

from ._C import Tensor

TYPE_CHECKING = False  # typing and re would be a third of the time of `import vesta`
if TYPE_CHECKING:
    from typing import Any, Callable, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "arguments_of",
    "checked",
    "class_of",
    "convert_hint",
    "expect",
    "is_pytorchs",
    "is_whole_number",
    "parameter_names",
    "python_number",
    "python_numbers",
]

#: What an annotation admits: the classes, and how an error names them.
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "Tensor": ((Tensor,), "Tensor"),
    "float": ((Real, Tensor), "float"),
    "Real": ((Real, Tensor), "float"),  # the alias of vesta._C._types
    "int": ((Integral,), "int"),
    "str": ((str,), "str"),
}
_ITERABLE = ("Iterable[", "Sequence[", "list[", "tuple[")


def _wider(classes: Any) -> tuple[type, ...]:
    """Returns the abstract classes of the numbers among ``classes``."""
    names = classes if isinstance(classes, tuple) else (classes,)
    return (Real,) if float in names else (Integral,) if int in names else ()


def is_whole_number(value: Any) -> bool:
    """Returns whether a value is one integer, as a size is: NumPy's too, but no truth value and no tensor."""
    if isinstance(value, (int, Tensor)):
        return isinstance(value, int) and not isinstance(value, bool)
    try:
        index(value)
    except TypeError:
        return False
    return True


def expect(op: str, name: str, value: Any, classes: Any, wanted: str) -> None:
    """Raises a TypeError that names the argument unless ``value`` is of one of ``classes``; numbers may be NumPy's."""
    if not isinstance(value, classes) and not isinstance(value, _wider(classes)):
        raise TypeError(f"{op}: expected {wanted}, got {type(value).__name__} ({name}).")


def python_number(value: Any) -> Any:
    """Returns the Python number in a 0-d tensor or a scalar of NumPy; anything else as it is."""
    if isinstance(value, (bool, int, float, complex)):
        return value
    if (isinstance(value, Tensor) and value.dim() == 0) or (isinstance(value, Number) and hasattr(value, "item")):
        return value.item()
    return value


def python_numbers(value: Any) -> Any:
    """Returns a number, or a list or tuple of them, as ``python_number`` returns each."""
    return type(value)(map(python_number, value)) if type(value) in (list, tuple) else python_number(value)


def called(op: str, function: AnyCallable, *args: Any) -> Any:
    """Returns ``function(*args)``; an error names ``op``, the function that the user called, not one inside it."""
    try:
        return function(*args)
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        import re

        text = str(error)
        found = re.match(r"[a-z0-9_.]+(\(\))?: ", text)  # the name of an op
        error.args = (f"{op}: {text[found.end() :]}" if found else text,)
        raise


def pytorch() -> Any:
    """Returns PyTorch where it runs beside Vesta in this process, else None."""
    torch = sys.modules.get("torch")
    return None if getattr(torch, "Tensor", Tensor) is Tensor else torch


def is_pytorchs(kind: type) -> bool:
    """Returns whether a class is PyTorch's, or derives from one, where PyTorch runs beside Vesta."""
    return pytorch() is not None and any(f"{base.__module__}.".startswith("torch.") for base in kind.__mro__)


def convert_hint(value: Any) -> str:
    """Returns what to do with an object of PyTorch's, for the end of a message; nothing for any other object."""
    return " Convert it with vesta.from_torch, which copies nothing." if is_pytorchs(type(value)) else ""


def class_of(made: Any) -> str:
    """Returns the name of an object's class as errors call it: the class of Vesta's that it derives from."""
    return next(cls.__name__ for cls in type(made).__mro__ if cls.__module__.startswith("vesta.") or cls is object)


def _is_int(value: Any, classes: Any) -> bool:
    """Returns whether a value is a tensor of one integer where integers are among ``classes``."""
    return Integral in classes and isinstance(value, Tensor) and value.numel() == 1 and type(value.item()) is int


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


def parameter_names(function: AnyCallable) -> tuple[str, ...]:
    """Returns the names of a function's parameters in their order, without those of ``*args`` and ``**kwargs``."""
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def arguments_of(function: AnyCallable) -> AnyCallable:
    """Makes a function that returns a call's arguments by name, in the order of the parameters, defaults included.

    A call that does not fit raises the TypeError that ``function`` itself raises for it. ``function`` has neither
    ``*args`` nor ``**kwargs``. (``inspect.signature`` does the same, ten times slower, and its import takes longer than
    all of ``import vesta.nn``.)

    Example::

        >>> from vesta._arguments import arguments_of
        >>> arguments_of(lambda x, y=2: None)(1)
        {'x': 1, 'y': 2}
    """
    names, count, last = parameter_names(function), function.__code__.co_argcount, function.__defaults__ or ()
    assert not function.__code__.co_flags & 0x0C, f"{function.__qualname__}: *args and **kwargs have no names"
    defaults = {**dict(zip(names[count - len(last) : count], last)), **(function.__kwdefaults__ or {})}
    known, required = set(names), set(names) - set(defaults)

    def arguments(*args: Any, **kwargs: Any) -> dict[str, Any]:
        by_place = dict(zip(names[:count], args))
        given = {**by_place, **kwargs}
        fits = len(args) == len(by_place) and len(given) == len(by_place) + len(kwargs)
        if not fits or not required <= given.keys() <= known:
            function(*args, **kwargs)
        return {name: given[name] if name in given else defaults[name] for name in names}

    return arguments


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
    constructs = function.__name__ == "__init__"
    last = len(names) - 1 if many is None else many  # the parameter that takes all further arguments

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for i, value in enumerate(args):
            name = names[min(i, last)]
            rule = rules[name]
            if rule and not isinstance(value, rule[0]) and not _is_int(value, rule[0]):
                expect(op, name, value, *rule)
        for name, value in kwargs.items():
            rule = rules.get(name)
            if rule and not isinstance(value, rule[0]) and not _is_int(value, rule[0]):
                expect(op, name, value, *rule)
        if not constructs:
            return function(*args, **kwargs)
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            text = str(error)
            if isinstance(error, TypeError) and text.startswith(f"{function.__qualname__}() ") and args:  # their number
                text = text.replace(function.__qualname__, f"{class_of(args[0])}.__init__", 1)
                raise TypeError(text) from None
            values = {**dict(zip(names, args)), **kwargs}
            given = {name: (value, str(parameters.get(name))) for name, value in values.items()}
            better = _blamed(error, args[0], given)
            if better is None:
                raise
            raise better from None

    return call  # type: ignore[return-value]


# ---- what an error inside a constructor says of its arguments ----

_LARGEST = 2**63 - 1


def _parts(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _wrong_size(text: str, value: Any) -> str | None:
    """Returns what is wrong with a size that an allocation refused with ``text``."""
    for part in _parts(value):
        if "must be int, not bool" in text and isinstance(part, bool):
            return "expected int, got bool"
        if "element of type" in text and (isinstance(part, (str, bytes)) or not isinstance(part, Integral)):
            return f"expected int, got {part!r}"
        if isinstance(part, int) and "negative dimension" in text and part < 0:
            return f"expected a size >= 0, got {part}"
        if isinstance(part, int) and "fit 64 bits" in text and part > _LARGEST:
            return f"expected a size that fits 64 bits, got {part}"
    return None


def _blamed(error: Any, made: Any, given: dict[str, tuple[Any, str]]) -> Exception | None:
    """Returns an error that names the argument of a constructor which caused one inside it; None: it is not known.

    Args:
        made: the object, whose class of Vesta's the error names.
        given: arguments and their annotations.
    """
    text = str(error)
    found: list[tuple[str, str, Any]] = []
    if hasattr(error, "blamed"):  # by a constructor inside this one, for a value that came from here
        what, cause = error.blamed
        found = [(name, what, v) for name, (v, _) in given.items() if type(v) is type(cause) and v is cause]
    elif text.startswith("bool:"):
        for name, (value, annotation) in given.items():
            if isinstance(value, Tensor) and value.numel() != 1 and "Tensor" not in annotation:
                what = f"expected {annotation}, got a tensor of {value.numel()} elements"
                found.append((name, what, value))
    elif text.startswith("empty"):
        for name, (value, annotation) in given.items():
            wrong = _wrong_size(text, value) if "int" in annotation.lower() else None
            if wrong is not None:
                found.append((name, wrong, value))
    if not found:
        return None
    exact = [one for one in found if f"dimension {one[2]} " in text]  # rather than what has nothing to do with sizes
    name, what, cause = (exact or found)[0]
    better = type(error)(f"{class_of(made)}: {what} ({name}).")
    better.blamed = what, cause
    return better
