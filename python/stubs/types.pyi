"""Names of the types that operations take; they exist for type checkers only."""

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import Any, Protocol, SupportsIndex, TypeAlias

from . import Tensor, device, dtype, layout, memory_format

Layout: TypeAlias = layout
MemoryFormat: TypeAlias = memory_format
Number: TypeAlias = bool | int | float | complex
DType: TypeAlias = dtype | type[bool] | type[int] | type[float] | type[complex]
Device: TypeAlias = device | str | int

class Array(Protocol):
    """What NumPy takes as an array, and Vesta as an operand, a subscript or data."""

    def __array__(self) -> Any: ...

class Items(Protocol):
    """A sequence of data that is no text: nested lists and tuples of numbers, tensors or arrays."""

    def __len__(self) -> int: ...
    def __getitem__(self, key: SupportsIndex, /) -> Number | Tensor | Array | Items: ...

Operand: TypeAlias = Tensor | Number | Array
Integers: TypeAlias = list[bool] | list[int] | list[list[bool]] | list[list[int]] | tuple[int, ...] | range
Key: TypeAlias = SupportsIndex | slice | EllipsisType | Tensor | Array | Integers | None
Index: TypeAlias = Key | tuple[Key, ...] | list[Tensor] | list[slice]
Data: TypeAlias = Tensor | Number | Array | Items
Hook: TypeAlias = Callable[[Tensor], Tensor | None]
Ints: TypeAlias = int | Sequence[int]
Sizes: TypeAlias = int | None | Sequence[int | None]
Floats: TypeAlias = float | Sequence[float]
Shape: TypeAlias = Sequence[int]
Real: TypeAlias = float | Tensor
