"""What a worker knows about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["WorkerInfo", "get_worker_info"]

_worker_info: WorkerInfo | None = None


@dataclass(frozen=True)
class WorkerInfo:
    """Says which worker of how many this process is.

    Attributes:
        id: 0 to num_workers - 1.
        num_workers: how many there are.
        seed: the seed of the pass plus ``id``, for generators of the dataset's own.
        dataset: this worker's copy of the dataset.
        rng, worker_method: as in PyTorch, where workers may be threads; here always processes.
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


def get_worker_info() -> WorkerInfo | None:
    """Returns what this worker is; None in a process that is no worker.

    Example::

        >>> import vesta
        >>> vesta.utils.data.get_worker_info() is None
        True
    """
    return _worker_info


def set_worker_info(information: WorkerInfo | None) -> None:
    """Makes this process a worker."""
    global _worker_info
    _worker_info = information
