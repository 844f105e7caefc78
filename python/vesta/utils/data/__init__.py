"""Datasets, samplers, and the loader that makes batches from them."""

from __future__ import annotations

import importlib
from typing import Any

from vesta._names import listing

from .collate import default_collate, default_convert
from .dataloader import DataLoader, _DatasetKind, get_worker_info
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .remote_error import WorkerError
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerError",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "random_split",
]

_LATER = {"DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe"}  # imported on first use


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.datapipes"), name)
    if name in ("_utils", "datapipes"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = listing(
    globals(),
    *_LATER,
    "datapipes",
    hidden="collate fetch information iterator pack remote_error seeding shipping state transfer",
)
