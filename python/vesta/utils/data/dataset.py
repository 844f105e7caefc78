"""Datasets: samples by number, or one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.utils.data.collate import batch_memory

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Rows(Protocol[T_co]):
    """What serves as a dataset without being one: a list, a range, a tensor."""

    def __getitem__(self, index: int, /) -> T_co: ...
    def __len__(self) -> int: ...


class Dataset(Generic[T_co]):
    """The base of datasets with numbered samples: define ``__getitem__``, and ``__len__`` for most samplers.

    A ``__getitems__(indices)`` that returns a list of samples is used instead if it exists.

    Example::

        >>> import vesta
        >>> class Squares(vesta.utils.data.Dataset):
        ...     def __getitem__(self, index):
        ...         return index * index
        ...     def __len__(self):
        ...         return 4
        >>> [batch.tolist() for batch in vesta.utils.data.DataLoader(Squares(), batch_size=2)]
        [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    if TYPE_CHECKING:  # most have one, and programs ask for it: len(loader.dataset)

        def __len__(self) -> int: ...

    def _repr_html_(self) -> str | None:
        """Returns how a notebook shows the dataset (``vesta.notebook``)."""
        from vesta.notebook import rendered
        from vesta.notebook.datasets import dataset_html

        return rendered(dataset_html, self, Dataset, IterableDataset)

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """The base of datasets that are streams: define ``__iter__``.

    Example::

        >>> import vesta
        >>> class Count(vesta.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> [batch.tolist() for batch in vesta.utils.data.DataLoader(Count(), batch_size=2)]
        [[0, 1], [2]]
    """

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """The samples along the first dimension of tensors: sample i is the tuple of every tensor's row i.

    Args:
        tensors: of any shapes [N, ...] with the same N.

    Example::

        >>> import vesta
        >>> data = vesta.utils.data.TensorDataset(vesta.zeros(3, 2), vesta.tensor([5, 6, 7]))
        >>> data[1]
        (tensor([0., 0.]), tensor(6))
    """

    tensors: tuple[Tensor, ...]

    @checked
    def __init__(self, *tensors: Tensor) -> None:
        if not tensors:
            raise ValueError("TensorDataset: expected one tensor or more, got none (tensors). Pass x or x, y.")
        if any(tensor.size(0) != tensors[0].size(0) for tensor in tensors):
            sizes = [tensor.size(0) for tensor in tensors]
            raise AssertionError(f"Size mismatch between tensors: their first dimensions are {sizes}")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def collated(self, indices: Sequence[int]) -> list[Tensor]:
        """Returns the same as ``default_collate`` of these samples, with one lookup for each tensor."""
        rows = vesta.tensor(indices, dtype=vesta.int64)
        return [_rows(tensor, rows) for tensor in self.tensors]


def _samples(dataset: Any, indices: list) -> list[Any]:
    """Returns several samples of a dataset, by its ``__getitems__`` if it has one."""
    many = getattr(dataset, "__getitems__", None)
    if not callable(many):
        return [dataset[index] for index in indices]
    samples = many(indices)
    if len(samples) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(samples)}")
    return samples


def _rows(tensor: Tensor, rows: Tensor) -> Tensor:
    """Returns rows of a tensor; in a worker they are written directly into shared memory."""
    memory = batch_memory((rows.size(0), *tensor.shape[1:]), tensor)
    if memory is None:
        return tensor.index_select(0, rows.to(tensor.device))
    return vesta.index_select(tensor, 0, rows, out=memory)


class StackDataset(Dataset[Any]):
    """Samples of several datasets side by side: a tuple, or a dict if the datasets have names.

    Example::

        >>> import vesta
        >>> vesta.utils.data.StackDataset(x=vesta.tensor([1, 2]), y=vesta.tensor([3, 4]))[1]
        {'x': tensor(2), 'y': tensor(4)}
    """

    @checked
    def __init__(self, *args: Dataset[Any] | Rows[Any], **kwargs: Dataset[Any] | Rows[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        for dataset in args or kwargs.values():
            expect("StackDataset", "datasets", dataset, Sized, "datasets with a length")
        sizes = [len(dataset) for dataset in (args or kwargs.values())]  # type: ignore[arg-type]
        if len(set(sizes)) > 1:
            raise ValueError(f"Size mismatch between datasets: {sizes}")
        self._length = sizes[0]

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list) -> list[Any]:
        """Returns the samples at ``indices``; datasets that have a ``__getitems__`` are called once for all."""
        named = isinstance(self.datasets, dict)
        columns = [_samples(dataset, indices) for dataset in (self.datasets.values() if named else self.datasets)]
        if named:
            return [dict(zip(self.datasets, sample)) for sample in zip(*columns)]
        return list(zip(*columns))

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other.

    Args:
        datasets: one or more, each with a length.

    Example::

        >>> import vesta
        >>> both = vesta.utils.data.ConcatDataset([[1, 2], [3]])
        >>> len(both), both[2], both[-3]
        (3, 3, 1)
    """

    @checked
    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        for dataset in self.datasets:
            expect("ConcatDataset", "datasets", dataset, Sized, "datasets with a length")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"ConcatDataset: expected an index below {len(self)}, got {index} (index).")
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Returns the running totals of the lengths."""
        return list(itertools.accumulate(map(len, sequence)))

    @property
    def cummulative_sizes(self) -> list[int]:
        """The older spelling of ``cumulative_sizes``."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`", category=FutureWarning, stacklevel=2
        )
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other."""

    @checked
    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        super().__init__()
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        if not all(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ChainDataset only supports IterableDataset")
        return sum(len(dataset) for dataset in self.datasets)  # type: ignore[arg-type]


class Subset(Dataset[T_co]):
    """Some samples of a dataset.

    Args:
        dataset: the whole dataset.
        indices: numbers of the samples in it.

    Example::

        >>> import vesta
        >>> vesta.utils.data.Subset([10, 11, 12], [2, 0])[0]
        12
    """

    @checked
    def __init__(self, dataset: Dataset[T_co] | Rows[T_co], indices: Sequence[int]) -> None:
        if not hasattr(dataset, "__getitem__"):
            raise TypeError(
                f"Subset: expected a dataset with samples by number, got {type(dataset).__name__} (dataset)."
            )
        if not (hasattr(indices, "__len__") and hasattr(indices, "__getitem__")):
            raise TypeError(f"Subset: expected a sequence of ints, got {type(indices).__name__} (indices).")
        self.dataset = dataset
        self.indices = indices
        if type(self).__getitem__ is not Subset.__getitem__ and type(self).__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{type(self).__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and "
                "overriding __getitem__, you must also override __getitems__ to ensure DataLoader works correctly with "
                "your custom logic. A simple implementation:\n\n"
                "def __getitems__(self, indices):\n    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, index: Any) -> T_co:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        """Returns the samples at ``indices``, by the dataset's own ``__getitems__`` if it has one."""
        chosen = [self.indices[i] for i in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return many(chosen) if callable(many) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T] | Rows[T],
    lengths: Sequence[int | float],
    generator: vesta.Generator | None = vesta.default_generator,
) -> list[Subset[T]]:
    """Splits a dataset at random into subsets that do not overlap.

    Args:
        lengths: sizes that sum to the dataset's, or fractions that sum to 1 (what rounding leaves over goes to the
            first ones).
        generator: the generator of the permutation; default: the default generator.

    Example::

        >>> import vesta
        >>> [len(part) for part in vesta.utils.data.random_split(range(10), [0.7, 0.3])]
        [7, 3]
    """
    expect("random_split", "dataset", dataset, Sized, "a dataset with a length")
    expect("random_split", "lengths", lengths, Iterable, "a list of numbers")
    total, sizes = len(dataset), list(lengths)
    for size in sizes:
        expect("random_split", "lengths", size, Real, "numbers")
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        for i, share in enumerate(sizes):
            if not 0 <= share <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(total * share) for share in sizes]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2
                )
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = vesta.randperm(total, generator=generator).tolist()
    ends = list(itertools.accumulate(int(size) for size in sizes))
    return [Subset(dataset, order[end - int(size) : end]) for size, end in zip(sizes, ends)]
