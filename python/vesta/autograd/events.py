"""One event of a profile: a call of an operation, a step of backward, a named part; and what the recorder knows of it.

Times are microseconds, memory is bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from ._units import _format_time

__all__ = ["DeviceType", "FormattedTimesMixin", "FunctionEvent", "Interval"]


class DeviceType(Enum):
    """Where times were taken. They are the CPU's."""

    CPU = 0
    CUDA = 1
    XPU = 12


class Interval:
    """The time from ``start`` to ``end``."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Returns its length.

        Example::

            >>> from vesta.autograd.profiler_util import Interval
            >>> Interval(2.0, 5.0).elapsed_us()
            3.0
        """
        return self.end - self.start

    def __repr__(self) -> str:
        return f"<Interval start={self.start} end={self.end}>"


class FormattedTimesMixin:
    """The times of an event, or of several, in numbers and texts. Times of devices are zero: none are taken."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = self_device_time_total = device_time = 0.0
    device_memory_usage = self_device_memory_usage = 0

    @property
    def cpu_time(self) -> float:
        """The mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    cpu_time_str = property(lambda self: _format_time(self.cpu_time))
    cpu_time_total_str = property(lambda self: _format_time(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: _format_time(self.self_cpu_time_total))
    device_time_str = device_time_total_str = self_device_time_total_str = property(lambda self: _format_time(0.0))
    cuda_time = cuda_time_total = self_cuda_time_total = property(lambda self: 0.0)


class FunctionEvent(FormattedTimesMixin):
    """One call of an operation, one step of backward, or one part that ``record_function`` names.

    Attributes:
        name: ``aten::mul``, ``autograd::engine::evaluate_function: MulBackward0``, or the part's name.
        time_range: an ``Interval``; 0 is the beginning of the profile.
        thread: the system's number of the thread.
        cpu_parent, cpu_children: the event that contains it, and those that it contains.
        input_shapes: a list of sizes for each argument, with ``record_shapes``.
        cpu_memory_usage: bytes on the CPU that it allocated less those that it freed.
        sequence_nr: of the step of backward that it made or that it is; -1: none.
        stack: where the program was, the innermost line first, with ``with_stack``.
        layer: the path of the module in which it ran, backward in that of its forward; None: outside of modules.
        line: the innermost line of the program, "file:line (function)"; None: unknown.
        bytes_moved, operations: its cost, told from shapes.
    """

    # An event keeps only what differs from this: there may be millions.
    is_async = is_remote = is_legacy = False
    node_id = device_index = -1
    overload_name = ""
    use_device: str | None = None
    count = 1
    cpu_parent: FunctionEvent | None = None
    input_shapes: Sequence[Any] = ()
    stack: Sequence[str] = ()
    sequence_nr = -1
    scope = 0  # 0: an operation, 1: a step of backward, 7: a named part
    cpu_memory_usage = 0
    flops = operations = bytes_moved = 0.0
    is_product = is_double = on_device = failed = open = is_user_annotation = False
    layer: str | None = None
    qualified_layer: str | None = None  # below the class of the outermost module
    line: str | None = None
    phase = "forward"
    forward: FunctionEvent | None = None  # of a step of backward: the operation that it is the gradient of
    # What the recorder knows: its kind, where it was called, the event around it, time and memory without those within.
    # Calls of modules are events there.
    kind = 0
    place = stack_place = -1
    outer: FunctionEvent | None = None
    own_time = 0.0
    own_memory = 0
    _children: list[FunctionEvent] | None = None
    _children_time = 0.0
    _children_memory = 0

    def __init__(self, id: int, name: str, start: float, end: float, thread: int) -> None:
        self.id, self.name, self.thread = id, name, thread
        self.time_range = Interval(start, end)

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    trace_name = key

    @property
    def cpu_children(self) -> list[FunctionEvent]:
        """The events within it."""
        return self._children or []

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Makes ``child`` an event within this one."""
        if self._children is None:
            self._children = []
        self._children.append(child)
        child.cpu_parent = self
        self._children_time += child.cpu_time_total
        self._children_memory += child.cpu_memory_usage

    @property
    def device_type(self) -> DeviceType:
        """Where the time was taken: always the CPU."""
        return DeviceType.CPU

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Its time, with the events within it."""
        return self.time_range.end - self.time_range.start

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Its time, without the events within it."""
        return self.cpu_time_total - self._children_time

    @property
    def self_cpu_memory_usage(self) -> int:
        """Its memory, without the events within it."""
        return self.cpu_memory_usage - self._children_memory

    def __repr__(self) -> str:
        children = [child.id for child in self.cpu_children]
        return (
            f"<FunctionEvent id={self.id} name={self.name} device_type=DeviceType.CPU cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={children} "
            f"thread={self.thread} input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"seq_nr={self.sequence_nr}>"
        )
