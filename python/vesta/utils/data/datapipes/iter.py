"""Pipes over streams."""

from __future__ import annotations

import copy
import fnmatch
import os
import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from vesta.utils.data import SequentialSampler, default_collate, get_worker_info
from vesta.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, functional_datapipe
from vesta.utils.data.seeding import draw_seed

__all__ = [
    "Batcher", "Collator", "Concater", "FileLister", "FileOpener", "Filter", "IterableWrapper", "Mapper",
    "Multiplexer", "Sampler", "ShardingFilter", "Shuffler", "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip


def _length_of(pipe: Any, of: Any) -> int:
    if not hasattr(type(of), "__len__"):
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return len(of)


class IterableWrapper(IterDataPipe[Any]):
    """The samples of an iterable; each pass reads a copy of it, if it can be copied."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification would affect "
                    "source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return _length_of(self, self.iterable)


@functional_datapipe("map")
class Mapper(IterDataPipe[Any]):
    """``fn`` of every sample, or of some columns of it.

    Args:
        input_col: the index or key, or a list of them, of the arguments of ``fn``; default: the whole sample.
        output_col: where the result goes; default: ``input_col`` (the first); -1 appends it.
    """

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) != 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _mapped(self, sample: Any) -> Any:
        columns = self.input_col
        if columns is None:
            return self.fn(sample)
        many = isinstance(columns, (list, tuple))
        result = self.fn(*(sample[i] for i in columns)) if many else self.fn(sample[columns])
        made = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if self.output_col is None:
            made[columns[0] if many else columns] = result
            for i in sorted(columns[1:], reverse=True) if many else ():
                del made[i]
        elif self.output_col == -1:
            made.append(result)
        else:
            made[self.output_col] = result
        return tuple(made) if isinstance(sample, tuple) else made

    def __iter__(self) -> Iterator[Any]:
        return map(self._mapped, self.datapipe)

    def __len__(self) -> int:
        return _length_of(self, self.datapipe)


@functional_datapipe("collate")
class Collator(Mapper):
    """Batches made from lists of samples; by ``default_collate`` if no function is given."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        super().__init__(datapipe, collate_fn or conversion)


@functional_datapipe("filter")
class Filter(IterDataPipe[Any]):
    """The samples for which ``filter_fn`` is true, of the sample or of some columns."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., bool], input_col: Any = None) -> None:
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            columns = self.input_col
            if columns is None:
                keep = self.filter_fn(sample)
            elif isinstance(columns, (list, tuple)):
                keep = self.filter_fn(*(sample[i] for i in columns))
            else:
                keep = self.filter_fn(sample[columns])
            if keep not in (True, False):
                raise ValueError(f"Boolean output is required for `filter_fn` of Filter, got {type(keep)}")
            if keep:
                yield sample


@functional_datapipe("batch")
class Batcher(IterDataPipe[DataChunk]):
    """Chunks of ``batch_size`` samples."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: type = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size, self.drop_last = datapipe, batch_size, drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[DataChunk]:
        samples: list[Any] = []
        for sample in self.datapipe:
            samples.append(sample)
            if len(samples) == self.batch_size:
                yield self.wrapper_class(samples)
                samples = []
        if samples and not self.drop_last:
            yield self.wrapper_class(samples)

    def __len__(self) -> int:
        count = _length_of(self, self.datapipe)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcher(IterDataPipe[Any]):
    """The members of chunks, ``unbatch_level`` deep; -1: all levels."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _parts(self, element: Any, level: int) -> Iterator[Any]:
        nested = isinstance(element, list)
        if level > 0 and not nested:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        if level == 0 or not nested:
            yield element
            return
        for part in element:
            yield from self._parts(part, level - 1)

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._parts(element, self.unbatch_level)


@functional_datapipe("shuffle")
class Shuffler(IterDataPipe[Any]):
    """The samples in a random order, as far as a buffer of ``buffer_size`` allows.

    All workers of a loader have the same order, so that a ``sharding_filter`` after it divides it.
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._enabled, self._seed = True, None

    def set_shuffle(self, shuffle: bool = True) -> Shuffler:
        """Turns shuffling on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> Shuffler:
        """Chooses the order of the next pass."""
        self._seed = seed
        return self

    def _begin(self) -> int:
        seed, self._seed = self._seed, None
        if seed is not None:
            return seed
        info = get_worker_info()
        return draw_seed() if info is None else info.seed - info.id

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        chance = random.Random(self._begin())
        buffer: list[Any] = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
                continue
            i = chance.randrange(self.buffer_size)
            sample, buffer[i] = buffer[i], sample
            yield sample
        chance.shuffle(buffer)
        yield from buffer

    def __len__(self) -> int:
        return _length_of(self, self.datapipe)


@functional_datapipe("sharding_filter")
class ShardingFilter(IterDataPipe[Any]):
    """Every n-th sample: in a worker of a loader, the worker's part, unless ``apply_sharding`` was called."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        self.source_datapipe = source_datapipe
        self._part: tuple[int, int] | None = None

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Chooses the part with number ``instance_id`` of ``num_of_instances``."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        self._part = num_of_instances, instance_id

    def _whole(self) -> tuple[int, int]:
        info = get_worker_info()
        return self._part or ((1, 0) if info is None else (info.num_workers, info.id))

    def __iter__(self) -> Iterator[Any]:
        count, number = self._whole()
        return (sample for i, sample in enumerate(self.source_datapipe) if i % count == number)

    def __len__(self) -> int:
        count, number = self._whole()
        return (_length_of(self, self.source_datapipe) - number + count - 1) // count


@functional_datapipe("sampler")
class Sampler(IterDataPipe[Any]):
    """The results of a sampler over the pipe."""

    def __init__(
        self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None, **kwargs: Any
    ) -> None:
        self.datapipe = datapipe
        options = {**(kwargs.pop("sampler_kwargs", None) or {}), "data_source": datapipe}
        self.sampler = sampler(*(sampler_args or ()), **options)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return _length_of(self, self.sampler)


@functional_datapipe("concat")
class Concater(IterDataPipe[Any]):
    """Streams one after the other."""

    def __init__(self, *datapipes: Any) -> None:
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(_length_of(self, pipe) for pipe in self.datapipes)


def _check_pipes(datapipes: tuple[Any, ...]) -> None:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")


@functional_datapipe("zip")
class Zipper(Concater):
    """Tuples of one sample of each stream, until one ends."""

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes)

    def __len__(self) -> int:
        return min(_length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(Zipper):
    """One sample of each stream in turn, until the first one ends."""

    def __iter__(self) -> Iterator[Any]:
        for samples in zip(*self.datapipes):
            yield from samples

    def __len__(self) -> int:
        return super().__len__() * len(self.datapipes)


@functional_datapipe("list_files")
class FileLister(IterDataPipe[str]):
    """The paths of files below a folder, or several.

    Args:
        masks: one or more patterns for the names of the files; if empty, any name.
        recursive: whether to search subfolders.
        abspath: give absolute paths.
        non_deterministic: do not sort them.
    """

    def __init__(
        self,
        root: Any = ".",
        masks: Any = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        self.datapipe = [root] if isinstance(root, (str, os.PathLike)) else root
        self.masks = [masks] if isinstance(masks, str) else list(masks)
        self.recursive, self.abspath, self.non_deterministic, self.length = (
            recursive,
            abspath,
            non_deterministic,
            length,
        )

    def __iter__(self) -> Iterator[str]:
        for root in self.datapipe:
            top = os.path.abspath(root) if self.abspath else os.fspath(root)
            for folder, folders, names in os.walk(top):
                if not self.non_deterministic:
                    folders.sort()
                    names.sort()
                for name in names:
                    if self.masks in ([""], []) or any(fnmatch.fnmatch(name, mask) for mask in self.masks):
                        yield os.path.join(folder, name)
                if not self.recursive:
                    break

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("open_files")
class FileOpener(IterDataPipe[Any]):
    """Pairs of a path and the opened file; the reader closes it."""

    def __init__(self, datapipe: Any, mode: str = "r", encoding: str | None = None, length: int = -1) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        self.datapipe, self.mode, self.encoding, self.length = datapipe, mode, encoding, length

    def __iter__(self) -> Iterator[Any]:
        mode = self.mode if "r" in self.mode else "r" + self.mode
        for path in self.datapipe:
            yield path, open(path, mode, encoding=self.encoding)  # noqa: SIM115  (the reader's to close)

    def __len__(self) -> int:
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("read_from_stream")
class StreamReader(IterDataPipe[Any]):
    """Pairs of a path and the file's contents, whole or in parts of ``chunk`` bytes; files are closed afterwards."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, file in self.datapipe:
            with file:
                while part := file.read(self.chunk) if self.chunk else file.read():
                    yield path, part
