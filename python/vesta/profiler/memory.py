"""Who holds the CPU's memory, and when: by category, by module, and block by block at the peak.

A block is what a storage holds; views share it. Blocks that a profile knows are those allocated while it ran, and those
of at most 960 bytes and older ones from the first operation on that takes or gives them. Memory that is lent to tensors
(NumPy's, a file's) and what kernels use between calls are not among them.
"""

from __future__ import annotations

import functools
import gzip
import html
import json
import os
from collections.abc import Iterator
from enum import Enum
from typing import Any

import vesta
from vesta.autograd._units import _format_memory as _size
from vesta.autograd.events import FunctionEvent
from vesta.autograd.recording import Recording

__all__ = ["Category", "HeldBlock", "MemoryTimeline"]

_OP, _PART, _LAYER, _FUNCTION, _NODE = range(5)


class Category(Enum):
    """What a block is for. The order is that of PyTorch's exports."""

    PARAMETER = 0
    OPTIMIZER_STATE = 1
    INPUT = 2
    TEMPORARY = 3
    ACTIVATION = 4
    GRADIENT = 5
    AUTOGRAD_DETAIL = 6
    OTHER = 7

    @property
    def title(self) -> str:
        """Its name in tables."""
        return _TITLES[self.value]


_TITLES = (
    "Parameters",
    "Optimizer state",
    "Inputs",
    "Temporary",
    "Activations",
    "Gradients",
    "Autograd",
    "Other",
)
_COLOURS = ("#2e7d32", "#d4a017", "#444444", "#9575cd", "#d84343", "#1e50c8", "#4169e1", "#9e9e9e")  # PyTorch's, about


class HeldBlock:
    """A block of memory.

    Attributes:
        nbytes: its size.
        category: what it is for.
        made, freed: microseconds since the profile began; ``freed`` is None where it lived on.
        existed: it was there before the profile, or before it was first seen.
        op: the operation or step of backward that made it, or the parameter's name.
        layer: the path of the module that it belongs to; None: of none.
        line: the line of the program that made it; None: unknown.
    """

    __slots__ = ("category", "existed", "freed", "layer", "line", "made", "maker", "nbytes", "number", "op", "thread")

    def __init__(self, number: int, nbytes: int, made: float, existed: bool, thread: int) -> None:
        self.number, self.nbytes, self.made, self.existed, self.thread = number, nbytes, made, existed, thread
        self.freed: float | None = None
        self.category = Category.OTHER
        self.maker: FunctionEvent | None = None
        self.op = "(before the profile)" if existed else ""
        self.layer: str | None = None
        self.line: str | None = None

    def __repr__(self) -> str:
        return f"<HeldBlock {_size(self.nbytes)} {self.category.name} {self.op}>"


class MemoryTimeline:
    """The CPU's memory while a profile ran. ``print`` shows it: sizes by category and by module, and the largest blocks
    at the peak with what made them.

    Attributes:
        blocks: all blocks, as ``HeldBlock``, in the order in which they were seen.
        peak: the most bytes that were held at once.
        peak_time: when, in microseconds since the profile began.
    """

    def __init__(self, recording: Recording) -> None:
        recording.events()
        self.blocks: list[HeldBlock] = []
        found: dict[int, HeldBlock] = {}
        for change in recording.memory_events:
            if change.nbytes >= 0:
                block = found[change.block] = HeldBlock(
                    change.block, change.nbytes, change.time, change.existed, change.thread
                )
                block.maker = None if change.existed else change.event
                self.blocks.append(block)
            elif change.block in found:
                found[change.block].freed = change.time
        _describe(found, recording)
        for block in self.blocks:
            if block.category in (Category.PARAMETER, Category.OPTIMIZER_STATE, Category.INPUT) and block.existed:
                block.made = 0.0
        self.peak, self.peak_time = 0, 0.0
        for time, sizes in self.steps():
            if sum(sizes.values()) > self.peak:
                self.peak, self.peak_time = sum(sizes.values()), time

    def steps(self) -> Iterator[tuple[float, dict[Category, int]]]:
        """Returns the bytes held by category after each change, with its time in microseconds."""
        sizes = dict.fromkeys(Category, 0)
        for time, nbytes, block in self._changes():
            sizes[block.category] += nbytes
            yield time, dict(sizes)

    def _changes(self) -> list[tuple[float, int, HeldBlock]]:
        changes = [(block.made, block.nbytes, block) for block in self.blocks]
        changes += [(block.freed, -block.nbytes, block) for block in self.blocks if block.freed is not None]
        return sorted(changes, key=lambda change: change[0])

    def alive_at(self, time: float) -> list[HeldBlock]:
        """Returns the blocks that are held at a time, in microseconds since the profile began, the largest first."""
        held = [b for b in self.blocks if b.made <= time and (b.freed is None or b.freed > time)]
        return sorted(held, key=lambda block: -block.nbytes)

    def at_peak(self) -> list[HeldBlock]:
        """Returns the blocks that are held at the peak, the largest first.

        Example::

            >>> import vesta
            >>> with vesta.profiler.profile(profile_memory=True) as prof:
            ...     x = vesta.ones(1 << 20)
            ...     y = x.exp()
            >>> [(block.op, block.nbytes) for block in prof.memory().at_peak()]
            [('aten::ones', 4194304), ('aten::exp', 4194304)]
        """
        return self.alive_at(self.peak_time)

    def by_category(self, time: float | None = None) -> dict[Category, int]:
        """Returns the bytes of each category at a time; None: at the peak."""
        sums = dict.fromkeys(Category, 0)
        for block in self.alive_at(self.peak_time if time is None else time):
            sums[block.category] += block.nbytes
        return sums

    def by_layer(self, time: float | None = None) -> dict[str, dict[Category, int]]:
        """Returns the bytes of each module by category at a time; None: at the peak. What belongs to no module is
        under ""."""
        sums: dict[str, dict[Category, int]] = {}
        for block in self.alive_at(self.peak_time if time is None else time):
            sizes = sums.setdefault(block.layer or "", {})
            sizes[block.category] = sizes.get(block.category, 0) + block.nbytes
        return dict(sorted(sums.items(), key=lambda entry: -sum(entry[1].values())))

    def table(self, row_limit: int = 20) -> str:
        """Returns the sums and the largest blocks at the peak as text.

        Args:
            row_limit: the most modules and blocks; -1: all.
        """
        most = dict.fromkeys(Category, 0)
        last = dict.fromkeys(Category, 0)
        for _, last in self.steps():
            for category, nbytes in last.items():
                most[category] = max(most[category], nbytes)
        at_peak, first = self.by_category(), self.by_category(0.0)
        used = [category for category in Category if most[category]]
        rows = [[c.title, _size(first[c]), _size(at_peak[c]), _size(last[c]), _size(most[c])] for c in used]
        rows.append(["Together", *(_size(sum(s.values())) for s in (first, at_peak, last)), _size(self.peak)])
        out = [f"Peak {_size(self.peak)} at {self.peak_time / 1e3:.3f} ms", ""]
        out += _aligned(["Memory", "At start", "At peak", "At end", "Most"], rows)
        layers = list(self.by_layer().items())
        shown = layers if row_limit < 0 else layers[:row_limit]
        rows = [
            [name or "(outside of layers)", _size(sum(sizes.values())), *(_size(sizes.get(c, 0)) for c in used)]
            for name, sizes in shown
        ]
        out += ["", *_aligned(["Layer, at the peak", "Together", *(c.title for c in used)], rows)]
        blocks = self.at_peak()
        rows = [
            [_size(b.nbytes), b.category.title, b.op, b.layer or "", _short(b.line)]
            for b in (blocks if row_limit < 0 else blocks[:row_limit])
        ]
        out += ["", *_aligned(["Alive at the peak", "Category", "Made by", "Layer", "Line"], rows, text_from=1)]
        if len(rows) < len(blocks):
            out.append(f"... and {len(blocks) - len(rows)} more, {_size(sum(b.nbytes for b in blocks[len(rows) :]))}")
        return "\n".join(out)

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Returns the picture and the table, for notebooks."""
        return f"{self.picture()}<pre>{html.escape(self.table())}</pre>"

    # ---- files ----

    def export(self, path: str | os.PathLike[str]) -> None:
        """Writes the timeline to a file, in the form that its name asks for: a picture (``.html``), every change as
        [time in ns, action, bytes, category] (``.raw.json.gz``), or [times, sizes by category] (``.json``,
        ``.json.gz``)."""
        path = os.fspath(path)
        if path.endswith(".html"):
            with open(path, "w", encoding="utf-8") as file:
                body = f"<pre>{html.escape(self.table())}</pre>"
                file.write(f'<!DOCTYPE html>\n<meta charset="utf-8"><title>Memory</title>\n{self.picture()}\n{body}\n')
            return
        made: Any = self._raw() if path.endswith(".raw.json.gz") else self._coalesced()
        with (gzip.open if path.endswith(".gz") else open)(path, "wt", encoding="utf-8") as file:
            file.write(json.dumps(made))

    def _raw(self) -> list[tuple[int, int, int, int]]:
        preexisting, create, destroy = 0, 1, 3  # PyTorch's actions
        rows = []
        for time, nbytes, block in self._changes():
            action = destroy if nbytes < 0 else preexisting if block.existed else create
            at = -1 if action == preexisting else int(time * 1e3)
            rows.append((at, action, block.nbytes, block.category.value))
        return rows

    def _coalesced(self) -> tuple[list[int], list[list[int]]]:
        times: list[int] = []
        sizes: list[list[int]] = []
        for time, held in self.steps():
            if not times or int(time) != times[-1]:
                times.append(int(time))
                sizes.append([])
            sizes[-1] = [0, *held.values()]
        return times, sizes

    def picture(self, width: int = 960, height: int = 320) -> str:
        """Returns the timeline as a picture in SVG, categories above each other."""
        steps = list(self.steps())
        if not steps or not self.peak:
            return "<p>no memory was seen</p>"
        end = max(steps[-1][0], 1e-9)
        stride = max(1, len(steps) // (2 * width))
        steps = [step for i, step in enumerate(steps) if i % stride == 0 or sum(step[1].values()) == self.peak]
        left, bottom = 70, height - 30
        x = lambda time: left + (width - left - 150) * time / end
        y = lambda nbytes: bottom - (bottom - 20) * nbytes / self.peak
        base = [0] * len(steps)
        out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
               'font-size="12">']  # fmt: skip
        shown = [category for category in Category if any(sizes[category] for _, sizes in steps)]
        for i, category in enumerate(shown):
            top = [below + sizes[category] for below, (_, sizes) in zip(base, steps)]
            outline = list(_stairs(steps, top, x, y, x(end)))
            floor = list(_stairs(steps, base, x, y, x(end)))
            points = " ".join(f"{px:.1f},{py:.1f}" for px, py in [*outline, *reversed(floor)])
            colour, at = _COLOURS[category.value], 30 + 18 * (len(shown) - 1 - i)
            out.append(f'<polygon points="{points}" fill="{colour}"/>')
            out.append(f'<rect x="{width - 140}" y="{at - 10}" width="12" height="12" fill="{colour}"/>')
            out.append(f'<text x="{width - 122}" y="{at}">{category.title}</text>')
            base = top
        for share in (0, 0.5, 1):
            out.append(f'<text x="{left - 6}" y="{y(share * self.peak) + 4:.1f}" text-anchor="end">'
                       f"{_size(share * self.peak)}</text>")  # fmt: skip
            out.append(f'<text x="{x(share * end):.1f}" y="{height - 10}" text-anchor="middle">'
                       f"{share * end / 1e3:.1f} ms</text>")  # fmt: skip
        return "\n".join([*out, "</svg>"])


def _stairs(steps: list[Any], values: list[int], x: Any, y: Any, end: float) -> Iterator[tuple[float, float]]:
    """Returns the corners of a line that is level between two changes."""
    for i, ((time, _), value) in enumerate(zip(steps, values)):
        yield x(time), y(value)
        yield (x(steps[i + 1][0]) if i + 1 < len(steps) else end), y(value)


def _aligned(titles: list[str], rows: list[list[str]], text_from: int = len(_TITLES) + 9) -> list[str]:
    """Returns lines of a table: the first column and those from ``text_from`` on begin at the left."""
    widths = [max(len(line[i]) for line in [titles, *rows]) for i in range(len(titles))]
    left = lambda i: i >= text_from or (i == 0 and text_from > len(_TITLES))

    def line(cells: list[str]) -> str:
        aligned = [c.ljust(w) if left(i) else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths))]
        return "  ".join(aligned).rstrip()

    return [line(titles), "-" * (sum(widths) + 2 * len(widths) - 2), *map(line, rows)]


def _short(line: str | None) -> str:
    if line is None:
        return ""
    file, _, rest = line.partition("(")
    return f"{os.path.basename(file)}:{rest.partition(')')[0]}"


@functools.cache
def _steps() -> frozenset[str]:
    """Returns the names of the ops that are optimizer steps: their schemas begin with ``params`` and ``grads``."""
    schemas = ((entry["name"], [p["name"] for p in entry["parameters"]]) for entry in vesta._C._registry())
    return frozenset(f"aten::{name}" for name, names in schemas if names[:2] == ["params", "grads"])


def _describe(found: dict[int, HeldBlock], recording: Recording) -> None:
    """Settles of each block what made it and what it is for."""
    for block in found.values():
        if block.maker is not None:
            _trace_back(block, block.maker)
            block.category = _category(block, block.maker)
        elif block.existed:
            block.category = Category.INPUT
    steps = _steps()
    for use in recording.uses:
        held = found.get(use.block)
        if held is None or use.parameter < 0:
            continue
        event = use.event
        if event.kind == _OP and event.name in steps:
            held.category = (Category.PARAMETER, Category.GRADIENT)[use.parameter] if use.parameter < 2 else (
                Category.OPTIMIZER_STATE
            )  # fmt: skip
        elif event.kind == _NODE and event.name == "torch::autograd::AccumulateGrad":
            held.category = Category.GRADIENT
    _place_states(found, recording)
    for table, category in ((recording.parameters, Category.PARAMETER), (recording.gradients, Category.GRADIENT)):
        for number, (name, path) in table.items():
            if number in found:
                block = found[number]
                block.category, block.layer = category, path or block.layer
                block.op = name if category is Category.PARAMETER or not block.op else block.op


def _place_states(found: dict[int, HeldBlock], recording: Recording) -> None:
    """Gives an optimizer's state the module of its parameter: a fused step takes lists of both in one order."""
    lists: dict[FunctionEvent, dict[int, list[int]]] = {}
    steps = _steps()
    for use in recording.uses:
        if use.parameter >= 0 and use.event.name in steps:
            lists.setdefault(use.event, {}).setdefault(use.parameter, []).append(use.block)
    for operands in lists.values():
        parameters = operands.get(0, [])
        for number, blocks in operands.items():
            if number < 2 or len(blocks) != len(parameters):
                continue
            for block, parameter in zip(blocks, parameters):
                if block in found and parameter in recording.parameters:
                    name, found[block].layer = recording.parameters[parameter]
                    found[block].op = found[block].op if found[block].maker else f"state of {name}"


def _trace_back(block: HeldBlock, event: FunctionEvent) -> None:
    """Names the outermost operation, or the step of backward, in which a block was made."""
    named = event
    while named.outer is not None and named.outer.kind in (_OP, _NODE) and named.kind in (_OP, _NODE):
        named = named.outer
    block.op, block.layer, block.line = named.name, event.layer, event.line


def _category(block: HeldBlock, event: FunctionEvent) -> Category:
    """Guesses from where a block was made, and whether it outlived that, what it is for."""
    at: FunctionEvent | None = event
    outermost, records = event, False
    while at is not None and at.kind in (_OP, _NODE, _FUNCTION):
        outermost, records = at, records or (at.kind == _OP and at.sequence_nr >= 0)
        at = at.outer
    outlives = block.freed is None or block.freed > outermost.time_range.end
    while at is not None:
        if at.kind == _PART and at.name.startswith("Optimizer.step#") and at.name.endswith(".step"):
            lasts = block.freed is None or block.freed > at.time_range.end
            return Category.OPTIMIZER_STATE if lasts else Category.TEMPORARY
        at = at.outer
    if event.phase == "backward" or not outlives:
        return Category.TEMPORARY
    return Category.ACTIVATION if event.layer is not None or records else Category.INPUT
