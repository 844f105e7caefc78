"""Names the module in which an error arose, while the error is on its way up; costs nothing otherwise."""

from __future__ import annotations

from typing import Any

__all__ = ["name_module"]


class _Note(str):
    """The note's text, with the module it names; pickles as plain text."""

    module: Any

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)


def _text(path: str, module: Any) -> str:
    try:  # an extra_repr that fails must not replace the error under way
        arguments = "..." if module._modules else module.extra_repr()
    except Exception:
        arguments = "..."
    name = f"{type(module).__name__}({arguments})"
    return f"in {path} = {name}" if path else f"in {name}"


def _make(path: str, module: Any) -> _Note:
    note = _Note(_text(path, module))
    note.module = module
    return note


def _path_below(root: Any, module: Any) -> str | None:
    return next((name for name, below in root.named_modules() if below is module), None)


def name_module(error: BaseException, module: Any) -> None:
    """Adds a note to ``error`` that ``module`` was running; every module that the error passes calls it, from the
    inside out.

    The innermost module adds the note; each one further out replaces its path by the longer one that leads from itself,
    so that one note remains: ``in encoder.layers.3.ff.1 = Linear(in_features=512, out_features=2048, bias=True)``.
    """
    if hasattr(error, "add_note"):  # Python 3.11: PEP 678
        notes = getattr(error, "__notes__", [])
        place = next((i for i, note in enumerate(notes) if isinstance(note, _Note)), None)
        if place is None:
            error.add_note(_make("", module))
        elif (path := _path_below(module, notes[place].module)) is not None:
            notes[place] = _make(path, notes[place].module)
        return
    note = getattr(error, "_vesta_note", None)  # before 3.11 the note is the message's last line
    if note is None:
        if error.args and isinstance(error.args[0], str):
            error._vesta_note = note = _make("", module)  # type: ignore[attr-defined]
            error.args = (f"{error.args[0]}\n{note}", *error.args[1:])
    elif (path := _path_below(module, note.module)) is not None:
        longer = _make(path, note.module)
        error.args = (error.args[0].removesuffix(note) + longer, *error.args[1:])
        error._vesta_note = longer  # type: ignore[attr-defined]
