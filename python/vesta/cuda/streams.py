"""Streams and events: queues of work on a device, and marks in them."""

from __future__ import annotations

from types import TracebackType

import vesta
from vesta._types import Device

from . import native as port


class Stream:
    """A queue of work on a device: work on one stream runs in order, two streams run concurrently.

    Args:
        device: the device; the current one by default.
        priority: work of a negative priority runs before other waiting work.
    """

    def __init__(self, device: Device | None = None, priority: int = 0, **kwargs: int) -> None:
        self.device_index = port.index(device)
        self._number = (
            kwargs["number"] if "number" in kwargs else port.native().stream_from_pool(self.device_index, priority)
        )
        self.priority = -1 if 32 < self._number <= 64 else 0

    @property
    def device(self) -> vesta.device:
        return vesta.device("cuda", self.device_index)

    @property
    def stream_id(self) -> int:
        return self._number

    @property
    def device_type(self) -> int:
        return 1

    @property
    def cuda_stream(self) -> int:
        """CUDA's handle, as a number; 0 is the default stream."""
        return port.native().stream_handle(self.device_index, self._number)

    def query(self) -> bool:
        """Returns whether all work queued so far is done."""
        return port.native().stream_query(self.device_index, self._number)

    def synchronize(self) -> None:
        """Waits until all work queued so far is done; raises the errors that kernels reported."""
        port.native().stream_synchronize(self.device_index, self._number)

    def wait_stream(self, stream: Stream) -> None:
        """Makes later work on this stream run after what is queued on ``stream`` now. The host does not wait."""
        if stream.device_index == self.device_index:
            port.native().stream_wait_stream(self.device_index, self._number, stream._number)
        else:
            self.wait_event(stream.record_event())

    def wait_event(self, event: Event) -> None:
        """Makes later work on this stream run after the mark that ``event`` recorded."""
        event.wait(self)

    def record_event(self, event: Event | None = None) -> Event:
        """Records ``event``, or a new one, and returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._context.__exit__(kind, value, trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device_index, self._number) == (other.device_index, other._number)

    def __hash__(self) -> int:
        return hash((self.device_index, self._number))

    def __repr__(self) -> str:
        return f"<vesta.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream of another library. Not supported: raises."""

    def __init__(self, stream_ptr: int, device: Device | None = None, **kwargs: int) -> None:
        raise NotImplementedError(
            "ExternalStream: expected a stream that vesta made. Make one with vesta.cuda.Stream() and pass "
            "its cuda_stream to the other library."
        )


class Event:
    """A mark in a stream.

    Args:
        enable_timing: whether ``elapsed_time`` can be used.
        blocking: accepted for PyTorch's sake; the host waits the same way.
        interprocess: must be False.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        if interprocess:
            raise NotImplementedError("Event: expected interprocess=False; events are not shared between processes")
        self._event = port.native().Event(enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Marks the end of what is queued on ``stream`` (the current one by default) now."""
        stream = current_stream() if stream is None else stream
        self._event.record(stream.device_index, stream._number)

    def wait(self, stream: Stream | None = None) -> None:
        """Makes later work of ``stream`` (the current one by default) run after the mark."""
        stream = current_stream() if stream is None else stream
        self._event.wait(stream.device_index, stream._number)

    def query(self) -> bool:
        """Returns whether the stream has reached the mark."""
        return self._event.query()

    def synchronize(self) -> None:
        """Waits until the stream has reached the mark; raises the errors that kernels reported."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Returns the milliseconds from this event to ``end_event``; both made with enable_timing=True and complete."""
        return self._event.elapsed(end_event._event)


def current_stream(device: Device | None = None) -> Stream:
    """Returns this thread's current stream of a device, on which ops of its tensors are queued."""
    index = port.index(device)
    return Stream(index, number=port.native().current_stream(index))


def default_stream(device: Device | None = None) -> Stream:
    """Returns the stream that is current at first."""
    return Stream(port.index(device), number=0)


def set_stream(stream: Stream | None) -> None:
    """Makes ``stream`` current for this thread on its device; None does nothing. ``stream()`` restores the previous
    one."""
    if stream is not None:
        port.native().set_stream(stream.device_index, stream._number)


class StreamContext:
    """A context in which a stream and its device are current; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: tuple[int, Stream] | None = None

    def __enter__(self) -> None:
        if self.stream is None:
            return
        index = self.stream.device_index
        self._before = (port.native().current_device(), current_stream(index))
        port.native().set_device(index)
        set_stream(self.stream)

    def __exit__(self, kind: type | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            device, stream = self._before
            set_stream(stream)
            port.native().set_device(device)


def stream(stream: Stream | None) -> StreamContext:
    """Makes ``stream`` current inside a ``with`` block: ``with vesta.cuda.stream(s): ...``."""
    return StreamContext(stream)
