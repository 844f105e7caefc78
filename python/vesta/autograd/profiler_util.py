"""What profilers give back: events, lists of them, their averages and tables. ``torch.autograd.profiler_util``'s names.

Times are microseconds, memory is bytes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from vesta.autograd.chrome_trace import write
from vesta.autograd.events import DeviceType, FormattedTimesMixin, FunctionEvent, Interval
from vesta.autograd.recording import LAYER, Lines, Recording

from ._units import _format_memory, _format_time_share, _in_unit

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval", "function_events"]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STACK_METRICS = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total"]


class FunctionEventAvg(FormattedTimesMixin):
    """The sums over events of one key."""

    is_async = is_remote = is_legacy = False
    node_id = -1
    overload_name = ""
    use_device: str | None = None
    device_type = DeviceType.CPU

    def __init__(self) -> None:
        self.key = ""
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = self.operations = self.bytes_moved = 0.0
        self.input_shapes: Any = ""
        self.stack: Sequence[str] = ()
        self.scope = 0
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.is_user_annotation = False

    def add(self, other: Any) -> FunctionEventAvg:
        """Adds an event, or the sums of others; the first gives the key, the shapes and the stack."""
        if not self.key:
            self.key, self.scope = other.key, other.scope
            self.input_shapes, self.stack = other.input_shapes, other.stack
            self.cpu_parent, self.is_user_annotation = other.cpu_parent, other.is_user_annotation
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.flops += other.flops
        self.operations += other.operations
        self.bytes_moved += other.bytes_moved
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} count={self.count} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


E = TypeVar("E", bound="FunctionEvent | FunctionEventAvg")


class EventList(list[E]):
    """A list of events, or of their averages."""

    def __init__(
        self,
        events: Iterable[E] = (),
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
        recording: Recording | None = None,
    ) -> None:
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops
        self._recording = recording  # that the events are of

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList[FunctionEventAvg]:
        """Returns one event for each name, with the sums of times, calls and memory.

        Args:
            group_by_input_shapes: calls with other shapes are other rows.
            group_by_stack_n: calls whose innermost lines of the program, so many, differ are other rows.
            group_by_overload_name: accepted; operations are told apart by their names.

        Example::

            >>> import vesta
            >>> with vesta.profiler.profile() as prof:
            ...     _ = vesta.ones(2) * 3 * 4
            >>> [event.count for event in prof.key_averages() if event.key == "aten::mul"]
            [2]
        """
        found: dict[tuple[str, ...], FunctionEventAvg] = {}
        stacks: dict[int, Sequence[str]] = {}  # of a stack, which many events share: the program's lines
        for event in self:
            key = (event.key, "part") if event.is_user_annotation else (event.key,)
            if group_by_input_shapes:
                key += (str(event.input_shapes),)
            if group_by_stack_n > 0:
                if id(event.stack) not in stacks:
                    lines = [entry for entry in event.stack if not entry.startswith(_PACKAGE)]
                    stacks[id(event.stack)] = lines[:group_by_stack_n]
                key += tuple(stacks[id(event.stack)])
            found.setdefault(key, FunctionEventAvg()).add(event)
        for total in found.values():
            total.stack = stacks.get(id(total.stack), ())
            if not group_by_input_shapes:
                total.input_shapes = ""
        return EventList(found.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)

    def total_average(self) -> FunctionEventAvg:
        """Returns one event with the sums of all; times and memory of events within others count in both."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key, total.input_shapes, total.stack = "Total", "", ()
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, none counted twice."""
        return sum(event.self_cpu_time_total for event in self)

    def supported_export_stacks_metrics(self) -> list[str]:
        """Returns what ``export_stacks`` can write."""
        return list(_STACK_METRICS)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes each event's stack, the outermost line first, and its time, a line each, for tools of flame graphs.

        Raises:
            ValueError: ``metric`` is not in ``supported_export_stacks_metrics()``.
        """
        if metric not in _STACK_METRICS:
            raise ValueError(f"metric should be one of: {_STACK_METRICS}")
        blanks = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                value = int(getattr(event, metric, 0.0))
                if event.stack and value > 0:
                    print(";".join(entry.translate(blanks) for entry in reversed(event.stack)), value, file=file)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events to a file that chrome://tracing and ui.perfetto.dev open; compressed if its name ends in
        ``.gz``."""
        write(path, self, self._recording)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """Returns the events as a readable table.

        Args:
            sort_by: an attribute of the events, the largest first: "cpu_time", "cpu_time_total",
                "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count", "flops".
            row_limit: the most rows; -1: all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: in characters; None: no limit.
            header: a line above the table.
            top_level_events_only: leaves events within others out.
            time_unit: "s", "ms" or "us" for all times.

        Raises:
            AttributeError: ``sort_by`` is no attribute of the events.

        Example::

            >>> import vesta
            >>> with vesta.profiler.profile() as prof:
            ...     _ = vesta.ones(2) * 3
            >>> "aten::mul" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=5)
            True
        """
        if not self:
            return ""
        rows = list(self)
        if sort_by is not None:
            name = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
            rows.sort(key=lambda event: getattr(event, name), reverse=True)
        whole = sum(event.self_cpu_time_total for event in rows)
        if top_level_events_only:
            rows = [event for event in rows if event.cpu_parent is None]
        rows = rows if row_limit < 0 else rows[:row_limit]
        columns = self._columns(rows, whole, time_unit, max_name_column_width, max_shapes_column_width)
        if any(event.stack for event in self):
            width = max([len(entry) for event in self for entry in event.stack]) + 4
            width = width if max_src_column_width is None else min(width, max_src_column_width)
            columns.append(("Source Location", width, [(event.stack or ("",))[0][-width:] for event in rows]))
        return self._laid_out(columns, rows, whole, time_unit, header, top_level_events_only)

    def _columns(
        self, rows: list[Any], whole: float, unit: str | None, name_width: int | None, shapes_width: int | None
    ) -> list[tuple[str, int, list[str]]]:
        """Returns title, width and cells of each column."""
        width = max(len(event.key) for event in self) + 4
        width = width if name_width is None else min(width, name_width)
        names = [e.key if len(e.key) < width - 3 or name_width is None else e.key[: width - 3] + "..." for e in rows]
        share = _format_time_share
        columns = [
            ("Name", width, names),
            ("Self CPU %", 12, [share(event.self_cpu_time_total, whole) for event in rows]),
            ("Self CPU", 12, [_in_unit(event.self_cpu_time_total, unit) for event in rows]),
            ("CPU total %", 12, [share(event.cpu_time_total, whole) for event in rows]),
            ("CPU total", 12, [_in_unit(event.cpu_time_total, unit) for event in rows]),
            ("CPU time avg", 12, [_in_unit(event.cpu_time, unit) for event in rows]),
        ]
        if self._profile_memory:
            columns.append(("CPU Mem", 12, [_format_memory(event.cpu_memory_usage) for event in rows]))
            columns.append(("Self CPU Mem", 12, [_format_memory(event.self_cpu_memory_usage) for event in rows]))
        columns.append(("# of Calls", 12, [str(event.count) for event in rows]))
        if any(event.input_shapes for event in self):
            width = max(len(str(event.input_shapes)) for event in self) + 4
            width = width if shapes_width is None else min(width, shapes_width)
            columns.append(("Input Shapes", width, [str(event.input_shapes)[:width] for event in rows]))
        counts = [event.flops for event in self if event.flops > 0]
        if self._with_flops and counts:
            power = min(5, max(0, int(math.log10(min(counts)) / 3)))
            cells = [f"{event.flops / 1000**power:8.3f}" if event.flops > 0 else "--" for event in rows]
            columns.append((f"Total {'KMGTP'[power - 1] if power else ''}FLOPs", 12, cells))
        return columns

    @staticmethod
    def _laid_out(
        columns: list[tuple[str, int, list[str]]],
        rows: list[Any],
        whole: float,
        unit: str | None,
        header: str | None,
        top_level_only: bool,
    ) -> str:
        line = "".join("-" * width + "  " for _, width, _ in columns)
        length = len(line) - 2

        def text(cells: Iterable[str]) -> str:
            aligned = []
            for (title, width, _), cell in zip(columns, cells):
                aligned.append((cell.ljust(width) if title == "Source Location" else cell.rjust(width)) + "  ")
            return "".join(aligned)

        out = []
        if header is not None:
            out += ["=" * length, header]
        if top_level_only:
            out += ["=" * length, "This report only display top-level ops statistics"]
        out += [line, text(title for title, _, _ in columns), line]
        for i, event in enumerate(rows):
            out.append(text(cells[i] for _, _, cells in columns))
            blank = [""] * (len(columns) - 1)
            out += [text([*blank, entry[-columns[-1][1] :]]) for entry in event.stack[1:]]
        return "\n".join([*out, line, f"Self CPU time total: {_in_unit(whole, unit)}", ""])

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns the table for notebooks."""
        from vesta.profiler.tables import html_table

        if not self:
            return "<p>no events</p>"
        whole = sum(event.self_cpu_time_total for event in self)
        columns = self._columns(list(self), whole, None, None, None)
        rows = list(zip(*(cells for _, _, cells in columns)))
        return html_table([title for title, _, _ in columns], rows, f"Self CPU time total: {_in_unit(whole, None)}")


def function_events(recording: Recording, *, flops: bool, memory: bool) -> EventList[FunctionEvent]:
    """Returns the events of a recording as ``key_averages`` wants them: calls of modules are left out."""
    found = []
    lines = Lines(recording.places)
    for event in recording.events():
        if event.kind == LAYER:
            continue
        outer = event.outer
        while outer is not None and outer.kind == LAYER:
            outer = outer.outer
        if outer is not None and event.cpu_parent is None:
            outer.append_cpu_child(event)
        if flops:
            event.flops = event.operations
        if recording.stacks and event.stack_place >= 0:
            event.stack = lines.stack(event.stack_place)
        found.append(event)
    return EventList(found, profile_memory=memory, with_flops=flops, recording=recording)
