"""The reference and the samples of reductions of segments, for op_db.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from op_db_row import Fixed, Maker, Sample, call


def reference(
    data: np.ndarray, reduce: str, *, lengths: Any = None, offsets: Any = None, axis: int = 0, initial: Any = None
) -> np.ndarray:
    """Segments of each batch one by one."""
    if offsets is None:
        offsets = np.concatenate([np.zeros_like(lengths[..., :1]), np.cumsum(lengths, -1)], -1)
    start = (
        {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}[reduce] if initial is None else initial
    )
    fold = {"sum": np.add, "mean": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[reduce].reduce
    made = np.full((*data.shape[:axis], offsets.shape[-1] - 1, *data.shape[axis + 1 :]), start, data.dtype)
    for batch in np.ndindex(*data.shape[:axis]):
        for k, (a, b) in enumerate(zip(offsets[batch][:-1], offsets[batch][1:])):
            made[batch][k] = fold(data[batch][a:b], 0, initial=start)
            if reduce == "mean" and (b > a or initial is None):
                made[batch][k] = made[batch][k] / (b - a) if b > a else np.nan
    return made


def samples(make: Maker) -> Iterator[Sample]:
    for reduce in ("sum", "mean", "max", "min", "prod"):
        yield call(make.distinct(9), reduce, lengths=Fixed(np.array([3, 1, 0, 5])), initial=1.4375)
        yield call(make.distinct(5, 2), reduce, offsets=Fixed(np.array([1, 2, 4], dtype=np.int32)))
        lengths = Fixed(np.array([[2, 1], [1, 3], [1, 0]]).T)  # as it lies in memory, too
        yield call(make.distinct(2, 4, 2), reduce, lengths=lengths, axis=1, initial=-2.0625)
    yield call(make(0, 3), "sum", lengths=Fixed(np.array([0, 0])))
