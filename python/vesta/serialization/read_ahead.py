"""Records of values, read and checked in threads while the pickle that refers to them is still being read."""

from __future__ import annotations

import os
from typing import Any

from vesta import _C, Tensor

from . import checksum
from .zip_reader import Record, ZipReader

__all__ = ["ReadAhead"]

#: Bytes that are read before anybody has asked for them, at most.
_WINDOW = 256 << 20


class ReadAhead:
    """The records ``data/...`` of an archive as tensors of bytes, in the order in which they were written.

    Use it as a context manager: its threads end with it.
    """

    def __init__(self, reader: ZipReader) -> None:
        self.reader = reader
        self.order = [record for name, record in reader.records.items() if name.startswith("data/")]
        self.next = 0
        self.waiting: dict[str, tuple[Tensor, list[Any]]] = {}
        self.started: set[str] = set()
        self.ahead = 0
        self.pool: Any = None
        threads = min(len(os.sched_getaffinity(0)), 8)
        if threads > 1 and sum(record.size for record in self.order) >= 4 * checksum.PART:
            from concurrent.futures import ThreadPoolExecutor

            self.pool = ThreadPoolExecutor(threads)

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(self, *error: Any) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)

    def take(self, record: Record) -> Tensor:
        """Returns the bytes of a record. RuntimeError: it is damaged."""
        if self.pool is None or record.method:
            values = _C._ops.empty((record.size,), dtype=_C.uint8)
            self.reader.read_into(record, _C._lend(values))
            return values
        if record.name not in self.waiting:
            self._start(record)
        self._run_ahead()
        values, parts = self.waiting.pop(record.name)
        self.ahead -= record.size
        self.reader.compare(record, checksum.of_parts([part.result() for part in parts]))
        return values

    def _start(self, record: Record) -> None:
        values = _C._ops.empty((record.size,), dtype=_C.uint8)
        target, submit = _C._lend(values), self.pool.submit
        parts = [
            submit(self.reader.read_part, record, begin, target[begin : begin + checksum.PART])
            for begin in range(0, record.size, checksum.PART)
        ]
        self.waiting[record.name] = values, parts
        self.started.add(record.name)
        self.ahead += record.size

    def _run_ahead(self) -> None:
        """Begins to read the records that follow, as far as the window reaches."""
        while self.next < len(self.order) and self.ahead < _WINDOW:
            record = self.order[self.next]
            self.next += 1
            if not record.method and record.name not in self.started:
                self._start(record)
