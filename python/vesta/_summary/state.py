"""A context that leaves a model, and every generator of random numbers, as they were."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vesta import Tensor

_TABLES = ("_parameters", "_buffers", "_modules")


@contextmanager
def left_as_it_was(modules: list[Any], tensors: list[Tensor]) -> Iterator[None]:
    """Puts ``modules`` into evaluation mode over copies of their buffers; afterwards restores all that they had.

    ``tensors`` say which GPUs' generators are kept.
    """
    from vesta.random import fork_rng

    kept = [(module, dict(vars(module)), {name: dict(vars(module)[name]) for name in _TABLES}) for module in modules]
    devices = {t.device.index or 0 for t in tensors if t.is_cuda}
    numpy = sys.modules.get("numpy")
    of_numpy = numpy.random.get_state() if numpy else None
    of_python = random.getstate()
    try:
        with fork_rng(devices=sorted(devices)):
            copies: dict[int, Tensor] = {}  # a buffer of two modules stays one
            for module, _, tables in kept:
                for name, buffer in tables["_buffers"].items():
                    if buffer is not None:
                        if id(buffer) not in copies:
                            copies[id(buffer)] = buffer.detach().clone()
                        module._buffers[name] = copies[id(buffer)]
                vars(module)["training"] = False
            yield
    finally:
        random.setstate(of_python)
        if numpy:
            numpy.random.set_state(of_numpy)
        for module, attributes, tables in kept:
            vars(module).clear()
            vars(module).update(attributes)
            for name, entries in tables.items():
                table = attributes[name]
                dict.clear(table)  # of dict: the table's own would change attributes, which are right already
                dict.update(table, entries)
