"""Times of named parts of a program, by steps: ``torch.profiler``'s names. See ``vesta.autograd.profiler``."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable
from enum import Enum
from types import TracebackType
from typing import Any

from vesta.autograd import profiler as _parts
from vesta.autograd.profiler import EventList, kineto_available, record_function

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(Enum):
    """What could be collected; parts on the CPU are."""

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
    """Returns what is collected: parts on the CPU."""
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
    """A context that collects the parts that ``record_function`` names.

    Args:
        activities: accepted; parts on the CPU are collected.
        schedule: a function from the number of a step to a ProfilerAction; without one everything is recorded.
        on_trace_ready: called with this object when a recorded cycle ends.
        others: accepted for PyTorch's sake: there are no shapes, memory, stacks or modules.

    Example::

        >>> import vesta
        >>> with vesta.profiler.profile() as prof:
        ...     with vesta.profiler.record_function("forward"):
        ...         _ = vesta.ones(2) + 1
        >>> [event.key for event in prof.key_averages()]
        ['forward']
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        **others: Any,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: _parts.profile | None = None
        self._open = False
        self._part: record_function | None = None

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
        if self._open:
            self._part = record_function(f"ProfilerStep#{self.step_num}")
            self._part.__enter__()

    def stop(self) -> None:
        """Ends the last step."""
        self._end_part()
        if self._open:
            self._end_cycle()

    def _follow(self) -> None:
        """Begins a collection where the step is recorded and there is none."""
        recorded = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        if recorded and not self._open:
            self.profiler = _parts.profile()
            self.profiler.__enter__()
            self._open = True

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
        """Returns the collected parts."""
        return self._found().function_events

    def key_averages(self, *args: Any, **kwargs: Any) -> EventList:
        """Returns one event for each name, with the sums of its times."""
        return self._found().key_averages()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the parts to a file that chrome://tracing opens; compressed if its name ends in ``.gz``."""
        self._found().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the parts with their times, a line each, as tools for flame graphs read them."""
        with open(path, "w", encoding="utf-8") as file:
            for event in self.key_averages():
                print(event.key.replace(" ", "_"), int(getattr(event, metric, 0)), file=file)

    def add_metadata(self, key: str, value: str) -> None:
        """Accepts a text about the run; it is not written."""

    add_metadata_json = preset_metadata_json = add_metadata

    def _found(self) -> _parts.profile:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before getting its results: call start() first.")
        return self.profiler
