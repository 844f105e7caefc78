"""Where the time of a program goes, by steps: ``torch.profiler``'s names, and tables by layer and by line.

Times are those of the host. An operation of a device with queues is over, for them, when it is queued.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from types import TracebackType
from typing import Any

from vesta._names import listing
from vesta.autograd import profiler as _parts
from vesta.autograd.profiler import kineto_available, record_function
from vesta.autograd.profiler_util import DeviceType, EventList, FunctionEvent, FunctionEventAvg
from vesta.profiler.execution_trace import ExecutionTraceObserver
from vesta.profiler.memory import Category, HeldBlock, MemoryTimeline
from vesta.profiler.tables import CostRow, CostTable, machine_peaks

__all__ = [
    "Category",
    "CostRow",
    "CostTable",
    "DeviceType",
    "ExecutionTraceObserver",
    "HeldBlock",
    "MemoryTimeline",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "machine_peaks",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What could be collected; the CPU's times are."""

    CPU = 0
    CUDA = 2
    XPU = 1
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(Enum):
    """What is done in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """Returns what is collected: times of the CPU. Work on GPUs is not timed."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Returns a function from the number of a step to what is done in it: cycles of ``wait`` steps in which nothing is
    done, ``warmup`` steps, and ``active`` steps that are recorded.

    Args:
        repeat: the number of cycles; 0: no end.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0: the first cycle has no ``wait``.

    Raises:
        AssertionError: a negative number, or no active steps.

    Example::

        >>> from vesta.profiler import schedule
        >>> [schedule(wait=1, warmup=1, active=2)(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments: expected no negative number and active > 0, got {wait=}, {warmup=}, "
            f"{active=}, {repeat=}, {skip_first=}"
        )

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        length = wait + warmup + active
        if repeat and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[profile], None]:
    """Returns a function for ``on_trace_ready`` that writes a trace to a folder.

    Raises:
        RuntimeError: the folder cannot be made.
    """

    def write(profiler: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        name = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        end = ".pt.trace.json.gz" if use_gzip else ".pt.trace.json"
        profiler.export_chrome_trace(os.path.join(dir_name, f"{name}.{time.time_ns()}{end}"))

    return write


def _activities(given: Iterable[ProfilerActivity]) -> set[ProfilerActivity]:
    """Returns activities as a set. TypeError: one is none."""
    found = set(given) if isinstance(given, Iterable) and not isinstance(given, str) else {given}
    for one in found:
        if not isinstance(one, ProfilerActivity):
            raise TypeError(
                "profile: expected members of ProfilerActivity, such as [ProfilerActivity.CPU], got "
                f"{one!r} (activities)."
            )
    return found


def _checked(given: Iterable[ProfilerActivity]) -> set[ProfilerActivity]:
    """Does the same, and warns of those that are not timed."""
    found = _activities(given)
    names = ", ".join(sorted(one.name for one in found - supported_activities()))
    if names:
        warnings.warn(
            f"profile: work on {names} is not timed: an operation there is over when the host has queued it.",
            stacklevel=3,
        )
    return found


class profile:
    """A context that collects every call of an operation, every step of backward and the parts that
    ``record_function`` names, of all threads.

    Args:
        activities: members of ProfilerActivity; times are those of the CPU, and others warn so.
        schedule: a function from the number of a step to a ProfilerAction; without one everything is recorded.
        on_trace_ready: called with this object when a recorded cycle ends.
        record_shapes: events carry the shapes of their arguments.
        profile_memory: tables show the memory that operations allocate on the CPU, ``memory`` who holds it, and traces
            both.
        with_stack: events carry the whole stack of Python lines; else the innermost line of the program.
        with_flops: tables show arithmetic operations, told from shapes.
        with_modules: accepted: modules are always known, see ``by_layer``.
        execution_trace_observer: an ExecutionTraceObserver that records while this does.
        custom_trace_id_callback: gives the id of each recorded cycle, see ``get_trace_id``.
        experimental_config, acc_events, use_cuda, post_processing_timeout_s: accepted for PyTorch's sake.

    Raises:
        TypeError: an argument is not known, or an activity is no ProfilerActivity.
        AssertionError: there are no activities, or results are asked for before it was started.

    Example::

        >>> import vesta
        >>> with vesta.profiler.profile() as prof:
        ...     with vesta.profiler.record_function("forward"):
        ...         _ = vesta.ones(2) + 1
        >>> [event.key for event in prof.key_averages()]
        ['forward', 'aten::ones', 'aten::full', 'aten::add']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: ExecutionTraceObserver | None = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = _checked(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found: expected some, or None for all (activities).")
        self.record_steps = schedule is not None
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: _parts.profile | None = None
        self._open = False
        self._part: record_function | None = None
        self._metadata: dict[str, Any] = {}
        self.execution_trace_observer = execution_trace_observer
        self.custom_trace_id_callback = custom_trace_id_callback
        self._trace_id: str | None = None

    def start(self) -> None:
        """Begins the first step."""
        self.current_action = self.schedule(self.step_num)
        self._follow()

    def step(self) -> None:
        """Ends a step and begins the next one."""
        self._end_part()
        ends = self.current_action is ProfilerAction.RECORD_AND_SAVE
        self.step_num += 1  # on_trace_ready finds the number of the step that begins, as in PyTorch
        self.current_action = self.schedule(self.step_num)
        if ends:
            self._end_cycle()
        self._follow()

    def stop(self) -> None:
        """Ends the last step."""
        self._end_part()
        if self._open:
            self._end_cycle()

    def _follow(self) -> None:
        """Begins a collection where the step is recorded and there is none."""
        recorded = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recorded and not self._open:
            self.prepare_trace()
            self.start_trace()
        if self._open and self.record_steps:
            self._part = record_function(f"ProfilerStep#{self.step_num}")
            self._part.__enter__()

    def _end_part(self) -> None:
        if self._part is not None:
            self._part.__exit__()
            self._part = None

    def prepare_trace(self) -> None:
        """Makes what ``start_trace`` begins; what was recorded before is given up."""
        self.profiler = _parts.profile(
            record_shapes=self.record_shapes,
            with_flops=self.with_flops,
            profile_memory=self.profile_memory,
            with_stack=self.with_stack,
            with_modules=self.with_modules,
        )

    def start_trace(self) -> None:
        """Begins to record, whatever the schedule says.

        Raises:
            AssertionError: ``prepare_trace`` was not called.
        """
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.start()
        self._found().__enter__()
        made = self.custom_trace_id_callback
        self._trace_id = made() if made is not None else uuid.uuid4().hex.upper()
        self._open = True

    def stop_trace(self) -> None:
        """Ends to record, without a call of ``on_trace_ready``.

        Raises:
            AssertionError: ``prepare_trace`` was not called.
        """
        self._found().__exit__()
        self._open = False
        if self.execution_trace_observer is not None:
            self.execution_trace_observer.stop()

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[ProfilerActivity]) -> None:
        """Leaves out what begins from now on, or collects it again.

        Args:
            activities: what is meant; only the CPU's are collected.

        Raises:
            TypeError: an activity is no ProfilerActivity.

        Example::

            >>> import vesta
            >>> from vesta.profiler import ProfilerActivity, profile
            >>> with profile() as prof:
            ...     prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
            ...     _ = vesta.ones(2).exp()
            ...     prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
            ...     _ = vesta.ones(2).neg()
            >>> "aten::exp" in {event.key for event in prof.events()}
            False
        """
        if ProfilerActivity.CPU in _activities(activities) and self.profiler is not None:
            self.profiler._recording.pause(not enable)

    def get_trace_id(self) -> str | None:
        """Returns the id of the last recorded cycle; None before the first."""
        return self._trace_id

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Makes ``callback`` give the ids of the cycles to come."""
        self.custom_trace_id_callback = callback

    def _end_cycle(self) -> None:
        self.stop_trace()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def events(self) -> EventList[FunctionEvent]:
        """Returns the events of the last recorded cycle, in the order of their beginnings.

        Raises:
            AssertionError: it was not started.
        """
        return self._found().function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList[FunctionEventAvg]:
        """Returns one event for each name, with the sums of times, calls and memory.

        Args:
            group_by_input_shape: calls with other shapes are other rows; wants ``record_shapes=True``.
            group_by_stack_n: calls whose innermost lines, so many, differ are other rows; wants ``with_stack=True``.
            group_by_overload_name: accepted.

        Raises:
            AssertionError: it was not started.

        Example::

            >>> import vesta
            >>> with vesta.profiler.profile(record_shapes=True) as prof:
            ...     _ = vesta.ones(2) * 3, vesta.ones(4) * 3
            >>> rows = prof.key_averages(group_by_input_shape=True)
            >>> [event.input_shapes for event in rows if event.key == "aten::mul"]
            [[[2], []], [[4], []]]
        """
        return self._found().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def by_layer(self, depth: int | None = None) -> CostTable:
        """Returns the time, memory and cost of each module by its path, backward's with the module of its forward. No
        hooks are installed. ``print`` shows the table; the outermost module goes by its class.

        Args:
            depth: adds modules up by so many first parts of their paths; None: each stands for itself.

        Raises:
            AssertionError: it was not started.
            ValueError: ``depth`` is not positive.

        Example::

            >>> import vesta
            >>> model = vesta.nn.Sequential(vesta.nn.Linear(8, 16), vesta.nn.ReLU())
            >>> with vesta.profiler.profile() as prof:
            ...     model(vesta.ones(4, 8)).sum().backward()
            >>> table = prof.by_layer()
            >>> sorted(row.name for row in table)
            ['(outside of layers)', '0', '1', 'Sequential']
            >>> table["0"].backward_time > 0
            True
        """
        return self._found().by_layer(depth)

    def by_line(self) -> CostTable:
        """Returns the time, memory and cost of each line of the program, backward's with the line of its forward.
        ``print`` shows the table.

        Raises:
            AssertionError: it was not started.

        Example::

            >>> import vesta
            >>> with vesta.profiler.profile() as prof:
            ...     _ = vesta.ones(8, 8) @ vesta.ones(8, 8)
            >>> sum(row.operations for row in prof.by_line()) >= 2 * 8 * 8 * 8
            True
        """
        return self._found().by_line()

    def by_op(self) -> CostTable:
        """Returns the time, memory and cost of each operation and step of backward by its name, without what it
        contains. ``print`` shows the table.

        Raises:
            AssertionError: it was not started.

        Example::

            >>> import vesta
            >>> with vesta.profiler.profile() as prof:
            ...     _ = vesta.ones(8, 8) @ vesta.ones(8, 8)
            >>> prof.by_op()["aten::matmul"].operations
            1024.0
        """
        return self._found().by_op()

    def memory(self) -> MemoryTimeline:
        """Returns who held the CPU's memory, and when; wants ``profile_memory=True``. ``print`` shows sizes by category
        and module, and what was alive at the peak.

        Raises:
            AssertionError: it was not started, or without ``profile_memory``.

        Example::

            >>> import vesta
            >>> model = vesta.nn.Linear(1000, 1000)
            >>> with vesta.profiler.profile(profile_memory=True) as prof:
            ...     model(vesta.ones(500, 1000)).sum().backward()
            >>> largest = prof.memory().at_peak()[0]
            >>> largest.category.title, largest.layer, largest.nbytes
            ('Parameters', 'Linear', 4000000)
        """
        return self._found().memory()

    def export_memory_timeline(self, path: str | os.PathLike[str], device: str | None = None) -> None:
        """Writes the timeline of ``memory`` to a file: a picture (``.html``), every change (``.raw.json.gz``), or times
        and sizes by category (``.json``, ``.json.gz``), as PyTorch's has them.

        Args:
            device: None or "cpu".

        Raises:
            AssertionError: it was not started, or without ``profile_memory``.
            ValueError: another device.
        """
        if device is not None and not str(device).startswith("cpu"):
            raise ValueError(f"export_memory_timeline: expected 'cpu' or None, got {device!r} (device).")
        self.memory().export(path)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events to a file that chrome://tracing and ui.perfetto.dev open; compressed if its name ends in
        ``.gz``."""
        self._found()._write_trace(path, self._metadata)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their times, a line each, as tools for flame graphs read them; wants ``with_stack``."""
        self._found().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text about the run, which ``export_chrome_trace`` writes."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a value, given as JSON, which ``export_chrome_trace`` writes.

        Raises:
            ValueError: ``value`` is no JSON.
        """
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def _found(self) -> _parts.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting its results: call start() first.")
        return self.profiler


__dir__ = listing(globals(), hidden="execution_trace memory tables")
