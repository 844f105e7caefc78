"""``torch._tensor_str``: how tensors are printed, as programs that print tensors of their own ask for it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import vesta
from vesta import Tensor, _printing

__all__ = ["PRINT_OPTS", "printoptions", "set_printoptions"]

set_printoptions = vesta.set_printoptions


class _PrinterOptions:
    """The options of printing, such as ``precision``, as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return _printing.get_printoptions()[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        vesta.set_printoptions(**{name: value})


PRINT_OPTS = _PrinterOptions()


def get_printoptions() -> dict[str, Any]:
    """Returns the options by name."""
    return _printing.get_printoptions()


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """A context in which tensors are printed with other options."""
    before = _printing.get_printoptions()
    vesta.set_printoptions(**kwargs)
    try:
        yield
    finally:
        vesta.set_printoptions(**before)


def _tensor_str(self: Tensor, indent: int) -> str:
    """Returns the values of a tensor, without what ``repr`` writes around them."""
    return _printing._values_or_less(self, indent)


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """Returns ``repr`` of a tensor."""
    return _printing._show(inp)


def _add_suffixes(tensor_str: str, suffixes: Iterable[str], indent: int, force_newline: bool) -> str:
    """Returns a text with facts after it, in new lines where they would be too long, and a closing bracket."""
    text = tensor_str
    for suffix in suffixes:
        width = len(text) - text.rfind("\n") + 1
        wraps = force_newline or width + len(suffix) + 2 > PRINT_OPTS.linewidth
        text += (",\n" + " " * indent if wraps else ", ") + suffix
        force_newline = False
    return text + ")"
