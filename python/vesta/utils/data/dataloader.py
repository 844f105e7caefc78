"""``DataLoader``: batches of a dataset, made in the calling process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import vesta
from vesta import Tensor
from vesta.utils.data.collate import default_collate, default_convert
from vesta.utils.data.dataset import Dataset, IterableDataset, Subset, TensorDataset
from vesta.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)


def get_worker_info() -> None:
    """Returns None: batches are made in the calling process, as PyTorch says it for its main process."""
    return None


class _Endless(Sampler[None]):
    """Asks a stream for one sample after the other."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches.

    Args:
        dataset: with ``__getitem__`` and ``__len__``, or an ``IterableDataset``.
        batch_size: samples in a batch; ``None`` gives the samples themselves.
        shuffle: a new random order in each pass.
        sampler: numbers of samples in the order wanted, instead of ``shuffle``.
        batch_sampler: lists of numbers, instead of the three above and ``drop_last``.
        num_workers: 0, the only value for now: batches are made in the calling process.
        collate_fn: makes a batch of a list of samples; ``default_collate`` when missing.
        pin_memory: copy batches into memory that a GPU reads from directly.
        drop_last: leave out a last batch that is smaller.
        generator: of the order; the default one when missing.
        timeout, worker_init_fn, multiprocessing_context, prefetch_factor, persistent_workers, pin_memory_device,
            in_order: as in PyTorch; they concern workers, of which there are none.

    Raises:
        ValueError: options that exclude each other, or ``num_workers`` above 0.

    Example::

        >>> import vesta
        >>> data = vesta.utils.data.TensorDataset(vesta.arange(5))
        >>> [x.tolist() for (x,) in vesta.utils.data.DataLoader(data, batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """

    _FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        stream = isinstance(dataset, IterableDataset)
        if stream:
            _check_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if stream:
                sampler = _Endless()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.num_workers = num_workers
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.in_order = in_order
        automatic = default_collate if batch_sampler is not None else default_convert
        self.collate_fn = automatic if collate_fn is None else collate_fn
        self.__initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._FIXED and "_DataLoader__initialized" in self.__dict__:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        if self.batch_sampler is not None and not isinstance(self.sampler, _Endless):
            return len(self.batch_sampler)  # type: ignore[arg-type]
        if not isinstance(self.sampler, _Endless):
            return len(self.sampler)  # type: ignore[arg-type]
        samples = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return samples
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        batches = self._stream() if isinstance(self.dataset, IterableDataset) else map(self._fetcher(), self._numbers())
        return map(_pinned, batches) if self._pins() else iter(batches)

    def _numbers(self) -> Iterable[Any]:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def _fetcher(self) -> Callable[[Any], Any]:
        """Returns the function from numbers to a batch."""
        dataset, collate = self.dataset, self.collate_fn
        if self.batch_sampler is None:
            return lambda index: collate(dataset[index])
        if collate is default_collate and (direct := _direct(dataset)) is not None:
            return direct
        many = getattr(dataset, "__getitems__", None)
        if callable(many):
            return lambda indices: collate(many(indices))
        return lambda indices: collate([dataset[index] for index in indices])

    def _stream(self) -> Iterator[Any]:
        samples = iter(self.dataset)  # type: ignore[call-overload]
        if self.batch_size is None:
            yield from map(self.collate_fn, samples)
            return
        batch: list[Any] = []
        for sample in samples:
            batch.append(sample)
            if len(batch) == self.batch_size:
                yield self.collate_fn(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.collate_fn(batch)

    def _pins(self) -> bool:
        if not self.pin_memory:
            return False
        cuda = getattr(vesta, "cuda", None)
        if cuda is None or not cuda.is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=3,
            )
            return False
        return True


def _direct(dataset: Any) -> Callable[[list[int]], Any] | None:
    """Returns a function from numbers to a collated batch, for datasets where one lookup does it; else None."""
    if type(dataset) is TensorDataset:
        return dataset.collated
    if type(dataset) is Subset and (inner := _direct(dataset.dataset)) is not None:
        numbers = dataset.indices
        return lambda indices: inner([numbers[i] for i in indices])
    return None


def _pinned(value: Any) -> Any:
    """Copies the tensors of a batch into pinned memory."""
    if isinstance(value, Tensor):
        return value.pin_memory()
    if isinstance(value, dict):
        return {key: _pinned(entry) for key, entry in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_pinned, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_pinned, value))
    return value


def _check_workers(num_workers: Any, timeout: float, prefetch: Any, persistent: bool, context: Any) -> None:
    """Refuses what would need worker processes."""
    if not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if num_workers > 0:
        raise ValueError(
            f"DataLoader: expected num_workers=0, got {num_workers} (num_workers). Batches are made in the calling "
            "process for now; pass num_workers=0."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            "num_workers=0"
        )


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Refuses an order for a dataset that has its own."""
    for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
            )
