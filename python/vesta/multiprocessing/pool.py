"""``Pool``: the standard one, over queues that carry memory."""

from __future__ import annotations

import contextlib
import multiprocessing.pool
from typing import Any

__all__ = ["Pool"]


def _work(*args: Any) -> None:
    """A worker; what it holds is collected before it ends, so that memory goes back in order."""
    import gc

    multiprocessing.pool.worker(*args)
    gc.collect()


class Pool(multiprocessing.pool.Pool):
    """``multiprocessing.Pool``; arguments and results that are tensors travel as handles."""

    def __init__(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
    ) -> None:
        from .context import default

        super().__init__(processes, initializer, initargs, maxtasksperchild, context or default.get_context())

    @staticmethod
    def _help_stuff_finish(inqueue: Any, task_handler: Any, size: int) -> None:
        """Empties the queue of tasks; workers may be quicker, for there is no lock to keep them out."""
        while task_handler.is_alive() and inqueue._reader.poll():
            with contextlib.suppress(TimeoutError):
                inqueue._reader.recv(timeout=0.0)

    @staticmethod
    def Process(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes a worker of the pool."""
        if kwargs.get("target") is multiprocessing.pool.worker:
            kwargs["target"] = _work
        return ctx.Process(*args, **kwargs)
