"""The loader's side of its workers: starting, calling, watching and ending them. Every wait here ends."""

from __future__ import annotations

import collections
import contextlib
import multiprocessing as python_multiprocessing
import os
import pickle
import select
import shutil
import signal
import time
import weakref
from typing import Any

from vesta._C import _shared
from vesta.utils.data.connection import Receiver, send_order
from vesta.utils.data.remote_error import WorkerError
from vesta.utils.data.shipping import Shipment
from vesta.utils.data.state import Task
from vesta.utils.data.worker import FETCHING, SENDING, STARTING, Carried, Desk, Job, main

__all__ = ["Pool"]

_TICK = 0.05  # seconds between checks of what no descriptor signals
_STOPPED = 0.2  # seconds after which a stopped worker is given up
_PAUSE = 0.25  # a tick this long means that we were stopped: earlier observations do not count
_QUICK = 0.01  # seconds in which workers are forked at once
_GRACE = 0.1  # seconds in which workers end by themselves
_END = 2.0  # seconds for a killed process to be gone
_UNKNOWN = 255  # an unknown exit code; the standard library's number for it
_KNOWN = 0.4  # seconds to wait for an exit code

#: Pools of this process; a forked child closes its inherited copies.
_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_in_child() -> None:
    for pool in list(_pools):
        pool._abandon()


os.register_at_fork(after_in_child=_forget_in_child)


class _Colleague:
    """One worker, from its loader's side."""

    def __init__(self, number: int, process: Any, channel: Any) -> None:
        self.number = number
        self.process = process
        self.channel = channel
        self.receiver = Receiver(channel)
        self.tasks: dict[int, Task] = {}  # sent and not answered
        self.pid = process.pid
        self.stopped_since: float | None = None
        self.backlog: collections.deque[Any] = collections.deque()  # orders that the socket had no room for
        try:
            self.life = os.pidfd_open(self.pid)  # type: ignore[attr-defined]
        except (AttributeError, OSError):  # an old kernel, or Python 3.8; the channel's end shows it as well
            self.life = -1

    def is_alive(self) -> bool:
        """Returns whether the process runs: ``Process.is_alive`` cannot tell if the program reaps its children
        itself."""
        return not _shared.is_over(self.life) if self.life >= 0 else self.process.is_alive()

    def close(self) -> None:
        self.channel.close()
        if self.life >= 0:
            os.close(self.life)
            self.life = -1


class Pool:
    """Worker processes of one loader.

    Args:
        job: the job of the workers.
        context: the context that starts them.
    """

    def __init__(self, job: Job, context: Any) -> None:
        self._owner = os.getpid()
        self.is_over = False  # whether the workers have been ended
        self._desk = Desk(job.workers)
        self.workers: list[_Colleague] = []
        self.pids: list[int] = []  # of all started workers
        self._poll = select.poll()
        self._by_descriptor: dict[int, _Colleague] = {}
        self._ticked = time.monotonic()
        # Its hang-up wakes workers that are stopped when this process dies; see vesta/multiprocessing/process_tie.h.
        self._wake, self._hang_up = os.pipe()
        self._arena = _shared.Arena()  # for long orders
        self._opening: Any = None  # the loader's end of the worker that is being started
        self._count = job.workers
        self._pass: tuple[Any, ...] = ()
        self._pending: dict[int, list[Any]] = {}  # tasks of workers that have not started yet
        self._fork: Any = None  # starts the next worker
        _pools.add(self)
        method = context.get_start_method()
        try:
            if method == "fork":
                self._fork = lambda: self._start(context, len(self.workers), job, None)
                self._start_quickly()
            else:
                _preload(context, method)
                self._start_with_shipment(context, job)
        except BaseException:
            self.stop()
            raise

    def _start_quickly(self) -> None:
        """Forks workers as long as that is quick.

        A fork copies the page tables: 20 ms for 500 MB, in which nothing is loaded. The first batch does not wait for
        all of them: if forking is slow, the others are started while there is something to wait for, at the latest with
        one of the next batches.
        """
        start = time.monotonic()
        while len(self.workers) < self._count and time.monotonic() - start < _QUICK:
            self._fork()

    def start_another(self) -> None:
        """Starts one of the workers that are still to come, and gives it its tasks."""
        if self._fork is None or len(self.workers) == self._count:
            self._fork = None  # it holds the dataset
            return
        worker = self._fork()
        self._tell(worker, self._pass_of(worker.number))
        current = self._pass[0]
        for task in self._pending.pop(worker.number, []):
            self.ask(worker.number, current, task)

    def start_all(self) -> None:
        """Starts the workers that are still to come."""
        while self._fork is not None:
            self.start_another()

    def _pass_of(self, number: int) -> tuple[Any, ...]:
        current, seed, states = self._pass
        return "pass", current, seed, states[number]

    def _start_with_shipment(self, context: Any, job: Job) -> None:
        shipment = _shipment(job)
        try:
            data = pickle.dumps("job")
            for number in range(job.workers):
                worker = self._start(context, number, job, Carried(self._desk.descriptor))
                worker.channel.send(data, shipment.descriptors, None)
        except BrokenPipeError:
            pass  # the worker is dead already: next() will report it
        finally:
            shipment.close()

    def _start(self, context: Any, number: int, job: Job, desk: Carried | None) -> _Colleague:
        ours, theirs = _shared.Channel.pair()
        life = _shared.life_of_this_process()
        if desk is None:
            arguments = (number, job.workers, theirs, (life, self._wake), self._desk, job)
        else:
            tie = Carried(life), Carried(self._wake)
            arguments = (number, job.workers, Carried(theirs.fileno()), tie, desk, None)
        self._opening = ours
        process = context.Process(target=main, args=arguments, daemon=True, name=f"vesta-loader-{number}")
        try:
            process.start()
        finally:
            theirs.close()
            os.close(life)
        worker = _Colleague(number, process, ours)
        self.workers.append(worker)
        self.pids.append(worker.pid)
        self._opening = None
        self._by_descriptor[ours.fileno()] = worker
        self._poll.register(ours.fileno(), select.POLLIN)
        if worker.life >= 0:
            self._by_descriptor[worker.life] = worker
            self._poll.register(worker.life, select.POLLIN)
        return worker

    def begin(self, current: int, seed: int, states: list[Any]) -> None:
        """Tells every worker that a pass begins; tasks of earlier passes are dropped."""
        self._desk.current = current
        self._pass = current, seed, list(states)
        self._pending.clear()
        for worker in self.workers:
            worker.tasks.clear()
            worker.backlog.clear()
            self._tell(worker, self._pass_of(worker.number))

    def ask(self, worker: int, current: int, task: Task) -> None:
        """Gives a worker a task."""
        if worker >= len(self.workers):
            self._pending.setdefault(worker, []).append(task)
            return
        colleague = self.workers[worker]
        colleague.tasks[task.number] = task
        self._tell(colleague, ("task", current, task.number, task.start, task.indices, task.count))

    def _tell(self, worker: _Colleague, order: tuple[Any, ...]) -> None:
        """Sends an order, or keeps it until there is room: a send that waits while the worker waits would hang both."""
        worker.backlog.append(order)
        self._work_off(worker)

    def _work_off(self, worker: _Colleague) -> None:
        with contextlib.suppress(BrokenPipeError, OSError):  # a dead worker is found while waiting for its batch
            while worker.backlog and send_order(worker.channel, self._arena, worker.backlog[0]):
                worker.backlog.popleft()

    def wait(self, deadline: float | None) -> list[tuple[int, Any]]:
        """Returns answers, each with its worker's number, as soon as there are some, or none after a while.

        Raises:
            WorkerError: a worker that owes an answer is dead or stopped.
        """
        if self.is_over:
            raise WorkerError("DataLoader: its workers were ended while it waited for a batch.")
        for worker in self.workers:
            if worker.backlog:
                self._work_off(worker)
        now = time.monotonic()
        left = _TICK if deadline is None else max(0.0, min(_TICK, deadline - now))
        ready = self._poll.poll((left if self._fork is None else min(left, _QUICK / 2)) * 1000)
        if not ready and self._fork is not None:
            self.start_another()
            ready = self._poll.poll(0)
        answers: list[tuple[int, Any]] = []
        dead: list[_Colleague] = []
        for descriptor, _ in ready:
            worker = self._by_descriptor.get(descriptor)
            if worker is not None:
                self._read(worker, descriptor, answers, dead)
        if answers:
            self._ticked = time.monotonic()
            return answers
        for worker in dead:
            raise self._died(worker)
        self._look_for_stopped()
        return answers

    def _read(self, worker: _Colleague, descriptor: int, answers: list[Any], dead: list[_Colleague]) -> None:
        """Reads what a worker has sent; its death counts only after all of that."""
        try:
            while (answer := worker.receiver.receive()) is not None:
                if answer[0] == self._desk.current:
                    worker.tasks.pop(answer[1], None)
                answers.append((worker.number, answer))
                return
            if descriptor == worker.life:
                dead.append(worker)
        except EOFError:
            dead.append(worker)
        except (OSError, RuntimeError, MemoryError) as error:  # waiting for what is lost would take forever
            where = self.where(worker).rstrip(",")
            raise WorkerError(f"DataLoader lost a batch of {where}: {error}") from error

    def _look_for_stopped(self) -> None:
        """Raises for workers that were stopped while this process continued."""
        now = time.monotonic()
        paused = now - self._ticked > _PAUSE
        self._ticked = now
        for worker in self.workers:
            if not worker.tasks or paused or not _is_stopped(worker.pid):
                worker.stopped_since = None
            elif worker.stopped_since is None:
                worker.stopped_since = now
            elif now - worker.stopped_since >= _STOPPED:
                raise WorkerError(
                    f"DataLoader {self.where(worker)} is stopped (SIGSTOP or SIGTSTP) while the loader's process goes "
                    "on. Stop and continue both together."
                )

    def where(self, worker: _Colleague, number: int | None = None, position: int | None = None) -> str:
        """Returns a text about a worker, and what it is doing or was doing with a batch."""
        what, at, place = self._desk.look(worker.number)
        text = f"worker {worker.number} (pid {worker.pid})"
        if number is None:
            if what == STARTING:
                return f"{text}, which was starting,"
            if what not in (FETCHING, SENDING):
                return text
            number, position = at, place
        task = worker.tasks.get(number)
        return f"{text}, making batch {number}{_sample(task, position)}," if task else f"{text}, making batch {number},"

    def _died(self, worker: _Colleague) -> WorkerError:
        """Returns an error about how a worker ended."""
        code = _exit_code(worker)
        where = self.where(worker)
        if code is None or code == _UNKNOWN:
            return WorkerError(f"DataLoader {where} exited unexpectedly.")
        if code >= 0:
            return WorkerError(f"DataLoader {where} exited with code {code}; something called os._exit or sys.exit.")
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "a signal"
        return WorkerError(f"DataLoader {where} was killed by signal {name} ({-code}).{_advice(-code)}")

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that started the workers, not a child forked since."""
        return os.getpid() == self._owner

    def usable(self) -> bool:
        """Returns whether every worker is alive."""
        return bool(self.workers) and all(worker.is_alive() for worker in self.workers)

    def stop(self, grace: float = _GRACE) -> None:
        """Ends all workers: they are asked to end, then sent SIGTERM, then killed. Takes at most some tenths of a
        second."""
        if not self.is_ours:
            return
        self.is_over = True
        workers, self.workers = self.workers, []
        self._fork = None
        for worker in workers:
            worker.channel.close()
            if _is_stopped(worker.pid):  # it would react to nothing else
                with contextlib.suppress(OSError):
                    _kill(worker, signal.SIGKILL)
        left = _gone(workers, grace)
        for act in (signal.SIGTERM, signal.SIGKILL):
            for worker in left:
                with contextlib.suppress(OSError):
                    _kill(worker, act)
            left = _gone(left, _GRACE if act == signal.SIGTERM else _END)
        for worker in workers:
            if worker not in left:
                _forget(worker.process)
            worker.close()
        self._desk.close()
        self._close_wake()
        _pools.discard(self)

    def _close_wake(self) -> None:
        if self._wake >= 0:
            os.close(self._wake)
            os.close(self._hang_up)
        self._wake = -1

    def _abandon(self) -> None:
        """Closes the loader's ends in a forked child, so that workers see when their loader's process is gone."""
        for worker in self.workers:
            worker.close()
        self.workers = []
        if self._wake >= 0:
            os.close(self._hang_up)
            if self._opening is None:
                os.close(self._wake)
            self._wake = -1
        if self._opening is not None:  # the child is a worker of this pool and owns the rest
            self._opening.close()


def _forget(process: Any) -> None:
    """Closes what is left of a process that is gone."""
    with contextlib.suppress(ValueError, OSError):
        if process.exitcode is None:
            process.join(_END)
        if process.exitcode is None:  # its exit code was read elsewhere; waiting for it would never end
            process._popen.returncode = _UNKNOWN
        process.close()


def _kill(worker: _Colleague, act: int) -> None:
    if worker.life >= 0 and hasattr(signal, "pidfd_send_signal"):
        signal.pidfd_send_signal(worker.life, act)  # type: ignore[attr-defined]
    else:
        os.kill(worker.pid, act)


def _gone(workers: list[_Colleague], seconds: float) -> list[_Colleague]:
    """Waits for processes to end; returns those that have not."""
    deadline = time.monotonic() + seconds
    left = list(workers)
    while left:
        left = [worker for worker in left if worker.is_alive()]
        now = time.monotonic()
        if not left or now >= deadline:
            break
        poll = select.poll()
        for worker in left:
            poll.register(worker.life if worker.life >= 0 else worker.process.sentinel, select.POLLIN)
        poll.poll(1000 * min(deadline - now, _TICK))
    return left


def _exit_code(worker: _Colleague) -> int | None:
    """Returns how a process ended, as soon as that is known; None if the exit code was read elsewhere first."""
    deadline = time.monotonic() + (_KNOWN if signal.getsignal(signal.SIGCHLD) is not signal.SIG_IGN else 0.0)
    while (code := worker.process.exitcode) is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return code


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2][1:2] == b"T"
    except OSError:
        return False


def _sample(task: Task | None, position: int | None) -> str:
    """Returns a text about the sample that a worker was working on."""
    if task is None or position is None or not 0 <= position - task.start < task.count:
        return ""
    indices = task.indices
    index = indices[position - task.start] if isinstance(indices, (list, tuple)) else indices
    return f" at sample {position}" if index is None else f" at sample {position} (index {index})"


def _advice(number: int) -> str:
    """Returns the usual cause of a signal."""
    if number == signal.SIGKILL:
        free = _shared.memory_headroom()
        left = f" ({free >> 20} MiB are free now)" if free is not None else ""
        return f" It cannot be caught: a process sent it, or the kernel for lack of memory{left}; see dmesg."
    if number == signal.SIGBUS:
        free = shutil.disk_usage("/dev/shm").free >> 20 if os.path.isdir("/dev/shm") else 0
        return (
            " It touched mapped memory that is not there: a file that became shorter, or a full /dev/shm "
            f"({free} MiB are free now). Batches of this loader do not lie there."
        )
    if number in (signal.SIGSEGV, signal.SIGABRT, signal.SIGILL, signal.SIGFPE):
        return " Native code failed in it; faulthandler.enable() in worker_init_fn shows where."
    return ""


def _preload(context: Any, method: str) -> None:
    """Makes the fork server import this package once for all workers."""
    if method == "forkserver":
        with contextlib.suppress(AttributeError, ValueError):
            context.set_forkserver_preload(["__main__", "vesta.utils.data.worker"])


def _shipment(job: Job) -> Shipment:
    return Shipment(job, "loader")


def context_of(given: Any) -> Any:
    """Returns the context with which workers are started."""
    return given if given is not None else python_multiprocessing.get_context()
