"""The few pieces of HTML that everything here is made of: each text is escaped, and cut where it is long."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from html import escape
from typing import Any

#: Characters of one value that are shown.
LONGEST = 200
_CELL = "padding:1px 8px 1px 0;text-align:left;vertical-align:top"


def text(value: Any, longest: int = LONGEST) -> str:
    """Returns ``str(value)``, cut to ``longest`` characters and escaped."""
    shown = str(value)
    return escape(shown if len(shown) <= longest else f"{shown[: longest - 1]}…")


def block(*parts: str) -> str:
    """Returns parts of HTML, one below the other, in a box."""
    return f'<div style="font-size:90%;line-height:1.4">{"".join(parts)}</div>'


def head(title: str, rest: str = "") -> str:
    """Returns a line of a bold title and a text, both of them escaped here."""
    return f"<div><b>{text(title)}</b> {text(rest)}</div>"


def rows(pairs: Iterable[tuple[str, Any]]) -> str:
    """Returns a table of two columns, a name and a value."""
    lines = (
        f'<tr><td style="{_CELL};opacity:.65">{text(name)}</td><td style="{_CELL}">{text(value)}</td></tr>'
        for name, value in pairs
    )
    return f'<table style="border-collapse:collapse;border:0;margin:2px 0">{"".join(lines)}</table>'


def columns(lines: Iterable[Iterable[Any]], right: int = 0) -> str:
    """Returns lines of texts, one column below the other; the last ``right`` of them end at the same place."""
    cells = [[str(value)[:LONGEST] for value in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells)]
    sides = [str.ljust] * (len(widths) - right) + [str.rjust] * right
    padded = ("  ".join(side(cell, n) for side, cell, n in zip(sides, line, widths)).rstrip() for line in cells)
    return verbatim("\n".join(padded), len(cells) * (LONGEST + 2) * max(len(widths), 1))


def verbatim(value: str, longest: int) -> str:
    """Returns a text as it is, lines and spaces included."""
    return f'<pre style="margin:2px 0;font-size:95%">{text(value, longest)}</pre>'


def picture(png: bytes, alt: str) -> str:
    """Returns a PNG inside the page."""
    data = base64.b64encode(png).decode("ascii")
    return f'<img alt="{text(alt)}" style="image-rendering:pixelated;margin:2px 0" src="data:image/png;base64,{data}">'


def folded(summary: str, body: str, is_open: bool = False) -> str:
    """Returns a line of HTML that opens to ``body``; without a body, the line."""
    if not body:
        return f'<div style="margin-left:1.1em">{summary}</div>'
    inner = f'<div style="margin-left:1.2em">{body}</div>'
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{inner}</details>"


def count(number: int) -> str:
    """Returns a number with its thousands apart."""
    return f"{number:,}"


def size(nbytes: float) -> str:
    """Returns a number of bytes as people say it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if nbytes < 1024:
            return f"{nbytes:.0f} {unit}" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"
