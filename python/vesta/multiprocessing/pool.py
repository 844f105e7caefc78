"""``Pool``: the standard one, over queues that carry memory; a task whose worker dies is an error, not a hang.

Note [Tasks that are lost]
The standard pool never learns of a task whose worker was killed, or whose arguments or result cannot be unpickled: a
caller that waits for it waits forever. Here each message says outside of its pickle which task it is about, so that
what cannot be unpickled fails that task alone; and a worker records in shared memory which task it has. When a worker
has ended and its record names a task, the pool puts that task's failure into the queue of results, after any result
that the worker had sent. A worker that is killed between taking a task and recording it leaves no trace: so after an
end without a recorded task the pool searches for tasks that no worker has.
"""

from __future__ import annotations

import collections
import contextlib
import gc
import multiprocessing.pool
import signal
import struct
import threading
import time
from multiprocessing.reduction import ForkingPickler
from typing import Any

import vesta
from vesta._C import _shared

from . import reductions
from .exceptions import ProcessExitedException
from .queue import SimpleQueue
from .start_methods import context_of

__all__ = ["Pool"]

_HEAD = struct.Struct("=2q")  # job, and which task of it; what follows is a pickle
_NOTHING, _STARTING = -1, -2  # instead of a job: no task, or none yet
_LOST = -3  # instead of a job: a failure that the pool has found
_SEARCH = 0.25  # seconds between two searches for tasks that no worker has
_PAUSE = 0.02  # seconds without a task after which none is in flight
_PATIENCE = 5.0  # seconds to put a failure into the queue of results


class _Queue(SimpleQueue):
    """A queue whose messages have a head."""

    def _send(self, head: tuple[int, int], content: Any, timeout: float | None = None) -> None:
        with reductions.outgoing() as lease:
            data = _HEAD.pack(*head) + bytes(ForkingPickler.dumps(content))
            if not self._writer._check(True).send(data, lease.descriptors(), timeout):
                raise TimeoutError("put: the reader has not read anything.")

    def _receive(self) -> tuple[tuple[int, int], Any, Exception | None]:
        """Returns the head, and the content or the error of unpickling it."""
        message = self._reader.recv_message(None)
        head = _HEAD.unpack_from(message.bytes)
        self._arrived(head)
        with reductions.incoming(message, self._reader._keep):
            try:
                return head, ForkingPickler.loads(memoryview(message.bytes)[_HEAD.size :]), None
            except Exception as error:
                return head, None, error

    def _arrived(self, head: tuple[int, int]) -> None:
        """Records that a message has come, before anything is done with it."""


class _Tasks(_Queue):
    """The queue of tasks to workers. The pool's end knows which of them have no result yet."""

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self.open: set[tuple[int, int]] = set()
        self.place: Any = None  # where the worker records its task
        self.results: Any = None

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.open, self.place, self.results = set(), None, None

    def put(self, task: Any) -> None:
        """Gives out a task of the standard pool; None ends a worker."""
        if task is None:
            self._send((_NOTHING, 0), None)
            return
        job, number, *work = task
        self.open.add((job, number))
        try:
            self._send((job, number), work)
        except BaseException:
            self.open.discard((job, number))
            raise

    def _arrived(self, head: tuple[int, int]) -> None:
        self.place[1] = head[1]
        self.place[0] = head[0]

    def drop(self, seconds: float) -> None:
        """Removes tasks that nobody will do, so that those after them can proceed."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self._reader.poll(_PAUSE):
            message = self._reader.recv_message(0.0)
            if message is not None:
                message.close()

    def get(self) -> Any:
        """Takes a task; one that cannot be unpickled fails at once."""
        if self.place[0] == _STARTING:
            self.place[0] = _NOTHING
        while True:
            head, work, error = self._receive()
            if error is None:
                return None if work is None else (*head, *work)
            said = RuntimeError(f"Pool: a task cannot be unpickled in its worker ({type(error).__name__}: {error}).")
            self.results.put((*head, (False, said)))


class _Results(_Queue):
    """The queue of results to the pool."""

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self.place: Any = None
        self.tasks: Any = None  # the pool's end of the other queue
        self._lost: collections.deque[Any] = collections.deque()  # tasks that fail next, with their failures

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self.place = self.tasks = None

    def put(self, result: Any) -> None:
        """Sends the result of a task; None ends the pool's thread."""
        if result is None:
            self._send((_NOTHING, 0), None)
            return
        job, number, (succeeded, value) = result
        self._send((job, number), (succeeded, value if succeeded else _tellable(value)))
        self.place[0] = _NOTHING

    def lose(self, tasks: list[tuple[int, int]], error: Exception) -> None:
        """Makes tasks fail, in their turn."""
        with contextlib.suppress(OSError):  # the pool has ended meanwhile
            self._send((_LOST, 0), (tasks, error), _PATIENCE)

    def get(self) -> Any:
        """Takes the next result, or failure, of a task that is still waited for."""
        while True:
            while self._lost:
                head, failure = self._lost.popleft()
                if head in self.tasks.open:
                    self.tasks.open.discard(head)
                    return (*head, (False, failure))
            head, outcome, error = self._receive()
            if head[0] == _NOTHING:
                return None
            if head[0] == _LOST:
                tasks, failure = outcome
                self._lost.extend((tuple(task), failure) for task in tasks)
                continue
            if head not in self.tasks.open:
                continue  # it has failed meanwhile
            self.tasks.open.discard(head)
            return (*head, outcome if error is None else (False, error))


def _tellable(error: Any) -> Any:
    """Returns the exception of a task, or its text if the exception cannot be rebuilt from its pickle."""
    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:
        kind, text = getattr(error, "exc", error), getattr(error, "tb", "")
        return RuntimeError(f"Pool: a task raised {type(kind).__name__}: {kind}, which cannot be unpickled.{text}")
    return error


def _work(tasks: _Tasks, results: _Results, *args: Any) -> None:
    """Runs a worker; what it holds is collected before it ends, so that memory is released in order."""
    *standard, place = args
    tasks.place = results.place = memoryview(place)
    tasks.results = results
    multiprocessing.pool.worker(tasks, results, *standard)
    tasks.place = results.place = None
    gc.collect()


class _Hiring:
    """The maker of the pool's workers, which also finds out how workers have ended.

    The standard pool makes a worker when one has ended: that is the time to check.
    """

    def __init__(self, tasks: _Tasks, results: _Results) -> None:
        self._tasks, self._results = tasks, results
        self._workers: list[tuple[Any, memoryview]] = []  # with the places where they record their tasks
        self._searching: threading.Thread | None = None

    def __call__(self, ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Makes a worker without starting it."""
        if kwargs.get("target") is not multiprocessing.pool.worker:
            return ctx.Process(*args, **kwargs)
        gone = [entry for entry in self._workers if entry[0].exitcode is not None]
        self._workers = [entry for entry in self._workers if entry not in gone]
        for entry in gone:
            self._look_at(*entry)
        place = _shared.empty((2,), vesta.int64).fill_(_STARTING)
        worker = ctx.Process(*args, **{**kwargs, "target": _work, "args": (*kwargs["args"], place)})
        self._workers.append((worker, memoryview(place)))
        return worker

    def _look_at(self, worker: Any, place: memoryview) -> None:
        """Makes the task fail that a worker had when it ended."""
        job, number = place
        if job >= 0:
            self._results.lose([(job, number)], _died(worker, "while it had a task"))
        elif job == _STARTING and worker.exitcode != 0:
            time.sleep(_SEARCH)  # its successor may fail as quickly
            if self._tasks.open:
                self._tasks.drop(4 * _SEARCH)
            if waiting := list(self._tasks.open):
                self._results.lose(waiting, _died(worker, "before its first task, when it started"))
        elif worker.exitcode != 0 and self._tasks.open and self._searching is None:
            error = _died(worker, "when it took a task")
            self._searching = threading.Thread(target=self._search, args=(error,), daemon=True)
            self._searching.start()

    def _search(self, error: Exception) -> None:
        """Makes tasks fail that two searches in a row find neither in the queue nor at a worker."""
        before: set[tuple[int, int]] = set()
        try:
            while self._tasks.open:
                time.sleep(_SEARCH)
                if self._tasks._reader.poll(0.0):
                    before = set()
                    continue
                missing = set(self._tasks.open) - {tuple(place) for _, place in list(self._workers)}
                if lost := missing & before:
                    self._results.lose(list(lost), error)
                if not missing:
                    return
                before = missing - lost
        except OSError:
            return  # the pool has ended
        finally:
            self._searching = None


def _died(worker: Any, when: str) -> ProcessExitedException:
    code, name = worker.exitcode, None
    how = f"ended with exit code {code}"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"<Unknown signal {-code}>"
        how = f"was killed by signal {name}"
    text = f"Pool: {worker.name} (pid {worker.pid}) {how} {when}. The pool goes on with another worker."
    return ProcessExitedException(text, -1, worker.pid, code, name)


class Pool(multiprocessing.pool.Pool):
    """The pool of ``multiprocessing.Pool``; tensors in arguments and results are sent as handles.

    A task whose worker is killed, or exits, raises ``ProcessExitedException`` when its result is requested; one whose
    arguments or result cannot be unpickled raises the error of unpickling.
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
    ) -> None:
        super().__init__(processes, initializer, initargs, maxtasksperchild, context or context_of())

    def _setup_queues(self) -> None:
        self._inqueue, self._outqueue = _Tasks(ctx=self._ctx), _Results(ctx=self._ctx)
        self._outqueue.tasks = self._inqueue
        self._quick_put, self._quick_get = self._inqueue.put, self._outqueue.get
        self.Process = _Hiring(self._inqueue, self._outqueue)  # type: ignore[method-assign]

    @staticmethod
    def _help_stuff_finish(inqueue: Any, task_handler: Any, size: int) -> None:
        """Empties the queue of tasks; workers may be faster, because there is no lock to keep them out."""
        while task_handler.is_alive() and inqueue._reader.poll():
            message = inqueue._reader.recv_message(0.0)
            if message is not None:
                message.close()
