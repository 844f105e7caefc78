"""Training one model on several processes or devices."""

from vesta._names import listing

from .data_parallel import DataParallel
from .distributed import DistributedDataParallel
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "gather", "parallel_apply", "replicate", "scatter"]

__dir__ = listing(globals(), hidden="distributed_join")
