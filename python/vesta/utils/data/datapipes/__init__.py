"""PyTorch's data pipes: ``iter`` and ``map`` hold the classes."""

from __future__ import annotations

import importlib
from typing import Any

from vesta._names import listing
from vesta.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe", "iter", "map"]


def __getattr__(name: str) -> Any:
    if name in ("iter", "map"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = listing(globals())
