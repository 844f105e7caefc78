"""Arguments of the wrong kind raise an error of ours: a class for callers and a sentence that names the argument."""

from __future__ import annotations

import random
import re
import signal
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import op_db_check as check
import public_calls
import pytest
import vesta
from op_db import OPS
from op_db_cases import single
from op_db_row import DTYPES, Maker, Row

#: What is wrong nearly everywhere. (Where it is not, the call may return.)
WRONG = (None, "text", [1.5, "a"], object(), 0, -1, float("nan"), {"a": 1}, int, 10**30)
#: The classes that tell a caller of a mistake; the last three where PyTorch has them. A ZeroDivisionError never does.
CLASSES = (TypeError, ValueError, RuntimeError, IndexError, AssertionError, AttributeError, KeyError, OverflowError)
#: What Python itself says when an object is used that nobody has looked at.
NOT_OURS = re.compile(
    r"object '?\w*'? ?has no attribute '|object is not (callable|iterable|subscriptable|an iterator)|^'\w+'$|"
    r"unsupported operand|not supported between|object cannot be interpreted|must be real number|bad operand|"
    r"unhashable|cannot unpack|not enough values|too many values|has no len|can't multiply|can only concatenate|"
    r"list index out of|object does not support|not all arguments|division by zero|modulo by zero|"
    r"float\(\) argument|could not convert"
)


def made(value: Any) -> Any:
    """Makes an argument that is given as a function."""
    return value() if callable(value) and getattr(value, "__module__", "") == public_calls.__name__ else value


def variants(call: public_calls.Call, first: int = 0) -> Iterator[tuple[str, tuple, dict]]:
    """Yields the call with one argument replaced, for every argument from ``first`` on and every wrong value."""
    for position in range(first, len(call.args)):
        for wrong in WRONG:
            args = [made(value) for value in call.args]
            args[position] = wrong
            yield f"argument {position + 1} is {wrong!r}", tuple(args), {k: made(v) for k, v in call.kwargs.items()}
    for name in call.kwargs:
        for wrong in WRONG:
            kwargs = {k: made(v) for k, v in call.kwargs.items()}
            yield f"{name} is {wrong!r}", tuple(made(value) for value in call.args), {**kwargs, name: wrong}


class TookTooLong(BaseException):
    """The call did not end."""


def give_up(*_: Any) -> None:
    raise TookTooLong("it does not end")


def complaint(call: Any, args: tuple, kwargs: dict) -> str:
    """Runs a call; returns what is wrong with the error it raises, or nothing."""
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(5)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(*args, **kwargs)
    except CLASSES as error:
        said = str(error)
        if isinstance(error, vesta.Error) or not NOT_OURS.search(said):
            return "" if said or isinstance(error, StopIteration) else f"{type(error).__name__} without a word"
        return f"{type(error).__name__}: {said}"
    except MemoryError:
        return ""
    except (Exception, TookTooLong) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return ""


@pytest.mark.parametrize("call", public_calls.ALL, ids=lambda call: call.name)
def test_every_argument_is_looked_at(call: public_calls.Call) -> None:
    call.function(*(made(value) for value in call.args), **{k: made(v) for k, v in call.kwargs.items()})
    found = [f"{where}: {said}" for where, a, k in variants(call) if (said := complaint(call.function, a, k))]
    assert not found, f"{call.name}, {len(found)} calls:\n" + "\n".join(found)


@pytest.mark.parametrize("row", single(row for row in OPS if row.fn is None))
def test_every_argument_of_an_op_is_looked_at(row: Row) -> None:
    function = check.function_of(row)
    dtype = "float32" if row.accepts("float32") else "int64"
    samples = list(row.samples(Maker(DTYPES[dtype], row.name)))
    dice, found = random.Random(zlib.crc32(row.name.encode())), []
    for sample in dice.sample(samples, min(3, len(samples))):
        call = public_calls.Call(row.name, function, sample.args, sample.kwargs)
        for where, args, kwargs in variants(call, first=int(row.where == "Tensor")):
            args, kwargs = check.materialize(type(sample)(args, kwargs), dtype)
            if said := complaint(function, args, kwargs):
                found.append(f"{where}: {said}")
    assert not found, f"{row.name}, {len(found)} calls:\n" + "\n".join(found)


def test_every_public_name_has_a_call() -> None:
    """A function or class of Python that is added to nn, optim or data is tried as well."""
    tried = {call.name.rsplit(".", 1)[-1].rstrip("()") for call in public_calls.ALL} | {"bce", "Optimizer"}
    tried |= {"LRScheduler", "Dataset", "IterableDataset", "Sampler", "WorkerError", "get_worker_info"}
    tried |= {"binary_cross_entropy_with_logits", "clip_grad_norm", "DataChunk", "IterDataPipe", "MapDataPipe"}
    tried |= {"functional_datapipe"}
    missing = []
    for module in (vesta.nn, vesta.nn.functional, vesta.nn.init, vesta.nn.utils, vesta.optim, vesta.utils.data):
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            ours = callable(value) and str(getattr(value, "__module__", "")).startswith("vesta")
            if ours and not name.startswith("_") and name not in tried | {"Tensor"}:
                missing.append(f"{module.__name__}.{name}")
    assert not missing, f"no call in public_calls.py: {missing}"
