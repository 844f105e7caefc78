"""No process outlives the one that started it, none is ended too early, and a forked child can compute."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import vesta
import vesta.multiprocessing as mp
from sanitized import SANITIZED
from shared_checks import LIMIT, METHODS, is_gone, nothing_shared_is_left, standard_helpers, wait_for  # noqa: F401
from vesta.multiprocessing.process import Life, die_with

pytestmark = pytest.mark.skipif(SANITIZED, reason="a forked child waits for locks of AddressSanitizer's allocator")

ROOT = Path(__file__).resolve().parents[2]
SOON = 5.0  # seconds: the promise is 0.3 on a machine that is not overloaded, which the campaign checks

PARENT = """
import os, sys, time, threading
import vesta, vesta.multiprocessing as mp

def grandchild(queue):
    queue.put(os.getpid())
    time.sleep(1000)

def child(queue, deep):
    if deep:
        mp.get_context("fork").Process(target=grandchild, args=(queue,)).start()
    queue.put(os.getpid())
    end = time.time() + 1000
    while time.time() < end:  # busy in Python: no signal handler of Python's is needed
        pass

if __name__ == "__main__":
    context = mp.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    processes = [context.Process(target=child, args=(queue, i == 0)) for i in range(2)]
    def start():
        for p in processes:
            p.start()
    if sys.argv[2] == "thread":
        t = threading.Thread(target=start); t.start(); t.join()
    else:
        start()
    print(*[queue.get() for _ in range(3)], flush=True)
    time.sleep(1000)
"""


class Family:
    """A program in a separate process, with two children and a grandchild."""

    def __init__(self, folder: Path, method: str, started_by: str = "main") -> None:
        program = folder / "parent.py"
        program.write_text(PARENT)
        command = [sys.executable, str(program), method, started_by]
        self.parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.pids = [int(pid) for pid in self.parent.stdout.readline().split()]
        assert len(self.pids) == 3

    def __enter__(self) -> Family:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in [self.parent.pid, *self.pids]:
            if not is_gone(pid):
                os.kill(pid, signal.SIGKILL)
        self.parent.wait(LIMIT)
        self.parent.stdout.close()

    def signal_all(self, number: int) -> None:
        for pid in [self.parent.pid, *self.pids]:
            os.kill(pid, number)

    def alive(self) -> list[int]:
        return [pid for pid in self.pids if not is_gone(pid)]

    def kill_parent(self) -> float:
        """Kills the parent; returns how many seconds later the last of the others ended."""
        self.parent.kill()
        self.parent.wait(LIMIT)
        return wait_for(lambda: not self.alive(), LIMIT)


@pytest.mark.differs
@pytest.mark.parametrize("method", METHODS)
def test_no_process_outlives_its_parent(method, tmp_path):
    with Family(tmp_path, method) as family:
        assert family.kill_parent() < SOON


@pytest.mark.parametrize("method", METHODS)
def test_a_stopped_child_does_not_outlive_its_parent_either(method, tmp_path):
    with Family(tmp_path, method) as family:
        for pid in family.pids:
            os.kill(pid, signal.SIGSTOP)
        assert family.kill_parent() < SOON


@pytest.mark.parametrize("method", METHODS)
def test_stopped_together_is_not_dead(method, tmp_path):
    with Family(tmp_path, method) as family:
        family.signal_all(signal.SIGSTOP)
        time.sleep(0.3)
        assert len(family.alive()) == 3
        family.signal_all(signal.SIGCONT)
        time.sleep(0.1)
        assert len(family.alive()) == 3 and family.parent.poll() is None
        assert family.kill_parent() < SOON


@pytest.mark.parametrize("method", METHODS)
def test_the_end_of_the_thread_that_started_it_is_not_the_end(method, tmp_path):
    with Family(tmp_path, method, "thread") as family:
        time.sleep(0.3)
        assert len(family.alive()) == 3
        assert family.kill_parent() < SOON


@pytest.mark.campaign
@pytest.mark.parametrize("method", METHODS)
def test_campaign_no_process_outlives_its_parent_by_more_than_300_ms(method, tmp_path):
    times = []
    for turn in range(50):
        with Family(tmp_path, method, ("main", "thread")[turn % 2]) as family:
            times.append(family.kill_parent())
    assert max(times) < 0.3, sorted(times)[-5:]


def test_a_life_says_when_its_process_is_over():
    with Life() as life:
        assert not life.is_over()
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        child = os.fork()
        if child == 0:
            time.sleep(LIMIT)
            os._exit(0)
        os.write(theirs, b"%d\n" % child)
        os._exit(0)
    os.close(theirs)
    os.waitpid(pid, 0)
    grandchild = int(os.read(ours, 100))
    os.close(ours)
    assert not is_gone(grandchild)  # its life was not tied to another process
    os.kill(grandchild, signal.SIGKILL)
    wait_for(lambda: is_gone(grandchild))


def test_a_forked_child_can_be_tied_by_hand():
    with Life() as life:
        pid = os.fork()
        if pid == 0:
            die_with(life)
            time.sleep(0.05)
            os._exit(0 if not life.is_over() else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


# ---- Fork after work on many threads ----


def compute(queue):
    x = vesta.randn(300, 300)
    queue.put(((x @ x).abs().sum() > 0).item() and (x.exp() > 0).all().item())


def forked_after_work(times):
    context = mp.get_context("fork")
    threads = vesta.get_num_threads()
    vesta.set_num_threads(max(threads, 2))
    try:
        for _ in range(times):
            x = vesta.randn(500, 500)
            (x @ x).exp()
            queue = context.SimpleQueue()
            process = context.Process(target=compute, args=(queue,))
            process.start()
            process.join(LIMIT)
            assert process.exitcode == 0, "the child hangs or died"
            assert queue.get()
            process.close()
            queue.close()
    finally:
        vesta.set_num_threads(threads)


def test_a_child_forked_after_work_on_many_threads_computes():
    forked_after_work(10)


@pytest.mark.campaign
def test_campaign_fork_after_work_200_of_200():
    forked_after_work(200)


def share_and_drop(stop, errors):
    while not stop.is_set():
        try:
            x = vesta.ones(5000).share_memory_()
            assert x[4999] == 1
        except Exception as error:
            errors.append(error)


def test_forks_while_other_threads_share():
    stop, errors = threading.Event(), []
    threads = [threading.Thread(target=share_and_drop, args=(stop, errors)) for _ in range(2)]
    for thread in threads:
        thread.start()
    kept = vesta.full((100,), 3.0).share_memory_()
    for _ in range(30):
        pid = os.fork()
        if pid == 0:
            good = kept.sum() == 300 and vesta.ones(10).share_memory_().sum() == 10
            os._exit(0 if good else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors and kept.sum() == 300


# ---- Import, and the example ----


def test_import_is_light():
    program = "import sys, vesta; print([m for m in ('multiprocessing', 'numpy', 'socket') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_hogwild_learns_digits(method):
    program = ROOT / "examples" / "hogwild" / "train.py"
    command = [sys.executable, str(program), "--processes", "2", "--epochs", "4", "--start-method", method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^process \d epoch \d loss", done.stdout, re.M)) == 8
    assert float(re.search(r"^test accuracy ([0-9.]+)%", done.stdout, re.M)[1]) > 80
