"""``torch._jit_internal``: the decorators of ``torch.jit`` and the helpers that libraries import from inside."""

from __future__ import annotations

from typing import Any

from vesta.as_torch.only.jit import Final, Future, _overload, _overload_method, export, ignore, is_scripting, unused

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Final",
    "Future",
    "_copy_to_script_wrapper",
    "_overload",
    "_overload_method",
    "boolean_dispatch",
    "export",
    "ignore",
    "is_scripting",
    "unused",
]


class _BroadcastingList:
    """A type of lists in annotations: ``BroadcastingList2[int]``."""

    def __getitem__(self, types: Any) -> Any:
        return list


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList4 = _BroadcastingList()


def _copy_to_script_wrapper(fn: Any) -> Any:
    """Returns what it decorates."""
    return fn


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Any:
    """Returns a function that calls one of two, by the value of one of its arguments."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        chosen = kwargs.get(arg_name, args[arg_index] if arg_index < len(args) else default)
        return (if_true if chosen else if_false)(*args, **kwargs)

    fn.__name__, fn.__doc__ = func_name, if_true.__doc__ or if_false.__doc__
    return fn
