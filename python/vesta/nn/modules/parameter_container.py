"""Containers of parameters: a list and a dict. Tensors become parameters when they are put in; other values do not
change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, overload

from vesta import Tensor
from vesta.nn.modules.container import place
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["ParameterDict", "ParameterList"]


def _as_parameter(value: Any) -> Any:
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _line(name: Any, value: Any, dtype: Callable[[Tensor], Any]) -> str:
    """Returns the text of one entry in ``repr``; ``dtype`` gives that of a tensor."""
    if not isinstance(value, Tensor):
        return f"({name}): Object of type: {type(value).__name__}"
    size = "x".join(str(size) for size in value.size())
    device = "" if value.device.type == "cpu" else f" ({value.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"({name}): {kind} containing: [{dtype(value)} of size {size}{device}]"


class _ParameterContainer(Module):
    """The common part of both: printing, and a ``forward`` that raises."""

    def _entries(self) -> Iterable[tuple[Any, Any]]:
        raise NotImplementedError

    _dtype: Callable[[Tensor], Any] = staticmethod(lambda value: value.dtype)

    def extra_repr(self) -> str:
        """Returns a line for each entry."""
        return "\n".join("  " + _line(name, value, self._dtype) for name, value in self._entries())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{type(self).__name__} should not be called.")


class ParameterList(_ParameterContainer):
    """A list of parameters, registered under "0", "1", ....

    Args:
        values: any iterable.

    Example::

        >>> import vesta
        >>> weights = vesta.nn.ParameterList([vesta.zeros(2), vesta.zeros(3)])
        >>> [tuple(weight.shape) for weight in weights]
        [(2,), (3,)]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def _entries(self) -> Iterable[tuple[Any, Any]]:
        return enumerate(self)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (getattr(self, str(i)) for i in range(self._size))

    @overload
    def __getitem__(self, index: int) -> Parameter: ...
    @overload
    def __getitem__(self, index: slice) -> ParameterList: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.__class__(list(self)[index])
        return getattr(self, str(place(index, self._size)))

    def __setitem__(self, index: Any, value: Any) -> None:
        setattr(self, str(place(index, self._size)), _as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end; returns the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end; returns the list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)


class ParameterDict(_ParameterContainer):
    """A dict of registered parameters; it keeps the order of insertion.

    Args:
        parameters: a mapping, or an iterable of (name, value).

    Example::

        >>> import vesta
        >>> weights = vesta.nn.ParameterDict({"left": vesta.zeros(2), "right": vesta.zeros(3)})
        >>> list(weights.keys())
        ['left', 'right']
    """

    _dtype = staticmethod(lambda value: value.type())  # PyTorch's two containers differ here

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _entries(self) -> Iterable[tuple[Any, Any]]:
        return self.items()

    @staticmethod
    def _checked(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key: str) -> Parameter:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, self._checked(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._checked(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def __or__(self, other: ParameterDict) -> ParameterDict:
        result = self.copy()
        result.update(other)
        return result

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def copy(self) -> ParameterDict:
        """Returns a dict of the same parameters."""
        return ParameterDict(self.items())

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Returns the value under ``key``, which is set to ``default`` if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Removes every value."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Removes and returns the value under ``key``."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Removes and returns the last (key, value)."""
        key = list(self._keys)[-1]
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Returns the value under ``key``, or ``default``."""
        return getattr(self, key) if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Returns a dict with ``default`` under each of ``keys``."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """Returns the names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Returns (name, value) pairs."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """Returns the values."""
        return [self[key] for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Sets every (name, value) of a mapping or an iterable of pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        pairs = parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        for pair in pairs:
            if not isinstance(pair, (tuple, list)) or len(pair) != 2:
                raise TypeError(f"ParameterDict.update: expected pairs of a key and a value, got {pair!r}.")
            self[pair[0]] = pair[1]
