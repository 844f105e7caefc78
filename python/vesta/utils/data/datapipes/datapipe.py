"""The bases of data pipes: datasets that wrap one another, with methods that are registered by name."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from vesta.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class DataChunk(list):
    """A list of samples that came together.

    Raises:
        TypeError: ``items`` is not iterable.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        if not isinstance(items, Iterable):
            raise TypeError(f"DataChunk: expected a list of samples, got {type(items).__name__} (items).")
        super().__init__(items)
        self.items = list(self)

    def as_str(self, indent: str = "") -> str:
        """Returns the chunk as text."""
        return indent + "[" + ", ".join(map(str, self)) + "]"

    def raw_iterator(self) -> Iterator[Any]:
        """Returns the samples, one after the other."""
        yield from self.items


class _Functional:
    """A base that finds methods in a registry, ``functions``; the standard ones are registered when a method is first
    missing."""

    functions: dict[str, Callable[..., Any]]
    _standard = ""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            importlib.import_module(self._standard)
            if name in self.functions:
                return functools.partial(self.functions[name], self)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Makes ``pipe.function_name(...)`` call ``function(pipe, ...)``."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Callable[..., Any], enable_df_api_tracing: bool = False
    ) -> None:
        """Does the same for a class of pipes; a name that is taken is an error."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")
        cls.functions[function_name] = cls_to_register

    def __dir__(self) -> list[str]:
        importlib.import_module(self._standard)
        return [*super().__dir__(), *self.functions]

    def __repr__(self) -> str:
        return type(self).__qualname__


class _Only:
    """An iterator that is valid until its pipe has another one."""

    def __init__(self, pipe: IterDataPipe, stream: Iterator[Any]) -> None:
        self._pipe, self._stream = pipe, stream
        self._number = pipe._valid_iterator_id = (pipe._valid_iterator_id or 0) + 1

    def __iter__(self) -> _Only:
        return self

    def __next__(self) -> Any:
        if self._pipe._valid_iterator_id != self._number:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from the same "
                f"IterDataPipe: {self._pipe!r}. There can be one at a time."
            )
        return next(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class IterDataPipe(_Functional, IterableDataset[T_co]):
    """The base of pipes that are streams: define ``__iter__``. ``iter(pipe)`` calls ``reset()`` and invalidates older
    iterators.

    Example::

        >>> from vesta.utils.data.datapipes.iter import IterableWrapper
        >>> list(IterableWrapper(range(5)).map(lambda x: x * x).batch(2))
        [[0, 1], [4, 9], [16]]
    """

    functions: dict[str, Callable[..., Any]] = {}
    _standard = "vesta.utils.data.datapipes.iter"
    _valid_iterator_id: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("__iter__")
        if own is None:
            return

        @functools.wraps(own)
        def opened(self: Any) -> Iterator[Any]:
            if type(self).__iter__ is not opened:  # a subclass calls its base's method
                return own(self)
            self.reset()
            return _Only(self, own(self))

        cls.__iter__ = opened  # type: ignore[method-assign]

    def reset(self) -> None:
        """Goes back to the start; called by ``iter``."""

    def __add__(self, other: Any) -> Any:
        return self.concat(other)

    def _set_shuffle(self, shuffle: bool) -> None:
        """Turns the shuffling of this pipe, and of all pipes inside it, on or off."""
        for pipe in pipes_of(self):
            if hasattr(type(pipe), "set_shuffle"):
                pipe.set_shuffle(shuffle)


class MapDataPipe(_Functional, Dataset[T_co]):
    """The base of pipes with samples by key: define ``__getitem__``, and ``__len__`` for most samplers."""

    functions: dict[str, Callable[..., Any]] = {}
    _standard = "vesta.utils.data.datapipes.map"


def pipes_of(pipe: Any) -> list[Any]:
    """Lists a pipe and all pipes inside it."""
    found, todo = [], [pipe]
    while todo:
        one = todo.pop()
        if any(one is known for known in found):
            continue
        found.append(one)
        for value in vars(one).values():
            parts = value if isinstance(value, (list, tuple)) else [value]
            todo += [part for part in parts if isinstance(part, (IterDataPipe, MapDataPipe))]
    return found


class functional_datapipe:
    """Decorates a class of pipes, so that ``pipe.name(...)`` makes one over ``pipe``.

    Args:
        name: the name of the method.
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: type[T]) -> type[T]:
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise TypeError("`functional_datapipe` can only decorate IterDataPipe")
