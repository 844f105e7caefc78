"""Where the time of a program goes, by steps: ``torch.profiler``'s names, and tables by layer and by line.

Times are those of the host. An operation of a device with queues is over, for them, when it is queued.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from types import TracebackType
from typing import Any

from vesta._names import listing
from vesta.autograd import profiler as _parts
from vesta.autograd.profiler import kineto_available, record_function
from vesta.autograd.profiler_util import EventList
from vesta.profiler.tables import CostRow, CostTable, machine_peaks

__all__ = [
    "CostRow",
    "CostTable",
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
    """Returns what is collected: times of the CPU."""
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
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
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


class profile:
    """A context that collects every call of an operation, every step of backward and the parts that
    ``record_function`` names, of all threads.

    Args:
        activities: accepted; times are those of the CPU.
        schedule: a function from the number of a step to a ProfilerAction; without one everything is recorded.
        on_trace_ready: called with this object when a recorded cycle ends.
        record_shapes: events carry the shapes of their arguments.
        profile_memory: tables show the memory that operations allocate on the CPU.
        with_stack: events carry the whole stack of Python lines; else the innermost line of the program.
        with_flops: tables show arithmetic operations, told from shapes.
        with_modules: accepted: modules are always known, see ``by_layer``.
        others: accepted for PyTorch's sake.

    Raises:
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
        **others: Any,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
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
        self._metadata: dict[str, str] = {}

    def start(self) -> None:
        """Begins the first step."""
        self.current_action = self.schedule(self.step_num)
        self._follow()

    def step(self) -> None:
        """Ends a step and begins the next one."""
        self._end_part()
        if self.current_action is ProfilerAction.RECORD_AND_SAVE:
            self._end_cycle()
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
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
            self.profiler = _parts.profile(
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
            )
            self.profiler.__enter__()
            self._open = True
        if self._open and self.record_steps:
            self._part = record_function(f"ProfilerStep#{self.step_num}")
            self._part.__enter__()

    def _end_part(self) -> None:
        if self._part is not None:
            self._part.__exit__()
            self._part = None

    def _end_cycle(self) -> None:
        assert self.profiler is not None
        self.profiler.__exit__()
        self._open = False
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def events(self) -> EventList:
        """Returns the events of the last recorded cycle, in the order of their beginnings.

        Raises:
            AssertionError: it was not started.
        """
        return self._found().function_events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
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

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events to a file that chrome://tracing opens; compressed if its name ends in ``.gz``."""
        self._found().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their times, a line each, as tools for flame graphs read them; wants ``with_stack``."""
        self._found().export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Accepts a text about the run; it is not written."""
        self._metadata[key] = value

    add_metadata_json = preset_metadata_json = add_metadata

    def _found(self) -> _parts.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting its results: call start() first.")
        return self.profiler


__dir__ = listing(globals())
