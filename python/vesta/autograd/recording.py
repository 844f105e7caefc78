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
from typing import Any

import vesta
from vesta import _C
from vesta.autograd.profiler_util import EventList, FunctionEvent

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


class Recording:
    """What all threads did while it ran, once it has been stopped (or so far).

    Args:
        shapes, stacks: whether events carry the shapes of arguments, and whole stacks.
    """

    def __init__(self, shapes: bool = False, stacks: bool = False) -> None:
        self.shapes, self.stacks = shapes, stacks
        self.began = self.ended = 0.0  # seconds of the monotonic clock
        self._session = 0
        self._raw: list[Any] = []
        self._places: list[Any] = []
        self._names: dict[int, tuple[str, str]] = {}
        self._events: list[FunctionEvent] | None = None

    def start(self) -> None:
        _calls.start()
        self._session = _C._profiler_start(self.stacks, _PACKAGE)
        self.began = time.monotonic()

    def stop(self) -> None:
        self.ended = time.monotonic()
        try:
            self._take(False)
        finally:
            self._session = 0
            _calls.stop()

    def _take(self, goes_on: bool) -> None:
        self._raw = _C._profiler_stop(self._session, self.shapes, goes_on)
        self._places = _C._profiler_places()
        self._names = _paths(self._raw, list(_calls.modules))
        self._events = None

    def events(self) -> list[FunctionEvent]:
        """Returns all events, calls of modules among them, by thread and in the order of their beginnings."""
        if self._session:
            self.ended = time.monotonic()
            self._take(True)
        if self._events is None:
            lines = _Lines(self._places)
            self._events = []
            before: list[_Thread] = []
            with _collector_at_rest():
                for number, rows in sorted(self._raw, key=lambda trace: trace[1][0][2]):
                    thread = _Thread(number, rows, self._names, lines, self.began, before)
                    before.append(thread)
                    self._events += thread.events
                for i, event in enumerate(self._events):
                    event.id = i + 1
            if not self._session:
                self._raw = []
        return self._events

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
    for _, rows in raw:
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


class _Lines:
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
        lines: _Lines,
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
        if kind:
            event.kind, event.scope = kind, {PART: 7, FUNCTION: 1, NODE: 1}.get(kind, 0)
            event.is_user_annotation = kind == PART
        event.place = place
        if kind == LAYER:
            event.layer, event.qualified_layer = names.get(tag, (None, None))
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
            home = self.last_step if first == _ADDS else self._maker(first)
            self.last_step = event if first != _ADDS else self.last_step
            home = home or parent
        elif parent is not None:
            event.phase = parent.phase
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


def function_events(recording: Recording, *, flops: bool, memory: bool) -> EventList:
    """Returns the events of a recording as ``key_averages`` wants them: calls of modules are left out."""
    found = []
    lines = _Lines(recording._places)
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
    return EventList(found, profile_memory=memory, with_flops=flops, origin=recording.began * 1e6)
