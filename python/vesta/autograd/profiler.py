"""Where the time goes: ``profile`` collects every call of an operation, every step of backward and the parts that
``record_function`` names, of all threads. ``torch.autograd.profiler``'s names; ``vesta.profiler`` does so by steps.

Times are those of the host: an operation on another device is over, for them, when it is queued.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from vesta import _C
from vesta._names import listing
from vesta.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, function_events
from vesta.autograd.recording import PART, Recording

if TYPE_CHECKING:
    from vesta.profiler.memory import MemoryTimeline
    from vesta.profiler.tables import CostTable

__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "kineto_available", "profile", "record_function"]


class profile:
    """A context that collects what happens inside, of all threads.

    Args:
        enabled: False: nothing is collected.
        record_shapes: events carry the shapes of their arguments.
        with_flops: tables show arithmetic operations, told from shapes.
        profile_memory: tables show the memory that operations allocate on the CPU.
        with_stack: events carry the whole stack of Python lines; else the innermost line of the program.
        with_modules: accepted: modules are always known, see ``by_layer``.
        use_cuda, use_device, use_kineto, use_cpu, experimental_config, acc_events, custom_trace_id_callback: accepted
            for PyTorch's sake; times are those of the host.

    Raises:
        TypeError: an argument is not known.
        RuntimeError: it is entered twice, or asked for results before it was entered.

    Example::

        >>> import vesta
        >>> with vesta.autograd.profiler.profile() as prof:
        ...     with vesta.autograd.profiler.record_function("forward"):
        ...         _ = vesta.ones(2) + 1
        >>> [(event.key, event.count) for event in prof.key_averages()][0]
        ('forward', 1)
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        self.enabled, self.use_device = enabled, use_device
        self.record_shapes, self.with_flops, self.profile_memory = record_shapes, with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.entered = False
        self._recording = Recording(record_shapes, with_stack, profile_memory)
        self._events: EventList[FunctionEvent] | None = None
        self._runs = False

    def __enter__(self) -> profile:
        if self.enabled:
            if self.entered:
                raise RuntimeError("Profiler context manager is not reentrant")
            self.entered = self._runs = True
            self._recording.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._runs:
            self._runs = False
            self._recording.stop()
            self._events = None

    @property
    def function_events(self) -> EventList[FunctionEvent]:
        """The events; while it still runs, those so far."""
        if not self.entered:
            return EventList()
        if self._events is None or self._runs:
            self._events = function_events(self._recording, flops=self.with_flops, memory=self.profile_memory)
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList[FunctionEventAvg]:
        """Returns one event for each name, with the sums of times; see ``EventList.key_averages``."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """Returns one event with the sums of all."""
        return self.function_events.total_average()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """Returns the events as a readable table; see ``EventList.table``."""
        return self.function_events.table(*args, **kwargs)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events to a file that chrome://tracing opens."""
        self._write_trace(path, {})

    def _write_trace(self, path: str | os.PathLike[str], metadata: dict[str, Any]) -> None:
        from vesta.autograd.chrome_trace import write

        write(path, self.function_events, self._recording, metadata)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Writes stacks with their times for tools of flame graphs; wants ``with_stack=True``.

        Raises:
            AssertionError: there are no stacks.
            ValueError: ``metric`` is not known.
        """
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)

    def by_layer(self, depth: int | None = None) -> CostTable:
        """Returns the time, memory and cost of each module; see ``vesta.profiler.profile.by_layer``."""
        from vesta.profiler.tables import by_layer

        return by_layer(self._recording, depth)

    def by_line(self) -> CostTable:
        """Returns the time, memory and cost of each line; see ``vesta.profiler.profile.by_line``."""
        from vesta.profiler.tables import by_line

        return by_line(self._recording)

    def by_op(self) -> CostTable:
        """Returns the time, memory and cost of each operation; see ``vesta.profiler.profile.by_op``."""
        from vesta.profiler.tables import by_op

        return by_op(self._recording)

    def memory(self) -> MemoryTimeline:
        """Returns who held the CPU's memory, and when; see ``vesta.profiler.profile.memory``.

        Raises:
            AssertionError: without ``profile_memory``.
        """
        from vesta.profiler.memory import MemoryTimeline

        if not self.profile_memory:
            raise AssertionError("memory: expected a profile with profile_memory=True.")
        return MemoryTimeline(self._recording)

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, none counted twice, in microseconds."""
        return self.function_events.self_cpu_time_total

    def __str__(self) -> str:
        return str(self.function_events)


class record_function(contextlib.ContextDecorator):
    """A context, or a decorator, that gives a part of a program a name for ``profile``.

    Args:
        name: of the part.
        args: a text beside it; not shown.

    Raises:
        TypeError: ``name`` is no text.

    Example::

        >>> import vesta
        >>> @vesta.autograd.profiler.record_function("twice")
        ... def twice(x):
        ...     return x * 2
        >>> twice(vesta.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: expected a str, got {type(name).__name__} (name).")
        self.name, self.args = name, args
        self._tokens: list[int] = []

    def __enter__(self) -> record_function:
        self._tokens.append(_C._profiler_open(PART, self.name, 0))
        return self

    def __exit__(self, *error: object) -> None:
        token = self._tokens.pop()
        if token:
            _C._profiler_close(token)

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


__dir__ = listing(globals())
