"""Helpers of the generated tests: which (row, dtype) pairs exist, and how a message names a sample."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Callable

import op_db_check as check
import pytest
from op_db import OPS
from op_db_row import DTYPES, Row, Sample

#: Rows whose results are compared with a reference.
COMPARED = [row for row in OPS if row.ref is not None and row.kind != "factory"]


def pairs(rows: Iterable[Row], accept: Callable[[Row, str], bool] = Row.accepts) -> list[Any]:
    """Pairs every row with each dtype that ``accept`` accepts, as pytest parameters."""
    return [
        pytest.param(row, dtype, id=f"{row.name}-{dtype}") for row in rows for dtype in DTYPES if accept(row, dtype)
    ]


def placed(rows: Iterable[Row], accept: Callable[[Row, str], bool] = Row.accepts) -> list[Any]:
    """Combines every row with each dtype that ``accept`` accepts and each device, as pytest parameters."""
    return [
        pytest.param(row, dtype, device, id=f"{row.name}-{dtype}-{device}")
        for row in rows
        for dtype in DTYPES
        if accept(row, dtype)
        for device in check.devices_of(row)
    ]


def single(rows: Iterable[Row]) -> list[Any]:
    """Lists rows as pytest parameters."""
    return [pytest.param(row, id=row.name) for row in rows]


def describe(sample: Sample) -> str:
    """Names a sample by its shapes and plain arguments."""
    shape = lambda a: f"{a.dtype}{list(a.shape)}"
    return f"{check.map_arrays(sample.args, shape, shape, shape)} {sample.kwargs or ''}"
