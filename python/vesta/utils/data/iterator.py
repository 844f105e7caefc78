"""One pass over a dataset: the base of a loader's iterators, and the one that works in the calling process."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from vesta.autograd.profiler import record_function
from vesta.autograd.recording import running
from vesta.utils.data.fetch import MapFetcher, StreamFetcher
from vesta.utils.data.seeding import Seeds
from vesta.utils.data.state import Order, Progress, Task
from vesta.utils.data.transfer import Transfer

__all__ = ["InProcess", "Pass"]


class Pass:
    """An iterator over the batches of one pass.

    Args:
        loader: the loader whose options it follows.
        state: where to continue; None: at the beginning.
    """

    #: PyTorch's name of getting a batch, in profiles.
    profiled_as = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

    def __init__(self, loader: Any, state: dict[str, Any] | None) -> None:
        self._dataset = loader.dataset
        self._stream = loader._dataset_kind == 1
        self._batched = loader._auto_collation
        self._index_sampler = loader._index_sampler
        self._collate = loader.collate_fn
        self._drop_last = loader.drop_last
        self._transfer = Transfer(loader.pin_memory, loader.pin_memory_device, loader.device)
        self._begin(loader, state)

    def _begin(self, loader: Any, state: dict[str, Any] | None) -> None:
        """Starts a pass, or continues one."""
        self._promised = loader._len_called  # for an iterable dataset, once len(loader) was called
        self._order = Order(self._index_sampler, self._batched, loader.generator, state)
        goes_on = state is not None and not state.get("finished", True)
        self._streams = state.get("streams") if goes_on and state else None
        self.progress = Progress(self._order)

    def __iter__(self) -> Pass:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled: it is tied to this process.")

    def _next_batch(self) -> tuple[Task, Any]:
        """Returns the next task with its batch; StopIteration at the end."""
        raise NotImplementedError

    def __next__(self) -> Any:
        if running:
            with record_function(self.profiled_as):
                return self._transfer(self._given(self._next_batch))
        return self._transfer(self._given(self._next_batch))

    def _given(self, make: Callable[[], tuple[Task, Any]]) -> Any:
        """Returns the batch that ``make`` returns, and records that the caller has received it."""
        try:
            task, batch = make()
        except StopIteration:
            self.progress.finished = True
            raise
        self.progress.gave(task)
        if self._promised is not None and self._stream and self.progress.batches > self._promised:
            self._warn_of_length()
        return batch

    def _warn_of_length(self) -> None:
        warnings.warn(
            f"Length of IterableDataset {self._dataset} was reported to be {self._promised}"
            f"(when accessing len(dataloader)), but {self.progress.batches} samples have been fetched. ",
            stacklevel=4,
        )

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch given, for ``DataLoader.load_state_dict``."""
        return self.progress.state_dict()


class InProcess(Pass):
    """A pass that makes batches in the calling process, whose random states are restored after each of them."""

    profiled_as = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

    def __init__(self, loader: Any, state: dict[str, Any] | None) -> None:
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        super().__init__(loader, state)
        self._seeds = Seeds()
        self._seeds.begin(self._order.seed)
        if self._stream:
            streams = self._streams or [None]
            if len(streams) != 1:
                raise ValueError(
                    "load_state_dict: an iterable dataset goes on with as many workers as it had, which is "
                    f"{len(streams)}, got 0."
                )
            fetch: Any = StreamFetcher(
                self._dataset, self._batched, self._collate, self._seeds, self._drop_last, state=streams[0]
            )
            self.progress.streams = lambda: [fetch.state()]
        else:
            fetch = MapFetcher(self._dataset, self._batched, self._collate, self._seeds)
        self._fetch = fetch

    def _next_batch(self) -> tuple[Task, Any]:
        task = next(self._order)
        if self._fetch.plain:
            return task, self._fetch(task)
        with self._seeds.kept():
            return task, self._fetch(task)
