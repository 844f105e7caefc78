"""A worker process: it takes tasks, makes batches, and sends them.

It ends when its loader closes the channel, and is killed when the loader's process is dead, whatever it is doing. Only
the loader handles Ctrl-C.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import reduction, util
from typing import Any

import vesta
from vesta._C import _shared
from vesta.utils.data import shipping
from vesta.utils.data.collate import stack_into
from vesta.utils.data.connection import Sender, receive_order
from vesta.utils.data.fetch import MapFetcher, StreamFetcher
from vesta.utils.data.information import WorkerInfo, set_worker_info
from vesta.utils.data.remote_error import describe
from vesta.utils.data.seeding import Seeds
from vesta.utils.data.state import Task

__all__ = ["Desk", "Job", "main"]

# The kinds of answers.
BATCH, END, ERROR, FATAL = range(4)
# What a worker is doing, in its record on the desk.
STARTING, IDLE, FETCHING, SENDING = range(4)


@dataclass
class Job:
    """What all workers of a loader need to know."""

    dataset: Any
    stream: bool  # an iterable dataset
    batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool
    init: Callable[[int], None] | None
    workers: int


class Desk:
    """A page shared by loader and workers: the number of the pass, and what each worker is doing.

    Args:
        descriptor: the descriptor of the page, 64 bytes for the loader and for each worker; None makes one.
        workers: the number of workers.
    """

    def __init__(self, workers: int, descriptor: int | None = None) -> None:
        size = 64 * (workers + 1)
        made = descriptor is None
        if descriptor is None:
            descriptor = os.memfd_create("vesta-desk", os.MFD_CLOEXEC)
            os.posix_fallocate(descriptor, 0, size)
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, size)
        self._bytes = memoryview(self._memory)
        self._words = self._bytes.cast("q")
        if made:
            for worker in range(workers):
                self._words[8 * worker + 8] = -1

    def place(self, worker: int) -> memoryview:
        """Returns where the position of the worker's sample is written."""
        return self._bytes[64 * worker + 64 : 64 * worker + 72]

    def doing(self, worker: int, what: int, number: int = -1) -> None:
        """Records what a worker does, with which batch."""
        self._words[8 * worker + 10] = number
        self._words[8 * worker + 9] = what
        if what == FETCHING:
            self._words[8 * worker + 8] = -1

    def look(self, worker: int) -> tuple[int, int, int]:
        """Returns (what the worker does, with which batch, the position of its sample or -1)."""
        words = self._words
        return words[8 * worker + 9], words[8 * worker + 10], words[8 * worker + 8]

    def close(self) -> None:
        """Releases the page."""
        self._words.release()
        self._bytes.release()
        self._memory.close()
        os.close(self.descriptor)

    @property
    def current(self) -> int:
        """The number of the pass: tasks of earlier passes need not be done."""
        return self._words[0]

    @current.setter
    def current(self, number: int) -> None:
        self._words[0] = number


class Carried:
    """A descriptor that a new process inherits, or receives from what starts it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __reduce__(self) -> tuple[Any, ...]:
        return _landed, (reduction.DupFd(self.descriptor),)


def _landed(duplicate: Any) -> Carried:
    return Carried(duplicate.detach())


@dataclass
class _Worker:
    """The state of this process."""

    number: int
    job: Job
    desk: Desk
    sender: Sender
    seeds: Seeds
    fetch: Any = None
    current: int = -1
    failed: BaseException | None = field(default=None)


def main(number: int, workers: int, channel: Any, tie: tuple[Any, Any], desk: Any, job: Job | None) -> None:
    """Runs a worker until its loader ends it.

    Args:
        number: 0 to workers - 1.
        channel: the channel to the loader; a ``Carried`` descriptor if the process was not forked.
        tie: descriptors that signal the death of the loader's process: one to wait for, and a pipe that wakes this one.
        desk: the page, or its descriptor.
        job: what to do; None: it comes as the first message.
    """
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # an inherited handler is for the loader's process
    life, wake = tie
    if isinstance(life, Carried):
        life, wake, desk = life.descriptor, wake.descriptor, Desk(workers, desk.descriptor)
        channel = _shared.Channel(channel.descriptor)
        os.close(desk.descriptor)
    else:
        gc.freeze()  # so that inherited objects are not traversed, which would copy them
    own = os.open(f"/proc/self/fd/{wake}", os.O_RDONLY | os.O_NONBLOCK)  # it comes with its own signal
    _shared.die_with(life, own)
    for descriptor in (life, wake, own):
        os.close(descriptor)
    vesta.set_num_threads(1)
    desk.doing(number, STARTING)
    sender = Sender(channel)
    try:
        _serve(number, workers, channel, desk, sender, job)
    except (EOFError, BrokenPipeError):
        pass  # the loader ended the worker
    finally:
        set_worker_info(None)
    util._exit_function()  # type: ignore[attr-defined]
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(0)


def _serve(number: int, workers: int, channel: Any, desk: Desk, sender: Sender, job: Job | None) -> None:
    failed = None
    if job is None:
        try:
            job = _received(channel)
        except (EOFError, BrokenPipeError):
            raise
        except BaseException as error:
            failed, job = error, Job(None, False, True, _nothing, False, None, workers)
    worker = _Worker(number, job, desk, sender, Seeds(desk.place(number)), failed=failed)
    with worker.seeds.watching():
        _work(worker, channel, desk)


def _work(worker: _Worker, channel: Any, desk: Desk) -> None:
    while True:
        desk.doing(worker.number, IDLE)
        order = receive_order(channel)
        if order[0] == "pass":
            _begin(worker, *order[1:])
        else:
            _answer(worker, *order[1:])


def _nothing(samples: Any) -> Any:
    return samples


def _received(channel: Any) -> Job:
    """Receives the job, with the dataset."""
    message = channel.receive(None)
    descriptors = [message.duplicate(i) for i in range(len(message))]
    message.close()
    try:
        return shipping.unpack(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _begin(worker: _Worker, current: int, seed: int, state: Any) -> None:
    """Starts a pass; the first one calls the user's function."""
    job = worker.job
    first = worker.current < 0
    worker.current = current
    worker.seeds.begin(seed)
    set_worker_info(WorkerInfo(worker.number, job.workers, seed + worker.number, job.dataset))
    if worker.failed is not None:
        return
    try:
        if first and job.init is not None:
            worker.seeds.seed((1 << 61) + worker.number)
            job.init(worker.number)
        stack_into(worker.sender.empty)
        if job.stream:
            worker.fetch = StreamFetcher(
                job.dataset, job.batched, job.collate, worker.seeds, job.drop_last, worker.number, state
            )
        else:
            worker.fetch = MapFetcher(job.dataset, job.batched, job.collate, worker.seeds)
    except BaseException as error:
        worker.failed = error


def _answer(worker: _Worker, current: int, number: int, start: int, indices: Any, count: int) -> None:
    """Does one task and sends the result."""
    if current != worker.desk.current:
        return  # from a pass for which nobody waits
    kind: int
    result: Any
    if worker.failed is not None:
        kind, result = FATAL, describe(worker.failed)
    else:
        worker.desk.doing(worker.number, FETCHING, number)
        try:
            kind, result = BATCH, worker.fetch(Task(number, start, indices, count))
        except StopIteration:
            kind, result = END, None
        except BaseException as error:
            kind, result = ERROR, describe(error)
            del error
    state = _state_of(worker)
    position = worker.desk.look(worker.number)[2]
    worker.desk.doing(worker.number, SENDING, number)
    try:
        worker.sender.send(current, number, kind, position, (result, state))
    except (BrokenPipeError, EOFError):
        raise
    except BaseException as error:
        said = describe(error)
        try:
            worker.sender.send(current, number, ERROR, -1, (said, state))
        except Exception:  # it was the state that cannot be sent
            worker.sender.send(current, number, ERROR, -1, (said, {"error": said}))


def _state_of(worker: _Worker) -> Any:
    """Returns the position of the worker's part of a stream; an error of the stream is kept for the caller of
    state_dict()."""
    if not worker.job.stream or worker.fetch is None:
        return None
    try:
        return worker.fetch.state()
    except Exception as error:
        return {"error": describe(error)}
