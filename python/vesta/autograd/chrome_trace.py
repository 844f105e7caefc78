"""Traces for chrome://tracing and ui.perfetto.dev, with the names and arguments that PyTorch's have.

Besides the calls they have the names of the process and its threads, an arrow from each operation to its step of
backward, the modules, and with ``profile_memory`` each allocation and the memory in use by category.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vesta.autograd.events import FunctionEvent
    from vesta.autograd.recording import Recording

__all__ = ["write"]

_LAYER = 2
_COLOURS = {"backward": "thread_state_iowait"}  # chrome's; forward has those of names


def write(
    path: str | os.PathLike[str],
    events: Iterable[FunctionEvent],
    recording: Recording | None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Writes events to a file, compressed if its name ends in ``.gz``.

    Args:
        recording: that they are of; None: only the events themselves are written.
        metadata: texts, or values of JSON, about the run.
    """
    origin = recording.began * 1e6 if recording is not None else 0.0
    pid = os.getpid()
    rows: list[dict[str, Any]] = []
    everything = [*events, *(e for e in recording.events() if e.kind == _LAYER)] if recording is not None else events
    threads = dict.fromkeys(event.thread for event in everything)
    rows += _names(pid, threads, recording)
    for event in sorted(everything, key=lambda event: (event.thread, event.time_range.start)):
        rows.append(_call(event, pid, origin))
        if event.forward is not None:
            rows += _arrow(event, event.forward, pid, origin)
    if recording is not None and recording.memory:
        rows += _memory(recording, pid, origin)
    path = os.fspath(path)
    heading = {"schemaVersion": 1, "displayTimeUnit": "ms", **(metadata or {})}
    with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps(heading)[:-1] + ', "traceEvents": [\n')
        file.write(",\n".join(map(json.dumps, rows)) + "\n]}\n")  # faster than json.dump of all


def _names(pid: int, threads: Mapping[int, None], recording: Recording | None) -> Iterator[dict[str, Any]]:
    program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] else "python"
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": program}}
    yield {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "args": {"labels": "CPU"}}
    known = recording.thread_names if recording is not None else {}
    for i, thread in enumerate(threads):
        name = f"thread {thread} ({known.get(thread, 'ended, or not of Python')})"
        yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": thread, "args": {"sort_index": i}}


def _call(event: FunctionEvent, pid: int, origin: float) -> dict[str, Any]:
    arguments: dict[str, Any] = {"External id": event.id, "Phase": event.phase}
    if event.input_shapes:
        arguments["Input Dims"] = event.input_shapes
    if event.sequence_nr >= 0:
        arguments["Sequence number"] = event.sequence_nr
    if event.phase == "backward" and event.sequence_nr >= 0 and event.forward is not None:
        arguments["Fwd thread id"] = event.forward.thread
    for title, value in (
        ("Layer", event.layer),
        ("Line", event.line),
        ("Bytes", event.bytes_moved),
        ("Operations", event.operations),
        ("Memory", event.cpu_memory_usage),
        ("Call stack", ";".join(event.stack)),
    ):
        if value:
            arguments[title] = value
    category, name = {7: "user_annotation"}.get(event.scope, "cpu_op"), event.name
    if event.kind == _LAYER:
        category, name = "python_function", f"nn.Module: {event.name}"
    row = {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": event.thread}
    row.update(ts=origin + event.time_range.start, dur=event.cpu_time_total, args=arguments)
    if event.phase in _COLOURS:
        row["cname"] = _COLOURS[event.phase]
    return row


def _arrow(step: FunctionEvent, operation: FunctionEvent, pid: int, origin: float) -> Iterator[dict[str, Any]]:
    """Returns the two ends of the arrow from an operation to the step of backward that it made."""
    common = {"id": step.sequence_nr, "pid": pid, "cat": "fwdbwd", "name": "fwdbwd"}
    yield {"ph": "s", **common, "tid": operation.thread, "ts": origin + operation.time_range.start}
    yield {"ph": "f", **common, "tid": step.thread, "ts": origin + step.time_range.start, "bp": "e"}


def _memory(recording: Recording, pid: int, origin: float) -> Iterator[dict[str, Any]]:
    """Returns an event for each allocation and free, as PyTorch has them, and the sums by category as counters."""
    from vesta.profiler.memory import MemoryTimeline

    timeline = MemoryTimeline(recording)
    total = 0
    for change in recording.memory_events:
        total += change.nbytes
        arguments = {"Total Allocated": total, "Total Reserved": 0, "Bytes": change.nbytes, "Addr": change.block}
        arguments.update({"Device Type": 0, "Device Id": -1})
        row = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": pid, "tid": change.thread}
        yield {**row, "ts": origin + change.time, "args": arguments}
    for time, sizes in timeline.steps():
        row = {"ph": "C", "name": "memory", "pid": pid, "tid": 0, "ts": origin + time}
        yield {**row, "args": {category.title: nbytes for category, nbytes in sizes.items()}}
