"""Helpers of the tests with processes: starts the standard library's helper processes once, and checks what is left."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

import pytest
from vesta._C import _shared

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:  # a new interpreter imports a test's functions by the module's name, tests.python.test_X
    sys.path.append(ROOT)
METHODS = ("fork", "spawn", "forkserver")
LIMIT = 60  # seconds for anything on a loaded machine: a hang fails instead of waiting


@pytest.fixture(scope="module", autouse=True)
def standard_helpers() -> Iterator[None]:
    """Starts the helper processes of the standard library before any test counts, and ends them after the last."""
    resource_tracker.ensure_running()
    forkserver.ensure_running()
    yield
    forkserver._forkserver._stop()
    resource_tracker._resource_tracker._stop()


@pytest.fixture(autouse=True)
def nothing_shared_is_left() -> Iterator[None]:
    """Fails a test that leaves an arena, or anything in /dev/shm."""
    before = set(os.listdir("/dev/shm"))
    yield
    gc.collect()
    _shared.collect()
    assert _shared.stats() == []
    assert {name for name in os.listdir("/dev/shm") if name not in before and not name.startswith("sem.")} == set()


def reserved() -> int:
    """Returns the bytes that this process's own arenas have taken from the system."""
    return sum(arena["reserved"] for arena in _shared.stats() if arena["owner"])


def wait_for(condition: Callable[[], bool], seconds: float = LIMIT) -> float:
    """Waits until a condition holds; returns the seconds it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < seconds, "it never came"
        time.sleep(0.005)
    return time.monotonic() - started


def is_gone(pid: int) -> bool:
    """Returns whether a process has ended; a zombie has."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True
