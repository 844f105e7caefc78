"""Runs ranks for the tests of vesta.distributed: as threads of this process, or as separate processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import vesta
from vesta._C import _distributed

#: The seconds after which a test's ranks are ended: enough for a loaded machine, and a limit for a hang.
LIMIT = 120


def make_groups(size: int, name: str = "test", timeout: float = 60, store: Any = None) -> list[Any]:
    """Makes a group with all its ranks in this process; returns the members' groups in rank order."""
    store = store or _distributed.HashStore()
    limit = timedelta(seconds=timeout)

    def member(rank: int) -> Any:
        return _distributed._new_process_group("gloo", store, rank, size, name, limit)

    return on_threads(size, member)


def on_threads(size: int, work: Callable[[int], Any]) -> list[Any]:
    """Calls ``work(rank)`` on a thread for each rank; returns the results, raises the first exception."""
    results: list[Any] = [None] * size
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "a rank hangs"
    if errors:
        raise errors[0]
    return results


def errors_on_threads(size: int, work: Callable[[int], Any]) -> list[BaseException | None]:
    """Calls ``work(rank)`` on a thread for each rank; returns what each raised."""

    def caught(rank: int) -> BaseException | None:
        try:
            work(rank)
        except Exception as error:
            return error.with_traceback(None)
        return None

    return on_threads(size, caught)


class Ranks:
    """Processes that run one program, with the variables of env:// set and the names ``dist``, ``rank``, ``n``."""

    HEAD = """
    import os, signal, sys, time
    from datetime import timedelta
    import vesta
    import vesta.distributed as dist
    rank, n = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    """

    def __init__(
        self, size: int, program: str, environment: dict[str, str] | None = None, prefix: Sequence[Sequence[str]] = ()
    ) -> None:
        source = textwrap.dedent(self.HEAD) + textwrap.dedent(program)
        # The test runs the store itself, so its port is free and stays reserved.
        self.store = _distributed.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=LIMIT))
        self.processes = []
        for rank in range(size):
            env = dict(os.environ)
            env.update(
                RANK=str(rank),
                WORLD_SIZE=str(size),
                LOCAL_RANK=str(rank),
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(self.store.port),
                TORCHELASTIC_USE_AGENT_STORE="True",
                OMP_NUM_THREADS="1",
            )
            env["PYTHONPATH"] = os.pathsep.join([str(Path(vesta.__file__).parent.parent), env.get("PYTHONPATH", "")])
            env.update(environment or {})
            command = [*(prefix[rank] if prefix else ()), sys.executable, "-c", source]
            self.processes.append(
                subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()

    def wait(self, limit: float = LIMIT) -> list[tuple[int, str, str]]:
        """Waits for all ranks, at most ``limit`` seconds; returns the exit code, output and errors of each.

        No exit code is collected before all ranks have ended: until then the other ranks can read it in /proc.
        """
        end = time.monotonic() + limit
        for process in self.processes:
            while process.returncode is None and time.monotonic() < end:
                if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    break
                time.sleep(0.01)
        results = []
        for process in self.processes:
            hung = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
            if hung:
                process.kill()
            out, err = process.communicate(timeout=LIMIT)
            results.append((process.returncode, out, err + ("\n(killed by the test: it hung)" if hung else "")))
        return results


def run_ranks(size: int, program: str, limit: float = LIMIT, **options: Any) -> list[str]:
    """Runs a program on some ranks, which must all succeed; returns their outputs."""
    with Ranks(size, program, **options) as ranks:
        results = ranks.wait(limit)
    failed = [f"rank {r} ended with {code}:\n{out}\n{err}" for r, (code, out, err) in enumerate(results) if code]
    assert not failed, "\n".join(failed)  # a rank that hung may have waited for one that raised
    return [out for _, out, _ in results]
