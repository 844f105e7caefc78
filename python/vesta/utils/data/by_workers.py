"""The pass whose batches come from worker processes."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

from vesta.utils.data.ahead import Ahead
from vesta.utils.data.connection import Unreadable
from vesta.utils.data.iterator import Pass
from vesta.utils.data.pool import Pool, context_of
from vesta.utils.data.remote_error import WorkerError, describe, rebuild, unreadable
from vesta.utils.data.state import Task
from vesta.utils.data.worker import BATCH, END, FATAL, Job

__all__ = ["ByWorkers"]


class ByWorkers(Pass):
    """A pass that requests batches from workers some time before they are needed.

    Batch n is made by the n-th worker in turn, whichever is ready first; a worker whose part of an iterable dataset has
    ended is left out from then on.
    """

    def __init__(self, loader: Any, state: dict[str, Any] | None) -> None:
        loader.check_worker_number_rationality()
        self._in_order = loader.in_order
        self._timeout = loader.timeout
        self._ahead = max(1, loader.num_workers * (loader.prefetch_factor or 0))
        self._keep = loader.persistent_workers
        self._current = -1
        self._pool: Pool | None = None
        self._failure: BaseException | None = None
        self._one_at_a_time = threading.RLock()  # any thread may call next()
        self.cancelled = False  # set by the caller of a thread that waits here
        self._delivered = False  # whether the exception being raised is a worker's
        super().__init__(loader, state)

    def _begin(self, loader: Any, state: dict[str, Any] | None) -> None:
        super()._begin(loader, state)
        count = loader.num_workers
        streams = self._streams
        if streams is not None and len(streams) != count:
            raise ValueError(
                "load_state_dict: an iterable dataset goes on with as many workers as it had, which is "
                f"{len(streams)}, got {count}."
            )
        self.progress.ordered = self._in_order or count == 1
        self._current += 1
        self._ready: dict[int, tuple[Task, int, Any]] = {}  # received batches that are not needed yet
        self._asked: dict[int, tuple[Task, int]] = {}  # tasks without an answer
        self._next = self._order.batches  # the batch that is needed next
        self._ended = [False] * count
        self._over = False  # no more tasks
        self._end: BaseException = StopIteration()  # why there are no more tasks
        self._places: list[Any] = list(streams) if streams else [{"samples": 0, "state": None} for _ in range(count)]
        #: The worker that gets the next task, and the one whose batch the caller gets next.
        self._turn = self._given_turn = next((i for i, place in enumerate(self._places) if place.get("turn")), 0)
        self._hung = False  # whether the wait for a batch timed out and it has not come since
        if self._stream:
            self.progress.streams = self._stream_places
        if self._pool is None:
            self._start(loader)
        assert self._pool is not None
        self._pool.begin(self._current, self._order.seed, self._places)
        self._fill()

    def _start(self, loader: Any) -> None:
        job = Job(
            self._dataset, self._stream, self._batched, self._collate, self._drop_last, loader.worker_init_fn,
            loader.num_workers,
        )  # fmt: skip
        self._pool = Pool(job, context_of(loader.multiprocessing_context))
        self._finalizer = weakref.finalize(self, self._pool.stop)

    def handed_out(self) -> Any:
        """Returns the caller's iterator: this one, or one that transfers its batches in a thread."""
        if not self._transfer.has_work:
            return self
        assert self._pool is not None
        self._pool.start_all()  # so that no thread forks
        return Ahead(self)

    def usable(self) -> bool:
        """Returns whether another pass can be made with these workers."""
        return self._failure is None and not self._hung and self._pool is not None and self._pool.usable()

    def restart(self, loader: Any, state: dict[str, Any] | None) -> None:
        """Begins another pass with the same workers."""
        self._begin(loader, state)

    def stop(self) -> None:
        """Ends the workers."""
        if self._pool is not None:
            self._finalizer()
            self._pool = None

    _shutdown_workers = stop  # PyTorch's name, for programs that end the workers themselves

    def _stream_places(self) -> list[Any]:
        """Returns the position of each worker's part of the stream, and whose turn it is; raises what a worker raised
        there."""
        for worker, place in enumerate(self._places):
            if "error" in place:
                raise rebuild(place["error"], f"worker {worker}, at its state_dict()")
        return [{**place, "turn": i == self._given_turn} for i, place in enumerate(self._places)]

    def _fill(self) -> None:
        """Gives out tasks until enough are under way."""
        while not self._over and len(self._asked) + len(self._ready) < self._ahead:
            if not self._ask():
                return

    def _ask(self) -> bool:
        """Gives out one task; returns False if there is none, or no worker for it."""
        worker = self._whose_turn()
        if worker is None:
            self._over = True
            return False
        try:
            task = next(self._order)
        except StopIteration:
            self._over = True
            return False
        except Exception as error:
            self._over = True
            self._end = error
            return False
        self._asked[task.number] = (task, worker)
        assert self._pool is not None
        self._pool.ask(worker, self._current, task)
        return True

    def _whose_turn(self) -> int | None:
        count = len(self._ended)
        if not self._in_order and not self._stream:  # the worker with the fewest tasks
            load = [0] * count
            for _, worker in self._asked.values():
                load[worker] += 1
            return min(range(count), key=load.__getitem__)
        for step in range(count):
            worker = (self._turn + step) % count
            if not self._ended[worker]:
                self._turn = (worker + 1) % count
                return worker
        return None

    def _next_batch(self) -> tuple[Task, Any]:
        with self._one_at_a_time:
            return self._next_of_one()

    def _next_of_one(self) -> tuple[Task, Any]:
        """Returns the next task with its batch, to one thread at a time."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        self._delivered = False
        if self._pool is not None and not self._pool.is_ours:
            raise RuntimeError(
                "DataLoader: expected next() in the process that called iter(loader), got it in a child that was "
                "forked since (self). Call iter(loader) in the child."
            )
        try:
            return self._awaited()
        except StopIteration:
            if not self._keep and not self.cancelled:
                self.stop()
            raise
        except (KeyboardInterrupt, SystemExit, WorkerError) as error:
            if self._delivered:
                raise
            if isinstance(error, WorkerError):
                self._failure = error
            else:
                self._failure = RuntimeError("DataLoader: this pass was interrupted; begin another one.")
            self.stop()
            raise

    def _awaited(self) -> tuple[Task, Any]:
        """Returns the next task with its batch. Ends its thread if the program ends meanwhile, because nobody waits."""
        pool = self._pool
        try:
            return self._arrived()
        except Exception:
            ended = pool is not None and pool.is_over and self._pool is pool  # not by this pass
            if ended and threading.current_thread() is not threading.main_thread():
                raise SystemExit from None
            raise

    def _arrived(self) -> tuple[Task, Any]:
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        if self._pool is not None and self.progress.batches > 0:
            self._pool.start_another()
        while True:
            found = self._take()
            if found is not None:
                return found
            if not self._asked and not self._ready and not (not self._over and self._ask()):
                self._raise_end()
            assert self._pool is not None
            if self.cancelled:
                raise StopIteration
            answers = self._pool.wait(deadline)
            for worker, answer in answers:
                self._note(worker, *answer)
            if not answers and deadline is not None and time.monotonic() >= deadline:
                self._hung = self._delivered = True  # another call waits for the same batch
                raise self._late()

    def _raise_end(self) -> None:
        """Raises what ended the order of this pass (its end, or an error of the sampler), after all earlier batches."""
        end, self._end = self._end, StopIteration()
        try:
            raise end
        finally:
            del end

    def _late(self) -> WorkerError:
        assert self._pool is not None
        doing = "; ".join(self._pool.where(worker).rstrip(",") for worker in self._pool.workers if worker.tasks)
        return WorkerError(f"DataLoader timed out after {self._timeout} seconds. Waited for {doing}.")

    def _note(self, worker: int, current: int, number: int, kind: int, position: int, content: Any) -> None:
        """Records an answer."""
        if current != self._current or number not in self._asked:
            return
        task, _ = self._asked.pop(number)
        if kind == END:
            self._ended[worker] = True
        self._hung = False
        self._ready[number] = (task, worker, (kind, position, content))

    def _take(self) -> tuple[Task, Any] | None:
        """Returns the next batch if it is there; raises if it is an error."""
        while self._ready:
            number = self._next if self._in_order else next(iter(self._ready))
            if number not in self._ready:
                return None
            task, worker, (kind, position, content) = self._ready.pop(number)
            self._next = number + 1
            if kind == END:
                if not self._stream:  # the dataset's own StopIteration (STOP_ENDS_THE_PASS in fetch.py)
                    self._over = True
                    raise StopIteration
                self._fill()
                continue
            self._given_turn = (worker + 1) % len(self._ended)
            if isinstance(content, Unreadable):
                self._places[worker] = {"error": describe(content.error)}
                self._raise(kind, unreadable(content.error, self._where(task, worker, -1)))
            result, state = content
            if state is not None:
                self._places[worker] = state
            if kind == BATCH:
                self._fill()
                return task, result
            self._raise(kind, rebuild(result, self._where(task, worker, position if kind != FATAL else None)))
        return None

    def _where(self, task: Task, worker: int, position: int | None) -> str:
        """Returns a text about which worker an error is from, and which batch; with ``position`` None, from no batch
        yet."""
        assert self._pool is not None
        colleague = self._pool.workers[worker]
        if position is None:
            return f"worker {worker} (pid {colleague.pid}), before its first batch"
        colleague.tasks[task.number] = task
        where = self._pool.where(colleague, task.number, position).rstrip(",")
        del colleague.tasks[task.number]
        return where

    def _raise(self, kind: int, error: BaseException) -> None:
        """Raises what a worker raised; the next batch can still be requested, unless the worker could not begin."""
        if kind == FATAL:
            self._failure = error
            self.stop()
        else:
            self._fill()
        self._delivered = True
        try:
            raise error
        finally:
            del error  # its traceback holds this frame
