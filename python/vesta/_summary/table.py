"""The table that ``vesta.summary`` returns, as data, as text and for a notebook."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

#: Lines that a notebook shows; ``print`` shows all.
SHOWN = 300
_TITLES = ("Layer", "Kind", "Output", "Parameters", "Multiply-adds", "Activations")


@dataclass
class Row:
    """One call of one layer.

    ``name`` is qualified as in ``named_modules`` ("" for the model); ``depth`` is how many calls are around this one;
    ``call`` is 1 for the first call of the layer. ``inputs`` are the sizes of its arguments, ``outputs`` those of its
    result, in the same structure. ``parameters`` and ``multiply_adds`` are those of everything in it.
    """

    name: str
    kind: str
    depth: int
    call: int
    inputs: Any = None
    outputs: Any = None
    parameters: int = 0
    trainable_parameters: int = 0
    multiply_adds: int = 0
    activation_bytes: int = 0
    has_parts: bool = field(default=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Returns the fields by name, for a DataFrame or a file."""
        return asdict(self)


@dataclass
class Summary:
    """What ``vesta.summary`` found: ``rows`` in the order of the calls, and totals in which shared parameters count
    once."""

    rows: list[Row] = field(repr=False)
    parameters: int
    trainable_parameters: int
    parameter_bytes: int
    buffer_bytes: int
    multiply_adds: int
    activation_bytes: int
    input_bytes: int
    not_called: list[str]
    uncounted: list[str]

    def __str__(self) -> str:
        lines = [list(_TITLES), *(self._cells(row) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(_TITLES))]
        text = []
        for line in lines:
            left = [cell.ljust(width) for cell, width in zip(line[:3], widths)]
            right = [cell.rjust(width) for cell, width in zip(line[3:], widths[3:])]
            text.append("  ".join([*left, *right]).rstrip())
        return "\n".join([*text, *self._totals()])

    def _cells(self, row: Row) -> list[str]:
        name = row.name.rpartition(".")[2] or row.kind
        label = "  " * row.depth + name + (f" (call {row.call})" if row.call > 1 else "")
        numbers = (f"{n:,}" if n else "" for n in (row.parameters if row.call == 1 else 0, row.multiply_adds))
        size = _size(row.activation_bytes) if row.activation_bytes else ""
        return [label, row.kind if row.name else "", _written(row.outputs), *numbers, size]

    def _totals(self) -> list[str]:
        trained = (
            "all trained" if self.trainable_parameters == self.parameters else f"{self.trainable_parameters:,} trained"
        )
        told = [
            f"Parameters: {self.parameters:,} ({_size(self.parameter_bytes)}), {trained}. "
            f"Multiply-adds: {self.multiply_adds:,}. Activations: {_size(self.activation_bytes)}. "
            f"Input: {_size(self.input_bytes)}."
        ]
        if self.buffer_bytes:
            told[0] += f" Buffers: {_size(self.buffer_bytes)}."
        if self.not_called:
            told.append(f"Not called: {_some(self.not_called)}.")
        if self.uncounted:
            told.append(f"Multiply-adds of their own not counted: {_some(self.uncounted)}.")
        return told

    def _repr_html_(self) -> str:
        """Returns how a notebook shows the table: escaped, at most 300 lines of it."""
        from vesta.notebook import markup

        lines = [self._cells(row) for row in self.rows[:SHOWN]]
        more = len(self.rows) - len(lines)
        kept = [f"… {more} more calls"] if more else []
        total = "".join(f"<div>{markup.text(line, 1000)}</div>" for line in [*kept, *self._totals()])
        return markup.block(markup.columns([_TITLES, *lines], right=3), total)


def _written(value: Any) -> str:
    """Returns sizes as they are in a program."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_written, value)) + ")"
    return "-" if value is None else str(value)


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _size(nbytes: float) -> str:
    from vesta.notebook.markup import size

    return size(nbytes)
