"""What is wrong with the error that a call raises: one sentence of ours, of a class for callers, is right."""

from __future__ import annotations

import contextlib
import re
import signal
import warnings
from collections.abc import Iterator
from typing import Any

import vesta

#: The classes that tell a caller of a mistake; the last ones where PyTorch has them. A ZeroDivisionError never does.
CLASSES = (
    TypeError, ValueError, RuntimeError, IndexError, AssertionError, AttributeError, KeyError, OverflowError,
    BufferError, OSError,
)  # fmt: skip
#: What Python itself says when an object is used that nobody has looked at.
NOT_OURS = re.compile(
    r"object '?\w*'? ?has no attribute '|object is not (callable|iterable|subscriptable|an iterator)|^'\w+'$|"
    r"unsupported operand|not supported between|object cannot be interpreted|must be real number|bad operand|"
    r"unhashable|cannot unpack|not enough values|too many values|has no len|can't multiply|can only concatenate|"
    r"list index out of|object does not support|not all arguments|division by zero|modulo by zero|"
    r"float\(\) argument|could not convert"
)


class Hostile(Exception):
    """What an argument raises when it is used: a call may let it through."""


class TookTooLong(BaseException):
    """The call did not end."""


def give_up(*_: Any) -> None:
    raise TookTooLong("it does not end")


@contextlib.contextmanager
def watches(seconds: float, waits: float) -> Iterator[None]:
    """Gives up after seconds of the processor, or after waits of a clock: one that sleeps uses no processor."""
    timers = {signal.SIGPROF: (signal.ITIMER_PROF, seconds), signal.SIGALRM: (signal.ITIMER_REAL, waits)}
    before = {number: signal.signal(number, give_up) for number in timers}
    for timer, limit in timers.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def complaint(call: Any, args: tuple, kwargs: dict, seconds: float = 5, waits: float = 120) -> tuple[bool, str]:
    """Runs a call; returns whether it raised, and what is wrong with the error ("": nothing).

    The seconds are those of the processor: a machine that is busy with others makes no call a hanging one. Those that
    it may wait are of a clock, and many more.
    """
    try:
        with watches(seconds, waits), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*args, **kwargs)
    except (Hostile, MemoryError):
        return True, ""
    except SystemError as error:
        return True, f"SystemError: {error}"
    except CLASSES as error:
        said = str(error)
        if isinstance(error, vesta.Error) or not NOT_OURS.search(said):
            return True, "" if said else f"{type(error).__name__} without a word"
        return True, f"{type(error).__name__}: {said}"
    except (Exception, TookTooLong) as error:
        return True, f"{type(error).__name__}: {error}"
    return False, ""
