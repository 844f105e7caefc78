"""``DistributedSampler``: the part of a dataset that one process of several trains on."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sized
from typing import Any

import vesta
from vesta._arguments import checked
from vesta.utils.data.sampler import SeekableSampler, _listed

__all__ = ["DistributedSampler"]


def _world() -> Any:
    """Returns the package that knows the number of processes."""
    try:
        distributed = importlib.import_module("vesta.distributed")
    except ModuleNotFoundError:
        distributed = None
    if distributed is None or not distributed.is_available():
        raise RuntimeError("Requires distributed package to be available")
    return distributed


class DistributedSampler(SeekableSampler[int]):
    """Every ``num_replicas``-th sample of an order that all processes share, beginning at ``rank``.

    Args:
        dataset: only its length is used; the same in every process.
        num_replicas, rank: the number of processes and the rank of this one; default: the process group's.
        shuffle: use a random order, made from ``seed`` and the number given to ``set_epoch``; the same in every
            process.
        drop_last: leave out samples that do not divide evenly; otherwise some samples come twice.

    Call ``set_epoch(epoch)`` before each pass, otherwise every pass has the same order.

    Example::

        >>> import vesta
        >>> parts = [
        ...     list(vesta.utils.data.DistributedSampler(range(5), num_replicas=2, rank=rank, shuffle=False))
        ...     for rank in (0, 1)
        ... ]
        >>> parts
        [[0, 2, 4], [1, 3, 0]]
    """

    _random = False  # its seed is not drawn, but comes from set_epoch

    @checked
    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        num_replicas = _world().get_world_size() if num_replicas is None else num_replicas
        rank = _world().get_rank() if rank is None else rank
        if num_replicas < 1:
            raise ValueError(f"DistributedSampler: expected num_replicas >= 1, got {num_replicas} (num_replicas).")
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        if drop_last and size % num_replicas != 0:
            self.num_samples = math.ceil((size - num_replicas) / num_replicas)
        else:
            self.num_samples = math.ceil(size / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def _begin(self) -> int:
        return self.epoch

    def _from(self, seed: int, start: int) -> Iterator[int]:
        self.epoch = seed  # a pass resumed in another process keeps its epoch
        size = len(self.dataset)
        if start >= self.num_samples:
            return iter(())
        if self.shuffle:
            own = vesta.Generator().manual_seed((self.seed + self.epoch) % (1 << 64))
            order = vesta.randperm(size, generator=own)
        else:
            order = vesta.arange(size)
        # Numbers beyond the end start again at the first; if the tail is dropped there are none.
        places = vesta.arange(self.rank + start * self.num_replicas, self.total_size, self.num_replicas)
        return _listed(order[places % size])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Sets the epoch, which chooses the order of the next pass: a different one for each epoch."""
        self.epoch = epoch
