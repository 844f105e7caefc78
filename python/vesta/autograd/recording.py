"""From the recorder's traces to events: which event lies in which, in which module and at which line of the program.

Note [Forward and backward]
An operation that records makes a node of the tape, and the recorder notes the node's number with it. A step of backward
carries the same number: so it finds the operation, and with it the module and the line, that it is the gradient of,
without a hook on any module. Adding into ``.grad`` has no such number and belongs to the step that ran before it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import vesta
from vesta import _C
from vesta.autograd.events import FunctionEvent

OP, PART, LAYER, FUNCTION, NODE = range(5)  # kinds of events, in the recorder's order
_ADDS = 2**64 - 1  # the number of every node that adds into .grad
_PACKAGE = os.path.dirname(os.path.abspath(vesta.__file__)) + os.sep


class _Calls:
    """The modules that were called while sessions run, by the numbers that their events carry."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sessions = 0
        self.modules: list[Any] = []
        self.numbers: dict[int, int] = {}

    def begin(self, module: Any) -> int:
        """Opens the event of a call; returns its token."""
        number = self.numbers.get(id(module))
        if number is None:
            with self.lock:
                self.modules.append(module)
                number = self.numbers[id(module)] = len(self.modules) - 1
        return _C._profiler_open(LAYER, type(module).__name__, number)

    def start(self) -> None:
        from vesta.nn.modules import hooks

        with self.lock:
            self.sessions += 1
        running[:] = [True]
        hooks.observe_calls(self.begin, _C._profiler_close)

    def stop(self) -> None:
        from vesta.nn.modules import hooks

        with self.lock:
            self.sessions -= 1
            if self.sessions:
                return
            running.clear()
            hooks.observe_calls(None, None)
            self.modules, self.numbers = [], {}


_calls = _Calls()

# Not empty while a profile runs: what else marks its parts (optimizers, loaders) looks at it first.
running: list[bool] = []


class MemoryEvent(NamedTuple):
    """A block of the CPU's memory was made, freed (``nbytes`` below 0) or seen first. Times are microseconds since the
    profile began."""

    time: float
    nbytes: int
    block: int
    event: FunctionEvent | None  # the innermost one around it
    existed: bool  # it had been made before it was seen
    thread: int


class Use(NamedTuple):
    """An event took a block in a parameter, or gave it as a result (``parameter`` is -1)."""

    event: FunctionEvent
    parameter: int
    block: int


class Recording:
    """What all threads did while it ran, once it has been stopped (or so far).

    Args:
        shapes, stacks: whether events carry the shapes of arguments, and whole stacks.
        memory: whether it is known who holds the CPU's memory.
    """

    def __init__(self, shapes: bool = False, stacks: bool = False, memory: bool = False) -> None:
        self.shapes, self.stacks, self.memory = shapes, stacks, memory
        self.began = self.ended = 0.0  # seconds of the monotonic clock
        self._session = 0
        self._raw: list[Any] = []
        self.places: list[Any] = []
        self._names: dict[int, tuple[str, str]] = {}
        self._events: list[FunctionEvent] | None = None
        self._pauses: list[list[float]] = []  # begin and end, in seconds of the monotonic clock
        self.memory_events: list[MemoryEvent] = []
        self.uses: list[Use] = []
        self.parameters: dict[int, tuple[str, str | None]] = {}  # block: its name, the path of its module
        self.gradients: dict[int, tuple[str, str | None]] = {}
        self.thread_names: dict[int, str] = {}

    def start(self) -> None:
        _calls.start()
        self._session = _C._profiler_start(self.stacks, _PACKAGE, self.memory)
        self.began = time.monotonic()

    def stop(self) -> None:
        self.ended = time.monotonic()
        try:
            self._take(False)
        finally:
            self._session = 0
            _calls.stop()

    def _take(self, goes_on: bool) -> None:
        modules = list(_calls.modules)
        if self.memory:
            self._find_parameters(modules)
        self.thread_names.update({t.native_id: t.name for t in threading.enumerate() if t.native_id is not None})
        self._raw = _C._profiler_stop(self._session, self.shapes, goes_on)
        self.places = _C._profiler_places()
        self._names = _paths(self._raw, modules)
        for number, module in enumerate(modules) if self.memory else ():
            path = self._names[number][0]
            for name, parameter in module._parameters.items():
                for tensor, table in ((parameter, self.parameters), (getattr(parameter, "grad", None), self.gradients)):
                    if tensor is not None and id(tensor) in self._blocks:
                        table[self._blocks[id(tensor)]] = (f"{path}.{name}", path)
        self._events = None

    def _find_parameters(self, modules: list[Any]) -> None:
        """Notes the blocks of the parameters that modules which were called have, and of their gradients."""
        self._blocks: dict[int, int] = {}
        for module in modules:
            for name, parameter in module.named_parameters():
                for tensor, table in ((parameter, self.parameters), (parameter.grad, self.gradients)):
                    number = _C._profiler_block(tensor) if tensor is not None else 0
                    if number:
                        self._blocks[id(tensor)] = number
                        table.setdefault(number, (name, None))

    def events(self) -> list[FunctionEvent]:
        """Returns all events, calls of modules among them, by thread and in the order of their beginnings."""
        if self._session:
            self.ended = time.monotonic()
            self._take(True)
        if self._events is None:
            lines = Lines(self.places)
            self._events = []
            before: list[_Thread] = []
            self.memory_events, self.uses = [], []
            with _collector_at_rest():
                for number, rows, memory, uses in sorted(
                    self._raw, key=lambda trace: trace[1][0][2] if trace[1] else 0
                ):
                    thread = _Thread(number, rows, self._names, lines, self.began, before)
                    before.append(thread)
                    self._events += thread.events
                    for at, nbytes, block, event, existed in memory:
                        maker = thread.events[event] if event >= 0 else None
                        when = max(at * 1e-3 - self.began * 1e6, 0.0)
                        self.memory_events.append(MemoryEvent(when, nbytes, block, maker, existed, number))
                    self.uses += [Use(thread.events[event], parameter, block) for event, parameter, block in uses]
                self.memory_events.sort(key=lambda change: change.time)
                if self._pauses:
                    self._events = [event for event in self._events if not self._paused(event)]
                for i, event in enumerate(self._events):
                    event.id = i + 1
            if not self._session:
                self._raw = []
        return self._events

    def pause(self, on: bool) -> None:
        """Leaves out what begins from now on, until ``pause(False)``."""
        now = time.monotonic()
        if on and (not self._pauses or self._pauses[-1][1] < now):
            self._pauses.append([now, float("inf")])
        elif not on and self._pauses:
            self._pauses[-1][1] = min(self._pauses[-1][1], now)

    def _paused(self, event: FunctionEvent) -> bool:
        at = self.began + event.time_range.start * 1e-6
        return any(begin <= at < end for begin, end in self._pauses)

    def wall_time(self) -> float:
        """Returns how long it has run, in seconds."""
        return self.ended - self.began


@contextlib.contextmanager
def _collector_at_rest() -> Iterator[None]:
    """Keeps the garbage collector from looking at growing lists of events again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _paths(raw: Iterable[Any], modules: list[Any]) -> dict[int, tuple[str, str]]:
    """Names the modules that were called: by their paths below the outermost one, that one by its class; and by both,
    ``Net.encoder.0``."""
    outermost = set()
    for _, rows, *_ in raw:
        inside = [False] * len(rows)
        for i, row in enumerate(rows):
            inside[i] = row[5] >= 0 and (inside[row[5]] or rows[row[5]][0] == LAYER)
            if row[0] == LAYER and not inside[i]:
                outermost.add(row[7])
    names: dict[int, tuple[int, str]] = {}  # by id: the root's number, the path
    below = {number: list(modules[number].named_modules()) for number in outermost if number < len(modules)}
    alone = [number for number in range(len(modules)) if number not in below]
    for root in [*sorted(below, key=lambda number: -len(below[number])), *alone]:
        for path, module in below.get(root, [("", modules[root])]):
            names.setdefault(id(module), (root, path))
    kinds: dict[str, list[int]] = {}
    for root in dict.fromkeys(root for root, path in names.values() if path == ""):
        kinds.setdefault(type(modules[root]).__name__, []).append(root)
    titles = {}
    for kind, roots in kinds.items():
        for i, root in enumerate(roots):
            titles[root] = kind if len(roots) == 1 else f"{kind}#{i + 1}"
    found = {number: names[id(module)] for number, module in enumerate(modules)}
    uses: dict[str, set[int]] = {}
    for root, path in found.values():
        uses.setdefault(path, set()).add(root)
    return {
        number: (path if path and len(uses[path]) == 1 else whole, whole)
        for number, (root, path) in found.items()
        for whole in [f"{titles[root]}.{path}" if path else titles[root]]
    }


class Lines:
    """Texts of places: of the innermost line of the program, and of stacks."""

    def __init__(self, places: list[Any]) -> None:
        self.places = places
        self._stacks: dict[int, list[str]] = {}

    def entry(self, place: int) -> str:
        _, file, line, function, _ = self.places[place]
        return f"{file}({line}): {function}"

    def stack(self, place: int) -> list[str]:
        """Returns the lines from the innermost one outwards."""
        if place not in self._stacks:
            entries = []
            at = place
            while at >= 0:
                entries.append(self.entry(at))
                at = self.places[at][0]
            self._stacks[place] = entries
        return self._stacks[place]

    def line(self, place: int) -> str | None:
        while place >= 0 and not self.places[place][4]:
            place = self.places[place][0]
        return None if place < 0 else self.entry(place)


class _Thread:
    """The events of one thread."""

    def __init__(
        self,
        number: int,
        rows: list[Any],
        names: dict[int, tuple[str, str]],
        lines: Lines,
        origin: float,
        before: list[_Thread],
    ) -> None:
        self.lines, self.before = lines, before
        self.events: list[FunctionEvent] = []
        self.makers: dict[int, FunctionEvent] = {}  # number of a node: the innermost operation that made it
        self.last_step: FunctionEvent | None = None
        begin = origin * 1e6
        for row in rows:
            event = FunctionEvent(0, row[1], row[2] * 1e-3 - begin, row[3] * 1e-3 - begin, number)
            if row[4]:
                event.cpu_memory_usage = event.own_memory = row[4]
            event.own_time = (row[3] - row[2]) * 1e-3
            parent = self.events[row[5]] if row[5] >= 0 else None
            if parent is not None:
                event.outer = parent
                parent.own_time -= event.own_time
                if row[4]:
                    parent.own_memory -= row[4]
            self._describe(event, row, names)
            self._find_home(event, row, parent)
            self.events.append(event)

    def _describe(self, event: FunctionEvent, row: Any, names: dict[int, tuple[str, str]]) -> None:
        kind, _, _, _, _, _, place, tag, first, last, shapes, nbytes, operations, product, flags = row
        if shapes:
            event.input_shapes = shapes
        if nbytes or operations:
            event.bytes_moved, event.operations, event.is_product = nbytes, operations, product
        if flags:
            event.open, event.failed, event.is_double = bool(flags & 1), bool(flags & 2), bool(flags & 4)
            event.on_device = bool(flags & 8)
        if kind:
            event.kind, event.scope = kind, {PART: 7, FUNCTION: 1, NODE: 1}.get(kind, 0)
            event.is_user_annotation = kind == PART
        event.place = place
        if kind == LAYER:
            event.layer, event.qualified_layer = names.get(tag, (row[1], row[1]))  # one of C++ goes by its path
        if kind in (FUNCTION, NODE):
            event.sequence_nr = -1 if first == _ADDS else first
        elif kind == OP and last > first:
            event.sequence_nr = first

    def _find_home(self, event: FunctionEvent, row: Any, parent: FunctionEvent | None) -> None:
        """Settles in which module, at which line and in which phase an event is."""
        kind, first, last = row[0], row[8], row[9]
        home: FunctionEvent | None = parent
        if kind == FUNCTION:
            event.phase = "backward"
            event.forward = self._maker(first) if first != _ADDS else None
            home = self.last_step if first == _ADDS else event.forward
            self.last_step = event if first != _ADDS else self.last_step
            home = home or parent
        elif parent is not None:
            event.phase = parent.phase
        if kind == PART and event.name.startswith("DistributedDataParallel: "):  # what it does is part of backward
            event.phase = "backward"
        in_step = event.phase == "backward"
        if home is not None and event.layer is None:
            event.layer, event.qualified_layer = home.layer, home.qualified_layer
        if home is not None and (event.place < 0 or (in_step and home.line is not None)):
            event.line, event.stack_place = home.line, home.stack_place
        elif event.place >= 0:
            event.line, event.stack_place = self.lines.line(event.place), event.place
        if kind == OP:
            for node in range(first, last):
                self.makers[node] = event

    def _maker(self, node: int) -> FunctionEvent | None:
        for thread in (self, *reversed(self.before)):
            if node in thread.makers:
                return thread.makers[node]
        return None
