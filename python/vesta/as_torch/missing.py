"""What PyTorch has and Vesta has not: it can be imported and tested for, and raises a sentence when it is used.

``names.txt`` lists PyTorch's modules with their public names; a name of it that Vesta has not is a class made by
``Refused``. A class, because programs subclass, annotate with, and test ``isinstance`` of what they never make. Names
that PyTorch has not either are AttributeErrors as ever, so that ``hasattr`` tells versions apart.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType
from typing import Any

from . import extras
from .naming import own_attributes

#: Why something is missing, by the beginning of its name; the longest beginning holds.
REASONS = {
    "torch": "Vesta does not have it yet",
    "torch._C": "it is inside of PyTorch's library, and Vesta's is another one",
    "torch._dynamo": "Vesta runs programs as they are written and compiles nothing",
    "torch._export": "Vesta does not record programs; save a state_dict() instead",
    "torch._functorch": "Vesta does not transform functions; vesta.autograd.grad gives derivatives",
    "torch._inductor": "Vesta runs programs as they are written and compiles nothing",
    "torch._lazy": "Vesta runs every operation at once",
    "torch._numpy": "NumPy is what it imitates; use numpy, and vesta.from_numpy",
    "torch.ao": "Vesta has no quantized values; use float16 or bfloat16",
    "torch.classes": "classes of C++ come from PyTorch's extensions, which Vesta cannot load",
    "torch.compiler": "Vesta runs programs as they are written and compiles nothing",
    "torch.export": "Vesta does not record programs; save a state_dict() instead",
    "torch.fx": "Vesta records programs as graphs, but has not this part of it",
    "torch.hub": "Vesta downloads nothing; hub.load and load_state_dict_from_url read local files and the cache",
    "torch.jit": "Vesta does not compile or record programs; they run as they are written",
    "torch.masked": "Vesta has no masked tensors; give mask= to the functions of vesta.masked",
    "torch.monitor": "Vesta has no monitor; use a logger",
    "torch.mps": "Vesta computes on the CPU and on CUDA devices",
    "torch.mtia": "Vesta computes on the CPU and on CUDA devices",
    "torch.nested": "Vesta has no nested tensors; pad the sequences",
    "torch.nn.attention.flex_attention": "it needs a compiler; use nn.functional.scaled_dot_product_attention",
    "torch.onnx": "Vesta does not record programs, which an ONNX file needs",
    "torch.package": "Vesta does not pack programs; save a state_dict() instead",
    "torch.quantization": "Vesta has no quantized values; use float16 or bfloat16",
    "torch.sparse": "Vesta has sparse tensors as coordinates, and matrices in CSR and CSC",
    "torch.utils.cpp_extension": "extensions are compiled against PyTorch's headers; Vesta's are another library's",
    "torch.utils.mobile_optimizer": "Vesta does not record programs",
    "torch.xpu": "Vesta computes on the CPU and on CUDA devices",
}
_NAMES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "names.txt")
_table: dict[str, dict[str, str]] = {}


def reason(name: str) -> str:
    """Returns why ``torch...`` is missing, as the second half of a sentence."""
    while name not in REASONS:
        name = name.rpartition(".")[0]
    return REASONS[name]


def names() -> dict[str, dict[str, str]]:
    """Returns PyTorch's modules with their public names: for each the package above that has the same object, or ""."""
    if not _table:
        with open(_NAMES, encoding="utf-8") as file:
            for line in file:
                module, _, rest = line.partition(":")
                parts = (entry.partition("@") for entry in rest.split())
                _table[module] = {name: home for name, _, home in parts}
    return _table


class Refused(type):
    """The class of names that PyTorch has and Vesta has not; they stay classes whatever they are in PyTorch."""

    __refuses__ = True

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        name = next(kind.__dict__["_name"] for kind in cls.__mro__ if "_name" in kind.__dict__)
        raise NotImplementedError(f"{name} is not available: {reason(name)}.")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}")
        return refused(f"{cls._name}.{name}")  # type: ignore[attr-defined]

    def __getitem__(cls, key: Any) -> Any:
        return cls  # in an annotation

    def __iter__(cls) -> Any:
        return cls()  # it raises; without this, iteration would ask __getitem__ for ever

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__qualname__}'>"


def refused(name: str) -> Refused:
    """Makes the class for a name ``torch...`` that is missing."""
    home, _, own = name.rpartition(".")
    doc = f"Not available: {reason(name)}."
    return Refused(own, (), {"__module__": home, "__doc__": doc, "_name": name})


def attribute(module: ModuleType, theirs: str, name: str) -> Any:
    """Returns what a module of ``torch`` has besides Vesta's names.

    Raises:
        AttributeError: PyTorch has no such name either.
    """
    full = f"{theirs}.{name}"
    if not name.startswith("__"):
        found = extras.find(full)
        if found is None and full in names():
            found = import_module(full)
        if found is None:
            found = _by_table(module, theirs, name)
        if found is not None:
            setattr(module, name, found)
            return found
    raise AttributeError(f"module {theirs!r} has no attribute {name!r}")


def _by_table(module: ModuleType, theirs: str, name: str) -> Any:
    """Returns the object of a package above that PyTorch has here too, or a refusal; None: PyTorch has no such name."""
    listed = names().get(theirs, {})
    inside = theirs in OPEN or (theirs in names() and not listed)  # nobody knows what programs look for there
    if name not in listed and not inside:
        return None
    found = _above(theirs, name, listed.get(name))
    if name not in listed and not isinstance(found, type):
        found = None
    if found is None and _asks(theirs, name):
        return extras.no
    return refused(f"{theirs}.{name}") if found is None else found


def _asks(theirs: str, name: str) -> bool:
    """Returns whether a name is a question that programs ask before they use what is missing: the answer is no."""
    inside = theirs.startswith("torch._") and name.startswith("is_")
    return name == "is_available" or (inside and name.endswith(("_available", "_supported", "_enabled")))


def _above(theirs: str, name: str, home: str | None) -> Any:
    """Returns the object in the package ``home``, or in any above if it is None; None if Vesta has none."""
    parent = theirs.rpartition(".")[0] if home is None else home
    while parent:
        try:
            value = own_attributes[parent](name)
        except (AttributeError, KeyError):
            value = None
        if value is not None and not isinstance(value, (ModuleType, Refused)):
            return value
        parent = parent.rpartition(".")[0] if home is None else ""
    return None


#: Modules inside of PyTorch in which programs look for any name, though Vesta has some.
OPEN = ("torch._C",)


class Rest(ModuleType):
    """A module of PyTorch for which Vesta has none of its own.

    Names that Vesta has in a package above it are the same here (``torch.nn.modules.rnn.LSTM`` is ``torch.nn.LSTM``);
    the others refuse.
    """

    def __getattr__(self, name: str) -> Any:
        return attribute(self, self.__name__, name)

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *names().get(self.__name__, ())})


def module(theirs: str) -> ModuleType:
    """Makes the module ``torch...`` for which Vesta has none."""
    made = Rest(theirs, f"Not available: {reason(theirs)}.")
    made.__path__ = []  # type: ignore[attr-defined]
    made.__all__ = [name for name in names()[theirs] if not name.startswith("_")]  # type: ignore[attr-defined]
    return made
