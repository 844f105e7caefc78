"""From a task to a batch: samples are fetched, each with its own random states, and collated."""

from __future__ import annotations

import contextlib
import itertools
import numbers
from collections.abc import Callable, Iterator
from typing import Any

from vesta.utils.data.collate import default_collate, default_convert, samples_named
from vesta.utils.data.dataset import Subset, TensorDataset
from vesta.utils.data.seeding import _COLLATE, _STREAM, Seeds
from vesta.utils.data.state import Task

__all__ = ["MapFetcher", "StreamFetcher", "direct"]


def direct(dataset: Any) -> Callable[[list[int]], Any] | None:
    """Returns a function from numbers to a collated batch, for datasets where one lookup is enough; else None."""
    if type(dataset) is TensorDataset:
        return dataset.collated
    if type(dataset) is Subset and (inner := direct(dataset.dataset)) is not None:
        chosen = dataset.indices
        return lambda indices: inner([chosen[i] for i in indices])
    return None


def _collated(collate: Callable[[Any], Any], samples: Any, task: Task, position: int, seeds: Seeds) -> Any:
    """Collates samples; a user's function may draw random numbers."""
    seeds.leave()
    if collate is not default_collate:
        if collate is not default_convert:
            seeds.seed(_COLLATE + position)
        return collate(samples)
    try:
        return collate(samples)
    except Exception:
        if task.indices is None or None in task.indices[:1]:
            raise
    with samples_named(task.indices):  # once more, for an error that names the samples
        return collate(samples)


def _are_numbers(indices: Any) -> bool:
    """Returns whether indices are a list of integers; a dataset may accept others in its own way."""
    kinds = set(map(type, indices)) if type(indices) is list else {bool}
    return kinds == {int} or (bool not in kinds and all(issubclass(kind, numbers.Integral) for kind in kinds))


def _no_seed(position: int) -> None:
    """Does nothing: replaces the seeding of a sample if no user code runs."""


#: Whether a dataset that raises StopIteration ends the pass, as in PyTorch (``vesta.as_torch``).
STOP_ENDS_THE_PASS = False


class MapFetcher:
    """A maker of batches of a dataset with numbered samples.

    Args:
        dataset: a dataset with ``__getitem__``.
        batched: whether a task has a list of numbers.
        collate: a function that makes a batch from a list of samples, or converts one sample.
        seeds: the object that seeds for a sample.
    """

    def __init__(self, dataset: Any, batched: bool, collate: Callable[[Any], Any], seeds: Seeds) -> None:
        self._dataset = dataset
        self._batched = batched
        self._collate = collate
        self._seeds = seeds
        self._direct = direct(dataset) if batched and collate is default_collate else None
        many = getattr(dataset, "__getitems__", None) if batched else None
        self._many = many if callable(many) else None
        #: Whether no user code runs, so that nothing has to be seeded.
        self.plain = self._direct is not None

    def __call__(self, task: Task) -> Any:
        """Returns the batch of a task."""
        try:
            return self._made(task)
        except StopIteration as error:  # it would end the pass as if it were complete
            if STOP_ENDS_THE_PASS:
                raise
            raise RuntimeError(f"{type(self._dataset).__name__}.__getitem__ raised StopIteration.") from error

    def _made(self, task: Task) -> Any:
        if self._direct is not None and _are_numbers(task.indices):
            with contextlib.suppress(IndexError):  # for a dataset -1 is the last one; a missing index is named below
                return self._direct(task.indices)
        dataset, position = self._dataset, task.start
        seed = _no_seed if self.plain else self._seeds.seed
        if not self._batched:
            seed(position)
            samples = dataset[task.indices]
        elif self._many is not None:
            seed(position)
            samples = self._many(task.indices)
        else:
            samples = []
            for index in task.indices:
                seed(position)
                samples.append(dataset[index])
                position += 1
        return _collated(self._collate, samples, task, task.start, self._seeds)


def _keeps_state(stream: Any) -> bool:
    """Returns whether a stream reports its position and can continue from there."""
    return hasattr(stream, "state_dict") and hasattr(stream, "load_state_dict")


class StreamFetcher:
    """A maker of batches of an iterable dataset, whose samples have no numbers.

    Args:
        dataset: a dataset with ``__iter__``.
        batched, collate, seeds: as in ``MapFetcher``.
        drop_last: leave out a last batch that is smaller.
        worker: the worker whose part of the stream this is.
        state: where to continue, from ``state()``; None: at the beginning.
    """

    plain = False

    def __init__(
        self,
        dataset: Any,
        batched: bool,
        collate: Callable[[Any], Any],
        seeds: Seeds,
        drop_last: bool = False,
        worker: int = 0,
        state: dict[str, Any] | None = None,
    ) -> None:
        self._dataset = dataset
        self._batched = batched
        self._collate = collate
        self._seeds = seeds
        self._drop_last = drop_last
        self._first = worker * _STREAM
        self._count = state["samples"] if state is not None else 0
        self._samples: Iterator[Any] | None = None
        self._state = state
        self._ended = state is not None and state.get("ended", False)

    def _open(self) -> Iterator[Any]:
        """Starts the stream at the position where it continues."""
        state = self._state or {"samples": 0, "state": None}
        own = state["state"]
        if own is not None and _keeps_state(self._dataset):
            self._dataset.load_state_dict(own)
            own = None
        self._seeds.seed(self._first)
        samples = iter(self._dataset)
        if own is not None and _keeps_state(samples):
            samples.load_state_dict(own)
        elif state["state"] is None:
            for k in range(state["samples"]):
                self._seeds.seed(self._first + k)
                next(samples, None)
        self._count = state["samples"]
        return samples

    def state(self) -> dict[str, Any]:
        """Returns the number of samples so far, and the stream's or dataset's own state."""
        if self._ended:  # an ended stream is not queried again: many streams are at their start then
            return {"samples": self._count, "state": None, "ended": True}
        if self._samples is None:
            return self._state or {"samples": 0, "state": None}
        for holder in (self._samples, self._dataset):
            if _keeps_state(holder):
                return {"samples": self._count, "state": holder.state_dict()}
        return {"samples": self._count, "state": None}

    def _next(self) -> Iterator[Any]:
        assert self._samples is not None
        while True:
            self._seeds.seed(self._first + self._count)
            try:
                sample = next(self._samples)
            except StopIteration:
                self._ended = True
                return
            self._count += 1
            yield sample

    def __call__(self, task: Task) -> Any:
        """Returns the next batch; StopIteration at the end of the stream."""
        if self._samples is None and not self._ended:
            self._samples = self._open()
        position = self._first + self._count
        wanted = len(task.indices) if self._batched else 1
        samples = [] if self._ended else list(itertools.islice(self._next(), wanted))
        if not samples or (self._drop_last and len(samples) < wanted):
            self._ended = True
            raise StopIteration
        return _collated(self._collate, samples if self._batched else samples[0], task, position, self._seeds)
