"""Tables that say which part of a program is slow, and how much faster the machine could run it.

The cost of an operation is told from shapes (``core/ops/cost.cpp``): the bytes it reads and writes once, and its
arithmetic operations. The machine's limits are measured once, in about 0.2 s: how fast memory is copied, and how fast
float32 numbers are multiplied and added (float64: half of that). An operation needs at least the larger of
``bytes / bandwidth`` and ``operations / peak``: the ratio of its time to that is how much faster it could be. One that
moves at most 1 MiB is measured by the bandwidth of caches there, while shares are always those of memory's. A share
above 100 % (bytes came from a cache, a convolution needed fewer multiplications) is shown as 100 %.
"""

from __future__ import annotations

import html
import linecache
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vesta import _C

if TYPE_CHECKING:
    from vesta.autograd.recording import Recording

__all__ = ["CostRow", "CostTable", "by_layer", "by_line", "by_op", "machine_peaks"]

_OUTSIDE = "(outside of layers)"
_NOT_IN_VESTA = "(not in Vesta)"
_UNKNOWN = "(no line)"
_COLLECTIVES = "(collectives)"  # in a thread of theirs
_MOST = 1000.0  # a larger ratio says only that there is next to nothing to compute
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
    """Returns what this machine can do, measured on the first call in about 0.2 s.

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
        on_device: some of them ran on another device, whose work is not timed: shares and ``could_be`` are unknown.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls = 0
        self.forward_time = self.backward_time = 0.0
        self.memory = self.backward_memory = 0
        self.bytes_moved = self.operations = self.best_time = 0.0
        self.on_device = False

    @property
    def time(self) -> float:
        """Forward and backward."""
        return self.forward_time + self.backward_time

    @property
    def could_be(self) -> float:
        """How many times faster the machine could be; 1 where it cannot, infinite where nothing is computed, or on
        another device."""
        return max(1.0, self.time / self.best_time) if self.best_time and not self.on_device else float("inf")

    def __repr__(self) -> str:
        return f"<CostRow {self.name}: {self.time * 1e3:.3f} ms in {self.calls} calls>"


_TITLES = (
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
    "Could be",
)
_WIDTHS = (7, 11, 11, 7, 10, 10, 9, 9, 9, 7, 9)


class CostTable:
    """Rows of costs, the slowest first. ``print`` shows it; it can be iterated, and ``table["name"]`` is a row.

    Attributes:
        rows: a list of ``CostRow``.
        wall_time: how long the profile ran, in seconds.
        accounted: the share of it that the rows of its busiest thread account for; the table's last row is the rest.
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

    @property
    def outside_time(self) -> float:
        """The seconds of ``wall_time`` in which the busiest thread was in no row: the program's own work."""
        return max(0.0, self.wall_time * (1 - self.accounted))

    def table(self, row_limit: int = 30) -> str:
        """Returns the table as text.

        Args:
            row_limit: the most rows; -1: all.
        """
        lines = self._lines(row_limit)
        width = min(70, max(len(name) for name, _ in [(self.title, ()), *lines]))
        head = self.title.ljust(width) + "".join(t.rjust(n + 1) for t, n in zip(_TITLES, _WIDTHS))
        out = [head, "-" * len(head)]
        for name, cells in lines:
            name = name if len(name) <= width else "..." + name[len(name) - width + 3 :]
            out.append((name.ljust(width) + "".join(c.rjust(n + 1) for c, n in zip(cells, _WIDTHS))).rstrip())
        return "\n".join([*out, "-" * len(head), self._summary()])

    def _lines(self, row_limit: int) -> list[tuple[str, Sequence[str]]]:
        """Returns the name and the cells of each row that is shown, and of the rest."""
        bandwidth, _, peak = machine_peaks()
        wall = self.wall_time or sum(row.time for row in self.rows) or 1.0
        rows = self.rows if row_limit < 0 else self.rows[:row_limit]
        lines: list[tuple[str, Sequence[str]]] = []
        for row in rows:
            share = lambda rate, most, row=row: "-" if row.on_device else f"{min(100.0, rate / most * 100):.0f}"
            time = max(row.time, 1e-12)
            cells = (
                str(row.calls),
                f"{row.forward_time * 1e3:.3f}ms",
                f"{row.backward_time * 1e3:.3f}ms",
                f"{row.time / wall * 100:.1f}",
                f"{row.memory / 2**20:.2f}MB",
                f"{row.backward_memory / 2**20:.2f}MB",
                f"{row.bytes_moved / 1e9:.3f}",
                f"{row.operations / 1e9:.3f}",
                share(row.bytes_moved / time, bandwidth),
                share(row.operations / time, peak),
                f"{row.could_be:.1f}x" if row.could_be <= _MOST else "-",
            )
            lines.append((row.name, cells))
        if len(rows) < len(self.rows):
            rest = sum(row.time for row in self.rows[len(rows) :])
            more = f"... and {len(self.rows) - len(rows)} more"
            lines.append((more, ("", f"{rest * 1e3:.3f}ms", "", f"{rest / wall * 100:.1f}")))
        outside = self.outside_time
        lines.append((_NOT_IN_VESTA, ("", f"{outside * 1e3:.3f}ms", "", f"{outside / wall * 100:.1f}")))
        return lines

    def _summary(self) -> str:
        bandwidth, _, peak = machine_peaks()
        whole = sum(row.time for row in self.rows)
        return (
            f"{whole * 1e3:.3f}ms recorded, {self.accounted * 100:.1f} % of {self.wall_time * 1e3:.3f}ms. This machine "
            f"moves {bandwidth / 1e9:.1f} GB/s and multiplies and adds {peak / 1e9:.0f} GFLOP/s."
        )

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns the table for notebooks."""
        rows = [(name, *cells, *[""] * (len(_TITLES) - len(cells))) for name, cells in self._lines(30)]
        return html_table([self.title, *_TITLES], rows, self._summary())


def html_table(titles: Sequence[str], rows: Iterable[Sequence[str]], below: str) -> str:
    """Returns a table in HTML: the first column at the left, the others at the right, and a line below."""
    cell = lambda text, i, tag: f'<{tag} style="text-align:{"right" if i else "left"}">{html.escape(text)}</{tag}>'
    line = lambda cells, tag: "<tr>" + "".join(cell(text, i, tag) for i, text in enumerate(cells)) + "</tr>"
    body = "".join(line(cells, "td") for cells in rows)
    return f"<table><thead>{line(titles, 'th')}</thead><tbody>{body}</tbody></table><p>{html.escape(below)}</p>"


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
        if event.on_device:
            row.on_device = True
        else:
            row.best_time += peaks.least_time(event.bytes_moved, event.operations, event.is_double)
    wall = recording.wall_time()
    return CostTable(title, list(rows.values()), wall, max(busy.values(), default=0.0) / wall if wall else 0.0)


def _is_collective(event: Any) -> bool:
    return event.name.startswith("c10d::") and event.outer is None


def by_layer(recording: Recording, depth: int | None = None) -> CostTable:
    """Adds up events by the module that they belong to; see ``profile.by_layer``."""
    if depth is not None and (not isinstance(depth, int) or depth < 1):
        raise ValueError(f"by_layer: expected a positive number or None, got {depth!r} (depth).")

    def name(event: Any) -> str:
        if event.layer is None:
            return _COLLECTIVES if _is_collective(event) else _OUTSIDE
        return event.layer if depth is None else ".".join(event.layer.split(".")[:depth])

    def is_call(event: Any) -> bool:
        if event.kind != 2:
            return False
        outer = event.outer
        return depth is None or outer is None or outer.layer is None or name(outer) != name(event)

    return _sums(recording, "Layer", name, is_call)


def by_op(recording: Recording) -> CostTable:
    """Adds up events by their names; see ``profile.by_op``."""
    return _sums(recording, "Operation", lambda event: event.name, lambda event: True)


def by_line(recording: Recording) -> CostTable:
    """Adds up events by the line of the program that they come from; see ``profile.by_line``."""
    shown: dict[str | None, str] = {None: _UNKNOWN}
    files: dict[str, set[str]] = {}  # by their last parts
    for entry in {event.line for event in recording.events()} - {None}:
        file = _parts_of(entry)[0]
        files.setdefault(os.path.basename(file), set()).add(file)

    def name(event: Any) -> str:
        if event.line is None and _is_collective(event):
            return _COLLECTIVES
        if event.line not in shown:
            file, line = _parts_of(event.line)
            short = os.path.basename(file)
            if len(files[short]) > 1:
                short = os.path.join(os.path.basename(os.path.dirname(file)), short)
            source = linecache.getline(file, int(line)).strip()
            shown[event.line] = f"{short}:{line}  {source}".rstrip()[:70]
        return shown[event.line]

    def is_outermost(event: Any) -> bool:
        return event.kind == 0 and (event.outer is None or event.outer.kind != 0)

    return _sums(recording, "Line", name, is_outermost)


def _parts_of(entry: str) -> tuple[str, str]:
    """Returns the file and the number of "file(line): function"."""
    found = re.fullmatch(r"(.*)\((\d+)\): (.*)", entry, re.S)
    assert found is not None
    return found[1], found[2]
