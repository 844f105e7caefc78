"""A thread between workers and caller: it pins batches, or copies them to a GPU, before they are requested."""

from __future__ import annotations

import queue
import threading
import weakref
from typing import Any

from vesta.autograd.profiler import record_function
from vesta.autograd.recording import running
from vesta.utils.data.state import Progress
from vesta.utils.data.transfer import Transfer

__all__ = ["Ahead"]

_TICK = 0.05  # seconds between checks whether the caller still waits
_DEPTH = 2  # batches that are transferred and not needed yet


class _Belt:
    """A thread that takes batches from a pass until it is stopped.

    Args:
        source: the pass.
        transfer: the function applied to each batch.
    """

    def __init__(self, source: Any, transfer: Transfer) -> None:
        self._source = source
        self._transfer = transfer
        self._ready: queue.Queue = queue.Queue(_DEPTH)
        self._thread = threading.Thread(target=self._run, name="vesta-loader-transfer", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        goes_on = True
        while goes_on and not self._source.cancelled:
            try:
                task, batch = self._source._next_batch()
                item = (task, self._transfer.ahead(batch), None)
                del batch
            except BaseException as error:  # for the caller; this includes the end of the pass
                item = (None, None, error)
                goes_on = not isinstance(error, StopIteration) and self._source.usable()
            while not self._source.cancelled:
                try:
                    self._ready.put(item, timeout=_TICK)
                    break
                except queue.Full:
                    continue
            del item

    def get(self) -> tuple[Any, Any]:
        """Returns the next task with its batch; raises the thread's error, if any."""
        while True:
            try:
                task, batch, error = self._ready.get(timeout=_TICK)
                break
            except queue.Empty:
                if not self._thread.is_alive() and self._ready.empty():
                    raise StopIteration from None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        return task, self._transfer.arrived(*batch)

    def stop(self, keep: bool = False) -> None:
        """Ends the thread, and the workers unless they are kept for another pass."""
        self._source.cancelled = True
        if threading.current_thread() is not self._thread:
            self._thread.join(5.0)
        if not keep:
            self._source.stop()


class Ahead:
    """The iterator that ``iter(loader)`` returns: a pass whose batches a thread transfers.

    The thread refers to the pass and not to this object, so that dropping this object ends both.
    """

    def __init__(self, source: Any) -> None:
        self._source = source
        self._start()

    def _start(self) -> None:
        self._source.cancelled = False
        self._belt = _Belt(self._source, self._source._transfer)
        self._finalizer = weakref.finalize(self, self._belt.stop)

    @property
    def progress(self) -> Progress:
        """The caller's progress."""
        return self._source.progress

    @property
    def _pool(self) -> Any:
        return self._source._pool

    def __iter__(self) -> Ahead:
        return self

    def __len__(self) -> int:
        return len(self._source)

    def __next__(self) -> Any:
        try:
            if running:
                with record_function(self._source.profiled_as):
                    return self._source._given(self._belt.get)
            return self._source._given(self._belt.get)
        except KeyboardInterrupt:
            self._finalizer()
            raise

    def state_dict(self) -> dict[str, Any]:
        """Returns the position after the last batch given, for ``DataLoader.load_state_dict``."""
        return self._source.state_dict()

    def usable(self) -> bool:
        """Returns whether another pass can be made with these workers."""
        return self._finalizer.alive and self._source.usable()

    def restart(self, loader: Any, state: dict[str, Any] | None) -> None:
        """Begins another pass with the same workers."""
        self._finalizer.detach()
        self._belt.stop(keep=True)
        self._source.restart(loader, state)
        self._start()
