"""Containers of modules: a chain, a list, a dict. Those of parameters are in ``parameter_container.py``."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, overload

from vesta import Tensor
from vesta.nn.modules import convolution_relu, linear_activation
from vesta.nn.modules.linear_activation import may_join, uses_gelu
from vesta.nn.modules.module import Module, _indented

if TYPE_CHECKING:
    from typing_extensions import Self
else:
    Self = Any  # for get_type_hints()

__all__ = ["ModuleDict", "ModuleList", "Sequential"]


def place(index: Any, length: int) -> int:
    """Converts an index, counted from the end if negative, to a position in ``range(length)``."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range")
    return index % length


class _Numbered(Module):
    """A list of modules, kept under the names "0", "1", ...; a slice of it is of the same class."""

    def _names(self) -> list[str]:
        return list(self._modules)

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Self:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @overload
    def __getitem__(self, index: int) -> Module: ...
    def __getitem__(self, index: slice | int) -> Self | Module:
        if isinstance(index, slice):
            return self._like(list(self._modules.items())[index])
        return self._modules[self._names()[place(index, len(self))]]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._names()[place(index, len(self))], module)

    def __delitem__(self, index: slice | int) -> None:
        names = self._names()
        for name in names[index] if isinstance(index, slice) else [names[place(index, len(self))]]:
            delattr(self, name)
        self._table("_modules").replace([(str(i), module) for i, module in enumerate(self._modules.values())])

    def pop(self, key: int = -1) -> Module:
        """Removes and returns the module at a place; later ones move up."""
        module = self[key]
        del self[key]
        return module

    def append(self, module: Module) -> Self:
        """Adds a module at the end; returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Adds modules at the end; returns the container."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def _insert(self, index: int, module: Module) -> None:
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._table("_modules").replace([(str(i), module) for i, module in enumerate(modules)])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)


class Sequential(_Numbered):
    """A chain of modules, each called on the output of the one before.

    Args:
        modules: the modules in order, or one ``OrderedDict`` of them by name.

    Example::

        >>> import vesta
        >>> model = vesta.nn.Sequential(vesta.nn.Linear(4, 8), vesta.nn.ReLU(), vesta.nn.Linear(8, 2))
        >>> model(vesta.zeros(3, 4)).shape
        vesta.Size([3, 2])
    """

    @overload
    def __init__(self, *modules: Module) -> None: ...
    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...
    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], OrderedDict):
            for name, module in modules[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(modules):
                self.add_module(str(i), module)

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Self:
        return self.__class__(OrderedDict(modules))

    def forward(self, input: Any) -> Tensor:
        """Returns the last module's output."""
        if may_join(input):
            return self._join(input)
        for module in self._modules.values():
            input = module(input)
        return input

    def _join(self, input: Any) -> Any:
        """Runs the chain, a layer together with the activation behind it where one op computes both."""
        modules = list(self._modules.values())
        at = 0
        while at < len(modules):
            # A module that has run may have added hooks or entered a mode.
            pairs = at + 1 < len(modules) and may_join(input)
            use_gelu = uses_gelu(modules[at], modules[at + 1]) if pairs else None
            if use_gelu is not None:
                input = linear_activation.call(modules[at], use_gelu, input)
                at += 2
            elif pairs and convolution_relu.joins(modules[at], modules[at + 1], input):
                input = convolution_relu.call(modules[at], input)
                at += 2
            else:
                input = modules[at](input)
                at += 1
        return input

    def insert(self, index: int, module: Module) -> Sequential:
        """Puts a module before the one at ``index``; returns the container."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        self._insert(index if index >= 0 else index + len(self), module)
        return self

    def __add__(self, other: Sequential) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*(list(self) * _checked_times(times)))

    __rmul__ = __mul__

    def __imul__(self, times: int) -> Sequential:
        return self.extend(list(self) * (_checked_times(times) - 1))


def _checked_times(times: Any) -> int:
    if not isinstance(times, int):
        raise TypeError(f"unsupported operand type(s) for *: {Sequential} and {type(times)}")
    if times <= 0:
        raise ValueError(f"Non-positive multiplication factor {times} for {Sequential}")
    return times


class ModuleList(_Numbered):
    """A list of registered modules; it has no ``forward``.

    Args:
        modules: any iterable of modules.

    Example::

        >>> import vesta
        >>> layers = vesta.nn.ModuleList(vesta.nn.Linear(2, 2) for _ in range(3))
        >>> layers
        ModuleList(
          (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
        )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def _like(self, modules: Iterable[tuple[str, Module]]) -> Self:
        return self.__class__([module for _, module in modules])

    def insert(self, index: int, module: Module) -> None:
        """Puts a module before the one at ``index``, as ``list.insert`` does."""
        self._insert(index, module)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        """Returns the list with equal neighbours as one line: ``(0-2): 3 x Linear(...)``."""
        if not self._modules:
            return f"{self._get_name()}()"
        runs: list[list[Any]] = []  # [first, last, text]
        for i, text in enumerate(map(repr, self)):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [
            f"({first}): {_indented(text)}"
            if first == last
            else f"({first}-{last}): {_indented(f'{last - first + 1} x {text}')}"
            for first, last, text in runs
        ]
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dict of registered modules; it keeps the order of insertion and has no ``forward``.

    Args:
        modules: a mapping, or an iterable of (name, module).

    Example::

        >>> import vesta
        >>> choices = vesta.nn.ModuleDict({"relu": vesta.nn.ReLU(), "tanh": vesta.nn.Tanh()})
        >>> choices["tanh"](vesta.zeros(1))
        tensor([0.])
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, name: str) -> Module:
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._table("_modules")[name]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, name: str) -> bool:
        return name in self._modules

    def clear(self) -> None:
        """Removes every module."""
        self._table("_modules").clear()

    def pop(self, key: str) -> Module:
        """Removes and returns the module under a name."""
        return self._table("_modules").pop(key)

    def keys(self) -> KeysView[str]:
        """Returns the names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Module]:
        """Returns (name, module) pairs."""
        return self._modules.items()

    def values(self) -> ValuesView[Module]:
        """Returns the modules."""
        return self._modules.values()

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | ModuleDict) -> None:
        """Sets every (name, module) of a mapping or an iterable of pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        pairs = modules.items() if isinstance(modules, (Mapping, ModuleDict)) else modules
        for i, pair in enumerate(pairs):
            if not isinstance(pair, Iterable):
                raise TypeError(f"ModuleDict update sequence element #{i} should be Iterable; is {type(pair).__name__}")
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueError(f"ModuleDict update sequence element #{i} has length {len(pair)}; 2 is required")
            self[pair[0]] = pair[1]
