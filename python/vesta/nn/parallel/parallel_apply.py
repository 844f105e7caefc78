"""``parallel_apply`` calls several modules at once, each on its own thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import vesta
from vesta.nn.modules.module import Module

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Calls ``modules[i]`` with ``inputs[i]`` (and ``kwargs_tup[i]``); returns their results, or raises the first
    error.

    The caller's grad mode applies.
    """
    count = len(modules)
    kwargs = kwargs_tup if kwargs_tup is not None else [{}] * count
    if not count == len(inputs) == len(kwargs) == (len(devices) if devices is not None else count):
        raise ValueError(
            f"parallel_apply: expected as many inputs as modules, got {count} modules, {len(inputs)} inputs, "
            f"{len(kwargs)} kwargs_tup" + (f", {len(devices)} devices." if devices is not None else ".")
        )
    results: list[Any] = [None] * count
    grad = vesta.is_grad_enabled()

    def work(i: int) -> None:
        try:
            given = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
            with vesta.set_grad_enabled(grad):
                results[i] = True, modules[i](*given, **kwargs[i])
        except Exception as error:
            results[i] = False, error

    if count == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for well, result in results:
        if not well:
            raise result
    return [result for _, result in results]
