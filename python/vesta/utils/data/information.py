"""A worker's information about itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["WorkerInfo", "get_worker_info"]

_worker_info: WorkerInfo | None = None


@dataclass(frozen=True)
class WorkerInfo:
    """The number of this worker, and of all workers.

    Attributes:
        id: 0 to num_workers - 1.
        num_workers: the number of workers.
        seed: the seed of the pass plus ``id``, for the dataset's own generators.
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
    """Returns the information about this worker; None in a process that is not a worker.

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
