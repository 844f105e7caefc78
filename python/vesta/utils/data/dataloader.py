"""``DataLoader``: batches of a dataset."""

from __future__ import annotations

import multiprocessing as python_multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import vesta
from vesta._arguments import checked, expect, pytorch
from vesta._types import Device
from vesta.autograd.profiler import record_function
from vesta.autograd.recording import running
from vesta.utils.data.collate import default_collate, default_convert
from vesta.utils.data.dataset import Dataset, IterableDataset, Rows
from vesta.utils.data.information import WorkerInfo, get_worker_info
from vesta.utils.data.iterator import InProcess, Pass
from vesta.utils.data.pack import pack_dataset
from vesta.utils.data.sampler import BatchSampler, RandomSampler, Sampler, SeekableSampler, SequentialSampler
from vesta.utils.data.state import Progress, check_state

if TYPE_CHECKING:
    from typing_extensions import Never

    from vesta import Tensor

__all__ = ["DataLoader", "WorkerInfo", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)

# PyTorch's names for iterators, for programs that check their type.
_BaseDataLoaderIter = Pass
_SingleProcessDataLoaderIter = InProcess


def __getattr__(name: str) -> Any:
    if name == "_MultiProcessingDataLoaderIter":
        from vesta.utils.data.by_workers import ByWorkers

        return ByWorkers
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _DatasetKind:
    Map = 0
    Iterable = 1


def _is_stream(dataset: Any) -> bool:
    """Returns whether a dataset is an ``IterableDataset``, Vesta's or PyTorch's."""
    data = getattr(getattr(pytorch(), "utils", None), "data", None)
    return isinstance(dataset, (IterableDataset, *((data.IterableDataset,) if data else ())))


class _Endless(SeekableSampler[None]):
    """A sampler that requests one sample after the other from a stream."""

    _random = False

    def _from(self, seed: int, start: int) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """An iterable over a dataset in batches, the same ones for any number of workers.

    Args:
        dataset: a dataset with ``__getitem__`` and ``__len__``, or an ``IterableDataset``.
        batch_size: samples in a batch; ``None`` gives the samples themselves.
        shuffle: a new random order in each pass.
        sampler: the numbers of samples in order, instead of ``shuffle``.
        batch_sampler: lists of sample numbers, instead of the three above and ``drop_last``.
        num_workers: the number of processes that make batches; 0: this process makes them.
        collate_fn: a function that makes a batch from a list of samples; default: ``default_collate``.
        pin_memory: copy batches into memory that a GPU reads from directly.
        drop_last: leave out a last batch that is smaller.
        timeout: the longest wait for a batch of a worker, in seconds; 0: as long as it is alive and not stopped.
        worker_init_fn: a function that is called in each worker with its number, before the first batch.
        multiprocessing_context: "fork", "spawn" or "forkserver", or a context; how workers are started.
        generator: the generator of the order and of the seed of each pass; default: the default generator.
        prefetch_factor: the number of batches that each worker makes ahead; default: 2.
        persistent_workers: keep the workers from pass to pass.
        pin_memory_device: deprecated in PyTorch; ignored.
        in_order: give batches in the order of the sampler; False: as they are ready.
        device: the device to which batches are copied ahead of their use; default: they stay on the CPU.
        pack: move large lists, tuples, dicts and strings that the dataset holds into one sealed block that all workers
            read, so that reading does not grow their memory. The dataset's attributes are replaced by read-only views
            of it.

    Raises:
        ValueError: options that exclude each other.

    Example::

        >>> import vesta
        >>> data = vesta.utils.data.TensorDataset(vesta.arange(5))
        >>> [x.tolist() for (x,) in vesta.utils.data.DataLoader(data, batch_size=2)]
        [[0, 1], [2, 3], [4]]
    """

    _FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")

    @overload  # the batches of samples whose kind is known have a known kind
    def __init__(
        self,
        dataset: Dataset[T_co] | Rows[T_co],
        batch_size: int = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[int]] | Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: vesta.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        device: Device | None = None,
        pack: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Dataset[Any] | Rows[Any],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[int]] | Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: vesta.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        device: Device | None = None,
        pack: bool = False,
    ) -> None: ...
    @checked
    def __init__(
        self,
        dataset: Dataset[T_co] | Rows[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[int]] | Iterable[Sequence[int]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: vesta.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        device: Device | None = None,
        pack: bool = False,
    ) -> None:
        if not _is_stream(dataset) and not hasattr(dataset, "__getitem__"):
            raise TypeError(f"DataLoader: expected a dataset, got {type(dataset).__name__} (dataset).")
        if num_workers and _is_stream(dataset) and not isinstance(dataset, IterableDataset):
            raise ValueError(
                "DataLoader: expected num_workers=0 for an IterableDataset of PyTorch's, which cannot ask Vesta's "
                f"loader which worker it is in, got {num_workers}. Derive the class from "
                "vesta.utils.data.IterableDataset."
            )
        expect("DataLoader", "generator", generator, (vesta.Generator, type(None)), "vesta.Generator or None")
        flags = {
            "shuffle": shuffle,
            "pin_memory": pin_memory,
            "drop_last": drop_last,
            "in_order": in_order,
            "pack": pack,
        }
        _check_flags({**flags, "persistent_workers": persistent_workers})
        _check_limits(batch_size, num_workers, timeout)
        for name, order in (("sampler", sampler), ("batch_sampler", batch_sampler)):
            _check_order(name, order)
        self.prefetch_factor = _checked_prefetch(num_workers, timeout, prefetch_factor, persistent_workers)
        self.dataset: Dataset[T_co] | Rows[T_co] = pack_dataset(dataset) if pack else dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.device = device
        self._choose_order(batch_size, shuffle, sampler, batch_sampler, drop_last, generator)
        automatic = default_collate if self._auto_collation else default_convert
        self.collate_fn = automatic if collate_fn is None else collate_fn
        self.persistent_workers = persistent_workers
        self._len_called: int | None = None
        self._iterator: Any = None  # with persistent workers
        self._latest: Progress | None = None  # of the last iterator
        self._resume: dict[str, Any] | None = None
        self.__initialized = True

    def _choose_order(
        self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool, generator: Any
    ) -> None:
        """Checks the options about the order of samples, and makes missing samplers."""
        stream = _is_stream(self.dataset)
        self._dataset_kind = _DatasetKind.Iterable if stream else _DatasetKind.Map
        if stream and shuffle is not None and hasattr(self.dataset, "_set_shuffle"):  # a data pipe shuffles by itself
            self.dataset._set_shuffle(bool(shuffle))
            shuffle = None
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
            elif shuffle:
                sampler = RandomSampler(self.dataset, generator=generator)
            else:
                sampler = SequentialSampler(self.dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator

    @property
    def multiprocessing_context(self) -> Any:
        """The context with which workers are started."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            context = _checked_context(context, self.num_workers)
        self.__multiprocessing_context = context

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._FIXED and self.__dict__.get("_DataLoader__initialized"):
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _repr_html_(self) -> str | None:
        """Returns how a notebook shows the loader (``vesta.notebook``)."""
        from vesta.notebook import rendered
        from vesta.notebook.datasets import dataset_html

        return rendered(dataset_html, self, Dataset, IterableDataset)

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._len_called = len(self.dataset)  # type: ignore[arg-type]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    @overload  # of samples of any kind
    def __iter__(self: DataLoader[Never]) -> Iterator[Any]: ...
    @overload
    def __iter__(self: DataLoader[Tensor | float]) -> Iterator[Tensor]: ...
    @overload
    def __iter__(self: DataLoader[tuple[Tensor | float, ...]]) -> Iterator[list[Tensor]]: ...
    @overload
    def __iter__(self: DataLoader[dict[str, Tensor]]) -> Iterator[dict[str, Tensor]]: ...
    @overload
    def __iter__(self) -> Iterator[Any]: ...
    def __iter__(self) -> Iterator[Any]:
        if running:
            kind = "_MultiProcessing" if self.num_workers > 0 else "_SingleProcess"
            with record_function(f"enumerate(DataLoader)#{kind}DataLoaderIter.__init__"):
                return self._begin()
        return self._begin()

    def _begin(self) -> Iterator[Any]:
        """Begins a pass; starts its workers, or tells those that there are."""
        state, self._resume = self._resume, None
        if self._iterator is not None and self._iterator.usable():
            self._iterator.restart(self, state)
        elif self.persistent_workers and self.num_workers > 0:
            self._iterator = self._get_iterator(state)
        iterator = self._get_iterator(state) if self._iterator is None else self._iterator
        self._latest = iterator.progress
        return iterator

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out what belongs to running passes: a copy begins a pass of its own."""
        return {**self.__dict__, "_iterator": None, "_latest": None}

    def _get_iterator(self, state: dict[str, Any] | None = None) -> Any:
        if self.num_workers > 0:
            from vesta.utils.data.by_workers import ByWorkers

            return ByWorkers(self, state).handed_out()
        return InProcess(self, state)

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch given, small and of plain values (see state.py).

        It does not contain the caller's random states: save ``vesta.get_rng_state()`` with it if the next passes must
        be the same too.

        Example::

            >>> import vesta
            >>> loader = vesta.utils.data.DataLoader(range(6), batch_size=2, shuffle=True)
            >>> batches = iter(loader)
            >>> first, state = next(batches), loader.state_dict()
            >>> rest = [batch.tolist() for batch in batches]
            >>> loader.load_state_dict(state)
            >>> [batch.tolist() for batch in loader] == rest
            True
        """
        if self._resume is not None:
            return dict(self._resume)
        if self._latest is None:
            return {"version": 1, "batches": 0, "finished": True}
        return self._latest.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next pass continue where ``state_dict()`` was taken, with any number of workers.

        With samplers of this package nothing is read again; another sampler is iterated over from its start. For an
        iterable dataset its ``load_state_dict`` is called, or its samples are read again, with as many workers as
        before.
        """
        self._resume = check_state(state_dict)

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than processors."""
        if not self.num_workers:
            return
        checked = hasattr(os, "sched_getaffinity")
        cores = len(os.sched_getaffinity(0)) if checked else os.cpu_count()
        if cores is not None and self.num_workers <= cores:
            return
        suggested = (
            f"Our suggested max number of worker in current system is {cores}"
            f"{'' if checked else ' (`cpuset` is not taken into account)'}, which is smaller than what this DataLoader "
            "is going to create."
            if cores is not None
            else "DataLoader is not able to compute a suggested max number of worker in current system."
        )
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {suggested} Please be aware "
            "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number "
            "to avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


def _check_flags(flags: dict[str, Any]) -> None:
    """Refuses tensors that have no truth value."""
    for name, flag in flags.items():
        if isinstance(flag, vesta.Tensor) and flag.numel() != 1:
            raise TypeError(f"DataLoader: expected bool, got a tensor of {flag.numel()} elements ({name}).")


def _check_limits(batch_size: Any, num_workers: int, timeout: Any) -> None:
    """Refuses numbers that no batch and no machine has."""
    for name, value, limit in (("batch_size", batch_size, sys.maxsize), ("num_workers", num_workers, 2**31 - 1)):
        if value is not None and value > limit:
            raise ValueError(f"DataLoader: expected at most {limit}, got {value} ({name}).")
    if isinstance(timeout, vesta.Tensor):
        raise TypeError("DataLoader: expected a number of seconds, got a tensor (timeout). Use timeout.item().")


def _check_order(name: str, order: Any) -> None:
    """Refuses what gives no indices."""
    iterable = hasattr(order, "__iter__") or hasattr(order, "__getitem__")
    if order is not None and (isinstance(order, (str, bytes)) or not iterable):
        wanted = "an iterable of indices" if name == "sampler" else "an iterable of lists of indices"
        raise TypeError(f"DataLoader: expected {wanted}, got {type(order).__name__} ({name}).")


def _checked_prefetch(num_workers: Any, timeout: float, prefetch: Any, persistent: bool) -> int | None:
    """Checks the options about workers; returns how many batches each makes ahead."""
    if not isinstance(num_workers, int) or num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch is not None and not isinstance(prefetch, int):
        raise TypeError(f"prefetch_factor option should be an integer, got {type(prefetch).__name__}")
    if num_workers > 0 and prefetch is None:
        prefetch = 2
    elif prefetch is not None and prefetch < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    return prefetch


def _checked_context(context: Any, num_workers: int) -> Any:
    """Returns the context of a name."""
    if num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
            f"num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = python_multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                f"multiprocessing_context option should specify a valid start method in {methods!r}, but got "
                f"multiprocessing_context={context!r}"
            )
        context = python_multiprocessing.get_context(context)
    if not isinstance(context, python_multiprocessing.context.BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying the start method, "
            f"but got multiprocessing_context={context}"
        )
    return context


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Raises if an order is given for a dataset that has its own."""
    for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
            )
