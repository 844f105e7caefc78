"""Arguments of the wrong kind raise an error of ours: a class for callers and a sentence that names the argument."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from typing import Any

import op_db_check as check
import public_calls
import pytest
import vesta
from fuzz.complaints import complaint
from op_db import OPS
from op_db_cases import single
from op_db_row import DTYPES, Maker, Row

#: What is wrong nearly everywhere. (Where it is not, the call may return.)
WRONG = (None, "text", [1.5, "a"], object(), 0, -1, float("nan"), {"a": 1}, int, 10**30)


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


@pytest.mark.parametrize("call", public_calls.ALL, ids=lambda call: call.name)
def test_every_argument_is_looked_at(call: public_calls.Call) -> None:
    call.function(*(made(value) for value in call.args), **{k: made(v) for k, v in call.kwargs.items()})
    found = [f"{where}: {said}" for where, a, k in variants(call) if (said := complaint(call.function, a, k)[1])]
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
            if said := complaint(function, args, kwargs)[1]:
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
