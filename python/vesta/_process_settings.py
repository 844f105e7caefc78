"""Settings of the whole process: deterministic algorithms, the precision of products, warnings; and checks."""

from __future__ import annotations

from typing import Any

import vesta

from . import _C
from ._overridable import overridable

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_warn_always",
    "use_deterministic_algorithms",
]

# ---- deterministic algorithms ----

_deterministic = {"mode": False, "warn_only": False}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Sets whether only deterministic algorithms may be used. Vesta uses no others unless
    ``vesta.backends.cuda.allow_nondeterministic`` is set; this wins over it.

    Example::

        >>> import vesta
        >>> vesta.use_deterministic_algorithms(True)
        >>> vesta.are_deterministic_algorithms_enabled()
        True
        >>> vesta.use_deterministic_algorithms(False)
    """
    _deterministic.update(mode=bool(mode), warn_only=bool(mode and warn_only))
    _C._product_switch(4, bool(mode))


def are_deterministic_algorithms_enabled() -> bool:
    """Returns what ``use_deterministic_algorithms`` has set.

    Example::

        >>> import vesta
        >>> vesta.are_deterministic_algorithms_enabled()
        False
    """
    return _deterministic["mode"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Returns the ``warn_only`` that ``use_deterministic_algorithms`` has set.

    Example::

        >>> import vesta
        >>> vesta.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _deterministic["warn_only"]


_DEBUG_MODES = {"default": 0, "warn": 1, "error": 2}


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Does what ``use_deterministic_algorithms`` does, by a number or a name: 0 "default", 1 "warn", 2 "error".

    Raises:
        TypeError, RuntimeError: ``debug_mode`` is none of these.

    Example::

        >>> import vesta
        >>> vesta.set_deterministic_debug_mode("default")
    """
    if isinstance(debug_mode, bool) or not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    number = _DEBUG_MODES.get(debug_mode) if isinstance(debug_mode, str) else debug_mode
    if number not in (0, 1, 2):
        raise RuntimeError(
            f"set_deterministic_debug_mode: expected 0, 1, 2, 'default', 'warn' or 'error', got {debug_mode!r} "
            "(debug_mode)."
        )
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """Returns the mode as a number: 0, 1 or 2.

    Example::

        >>> import vesta
        >>> vesta.get_deterministic_debug_mode()
        0
    """
    return _deterministic["mode"] + (_deterministic["mode"] and not _deterministic["warn_only"])


# ---- precision of float32 products on devices ----

_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Sets whether float32 matrix products on CUDA may round their factors.

    Args:
        precision: "highest": no; "high" or "medium": they may use TF32, with 10 bits of the factors kept.

    Raises:
        RuntimeError: another text.

    Example::

        >>> import vesta
        >>> vesta.set_float32_matmul_precision("highest")
        >>> vesta.backends.cuda.matmul.allow_tf32
        False
    """
    global _precision
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(
            f"set_float32_matmul_precision: expected 'highest', 'high' or 'medium', got {precision!r} (precision)."
        )
    vesta.backends.cuda.matmul.allow_tf32 = precision != "highest"
    _precision = precision


def get_float32_matmul_precision() -> str:
    """Returns the precision of float32 matrix products: "highest", "high" or "medium".

    Example::

        >>> import vesta
        >>> vesta.get_float32_matmul_precision()
        'highest'
    """
    rounds = vesta.backends.cuda.matmul.allow_tf32
    if rounds == (_precision != "highest"):
        return _precision
    return "high" if rounds else "highest"  # the switch was set by its own name


# ---- warnings ----

_warn_always = False


def set_warn_always(b: bool) -> None:
    """Records whether warnings of the library come every time; they come as Python's filters say.

    Example::

        >>> import vesta
        >>> vesta.set_warn_always(False)
    """
    global _warn_always
    _warn_always = bool(b)


def is_warn_always_enabled() -> bool:
    """Returns what ``set_warn_always`` has set.

    Example::

        >>> import vesta
        >>> vesta.is_warn_always_enabled()
        False
    """
    return _warn_always


# ---- conditions ----


def _assert(condition: Any, message: Any) -> None:
    """Raises an AssertionError with the message unless the condition holds."""
    assert condition, message


overridable(_assert)


def _check(cond: Any, message: Any = None) -> None:
    """Raises RuntimeError unless the condition holds; ``message``: the text, or a function that returns it."""
    _check_with(RuntimeError, cond, message)


def _check_with(error: type[Exception], cond: Any, message: Any) -> None:
    if not isinstance(cond, (bool, _C.Tensor)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    default = "Expected cond to be True, but got False."
    raise error(default if message is None else str(message() if callable(message) else message))


def _check_index(cond: Any, message: Any = None) -> None:
    """Raises IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Any = None) -> None:
    """Raises ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Any = None) -> None:
    """Raises TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Any = None) -> None:
    """Raises NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Any = None, *, max: Any = None) -> None:
    """Raises RuntimeError unless ``i`` is a size: not negative, and at most ``max``."""
    _check(bool(i >= 0) and (max is None or bool(i <= max)), message)
