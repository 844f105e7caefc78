"""The kill matrix: whichever of a loader's processes ends, and however, it is reported at once and nothing is left."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sanitized import with_plain_signals

pytest.importorskip("vesta")
TARGETS = ["worker", "parent", "all"]
WAYS = ["SIGKILL", "SIGSEGV", "SIGBUS", "SIGSTOP", "exit", "exception", "memory"]
METHODS = ["fork", "spawn", "forkserver"]
CASES = list(itertools.product(TARGETS, WAYS, METHODS, [False, True]))
TESTS = Path(__file__).resolve().parents[1]
# Seconds: the promised limit, and the limit for a machine with other load.
NOTICED, OUTLIVED = (0.5, 0.3) if os.environ.get("VESTA_IDLE_MACHINE") else (4.0, 3.0)


def sample_of(count: int) -> list:
    """Chooses cases in which every target, way, method and persistence is combined with many of the others."""
    chosen = random.Random(20261122).sample(CASES, count)
    assert {case[0] for case in chosen} == set(TARGETS) and {case[1] for case in chosen} == set(WAYS)
    return chosen


def name_of(case: tuple) -> str:
    return "-".join([*case[:3], "persistent" if case[3] else "fresh", *map(str, case[4:])])


def named_memory() -> set[str]:
    """Lists the names in /dev/shm, except the semaphores of other Python programs."""
    return {name for name in os.listdir("/dev/shm") if not name.startswith("sem.mp-")}


def members_of(session: int) -> list[int]:
    """Lists the living processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            state, _, _, of = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(of) == session and state not in "ZX":
            found.append(int(entry))
    return found


def run_case(case: tuple, folder: Path) -> None:
    """Runs a trainer to its end, and compares its report and what it leaves behind with the promises."""
    target, way, method, persistent, *seed = case
    chance = random.Random(str(case))
    options = {
        "target": target, "way": way, "method": method, "persistent": persistent, "folder": str(folder),
        "at": chance.randrange(64), "epoch": chance.randrange(2),
    }  # fmt: skip
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    before = named_memory()
    process = subprocess.Popen(
        [sys.executable, str(TESTS / "data_trainer.py"), json.dumps(options)],
        env={**with_plain_signals(), "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        if way == "SIGSTOP" and target != "worker":
            continue_later(process, everybody=target == "all")
        try:
            process.wait(timeout=40)  # its output fits into a pipe
        except subprocess.TimeoutExpired:
            pytest.fail(f"{options} hangs; alive: {members_of(process.pid)}")
        ended = time.monotonic()
        while (left := members_of(process.pid)) and time.monotonic() - ended < OUTLIVED:
            time.sleep(0.01)
        assert not left, f"{options}: {left} outlived their parent by {OUTLIVED} s"
    finally:
        if members_of(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
        output, errors = process.communicate(timeout=10)
    assert not named_memory() - before
    check(options, process.returncode, output, errors)


def continue_later(process: subprocess.Popen, everybody: bool) -> None:
    """Waits until a process is stopped, leaves it stopped for a while, and continues it."""
    for _ in range(4000):
        if process.poll() is not None:
            return
        if Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            break
        time.sleep(0.01)
    time.sleep(0.7)
    if everybody:
        os.killpg(process.pid, signal.SIGCONT)
    else:
        os.kill(process.pid, signal.SIGCONT)


def check(options: dict, status: int, output: str, errors: str) -> None:
    """Checks how a trainer ended."""
    target, way, text = options["target"], options["way"], f"{options}\n{output}\n{errors}"
    if target == "worker":
        assert status == 0, text
        check_report(options, json.loads(output.splitlines()[-1]), text)
    elif way == "SIGSTOP":  # stopped and continued: no process is dead
        assert status == 0 and json.loads(output.splitlines()[-1])["passes"] == [64, 64, 64], text
    elif way in ("exception", "memory"):
        assert status == 1 and ("IndexError" if way == "exception" else "MemoryError") in errors, text
    elif way == "exit":
        assert status in (1, 3), text  # the trainer's own status, or that of the error about its worker
    else:
        assert -status == getattr(signal, way), text


def check_report(options: dict, report: dict, text: str) -> None:
    """Checks the error that the trainer got about the end of its worker."""
    way, error = options["way"], report["error"]
    assert report["left"] == [] and error["delay"] < NOTICED, text
    assert any(f"(pid {pid})" in error["text"] for pid in report["pids"]), text
    assert f"(index {options['at']})" in error["text"] and "worker " in error["text"], text
    kinds = {"exception": ("IndexError", "list index"), "memory": ("MemoryError", "MemoryError")}
    kind, words = kinds.get(way, ("WorkerError", way))
    words = {"SIGSTOP": "is stopped", "exit": "exited with code 3"}.get(way, words)
    assert error["type"] == kind and words in error["text"], text
    whole = [count for number, count in enumerate(report["passes"]) if number != options["epoch"]]
    assert whole == [64, 64] and error["count"] <= options["at"], text  # and the loader works again


@pytest.mark.differs
@pytest.mark.parametrize("case", sample_of(40), ids=name_of)
def test_an_end_is_noticed_and_nothing_is_left(case: tuple, tmp_path: Path) -> None:
    run_case(case, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_whole_matrix(case: tuple, seed: int, tmp_path: Path) -> None:
    run_case((*case, seed), tmp_path)
