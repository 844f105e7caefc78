"""A launch: its configuration, its attempts, and the report when the last of them fails."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from vesta._C import _distributed

from ..elastic.multiprocessing.errors import ChildFailedError, get_error_handler
from .config import LaunchConfig
from .group import Guard, Outcome, SignalInbox, WorkerGroup


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
