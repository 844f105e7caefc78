"""Times of named parts of a program: ``record_function`` marks a part, ``profile`` collects them.

Operations are not collected one by one; what has no name of its own is in the times of the part around it.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function"]

_running: list[profile] = []


class FunctionEvent:
    """One part that ran, or all parts of one name: times in microseconds."""

    def __init__(self, name: str, start: float, end: float, thread: int, children: float, count: int = 1) -> None:
        self.name = self.key = name
        self.start, self.end, self.thread, self.count = start, end, thread, count
        self.cpu_time_total = end - start
        self.self_cpu_time_total = self.cpu_time_total - children
        self.device_time_total = self.self_device_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count

    def __repr__(self) -> str:
        return f"<FunctionEvent name={self.name} count={self.count} cpu_time_total={self.cpu_time_total:.3f}us>"


class EventList(list):
    """A list of events."""

    def key_averages(self, group_by_input_shape: bool = False, *args: Any, **kwargs: Any) -> EventList:
        """Returns one event for each name, with the sums of its times."""
        found: dict[str, FunctionEvent] = {}
        for event in self:
            total = found.setdefault(event.name, FunctionEvent(event.name, 0.0, 0.0, event.thread, 0.0, 0))
            total.count += event.count
            total.cpu_time_total += event.cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
        return EventList(found.values())

    def total_average(self) -> FunctionEvent:
        """Returns one event with the sums of all."""
        total = FunctionEvent("Total", 0.0, 0.0, 0, 0.0, 0)
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all parts, none counted twice."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, *args: Any, **kwargs: Any) -> str:
        """Returns the events as a readable table.

        Args:
            sort_by: "cpu_time_total", "self_cpu_time_total", "cpu_time" or "count": the largest come first.
            row_limit: the most rows; -1: all.
        """
        rows = list(self)
        if sort_by is not None:
            rows.sort(key=lambda event: -getattr(event, sort_by, 0.0))
        rows = rows if row_limit < 0 else rows[:row_limit]
        width = max([4, *(len(event.name) for event in rows)])
        line = "  ".join(["-" * width, *["-" * 14] * 4])
        titles = ("Self CPU", "CPU total", "CPU time avg", "# of Calls")
        head = "  ".join(["Name".rjust(width), *(title.rjust(14) for title in titles)])
        body = []
        for event in rows:
            times = (event.self_cpu_time_total, event.cpu_time_total, event.cpu_time)
            cells = [f"{value:.3f}us".rjust(14) for value in times] + [str(event.count).rjust(14)]
            body.append("  ".join([event.name.rjust(width), *cells]))
        return "\n".join([line, head, line, *body, line]) + f"\nSelf CPU time total: {self.self_cpu_time_total:.3f}us\n"

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events to a file that chrome://tracing opens."""
        events = [
            {
                "name": e.name,
                "ph": "X",
                "ts": e.start,
                "dur": e.end - e.start,
                "tid": e.thread,
                "pid": "CPU",
                "args": {},
            }
            for e in self
        ]
        with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="utf-8") as file:
            json.dump({"traceEvents": events}, file)

    def __str__(self) -> str:
        return self.table()


class profile:
    """A context that collects the parts that run inside, of all threads.

    Args:
        enabled: False: nothing is collected.
        others: accepted for PyTorch's sake; there are no times of devices, shapes or memory.

    Example::

        >>> import vesta
        >>> with vesta.autograd.profiler.profile() as prof:
        ...     with vesta.autograd.profiler.record_function("forward"):
        ...         _ = vesta.ones(2) + 1
        >>> [(event.key, event.count) for event in prof.key_averages()]
        [('forward', 1)]
    """

    def __init__(self, enabled: bool = True, **others: Any) -> None:
        self.enabled = enabled
        self.function_events = EventList()

    def __enter__(self) -> profile:
        if self.enabled:
            _running.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self.enabled:
            _running.remove(self)

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """Returns one event for each name, with the sums of its times."""
        return self.function_events.key_averages()

    def total_average(self) -> FunctionEvent:
        """Returns one event with the sums of all."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Returns the events as a readable table; see ``EventList.table``."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events to a file that chrome://tracing opens."""
        self.function_events.export_chrome_trace(path)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all parts, none counted twice, in microseconds."""
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return str(self.function_events)


_stack = threading.local()


class record_function(contextlib.ContextDecorator):
    """A context, or a decorator, that gives a part of a program a name for ``profile``.

    Args:
        name: of the part.
        args: a text beside it; not shown.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._starts: list[float] = []

    def __enter__(self) -> record_function:
        if not hasattr(_stack, "children"):
            _stack.children = []
        _stack.children.append(0.0)
        self._starts.append(time.perf_counter() * 1e6)
        return self

    def __exit__(self, *error: object) -> None:
        start, end = self._starts.pop(), time.perf_counter() * 1e6
        inside = _stack.children.pop()
        if _stack.children:
            _stack.children[-1] += end - start
        for running in _running:
            running.function_events.append(FunctionEvent(self.name, start, end, threading.get_ident(), inside))

    def __call__(self, func: Any) -> Any:
        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name):
                return func(*args, **kwargs)

        return run


@contextlib.contextmanager
def emit_nvtx(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """A context that changes nothing: operations make no marks for NVIDIA's profilers, which see their kernels."""
    yield


@contextlib.contextmanager
def emit_itt(enabled: bool = True, record_shapes: bool = False) -> Iterator[None]:
    """A context that changes nothing: operations make no marks for VTune."""
    yield


def kineto_available() -> bool:
    """Returns False: PyTorch's tracer is not used."""
    return False
