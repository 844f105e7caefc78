"""The position of a pass over a dataset, and how it continues from there.

A pass is a stream of tasks: batch 0, 1, 2, ... each with the position of its first sample and the numbers of its
samples. A loader's ``state_dict()`` holds the position in that stream and what determines the order:

| key | what | |---|---| | `seed` | the seed of the randomness of samples (seeding.py) | | `batches`, `samples` | how
many of them the caller has received | | `order` | the seed of a seekable sampler, or another sampler's `state_dict()`
at that position | | `generator` | the loader's own generator after the pass had begun; `default`: the default one
before | | `streams` | for an iterable dataset: each worker's number of samples and its own state | | `finished` | the
pass is over: the next one starts from the beginning |

Everything in it is a number, a str, a list or a dict (samplers and datasets choose the form of their own states), and
it is small: below 1 KB for our samplers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import vesta
from vesta.utils.data.sampler import BatchSampler, seekable
from vesta.utils.data.seeding import draw_seed

__all__ = ["Order", "Progress", "Task", "check_state"]

_VERSION = 1
_KEYS = {"version", "seed", "batches", "samples", "order", "generator", "default", "streams", "finished"}


@dataclass
class Task:
    """One batch to be made."""

    number: int  # the number of the batch in the pass
    start: int  # the position of its first sample in the pass
    indices: Any  # the indices of its samples: a list, or one number if batches are not made
    count: int  # the number of its samples
    order: Any = None  # the state of a sampler that keeps one, after this batch


def _to_text(generator: Any) -> str:
    return bytes(generator.get_state().tolist()).hex()


def _from_text(text: str) -> Any:
    return vesta.tensor(list(bytes.fromhex(text)), dtype=vesta.uint8)


def check_state(state: Any) -> dict[str, Any]:
    """Returns a state from which a pass can continue; raises on anything else."""
    if not isinstance(state, dict) or not state.keys() >= {"version", "batches"}:
        raise ValueError("load_state_dict: expected what state_dict() of a DataLoader returned, got something else.")
    if state["version"] != _VERSION or not state.keys() <= _KEYS:
        raise ValueError(f"load_state_dict: expected version {_VERSION}, got {state['version']} or unknown keys.")
    return dict(state)


def _keeper_of(sampler: Any) -> Any:
    """Returns the sampler that knows its own position, which may be the one inside a batch sampler; None if there is
    none."""
    holder = sampler.sampler if type(sampler) is BatchSampler else sampler
    return holder if hasattr(holder, "state_dict") and hasattr(holder, "load_state_dict") else None


class Order:
    """The tasks of one pass, in order; continued from a state if there is one.

    Args:
        sampler: the sampler, which gives the number of a sample, or the numbers of a batch's samples.
        batched: whether the sampler gives lists.
        generator: the loader's generator, for the seed of the pass.
        state: where to continue; None or a finished one: a new pass.
    """

    def __init__(self, sampler: Any, batched: bool, generator: Any, state: dict[str, Any] | None) -> None:
        self._sampler = sampler
        self._batched = batched
        self._keeper = _keeper_of(sampler)
        if state is not None and state.get("generator") and generator is not None:
            generator.set_state(_from_text(state["generator"]))
        if state is None or state.get("finished", True):
            self._start(generator)
        else:
            self._resume(state)

    def _start(self, generator: Any) -> None:
        self.seed = draw_seed(generator)
        self.batches = self.samples = 0
        self._default = self._order = None
        if seekable(self._sampler):
            self._order = self._sampler._begin()
            self._numbers = self._sampler._from(self._order, 0)
        else:
            self._default = _to_text(vesta.default_generator)
            self._numbers = iter(self._sampler)
        self._generator = _to_text(generator) if generator is not None else None

    def _resume(self, state: dict[str, Any]) -> None:
        self.seed, self.batches, self.samples = state["seed"], state["batches"], state["samples"]
        self._default, self._generator = state["default"], state["generator"]
        self._order = state["order"]
        if self._keeper is not None and (self._order is not None or self.batches == 0):
            if self._order is not None:
                self._keeper.load_state_dict(self._order)
            self._numbers = iter(self._sampler)
        elif seekable(self._sampler):
            self._numbers = self._sampler._from(self._order, self.batches)
        else:
            self._numbers = self._replayed()

    def _replayed(self) -> Iterator[Any]:
        """Iterates anew with the default generator in its earlier state, and drops what has come already."""
        now = vesta.default_generator.get_state()
        if self._default is not None:
            vesta.default_generator.set_state(_from_text(self._default))
        try:
            numbers = iter(self._sampler)
            came = sum(1 for _ in itertools.islice(numbers, self.batches))
        finally:
            vesta.default_generator.set_state(now)
        if came < self.batches:
            raise ValueError(
                f"load_state_dict: expected a sampler with {self.batches} batches or more, got one with {came}."
            )
        return numbers

    def __iter__(self) -> Iterator[Task]:
        return self

    def __next__(self) -> Task:
        indices = next(self._numbers)
        if self._batched and not hasattr(indices, "__len__"):  # a generator, or not a list at all: raises here
            indices = list(indices)
        count = len(indices) if self._batched else 1
        if self._keeper is not None:
            self._order = self._keeper.state_dict()
        task = Task(self.batches, self.samples, indices, count, self._order)
        self.batches += 1
        self.samples += count
        return task

    def here(self) -> Task:
        """Returns the task that would come next, without its indices: the current position of the pass."""
        return Task(self.batches, self.samples, None, 0, self._order)

    def state(self, place: Task, finished: bool, streams: list[Any] | None) -> dict[str, Any]:
        """Returns the state of a position: that of the task which the caller gets next."""
        return {
            "version": _VERSION,
            "seed": self.seed,
            "batches": place.number,
            "samples": place.start,
            "order": place.order,
            "generator": self._generator,
            "default": self._default,
            "streams": streams,
            "finished": finished,
        }


class Progress:
    """The progress of an iterator's caller. It outlives the iterator: a loader keeps the latest one.

    Args:
        order: the order of the pass.
    """

    def __init__(self, order: Order) -> None:
        self._order = order
        self._place = order.here()
        self.batches = 0  # the number that this iterator has given
        self.finished = False
        self.ordered = True  # whether batches come in the order of the tasks
        #: Returns the position of each worker's part of an iterable dataset.
        self.streams: Callable[[], list[Any] | None] = lambda: None

    def gave(self, task: Task) -> None:
        """Records that the caller has received a task's batch."""
        self._place = Task(task.number + 1, task.start + task.count, None, 0, task.order)
        self.batches += 1

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch given."""
        if not self.ordered and not self.finished:
            raise ValueError(
                "state_dict: expected in_order=True, got False. Batches that come as they are ready leave no place in "
                "the order to go on from."
            )
        return self._order.state(self._place, self.finished, None if self.finished else self.streams())
