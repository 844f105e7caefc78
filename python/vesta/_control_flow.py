"""Functions that choose or repeat other functions: what ``if`` and ``while`` are where nothing is compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from vesta._arguments import expect
from vesta._C import Tensor

__all__ = ["cond", "while_loop"]


def _truth(op: str, name: str, value: Any) -> bool:
    expect(op, name, value, (bool, int, float, Tensor), "a bool or a tensor of one element")
    if isinstance(value, Tensor) and value.numel() != 1:
        raise RuntimeError(
            f"{op}: expected a bool or a tensor of one element, got shape {tuple(value.shape)} ({name})."
        )
    return bool(value)


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Returns ``true_fn(*operands)`` if ``pred`` is true, else ``false_fn(*operands)``.

    Args:
        pred: a bool, a number, or a tensor of one element.
        operands: a tuple or list.

    Raises:
        TypeError, RuntimeError: an argument is of another kind.

    Example::

        >>> import vesta
        >>> x = vesta.tensor([1.0, -2.0])
        >>> vesta.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
        tensor([ 0., -3.])
    """
    expect("cond", "true_fn", true_fn, Callable, "a function")
    expect("cond", "false_fn", false_fn, Callable, "a function")
    expect("cond", "operands", operands, (tuple, list), "a tuple or list")
    return (true_fn if _truth("cond", "pred", pred) else false_fn)(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> tuple[Any, ...]:
    """Calls ``carried = body_fn(*carried)`` as long as ``cond_fn(*carried)`` is true, and returns ``carried``.

    Args:
        cond_fn: returns a bool or a tensor of one element.
        body_fn: returns as many values as it gets, in a tuple or list; a single one may be alone.
        carried_inputs: the first values, a tuple or list.

    Raises:
        TypeError, RuntimeError: an argument is of another kind, or ``body_fn`` returns another number of values.

    Example::

        >>> import vesta
        >>> vesta.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (vesta.tensor(0), vesta.ones(2)))
        (tensor(3), tensor([8., 8.]))
    """
    expect("while_loop", "cond_fn", cond_fn, Callable, "a function")
    expect("while_loop", "body_fn", body_fn, Callable, "a function")
    expect("while_loop", "carried_inputs", carried_inputs, (tuple, list), "a tuple or list")
    carried = tuple(carried_inputs)
    while _truth("while_loop", "cond_fn", cond_fn(*carried)):
        result = body_fn(*carried)
        result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(result) != len(carried):
            raise RuntimeError(f"while_loop: expected {len(carried)} values, got {len(result)} (body_fn).")
        carried = result
    return carried
