"""The HTML of a module: a tree of its parts with the shapes and numbers of their parameters."""

from __future__ import annotations

from typing import Any

from vesta.nn.parameter import is_lazy

from . import markup

#: How many modules are shown, how many parameters of all of them and of one, and how deep the tree goes.
MODULES, LINES, PARAMETERS, DEPTH = 200, 600, 20, 12


def module_html(module: Any) -> str:
    """Returns the HTML of a module of any kind."""
    parameters = list(module.parameters())  # a parameter with two names is counted once
    known = [p for p in parameters if not is_lazy(p)]
    numbers = sum(p.numel() for p in known)
    trained = sum(p.numel() for p in known if p.requires_grad)
    told = f"{markup.count(numbers)} parameters"
    if trained != numbers:
        told += f", {markup.count(trained)} of them trained"
    if len(known) != len(parameters):
        told += f", {len(parameters) - len(known)} not yet initialized"
    told += f" · {markup.size(sum(p.numel() * p.element_size() for p in known))}"
    told += f" · {'training' if module.training else 'evaluation'}"
    return markup.block(markup.head(type(module).__name__, told), _Tree().body(module, 0))


class _Tree:
    """One walk over the modules, which counts those that it has shown."""

    def __init__(self) -> None:
        self.left, self.lines = MODULES, LINES
        self.above: list[int] = []  # a module inside itself is not followed

    def node(self, name: str, module: Any, depth: int) -> str:
        """Returns the line of a module, with what is in it."""
        if module is None:
            return markup.folded(f"{markup.text(name)}: None", "")
        self.left -= 1
        numbers = sum(p.numel() for p in module.parameters() if not is_lazy(p))
        line = f"{markup.text(name)}: <b>{markup.text(type(module).__name__)}</b>"
        extra = _arguments(module)
        if extra:
            line += f"({markup.text(extra)})"
        if numbers:
            line += f' <span style="opacity:.65">{markup.count(numbers)}</span>'
        return markup.folded(line, self.body(module, depth + 1))

    def body(self, module: Any, depth: int) -> str:
        """Returns what is in a module: its parameters and buffers, then its modules."""
        if depth > DEPTH or id(module) in self.above:
            return ""
        self.above.append(id(module))
        lines = [_line(name, p, "" if p.requires_grad else "frozen") for name, p in _present(module._parameters)]
        lines += [_line(name, b, "buffer") for name, b in _present(module._buffers)]
        kept = lines[: min(PARAMETERS, self.lines)]
        self.lines -= len(kept)
        shown = [markup.columns(kept)] if kept else []
        if len(lines) > len(kept):
            shown.append(markup.folded(f"… {len(lines) - len(kept)} more", ""))
        children = list(module._modules.items())
        for i, (name, child) in enumerate(children):
            if self.left <= 0:
                shown.append(markup.folded(f"… {len(children) - i} more modules", ""))
                break
            shown.append(self.node(name, child, depth))
        self.above.pop()
        return "".join(shown)


def _present(table: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in table.items() if value is not None]


def _line(name: str, value: Any, role: str) -> tuple[str, ...]:
    shape = "not yet initialized" if is_lazy(value) else str(list(value.shape))
    return name, shape, str(value.dtype), str(value.device), role


def _arguments(module: Any) -> str:
    try:
        return str(module.extra_repr()).replace("\n", ", ")
    except Exception:  # of a class that is not finished: its name is shown
        return ""
