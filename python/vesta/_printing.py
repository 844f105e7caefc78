"""``set_printoptions``: how tensors print, if not as by default.

The default form is C++'s (``core/print.cpp``), which knows no options from here. While options are set, ``repr`` is the
formatter of this module, which follows the same rules with other numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from . import _C, tensor_types
from ._C import Tensor

__all__ = ["set_printoptions"]

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}
_DEFAULT: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}
_options = dict(_DEFAULT)
_default_repr: Any = None  # what repr was before options were set


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors print in this process; what is not given stays, but for ``sci_mode``, which None leaves to the
    values.

    Args:
        precision: digits after the point (4).
        threshold: tensors of more elements are summarised (1000); ``inf``: none is.
        edgeitems: how many elements a summary shows at each end of a dimension (3).
        linewidth: characters in a line (80).
        profile: "default", "short" or "full": values for all of these, before the others.
        sci_mode: whether numbers are written with an exponent.

    Raises:
        ValueError: a negative number or an unknown profile.

    Example::

        >>> import vesta
        >>> vesta.set_printoptions(precision=2)
        >>> vesta.tensor([3.14159])
        tensor([3.14])
        >>> vesta.set_printoptions(profile="default")
    """
    chosen = dict(_options)
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: expected 'default', 'short' or 'full', got {profile!r} (profile).")
        chosen.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in given.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise ValueError(f"set_printoptions: expected a number of at least 0, got {value!r} ({name}).")
        chosen[name] = value
    chosen["sci_mode"] = sci_mode
    _options.update(chosen)
    _use()


def get_printoptions() -> dict[str, Any]:
    """Returns the options by name."""
    return dict(_options)


def _use() -> None:
    """Lets C++ print while the options are its own."""
    global _default_repr
    if _options == _DEFAULT:
        if _default_repr is not None:
            Tensor.__repr__ = _default_repr  # type: ignore[method-assign]
            _default_repr = None
    elif _default_repr is None:
        _default_repr = Tensor.__repr__
        Tensor.__repr__ = _show  # type: ignore[method-assign]


class _Format:
    """The one format of all numbers of a tensor, or of their real or imaginary parts."""

    def __init__(self, values: list[float]) -> None:
        finite = [v for v in values if math.isfinite(v) and v != 0]
        self.whole = all(v == math.ceil(v) for v in finite)
        self.scientific = False
        self.width = 1
        if not finite:
            return
        low, high = min(map(abs, finite)), max(map(abs, finite))
        wish = _options["sci_mode"]
        self.scientific = bool(high / low > 1000.0 or high > 1e8 or low < 1e-4) if wish is None else wish
        self.width = max(len(self.number(v)) for v in finite)

    def number(self, v: float) -> str:
        """Returns a number as a text, without padding."""
        if not math.isfinite(v):
            return str(v)
        if self.scientific:
            return f"{v:.{_options['precision']}e}"
        return f"{v:.0f}." if self.whole else f"{v:.{_options['precision']}f}"

    def __call__(self, v: float) -> str:
        return self.number(v).rjust(self.width)


class _Text(_Format):
    """The format of integers and bools."""

    def __init__(self, values: list[Any]) -> None:
        self.width = max(len(str(v)) for v in values)

    def number(self, v: Any) -> str:
        return str(v)


class _Complex:
    """The format of complex numbers."""

    def __init__(self, values: list[complex]) -> None:
        self.real, self.imag = _Format([v.real for v in values]), _Format([v.imag for v in values])
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, v: complex) -> str:
        imaginary = f"{self.imag(v.imag)}j".lstrip()
        return self.real(v.real) + ("" if imaginary.startswith("-") else "+") + imaginary


def _show(self: Tensor, *, tensor_contents: Any = None) -> str:
    prefix = "tensor("
    text = prefix + _values_or_less(self, len(prefix))
    width = len(text) - text.rfind("\n") + 1
    for fact in _facts(self):
        wraps = width + len(fact) + 2 > _options["linewidth"]
        text += (",\n" + " " * len(prefix) if wraps else ", ") + fact
        width = (len(prefix) if wraps else width + 2) + len(fact)
    return text + ")"


def _values_or_less(t: Tensor, indent: int) -> str:
    if t.is_meta:
        return "..."
    return "[]" if t.numel() == 0 else _values(t.detach().cpu(), indent)


def _facts(t: Tensor) -> Iterator[str]:
    """Yields what the values do not tell."""
    if t.device.type != "cpu":
        yield f"device='{t.device}'"
    empty, standard = t.numel() == 0 or t.is_meta, _C.get_default_dtype()
    if t.is_meta or (empty and t.dim() != 1) or (not empty and _options["edgeitems"] == 0):
        yield f"size={tuple(t.shape)}"
    plain = (_C.int64, _C.bool, _C.complex128 if standard == _C.float64 else _C.complex64)
    if t.dtype != standard and (empty or t.dtype not in plain):
        yield f"dtype={tensor_types.PACKAGE}.{str(t.dtype).rpartition('.')[2]}"
    if t.grad_fn is not None:
        yield f"grad_fn=<{t.grad_fn.name().rpartition('::')[2]}>"
    elif t.requires_grad:
        yield "requires_grad=True"


def _values(t: Tensor, indent: int) -> str:
    summary = t.numel() > _options["threshold"]
    edge = int(_options["edgeitems"])

    def kept(size: int) -> tuple[range, range]:
        if summary and size > 2 * edge:
            return range(edge), range(size - edge, size)
        return range(size), range(0)

    def chosen(part: Tensor) -> list[Any]:
        if part.dim() == 0:
            return [part.item()]
        if part.dim() == 1 and not kept(len(part))[1]:
            return part.tolist()
        return [v for rows in kept(part.shape[0]) for i in rows for v in chosen(part[i])]

    values = chosen(t)
    form: Callable[[Any], str]
    if t.is_complex():
        form = _Complex(values)
    elif t.is_floating_point():
        form = _Format(values)
    else:
        form = _Text(values or [0])
    return _part(t, indent, form, kept)


def _part(t: Tensor, indent: int, form: Any, kept: Callable[[int], tuple[range, range]]) -> str:
    if t.dim() == 0:
        return form(t.item())
    head, tail = kept(t.shape[0])
    cut = len(head) + len(tail) < t.shape[0]
    if t.dim() > 1:
        gap = "," + "\n" * (t.dim() - 1) + " " * (indent + 1)
        parts = [_part(t[i], indent + 1, form, kept) for i in head]
        parts += ["..."] * cut + [_part(t[i], indent + 1, form, kept) for i in tail]
        return "[" + gap.join(parts) + "]"
    parts = [form(t[i].item()) for i in head]
    parts += [" ..."] * cut + [form(t[i].item()) for i in tail]
    per_line = max(1, int((_options["linewidth"] - indent) // (form.width + 2)))
    lines = [", ".join(parts[i : i + per_line]) for i in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
