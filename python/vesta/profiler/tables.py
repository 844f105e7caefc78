"""Tables that say which part of a program is slow, and how much faster the machine could run it.

The cost of an operation is told from shapes (``core/ops/cost.cpp``): the bytes it reads and writes once, and its
arithmetic operations. The machine's limits are measured once, in at most 0.3 s: how fast memory is copied, and how fast
float32 numbers are multiplied and added (float64: half of that). An operation needs at least the larger of
``bytes / bandwidth`` and ``operations / peak``: the ratio of its time to that is how much faster it could be. One that
moves at most 1 MiB is measured by the bandwidth of caches there, while shares are always those of memory's: they may
exceed 100 %.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from vesta import _C

if TYPE_CHECKING:
    from vesta.autograd.recording import Recording

__all__ = ["CostRow", "CostTable", "by_layer", "by_line", "machine_peaks"]

_OUTSIDE = "(outside of layers)"
_UNKNOWN = "(no line)"
_CACHED = 1 << 20  # an operation that moves at most so many bytes may find them in a cache


class MachinePeaks(NamedTuple):
    """What a machine can do: bytes per second in memory and in the caches of its threads (reads and writes both count),
    and float32 operations per second, a multiplication and an addition being two."""

    bandwidth: float
    cache_bandwidth: float
    operations: float

    def least_time(self, nbytes: float, operations: float, double: bool = False) -> float:
        """Returns the seconds that an operation needs at least.

        Args:
            double: it computes in float64, of which half as many operations are possible.

        Example::

            >>> from vesta.profiler.tables import MachinePeaks
            >>> MachinePeaks(1e9, 1e10, 1e11).least_time(2e9, 1e10)
            2.0
        """
        bandwidth = self.cache_bandwidth if nbytes <= _CACHED else self.bandwidth
        return max(nbytes / bandwidth, (2 if double else 1) * operations / self.operations)


def machine_peaks() -> MachinePeaks:
    """Returns what this machine can do, measured on the first call in at most 0.3 s.

    Example::

        >>> from vesta.profiler import machine_peaks
        >>> peaks = machine_peaks()
        >>> peaks.bandwidth > 1e8 and peaks.operations > 1e8
        True
    """
    return MachinePeaks(*_C._profiler_peaks())


class CostRow:
    """The sums over one module or one line. Times are seconds, memory and ``bytes_moved`` bytes.

    Attributes:
        calls: of the module; of operations, for a line.
        forward_time, backward_time: of operations and of Python in between; nothing counts in two rows.
        memory: what forward allocated less what it freed: what is kept for backward, mostly.
        backward_memory: the same of backward: gradients that are kept, less what it frees.
        bytes_moved, operations: what the operations move and compute, told from shapes.
        best_time: the least time that the machine needs for them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.forward_time = self.backward_time = 0.0
        self.memory = self.backward_memory = 0
        self.bytes_moved = self.operations = self.best_time = 0.0

    @property
    def time(self) -> float:
        """Forward and backward."""
        return self.forward_time + self.backward_time

    @property
    def could_be(self) -> float:
        """How many times faster the machine could be; 1 where it cannot, infinite where nothing is computed."""
        return max(1.0, self.time / self.best_time) if self.best_time else float("inf")

    def __repr__(self) -> str:
        return f"<CostRow {self.name}: {self.time * 1e3:.3f} ms in {self.calls} calls>"


class CostTable:
    """Rows of costs, the slowest first. ``print`` shows it; it can be iterated, and ``table["name"]`` is a row.

    Attributes:
        rows: a list of ``CostRow``.
        wall_time: how long the profile ran, in seconds.
        accounted: the share of it that the rows of its busiest thread account for.
    """

    def __init__(self, title: str, rows: list[CostRow], wall_time: float, accounted: float) -> None:
        self.title, self.wall_time, self.accounted = title, wall_time, accounted
        self.rows = sorted(rows, key=lambda row: -row.time)

    def __iter__(self) -> Iterator[CostRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> CostRow:
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{self.title}: expected one of {[row.name for row in self.rows]}, got {name!r}.")

    def table(self, row_limit: int = 30) -> str:
        """Returns the table as text.

        Args:
            row_limit: the most rows; -1: all.
        """
        bandwidth, _, peak = machine_peaks()
        whole = sum(row.time for row in self.rows)
        rows = self.rows if row_limit < 0 else self.rows[:row_limit]
        width = min(70, max([len(self.title), *(len(row.name) for row in rows)]))
        titles = (
            "Calls",
            "Forward",
            "Backward",
            "Time %",
            "Memory",
            "in back.",
            "GB moved",
            "GFLOP",
            "Memory %",
            "FMA %",
        )
        sizes = (7, 11, 11, 7, 10, 10, 9, 9, 9, 7)
        head = self.title.ljust(width) + "".join(t.rjust(n + 1) for t, n in zip(titles, sizes)) + "  Could be"
        out = [head, "-" * len(head)]
        for row in rows:
            time = max(row.time, 1e-12)
            cells = (
                str(row.calls),
                f"{row.forward_time * 1e3:.3f}ms",
                f"{row.backward_time * 1e3:.3f}ms",
                f"{row.time / whole * 100 if whole else 0:.1f}",
                f"{row.memory / 2**20:.2f}MB",
                f"{row.backward_memory / 2**20:.2f}MB",
                f"{row.bytes_moved / 1e9:.3f}",
                f"{row.operations / 1e9:.3f}",
                f"{row.bytes_moved / time / bandwidth * 100:.0f}",
                f"{row.operations / time / peak * 100:.0f}",
            )
            name = row.name if len(row.name) <= width else "..." + row.name[len(row.name) - width + 3 :]
            faster = "-" if row.best_time == 0 else f"{row.could_be:.1f}x"
            line = name.ljust(width) + "".join(c.rjust(n + 1) for c, n in zip(cells, sizes))
            out.append(line + faster.rjust(10))
        if len(rows) < len(self.rows):
            out.append(f"... and {len(self.rows) - len(rows)} more")
        out.append("-" * len(head))
        out.append(
            f"{whole * 1e3:.3f}ms recorded, {self.accounted * 100:.1f} % of {self.wall_time * 1e3:.3f}ms. This machine "
            f"moves {bandwidth / 1e9:.1f} GB/s and multiplies and adds {peak / 1e9:.0f} GFLOP/s."
        )
        return "\n".join(out)

    def __str__(self) -> str:
        return self.table()


def _sums(recording: Recording, title: str, name_of: Callable[[Any], str], counted: Callable[[Any], bool]) -> CostTable:
    """Adds up the events that get the same name."""
    peaks = machine_peaks()
    rows: dict[str, CostRow] = {}
    busy: dict[int, float] = {}
    for event in recording.events():
        row = rows.setdefault(name_of(event), CostRow(name_of(event)))
        seconds = event.own_time * 1e-6
        busy[event.thread] = busy.get(event.thread, 0.0) + seconds
        if event.phase == "backward":
            row.backward_time += seconds
            row.backward_memory += event.own_memory
        else:
            row.forward_time += seconds
            row.memory += event.own_memory
        row.calls += counted(event)
        row.bytes_moved += event.bytes_moved
        row.operations += event.operations
        row.best_time += peaks.least_time(event.bytes_moved, event.operations, event.is_double)
    wall = recording.wall_time()
    return CostTable(title, list(rows.values()), wall, max(busy.values(), default=0.0) / wall if wall else 0.0)


def by_layer(recording: Recording, depth: int | None = None) -> CostTable:
    """Adds up events by the module that they belong to; see ``profile.by_layer``."""
    if depth is not None and (not isinstance(depth, int) or depth < 1):
        raise ValueError(f"by_layer: expected a positive number or None, got {depth!r} (depth).")

    def name(event: Any) -> str:
        if event.layer is None:
            return _OUTSIDE
        return event.layer if depth is None else ".".join(event.layer.split(".")[:depth])

    def is_call(event: Any) -> bool:
        if event.kind != 2:
            return False
        outer = event.outer
        return depth is None or outer is None or outer.layer is None or name(outer) != name(event)

    return _sums(recording, "Layer", name, is_call)


def by_line(recording: Recording) -> CostTable:
    """Adds up events by the line of the program that they come from; see ``profile.by_line``."""

    def is_outermost(event: Any) -> bool:
        return event.kind == 0 and (event.outer is None or event.outer.kind != 0)

    table = _sums(recording, "Line", lambda event: event.line or _UNKNOWN, is_outermost)
    for row in table.rows:
        if row.name != _UNKNOWN:
            file, line, _ = re.fullmatch(r"(.*)\((\d+)\): (.*)", row.name, re.S).groups()
            source = linecache.getline(file, int(line)).strip()
            row.name = f"{os.path.basename(file)}:{line}  {source}".rstrip()[:70]
    return table
