"""The finder of ``torch``: each of its modules is the module of Vesta with that name, the same object.

Where Vesta has none, the folder ``only/`` may: modules that mean nothing outside of PyTorch programs (``torch.jit``).
What is left of PyTorch's modules is made when it is imported, and its names refuse when they are used
(``missing.py``).

Note [One object, two names]
``sys.modules`` holds each module under both names. A copy of names instead would make two classes of one, or two
values of a setting. The import system writes ``__spec__`` of a module that it has loaded: the loader of the second name
restores it, so that a module still knows where it comes from.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from . import behaviour, naming

#: The folder of modules that exist for PyTorch programs only.
_ONLY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "only")

#: Modules of PyTorch that refuse although Vesta has one of the name: what programs give to them is PyTorch's alone.
_OTHERS = ("torch.utils.cpp_extension",)


def locate(theirs: str) -> Callable[[], ModuleType] | None:
    """Returns what imports the module of Vesta for a module ``torch...``; None if PyTorch has no such module either."""
    parent, _, name = theirs.rpartition(".")
    if not parent:
        return lambda: sys.modules["vesta"]
    above = sys.modules[parent]  # the import system has imported it
    spec = getattr(above, "__spec__", None)
    if spec is not None and spec.name.startswith("vesta") and theirs not in _OTHERS:
        ours = f"{spec.name}.{name}"
        if ours in sys.modules or PathFinder.find_spec(ours, getattr(above, "__path__", None) or []) is not None:
            return lambda: importlib.import_module(ours)
    parts = theirs.split(".")[1:]
    if any(os.path.exists(os.path.join(_ONLY, *parts) + end) for end in (".py", "/__init__.py")):
        return lambda: importlib.import_module("vesta.as_torch.only." + ".".join(parts))
    if os.path.exists(os.path.join(_ONLY, "__".join(parts) + ".py")):  # in a package that is Vesta's
        return lambda: importlib.import_module("vesta.as_torch.only." + "__".join(parts))
    from . import missing

    if theirs.startswith("torch.distributed._tensor.") and theirs not in missing.names():  # its older name
        return lambda: importlib.import_module(theirs.replace("._tensor.", ".tensor.", 1))
    return (lambda: missing.module(theirs)) if theirs in missing.names() else None


class _SecondName:
    """The loader of a module under its other name: it imports the module under its first one.

    Not the finder: what a finder has put into ``sys.modules`` the import system would load once more.
    """

    def __init__(self, load: Callable[[], ModuleType]) -> None:
        self.load = load
        self.spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = self.load()
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec

    def get_code(self, name: str) -> Any:
        """Returns the code of the module, for ``python -m``; None if it has none in Python."""
        spec = self.load().__spec__
        loader = spec.loader if spec is not None else None
        return loader.get_code(spec.name) if hasattr(loader, "get_code") else None  # type: ignore[union-attr]

    def is_package(self, name: str) -> bool:
        return hasattr(self.load(), "__path__")


class _Naming:
    """A loader of a module of Vesta that gives it its other name once it is executed."""

    def __init__(self, loader: Any, name: str) -> None:
        self.loader, self.name = loader, name

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        adopt(module)

    def get_code(self, name: str) -> Any:
        """Returns the code of the module; ``runpy`` asks by either name."""
        return self.loader.get_code(self.name)

    def get_source(self, name: str) -> Any:
        """Returns the text of the module; ``linecache`` asks by either name."""
        return self.loader.get_source(self.name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def adopt(module: ModuleType) -> None:
    """Gives a module of Vesta that is loaded PyTorch's name, PyTorch's behaviour, and names that refuse."""
    ours = module.__name__
    theirs = naming.rename(module)
    behaviour.apply(ours, module)
    attach(module, theirs)


def attach(module: ModuleType, theirs: str) -> None:
    """Lets a module of Vesta answer for PyTorch's names that it has not."""
    own = vars(module).get("__getattr__")
    values = vars(module)

    def own_attribute(name: str) -> Any:
        if name in values:
            return values[name]
        if own is None:
            raise AttributeError(name)
        return own(name)

    def __getattr__(name: str) -> Any:
        if own is not None:
            try:
                return own(name)
            except AttributeError:
                pass
        from . import missing  # not before a name is missed: it takes some milliseconds

        return missing.attribute(module, theirs, name)

    naming.own_attributes[theirs] = own_attribute
    values["__getattr__"] = __getattr__
    values.setdefault("__path__", [])  # PyTorch may have a package of the name, with modules that Vesta has not


class _Then:
    """A loader that calls a function once its module is executed."""

    def __init__(self, loader: Any, then: Callable[[], Any]) -> None:
        self.loader, self.then = loader, then

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.then()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


def _tables_in_optree() -> None:
    """Tells optree that the tables of modules are dicts, as PyTorch's are."""
    from optree import registry

    from vesta.nn.modules.registry import Registry

    registry.register_pytree_node(
        Registry,
        lambda table: (tuple(table.values()), tuple(table), tuple(table)),
        lambda names, values: dict(zip(names, values)),
        namespace=vars(registry)["__GLOBAL_NAMESPACE"],
    )


def _operators_of_torchvision() -> None:
    """Gives torchvision the operators of its extension, which cannot be loaded."""
    from .torchvision_operators import register

    register()


#: What is done when a library is loaded that counts on what is inside of PyTorch.
_TOLD = {"optree": _tables_in_optree, "torchvision.extension": _operators_of_torchvision}


def tell() -> None:
    """Tells the libraries of ``_TOLD`` that are loaded already."""
    for name in _TOLD:
        if name in sys.modules:
            _TOLD[name]()


class Finder:
    """Finds ``torch`` and what is below it, and names what is below ``vesta`` as it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.startswith("vesta."):
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None and naming.torch_module(name) != name:
                spec.loader = _Naming(spec.loader, name)  # type: ignore[assignment]
            return spec
        if name in _TOLD:
            spec = PathFinder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = _Then(spec.loader, _TOLD[name])  # type: ignore[assignment]
            return spec
        if name == "functorch":  # an old name of torch.func, a package of its own
            spec = PathFinder.find_spec(name, path, target)
            return spec or ModuleSpec(
                name, _SecondName(lambda: importlib.import_module("vesta.as_torch.only.functorch"))
            )  # type: ignore[arg-type]
        if name != "torch" and not name.startswith("torch."):
            return None
        load = locate(name)
        return None if load is None else ModuleSpec(name, _SecondName(load))  # type: ignore[arg-type]

    def invalidate_caches(self) -> None:
        """Does nothing: nothing is kept."""
