"""Loaders in programs that do unusual things: objects that cannot be unpickled, threads, forks, copies."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import vesta
from vesta._C import _shared
from vesta.utils import data
from vesta.utils.data.remote_error import WorkerError

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


@pytest.fixture(autouse=True, scope="module")
def life_of_the_process() -> None:
    """Opens the descriptor that stays until the end."""
    _shared.life_of_this_process()


@pytest.fixture(autouse=True)
def arenas_closed() -> Iterator[None]:
    """Closes the arenas of workers that have ended, before descriptors are counted."""
    yield
    gc.collect()
    _shared.collect()


class Made(data.Dataset):
    """Samples that a function makes from their index."""

    def __init__(self, count: int, make: Callable = int) -> None:
        self.count, self.make = count, make

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        return self.make(index)


def as_it_is(samples: list) -> list:
    return samples


def forked(dataset, **options) -> data.DataLoader:
    return data.DataLoader(dataset, **{"num_workers": 2, "multiprocessing_context": "fork", **options})


def all_of(batches: Iterator) -> list:
    """Returns everything that ``next`` returns until the end; exceptions as their class and text."""
    found = []
    while len(found) < 50:
        try:
            found.append(next(batches))
        except StopIteration:
            return found
        except Exception as error:
            found.append((type(error), str(error)))
    raise AssertionError("no end")


def _again(kind: type, text: str):
    raise kind(text)


class NotAgain:
    """An object that can be pickled but not unpickled."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def __reduce__(self) -> tuple:
        return _again, (self.kind, "not here")


@pytest.mark.parametrize("kind", [ValueError, EOFError, OSError])
@pytest.mark.parametrize("size", [1, 10_000])
def test_a_batch_that_cannot_be_unpickled_is_one_error(kind: type, size: int) -> None:
    make = lambda i: [NotAgain(kind), "x" * size] if i == 3 else i
    batches = iter(forked(Made(8, make), batch_size=2, collate_fn=as_it_is))
    assert all_of(batches) == [[0, 1], (kind, "not here"), [4, 5], [6, 7]]


def test_a_batch_that_cannot_be_unpickled_does_not_end_the_pass_silently() -> None:
    batches = iter(forked(Made(4, lambda i: NotAgain(StopIteration) if i == 1 else i), batch_size=None))
    found = all_of(batches)
    assert [found[0], *found[2:]] == [0, 2, 3]
    assert found[1][0] is WorkerError and "batch 1" in found[1][1] and "StopIteration" in found[1][1]


class Numbers(data.IterableDataset):
    """A stream that the workers divide among themselves."""

    def __init__(self, count: int = 23) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.count, step):
            yield 1000 * i + random.randrange(1000)


class AtItsStartAgain(Numbers):
    """A stream that knows its position; at its end it is at its start again."""

    at = None

    def __iter__(self) -> Iterator[int]:
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        self.at = first if self.at is None else self.at
        while self.at < self.count:
            self.at += step
            yield 1000 * (self.at - step) + random.randrange(1000)
        self.at = None

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]


class OnlySays(Numbers):
    """A stream whose state_dict does not contain a position."""

    def state_dict(self) -> dict:
        return {"name": "numbers"}


class CannotSay(Numbers):
    def state_dict(self) -> dict:
        raise LookupError("no state today")

    def load_state_dict(self, state: dict) -> None:
        raise AssertionError


@pytest.mark.parametrize("kind", [Numbers, AtItsStartAgain, OnlySays])
@pytest.mark.parametrize("workers, kept", [(0, False), (2, True), (3, False)])
def test_a_stream_resumes_at_every_place(kind: type, workers: int, kept: bool) -> None:
    options = {"multiprocessing_context": "fork", "persistent_workers": kept} if workers else {}
    loader = data.DataLoader(kind(), batch_size=3, num_workers=workers, **options)
    for _ in range(2):
        batches = iter(loader)
        states, seen = [copy.deepcopy(loader.state_dict())], []
        for batch in batches:
            seen.append(batch.tolist())
            states.append(copy.deepcopy(loader.state_dict()))
        for place in {0, 1, 2, 5, len(seen) - 2, len(seen) - 1}:
            loader.load_state_dict(states[place])
            batches = iter(loader)
            here = copy.deepcopy(loader.state_dict())  # before the first batch: the same position
            assert [batch.tolist() for batch in batches] == seen[place:], place
            loader.load_state_dict(here)
            assert [batch.tolist() for batch in loader] == seen[place:], place


@pytest.mark.parametrize("workers", [0, 2])
def test_a_state_that_a_stream_cannot_give_is_an_error_of_state_dict_only(workers: int) -> None:
    options = {"multiprocessing_context": "fork"} if workers else {}
    loader = data.DataLoader(CannotSay(8), batch_size=2, num_workers=workers, **options)
    batches = iter(loader)
    next(batches)
    with pytest.raises(LookupError, match="no state today"):
        loader.state_dict()
    assert len(all_of(batches)) == 3
    assert loader.state_dict()["finished"]


class GoesOn(data.Sampler):
    """A sampler that continues at its position, and starts again at its end."""

    at = 0

    def __iter__(self) -> Iterator[int]:
        while self.at < 20:
            self.at += 1
            yield (self.at - 1) * 7 % 20
        self.at = 0

    def __len__(self) -> int:
        return 20

    def state_dict(self) -> dict:
        return {"at": self.at}

    def load_state_dict(self, state: dict) -> None:
        self.at = state["at"]


def test_a_sampler_with_a_state_is_asked_behind_a_batch_sampler_too() -> None:
    loader = data.DataLoader(Made(20), batch_size=3, sampler=GoesOn())
    batches = iter(loader)
    next(batches), next(batches)
    state = copy.deepcopy(loader.state_dict())
    assert state["order"] == {"at": 6}
    rest = [batch.tolist() for batch in batches]
    batches = iter(loader)
    next(batches), next(batches), next(batches)  # a pass that is abandoned in the middle
    loader.load_state_dict(state)
    assert [batch.tolist() for batch in loader] == rest


def test_kept_workers_go_through_a_stream_again_and_again() -> None:
    loader = forked(Numbers(10), batch_size=2, persistent_workers=True)
    first = [sorted(n // 1000 for batch in loader for n in batch.tolist()) for _ in range(3)]
    assert first == [list(range(10))] * 3
    empty = forked(Made(0), persistent_workers=True)
    assert [len(list(empty)) for _ in range(2)] == [0, 0]


def test_any_thread_may_ask_for_the_next_batch() -> None:
    batches = iter(forked(Made(60)))
    found: list = []

    def take() -> None:
        for batch in batches:
            found.append(batch.item())

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == list(range(60))


def test_a_forked_child_is_told_that_an_iterator_is_not_its_own() -> None:
    loader = forked(Made(8), persistent_workers=True)
    batches = iter(loader)
    next(batches)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "nothing"
        try:
            next(batches)
        except RuntimeError as error:
            said = str(error)
        os.write(writer, said.encode())
        os.write(writer, f" {len(list(loader))}".encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with open(reader) as told:
        text = told.read()
    assert "process that called iter(loader)" in text and text.endswith(" 8")
    assert len(list(batches)) == 7


def test_a_loader_that_was_used_can_be_copied() -> None:
    for options in ({}, {"persistent_workers": True}):
        loader = forked(Made(6), shuffle=True, generator=vesta.Generator().manual_seed(2), **options)
        next(iter(loader))
        for copied in (pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader), copy.copy(loader)):
            assert sorted(batch.item() for batch in copied) == list(range(6))
        assert len(list(loader)) == 6


def test_a_signal_handler_of_the_program_does_not_run_in_workers(capfd: pytest.CaptureFixture) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"handled"))
    try:
        batches = iter(forked(Made(8, lambda i: time.sleep(30 * (i > 1)) or i)))
        next(batches)
        del batches
        gc.collect()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "handled" not in capfd.readouterr().out


def test_after_a_timeout_the_same_batch_can_be_waited_for() -> None:
    loader = forked(Made(4, lambda i: time.sleep(1.5 * (i == 1)) or i), batch_size=None, timeout=0.5)
    found = all_of(iter(loader))
    late = [entry for entry in found if isinstance(entry, tuple)]
    assert [entry for entry in found if not isinstance(entry, tuple)] == [0, 1, 2, 3]
    assert late and all(kind is WorkerError and "timed out" in text for kind, text in late)


def test_workers_that_hang_are_not_used_for_another_pass() -> None:
    loader = forked(Made(4, lambda i: time.sleep(60) or i), timeout=0.3, persistent_workers=True)
    with pytest.raises(WorkerError, match="timed out"):
        list(loader)
    hung = set(loader._iterator._pool.pids)
    with pytest.raises(WorkerError, match="timed out"):
        list(loader)
    assert hung.isdisjoint(loader._iterator._pool.pids)
    loader._iterator.stop()


ROWS = [5, 6, 7, 8, 9]


@pytest.mark.parametrize("make, expected", [
    (lambda: [-1, -5], [9, 5]), (lambda: {1, 2}, [6, 7]), (lambda: (i for i in (0, 3)), [5, 8]),
    (lambda: map(int, "12"), [6, 7]), (lambda: range(2), [5, 6]), (lambda: vesta.tensor([2, 0]), [7, 5]),
    (lambda: [vesta.tensor(2), vesta.tensor(0)], [7, 5]), (lambda: [slice(0, 2)], [[5, 6]]),
])  # fmt: skip
@pytest.mark.parametrize("part", [lambda d: d, lambda d: data.Subset(d, range(5))])
def test_batch_samplers_may_give_other_indices_than_lists_of_numbers(make: Callable, expected: list, part) -> None:
    dataset = part(data.TensorDataset(vesta.tensor(ROWS)))
    before = random.getstate()
    assert [batch[0].tolist() for batch in data.DataLoader(dataset, batch_sampler=[make()])] == [expected]
    assert random.getstate() == before


def test_numbers_of_numpy_take_the_short_cut_and_truth_values_do_not() -> None:
    numpy = pytest.importorskip("numpy")
    dataset = data.TensorDataset(vesta.tensor(ROWS))
    for batch in ([numpy.int64(1), numpy.int32(3)], numpy.array([1, 3])):
        assert [got[0].tolist() for got in data.DataLoader(dataset, batch_sampler=[batch])] == [[6, 8]]
    with pytest.raises(RuntimeError, match="shape"):  # as dataset[True] and dataset[False] are
        list(data.DataLoader(dataset, batch_sampler=[[True, False]]))
    with pytest.raises(IndexError):
        list(data.DataLoader(dataset, batch_sampler=[[7]]))
    with pytest.raises(TypeError, match="not iterable"):
        list(data.DataLoader(dataset, batch_sampler=[3]))


REAPING = {
    "ignored": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "reaped": lambda: signal.signal(signal.SIGCHLD, lambda *_: reap()),
}


def reap() -> None:
    with contextlib.suppress(OSError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


@pytest.mark.parametrize("how", REAPING)
def test_a_program_may_reap_its_children_itself(how: str) -> None:
    before = signal.getsignal(signal.SIGCHLD)
    try:
        REAPING[how]()
        loader = forked(Made(8))
        list(loader)
        started = time.monotonic()
        assert len(list(loader)) == 8
        assert time.monotonic() - started < 2.0  # it once waited 2 s for each process that had already ended
        batches = iter(forked(Made(100, lambda i: time.sleep(0.02) or i)))
        next(batches)
        os.kill(batches._pool.pids[1], signal.SIGKILL)
        with pytest.raises(WorkerError, match=r"worker 1 \(pid \d+\)"):
            list(batches)
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_grandchild_that_lives_on_does_not_hide_the_end_of_a_worker() -> None:
    reader, writer = os.pipe()

    def leave_a_child(index: int) -> int:
        if index == 3:
            if os.fork() == 0:
                os.close(writer)
                os.read(reader, 1)  # ends with the test
                os._exit(0)
            os._exit(9)
        return index

    try:
        started = time.monotonic()
        with pytest.raises(WorkerError, match="exited with code 9"):
            list(forked(Made(8, leave_a_child)))
        assert time.monotonic() - started < 10.0
    finally:
        os.close(writer)
        os.close(reader)


def test_a_program_that_ends_while_a_thread_waits_for_a_batch_says_nothing() -> None:
    program = """
import threading, time
from vesta.utils import data

class Slow(data.Dataset):
    def __len__(self): return 1000
    def __getitem__(self, index): time.sleep(0.02); return index

def use():
    for batch in data.DataLoader(Slow(), num_workers=2, multiprocessing_context="fork"): begun.set()

begun = threading.Event()
threading.Thread(target=use, daemon=True).start()
begun.wait(30)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_part_of_a_batch_cannot_be_prefetched() -> None:
    with pytest.raises(TypeError, match=r"expected int or None, got float \(prefetch_factor\)"):
        data.DataLoader([1], num_workers=1, prefetch_factor=1.5)  # type: ignore[arg-type]
