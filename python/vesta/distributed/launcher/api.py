"""A launch: its configuration, its attempts, and the report when the last of them fails."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from ..elastic.multiprocessing.errors import ChildFailedError, get_error_handler
from .config import LaunchConfig
from .group import ENDING, Guard, Outcome, SignalInbox, WorkerGroup
from .rendezvous import Dynamic, OtherMachineFailed, Static


class SignalException(Exception):
    """The error that a signal ended the launcher, after it had ended its workers."""

    def __init__(self, sigval: signal.Signals) -> None:
        super().__init__(f"the launcher got {sigval.name}")
        self.sigval = sigval


class elastic_launch:
    """A launcher of a command on every local rank: ``elastic_launch(config, "python")("train.py", "--epochs", "3")``.

    Raises ``ChildFailedError`` if the last attempt failed, ``SignalException`` if a signal ended the launcher.
    Functions are not entry points here: ``vesta.multiprocessing.spawn`` starts those.
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
    meeting: Static | Dynamic | None = None
    try:
        meeting = Static(config) if config.rdzv_host is None else Dynamic(config, lambda: check_signals(inbox))
        for attempt in range(config.max_restarts + 1):
            with meeting.place(attempt) as place:
                group = WorkerGroup(config, place, folder / f"attempt_{place.attempt}", guard, inbox)
                start = time.monotonic()
                outcome = run_attempt(group, command, meeting)
            if not outcome.failures and outcome.elsewhere is None:
                return
            report_failure(config, attempt, outcome, time.monotonic() - start)
        if not outcome.failures:
            raise OtherMachineFailed(f"ended because of a failure on another machine. {outcome.elsewhere}")
        error = ChildFailedError(name or command[0], outcome.failures)
        _, failure = error.get_first_failure()
        get_error_handler().dump_error_file(failure.error_file, failure.exitcode)  # to a launcher above this one
        raise error
    finally:
        if meeting is not None:
            meeting.close()
        guard.close()
        inbox.close()
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)


def run_attempt(group: WorkerGroup, command: list[str], meeting: Static | Dynamic) -> Outcome:
    """Runs the workers of one attempt, and tells the other machines how it ended."""
    try:
        outcome = group.run(command, meeting.look)
    except BaseException as error:
        meeting.failed(f"{type(error).__name__}: {error}")
        raise
    if outcome.signal is not None:
        meeting.failed(f"the launcher got {outcome.signal.name}.")
        raise SignalException(outcome.signal)
    if outcome.failures:
        first = ChildFailedError("", outcome.failures).get_first_failure()[0]
        meeting.failed(f"rank {first} {outcome.ended[first]}.")
    elif outcome.elsewhere is None:
        outcome.elsewhere = meeting.finished()
    if outcome.elsewhere is not None:
        meeting.failed(outcome.elsewhere)  # this opens the next round, in case the other machine could not
    return outcome


def check_signals(inbox: SignalInbox) -> None:
    """Raises if a signal came that ends the launcher."""
    for number in inbox.take():
        if number in ENDING:
            raise SignalException(number)


def report_failure(config: LaunchConfig, attempt: int, outcome: Outcome, seconds: float) -> None:
    """Prints in two lines which rank failed first, how the others ended, and whether the launch continues."""
    left = config.max_restarts - attempt
    then = f"restart {attempt + 1} of {config.max_restarts}" if left else "no restart left"
    if config.max_restarts == 0:
        then = "ending"
    if not outcome.failures:
        say(f"another machine failed after {seconds:.1f} s ({outcome.elsewhere}); {then}.")
        return
    first = ChildFailedError("", outcome.failures).get_first_failure()[0]
    others = ", ".join(f"rank {rank} {how}" for rank, how in sorted(outcome.ended.items()) if rank != first)
    say(f"rank {first} {outcome.ended[first]} after {seconds:.1f} s; {then}.")
    if others:
        say(f"the others: {others}.")


def say(message: str) -> None:
    """Prints a message of the launcher."""
    print(f"vestarun: {message}", file=sys.stderr, flush=True)


def log_folder(config: LaunchConfig) -> tuple[Path, bool]:
    """Makes the folder of this launch's files; returns it and whether to remove it at the end (no logs were
    requested)."""
    kept = config.log_dir is not None or any(config.redirects.values()) or any(config.tee.values())
    if config.log_dir is not None:
        os.makedirs(config.log_dir, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{config.run_id}_", dir=config.log_dir))
    if kept:
        say(f"log files are in {folder}")
    return folder, not kept
