"""Public functions written in Python that modes and classes with a ``__torch_function__`` take over as a whole.

Until the first mode is entered, or the first such class is seen, a function is what its file says, and a call looks
for nothing. Then the code of each is exchanged for an entry that looks at the arguments; the function object stays the
same, so that names imported before are taken over too, and ``func is vesta.unique`` holds. Signature, docstring and
source are found through ``__wrapped__``.
"""

from __future__ import annotations

import functools
import types

from . import _C

TYPE_CHECKING = False  # typing would be a quarter of the time of `import vesta`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["hand_over_arranged", "is_overridable", "overridable", "overridable_property"]

_known: set[types.FunctionType] = set()
#: What turns the arguments of a function into those that are handed over.
_arranged: dict[Any, Callable[[tuple[Any, ...]], tuple[Any, ...]]] = {}
#: What tracebacks and profilers show of a code.
_PLACE = ("co_name", "co_qualname", "co_filename", "co_firstlineno")


@functools.cache
def _entry(free: int) -> types.CodeType:
    """Returns the code of a function that passes its call on, with so many free variables, which it does not use.

    The interpreter copies them into a frame when its code begins; who looks at the frame's variables relies on it.
    """
    names = "".join(f"_{i}, " for i in range(free))
    scope: dict[str, Any] = {}
    # On one line, which tracebacks show as the first one of the function whose code it replaces.
    entry = f"def entry(*args, __called__, **kwargs): return __called__(args, kwargs); {names or None}"
    source = f"def outer({names}):\n    {entry}\n    return entry\n"
    exec(compile(source, __file__, "exec"), scope)  # a closure has as many cells as its text has free variables
    return scope["outer"](*range(free)).__code__


def _exchange(function: types.FunctionType) -> None:
    """Gives a function the code of ``_entry``, and keeps its own as that of ``__wrapped__``."""
    code = function.__code__
    plain = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    plain.__kwdefaults__ = function.__kwdefaults__
    inner = function.__dict__.get("__wrapped__")
    functools.update_wrapper(plain, function)
    del plain.__wrapped__
    if inner is not None:
        plain.__wrapped__ = inner
    function.__wrapped__ = plain
    called = functools.partial(_C._call_or_hand_over, function, plain)
    arrange = _arranged.get(function)
    if arrange is not None:
        hand_over, called = called, lambda args, kwargs: hand_over(arrange(args), kwargs)  # type: ignore[assignment]
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "__called__": called}
    # A function may only get code with as many free variables as its closure has cells.
    kept = {name: getattr(code, name) for name in _PLACE if hasattr(code, name)}
    function.__code__ = _entry(len(code.co_freevars)).replace(**kept)


def _exchange_all() -> None:
    for function in _known:
        _exchange(function)


def overridable(*functions: Any) -> None:
    """Lets calls of these functions be taken over; what is not written in Python is so by itself."""
    for function in functions:
        if not isinstance(function, types.FunctionType) or function in _known:
            continue
        _known.add(function)
        if _C._when_torch_function_seen(_exchange_all):
            _exchange(function)


def hand_over_arranged(function: Any, arrange: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
    """Lets ``arrange`` turn a function's arguments into those that it has when it is taken over."""
    _arranged[function] = arrange


def overridable_property(read: Any, write: Any = None, doc: str | None = None) -> property:
    """Makes a property of Tensor whose reading modes and classes take over, as ``Tensor.NAME.__get__``."""

    @functools.wraps(read)
    def get(self: Any) -> Any:
        return _C._call_or_hand_over(made.__get__, read, (self,), {})

    made = property(get, write, doc=doc)
    return made


def is_overridable(function: Any) -> bool:
    """Returns whether calls of a function written in Python are taken over."""
    return isinstance(function, types.FunctionType) and function in _known
