"""What a program can see of names says ``torch``: ``__module__`` of classes and functions, ``repr`` of values.

A module of Vesta is renamed when it is loaded, with the classes and functions that it defines; pickles name these by
``__module__`` and qualified name. Values print with the package's name from C++, so that their ``__repr__`` is wrapped:
of dtypes, sizes, layouts, tensors and named results, none of which a program prints in a loop that matters.
"""

from __future__ import annotations

import copyreg
import sys
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

from vesta import _C
from vesta._torch_homes import MOVED

#: How a module of Vesta finds its own names, by its name in PyTorch; the finder enters each.
own_attributes: dict[str, Callable[[str], Any]] = {}

_NAMED = (type, FunctionType, BuiltinFunctionType)


def torch_module(ours: str) -> str:
    """Returns the name in PyTorch of a module of Vesta; the name itself for ``vesta.as_torch`` and what is no part."""
    if ours.startswith("vesta.as_torch.only."):
        return "torch." + ours[len("vesta.as_torch.only.") :].replace("__", ".")
    if ours == "vesta" or (ours.startswith("vesta.") and not ours.startswith("vesta.as_torch")):
        return "torch" + ours[len("vesta") :]
    return ours


def rename(module: ModuleType) -> str:
    """Gives a module, and the classes and functions in it, their names in PyTorch; returns the module's."""
    theirs = torch_module(module.__name__)
    sys.modules[theirs] = module
    module.__name__ = theirs
    for value in list(vars(module).values()):
        if isinstance(value, _NAMED):
            _rename_object(value)
    return theirs


def _rename_object(value: Any) -> None:
    home = value.__module__
    if type(home) is not str or not home.startswith("vesta"):
        return
    theirs = MOVED.get((home, value.__name__)) or torch_module(home)
    if theirs != home:
        try:
            value.__module__ = theirs
        except (AttributeError, TypeError):  # a type that cannot be changed
            return


def _say_torch(show: Callable[[Any], str]) -> Callable[[Any], str]:
    def __repr__(self: Any) -> str:
        return show(self).replace("vesta.", "torch.")

    return __repr__


def _show_results(self: Any) -> str:
    """Shows a named result as C++ does, which cannot be asked for it once ``__repr__`` is set."""
    fields = [name for name, value in vars(type(self)).items() if isinstance(value, MemberDescriptorType)]
    shown = ",\n".join(f"{name}={value!r}" for name, value in zip(fields, self))
    return f"torch.return_types.{type(self).__name__}(\n{shown})"


def _rename_values() -> None:
    """Wraps how values print that name the package."""
    for kind in (value for value in vars(_C._return_types).values() if isinstance(value, type)):
        kind.__repr__ = _show_results  # type: ignore[method-assign, assignment]
        _rename_object(kind)
    for kind in (_C.dtype, _C.Size, _C.layout, _C.memory_format, _C.Generator):
        kind.__repr__ = _say_torch(kind.__repr__)  # type: ignore[method-assign, assignment]
        if "__str__" in vars(kind):
            kind.__str__ = _say_torch(kind.__str__)  # type: ignore[method-assign, assignment]
        _rename_object(kind)
    show = _C.Tensor.__repr__

    def __repr__(self: Any, *, tensor_contents: Any = None) -> str:
        text = show(self)
        return text.replace("vesta.", "torch.") if "vesta." in text else text

    _C.Tensor.__repr__ = __repr__  # type: ignore[method-assign]


#: The library's exception classes and the names that PyTorch's have, so that ``type(error).__name__`` and tracebacks
#: say what they do there. Their classes stay as they are: ``except ValueError`` catches an ArgumentError.
_ERRORS = {
    "Error": ("builtins", "RuntimeError"),
    "ArgumentError": ("builtins", "RuntimeError"),
    "DTypeError": ("builtins", "RuntimeError"),
    "DeviceError": ("builtins", "RuntimeError"),
    "LinAlgError": ("torch._C", "_LinAlgError"),
}


def _error(name: str, args: tuple[Any, ...]) -> Exception:
    """Makes an exception again that was pickled."""
    return getattr(_C, name)(*args)


def _rename_errors() -> None:
    for ours, (module, name) in _ERRORS.items():
        kind = getattr(_C, ours)
        kind.__module__, kind.__name__, kind.__qualname__ = module, name, name
        copyreg.pickle(kind, lambda error, ours=ours: (_error, (ours, error.args)))


def install(adopt: Callable[[ModuleType], None]) -> None:
    """Renames what is loaded and has ``adopt`` do the rest; what is loaded later is renamed by its loader."""
    _rename_values()
    _rename_errors()
    for value in list(vars(_C).values()):  # parts of the extension, which is one file
        if isinstance(value, ModuleType) and value.__name__.startswith("vesta._C."):
            sys.modules.setdefault(value.__name__, value)
    loaded = [(name, module) for name, module in sys.modules.items() if torch_module(name) != name]
    for name, module in sorted(loaded, key=lambda entry: entry[0], reverse=True):  # the package comes last
        if getattr(module, "__name__", None) == name:
            adopt(module)
