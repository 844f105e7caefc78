"""A launch: its configuration, its attempts, and the report when the last of them fails."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import string
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import vesta
from vesta._C import _distributed

from ..elastic.multiprocessing.errors import ChildFailedError, get_error_handler
from .group import Guard, Outcome, SignalInbox, WorkerGroup

DEFAULT_PREFIX = "[rank${rank}]: "


@dataclass
class LaunchConfig:
    """What a launch does; the fields are the options of ``python -m vesta.distributed.run``.

    ``master_port`` None: a free port of this machine, a new one for each attempt. ``redirects`` and ``tee`` map local
    ranks to 1 (standard output), 2 (standard error) or 3 (both).
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    run_id: str = "none"
    role: str = "default"
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int | None = None
    max_restarts: int = 0
    monitor_interval: float = 0.1
    shutdown_timeout: float = 30.0
    log_dir: str | None = None
    redirects: dict[int, int] = field(default_factory=dict)
    tee: dict[int, int] = field(default_factory=dict)
    local_ranks_filter: set[int] | None = None
    log_line_prefix_template: str | None = None
    duplicate_stdout_filters: list[str] = field(default_factory=list)
    duplicate_stderr_filters: list[str] = field(default_factory=list)
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    virtual_local_rank: bool = False

    def threads_per_worker(self) -> int:
        """Returns this machine's cores (those that the process may use) divided among the processes, at least 1."""
        return max(1, vesta.get_num_threads() // self.nproc_per_node)

    def prefix(self, rank: int, local_rank: int) -> bytes:
        """Returns what stands before each line of a worker on the console."""
        template = self.log_line_prefix_template
        if template is None:
            template = DEFAULT_PREFIX
        values = {"role_name": self.role, "rank": rank, "local_rank": local_rank, "hostname": socket.gethostname()}
        return string.Template(template).safe_substitute(values).encode()

    def signals(self) -> list[signal.Signals]:
        """Returns the signals that are passed on to the workers."""
        names = [name.strip() for name in self.signals_to_handle.split(",") if name.strip()]
        unknown = [name for name in names if name not in signal.Signals.__members__]
        if unknown:
            raise ValueError(f"--signals-to-handle: expected names like SIGTERM, got {', '.join(unknown)}.")
        return [signal.Signals[name] for name in names]


class SignalException(Exception):
    """Says that the launcher was ended by a signal, after it had ended its workers."""

    def __init__(self, sigval: signal.Signals) -> None:
        super().__init__(f"the launcher got {sigval.name}")
        self.sigval = sigval


class elastic_launch:
    """Launches a command on every local rank: ``elastic_launch(config, "python")("train.py", "--epochs", "3")``.

    Raises ``ChildFailedError`` when the last attempt failed, ``SignalException`` when a signal ended the launcher.
    Functions are no entry points here: ``vesta.multiprocessing.spawn`` starts those.
    """

    def __init__(self, config: LaunchConfig, entrypoint: str) -> None:
        if not isinstance(entrypoint, str):
            raise TypeError(
                f"elastic_launch: expected a command as a string, got {type(entrypoint).__name__} (entrypoint). "
                "vesta.multiprocessing.spawn starts functions."
            )
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args: str) -> None:
        launch(self._config, [self._entrypoint, *args])


def launch(config: LaunchConfig, command: list[str], name: str | None = None) -> None:
    """Runs ``command`` on every local rank, again after a failure as often as the configuration allows."""
    folder, temporary = log_folder(config)
    inbox, guard = SignalInbox(config.signals()), Guard()
    try:
        for attempt in range(config.max_restarts + 1):
            attempt_folder = folder / f"attempt_{attempt}"
            group = WorkerGroup(config, attempt, attempt_folder, guard, inbox)
            start = time.monotonic()
            with rendezvous(config) as (master, store_is_here):
                outcome = group.run(command, master, config.node_rank, store_is_here)
            if outcome.signal is not None:
                raise SignalException(outcome.signal)
            if not outcome.failures:
                return
            report_failure(config, attempt, outcome, time.monotonic() - start)
        error = ChildFailedError(name or command[0], outcome.failures)
        _, failure = error.get_first_failure()
        get_error_handler().dump_error_file(failure.error_file, failure.exitcode)  # to a launcher above this one
        raise error
    finally:
        guard.close()
        inbox.close()
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)


def report_failure(config: LaunchConfig, attempt: int, outcome: Outcome, seconds: float) -> None:
    """Says in two lines which rank failed first, what became of the others, and whether it goes on."""
    first = min(outcome.failures, key=lambda rank: outcome.failures[rank].timestamp)
    left = config.max_restarts - attempt
    then = f"restart {attempt + 1} of {config.max_restarts}" if left else "no restart left"
    if config.max_restarts == 0:
        then = "ending"
    others = ", ".join(f"rank {rank} {how}" for rank, how in sorted(outcome.ended.items()) if rank != first)
    say(f"rank {first} {outcome.ended[first]} after {seconds:.1f} s; {then}.")
    if others:
        say(f"the others: {others}.")


def say(message: str) -> None:
    """Prints a line of the launcher's own."""
    print(f"vestarun: {message}", file=sys.stderr, flush=True)


def log_folder(config: LaunchConfig) -> tuple[Path, bool]:
    """Makes the folder of this launch's files; whether it goes again at the end (nobody asked for logs)."""
    kept = config.log_dir is not None or any(config.redirects.values()) or any(config.tee.values())
    if config.log_dir is not None:
        os.makedirs(config.log_dir, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{config.run_id}_", dir=config.log_dir))
    if kept:
        say(f"log files are in {folder}")
    return folder, not kept


@contextlib.contextmanager
def rendezvous(config: LaunchConfig) -> Iterator[tuple[tuple[str, int], bool]]:
    """Yields where the processes of an attempt meet, and whether the store there is the launcher's.

    Without a port given it is: the port is then certainly free, and the store outlives each process.
    """
    if config.master_port is not None:
        yield (config.master_addr, config.master_port), False
        return
    store = _distributed.TCPStore(config.master_addr, 0, None, True, timedelta(minutes=5), False)
    yield (config.master_addr, store.port), True
