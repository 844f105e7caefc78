"""The workers of one attempt: started together, watched by one event loop, ended together."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

from ..elastic.multiprocessing.errors import ProcessFailure
from .config import LaunchConfig
from .rendezvous import Place
from .worker import Streams, Worker

#: How long the others may fail by themselves once one worker has failed: the first to exit need not be the first to
#: raise, since an interpreter takes a while to exit.
SETTLE_SECONDS = 0.25
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


@dataclass
class Outcome:
    """How an attempt ended: failures by rank (none: success), or the signal that the launcher got."""

    failures: dict[int, ProcessFailure] = field(default_factory=dict)
    signal: signal.Signals | None = None
    elsewhere: str | None = None  # the failure of another machine, for which the workers here were ended
    ended: dict[int, str] = field(default_factory=dict)  # how every worker ended, by rank


class SignalInbox:
    """The signals that the launcher gets; they wake its event loop. The old handlers are restored afterwards."""

    def __init__(self, numbers: list[signal.Signals]) -> None:
        self.pending: list[signal.Signals] = []
        self.fd, self._write = os.pipe()
        for fd in (self.fd, self._write):
            os.set_blocking(fd, False)
        self._old: dict[int, Any] = {}
        self._old_fd = -1
        try:
            self._old_fd = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
            for number in numbers:
                self._old[number] = signal.signal(number, lambda n, _: self.pending.append(signal.Signals(n)))
        except ValueError:  # not the main thread: signals belong to the main thread
            pass

    def take(self) -> list[signal.Signals]:
        """Returns the signals since the last call."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.fd, 4096)
        taken, self.pending = self.pending, []
        return taken

    def close(self) -> None:
        """Restores the old handlers."""
        if self._old:
            signal.set_wakeup_fd(self._old_fd)
            for number, handler in self._old.items():
                signal.signal(number, handler)
        os.close(self.fd)
        os.close(self._write)


class Guard:
    """The process that kills the workers' groups when the launcher is gone (``guard.py``)."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=quiet, stderr=quiet, start_new_session=True
        )

    def tell(self, word: str) -> None:
        """Adds (``+pid``) or removes (``-pid``) a process group."""
        with contextlib.suppress(OSError):
            assert self._process.stdin is not None
            os.write(self._process.stdin.fileno(), f"{word}\n".encode())

    def close(self) -> None:
        """Ends the guard; it kills what is still on its list."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class WorkerGroup:
    """The workers of one attempt, run to their end."""

    def __init__(self, config: LaunchConfig, place: Place, folder: Path, guard: Guard, inbox: SignalInbox) -> None:
        self._config, self._place, self._folder = config, place, folder
        self._guard, self._inbox = guard, inbox
        self._workers: list[Worker] = []
        self._failed_at: float | None = None
        self._kill_at: float | None = None
        self._signal: signal.Signals | None = None
        self._elsewhere: str | None = None
        self._look: Callable[[], str | None] = lambda: None

    def run(self, command: list[str], look: Callable[[], str | None]) -> Outcome:
        """Starts a worker per local rank and returns when the last has ended.

        ``look`` returns a reason to end the workers although none here has failed, or None.
        """
        self._look = look
        try:
            for local_rank in range(self._config.nproc_per_node):
                self._workers.append(self._start(command, local_rank))
            with selectors.DefaultSelector() as selector:
                self._register(selector)
                while any(worker.alive for worker in self._workers):
                    self._step(selector)
            return self._outcome()
        finally:
            for worker in self._workers:
                worker.kill()
                if worker.alive:
                    worker.process.wait()
                    worker.poll()
                worker.close()

    # ---- starting

    def _start(self, command: list[str], local_rank: int) -> Worker:
        rank = self._place.first_rank + local_rank
        folder = self._folder / str(local_rank)
        folder.mkdir(parents=True, exist_ok=True)
        environment = dict(os.environ, **self.environment(local_rank))
        environment["TORCHELASTIC_ERROR_FILE"] = str(folder / "error.json")
        words = [word.replace("${local_rank}", str(local_rank)) for word in command]
        out, err = (self._streams(which, rank, local_rank, folder) for which in (1, 2))
        worker = Worker(rank, local_rank, words, environment, out, err)
        self._guard.tell(f"+{worker.pid}")
        return worker

    def environment(self, local_rank: int) -> dict[str, str]:
        """Returns torchrun's variables for one worker, and its number of threads."""
        config, place = self._config, self._place
        rank = place.first_rank + local_rank
        values = {
            "LOCAL_RANK": 0 if config.virtual_local_rank else local_rank,
            "RANK": rank,
            "GROUP_RANK": place.node_rank,
            "ROLE_RANK": rank,
            "ROLE_NAME": config.role,
            "LOCAL_WORLD_SIZE": config.nproc_per_node,
            "WORLD_SIZE": place.world_size,
            "GROUP_WORLD_SIZE": place.nodes,
            "ROLE_WORLD_SIZE": place.world_size,
            "MASTER_ADDR": place.master[0],
            "MASTER_PORT": place.master[1],
            "TORCHELASTIC_RESTART_COUNT": place.attempt,
            "TORCHELASTIC_MAX_RESTARTS": config.max_restarts,
            "TORCHELASTIC_RUN_ID": config.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": place.served,
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS") or config.threads_per_worker(),
        }
        if config.virtual_local_rank:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES")
            devices = visible.split(",") if visible else [str(i) for i in range(config.nproc_per_node)]
            if local_rank >= len(devices):
                raise ValueError(
                    f"--virtual-local-rank: expected a GPU for each of {config.nproc_per_node} processes, got "
                    f"CUDA_VISIBLE_DEVICES={visible}. Start fewer processes."
                )
            values["CUDA_VISIBLE_DEVICES"] = devices[local_rank].strip()
        return {key: str(value) for key, value in values.items()}

    def _streams(self, which: int, rank: int, local_rank: int, folder: Path) -> Streams:
        """Returns where standard output (1) or standard error (2) of a worker goes."""
        config = self._config
        name = {1: "stdout", 2: "stderr"}[which]
        console = {1: sys.stdout, 2: sys.stderr}[which].buffer
        redirected = config.redirects.get(local_rank, 0) & which
        teed = config.tee.get(local_rank, 0) & which
        shown = rank in config.local_ranks_filter if config.local_ranks_filter else True
        filters = config.duplicate_stdout_filters if which == 1 else config.duplicate_stderr_filters
        return Streams(
            console=console if shown and (teed or not redirected) else None,
            prefix=config.prefix(rank, local_rank),
            log=folder / f"{name}.log" if redirected or teed else None,
            filters=[word.encode() for word in filters],
            filtered=self._folder / f"filtered_{name}.log" if filters else None,
        )

    # ---- watching

    def _register(self, selector: selectors.BaseSelector) -> None:
        selector.register(self._inbox.fd, selectors.EVENT_READ, None)
        for worker in self._workers:
            for relay in worker.relays:
                selector.register(relay.fd, selectors.EVENT_READ, relay)
            if worker.pidfd is not None:
                selector.register(worker.pidfd, selectors.EVENT_READ, worker)

    def _step(self, selector: selectors.BaseSelector) -> None:
        wait = self._config.monitor_interval
        deadlines = [at for at in (self._kill_at, self._settled_at()) if at is not None]
        if deadlines:
            wait = max(0.0, min(wait, min(deadlines) - time.monotonic()))
        ready = [key for key, _ in selector.select(wait)]
        for key in ready:
            if key.data is not None and not isinstance(key.data, Worker) and not key.data.pump():
                selector.unregister(key.fd)
        for number in self._inbox.take():
            self._forward(number)
        for worker in self._workers:
            if worker.alive and worker.poll():
                self._ended(worker, selector)
        self._end_when_due()

    def _ended(self, worker: Worker, selector: selectors.BaseSelector) -> None:
        self._guard.tell(f"-{worker.pid}")
        for fd in [relay.fd for relay in worker.relays] + [worker.pidfd]:
            if fd is not None and fd in selector.get_map():
                selector.unregister(fd)
        if worker.exit_code != 0 and worker.sent is None and self._failed_at is None:
            self._failed_at = time.monotonic()

    def _settled_at(self) -> float | None:
        """Returns when the remaining workers are to be ended; None if none has failed, or if that is done."""
        if self._failed_at is None or self._kill_at is not None:
            return None
        return self._failed_at + SETTLE_SECONDS

    def _end_when_due(self) -> None:
        now = time.monotonic()
        if self._kill_at is None and self._failed_at is None and (why := self._look()) is not None:
            self._elsewhere = why
            self._end(signal.SIGTERM)
        due = self._settled_at()
        if due is not None and now >= due:
            self._end(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            for worker in self._workers:
                worker.kill()

    def _end(self, number: signal.Signals) -> None:
        """Asks the workers once to end; ``_end_when_due`` kills those that do not."""
        for worker in self._workers:
            worker.signal(number)
        if self._kill_at is None:
            self._kill_at = time.monotonic() + self._config.shutdown_timeout

    def _forward(self, number: signal.Signals) -> None:
        """Passes a signal on; one that ends programs ends the attempt, and the second one does so at once."""
        if number not in ENDING:
            for worker in self._workers:
                if worker.alive:
                    worker.process.send_signal(number)
            return
        if self._signal is not None:
            self._kill_at = time.monotonic()
            return
        self._signal = number
        self._end(number)

    # ---- the end

    def _outcome(self) -> Outcome:
        first_end = min((w.ended_at for w in self._workers if w.exit_code != 0 and w.sent is None), default=None)
        outcome = Outcome(signal=self._signal, elsewhere=self._elsewhere)
        for worker in self._workers:
            assert worker.exit_code is not None
            failure = ProcessFailure(worker.local_rank, worker.pid, worker.exit_code, worker.error_file)
            raised_at = worker.traceback_at()
            by_itself = worker.exit_code != 0 and worker.sent is None
            raised_first = raised_at is not None and first_end is not None and raised_at < first_end
            if by_itself or (worker.exit_code != 0 and raised_first):
                if not isinstance(failure.message, dict):
                    failure.timestamp = raised_at if raised_at and worker.exit_code > 0 else worker.ended_at
                    failure.message = worker.traceback() or failure.message or self._hint(worker)
                outcome.failures[worker.rank] = failure
                outcome.ended[worker.rank] = describe(failure)
            else:
                sent = f"ended by the launcher ({worker.sent.name})" if worker.sent else "finished"
                told = worker.exit_code == 0 or worker.exit_code == -(worker.sent or 0)
                outcome.ended[worker.rank] = sent if told else f"{sent}, exit code {worker.exit_code}"
        return outcome

    def _hint(self, worker: Worker) -> str:
        where = f" Its standard error is in {worker.err_log}." if worker.err_log else ""
        return f"No traceback: the program exited with code {worker.exit_code}.{where}"


def describe(failure: ProcessFailure) -> str:
    """Returns a text about how a worker ended."""
    if failure.exitcode < 0:
        return f"killed by {failure.signal_name()}"
    return f"exited with code {failure.exitcode}"
