"""Pipes over samples with numbers or keys."""

from __future__ import annotations

import bisect
import copy
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from vesta.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe
from vesta.utils.data.seeding import draw_seed

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapper(MapDataPipe[Any]):
    """The samples of a list or dict, of which a copy is made."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class Mapper(MapDataPipe[Any]):
    """``fn`` of every sample."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = lambda sample: sample) -> None:
        self.datapipe, self.fn = datapipe, fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("concat")
class Concater(MapDataPipe[Any]):
    """Pipes one after the other; their keys are numbers from 0."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        ends = list(itertools.accumulate(map(len, self.datapipes)))
        which = bisect.bisect_right(ends, index)
        if which == len(ends):
            raise IndexError(f"Index {index} is out of range.")
        return self.datapipes[which][index - (ends[which - 1] if which else 0)]

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class Zipper(Concater):
    """Tuples of the samples with one number in each pipe."""

    def __getitem__(self, index: int) -> Any:
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("batch")
class Batcher(MapDataPipe[DataChunk]):
    """Chunks of ``batch_size`` samples."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: type = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __getitem__(self, index: int) -> DataChunk:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        first = index * self.batch_size
        last = min(first + self.batch_size, len(self.datapipe))
        return self.wrapper_class([self.datapipe[i] for i in range(first, last)])

    def __len__(self) -> int:
        count = len(self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class Shuffler(IterDataPipe[Any]):
    """The samples of a pipe with numbers, or with these keys, in a random order: a stream."""

    def __init__(self, datapipe: Any, *, indices: Any = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else list(indices)
        self._enabled, self._seed = True, None

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Turns shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """Chooses the order of the next pass."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        order = list(self.indices)
        if self._enabled:
            seed, self._seed = self._seed, None
            random.Random(draw_seed() if seed is None else seed).shuffle(order)
        return (self.datapipe[index] for index in order)

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", Shuffler)  # a stream, and not a method of streams
