"""Pools: tensors as arguments and results; no task is lost when its worker dies or something cannot be pickled."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest
import vesta
import vesta.multiprocessing as mp
from shared_checks import LIMIT, METHODS, nothing_shared_is_left, standard_helpers, wait_for  # noqa: F401
from vesta.multiprocessing import pool as pool_module


class TwoArguments(Exception):
    def __init__(self, first, second) -> None:
        super().__init__(f"{first} and {second}")


class NotAgain:
    """An object that can be pickled but not unpickled."""

    def __reduce__(self) -> tuple:
        return _not_again, ()


def _not_again() -> None:
    raise LookupError("not here")


def same(x):
    return x


def end_at_three(x):
    if x == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def exit_with(code):
    sys.exit(code) if code else os._exit(code)


def raise_with_two(_):
    raise TwoArguments("a", "b")


def return_not_again(_):
    return NotAgain()


def take_time(x):
    time.sleep(0.2)
    return x


def fail_to_start():
    raise ValueError("cannot start")


def error_of(result) -> BaseException:
    """Returns the exception that waiting for a result raises."""
    try:
        result.get(LIMIT)
    except mp.TimeoutError:
        raise AssertionError("the pool hangs") from None
    except Exception as error:
        return error
    raise AssertionError("no error")


def value_or_end(result):
    try:
        return result.get(LIMIT)
    except mp.ProcessExitedException:
        return "ended"


@pytest.mark.parametrize("method", METHODS)
def test_a_task_whose_worker_ends_is_an_error_that_says_how(method: str) -> None:
    with mp.get_context(method).Pool(2) as pool:
        error = error_of(pool.apply_async(end_at_three, (3,)))
        assert type(error) is mp.ProcessExitedException
        assert error.signal_name == "SIGKILL" and error.exit_code == -9
        assert f"(pid {error.error_pid}) was killed by signal SIGKILL" in str(error)
        assert type(error_of(pool.map_async(end_at_three, range(6), 1))) is mp.ProcessExitedException
        for code in (3, 0):
            assert f"exit code {code}" in str(error_of(pool.apply_async(exit_with, (code,))))
        each = pool.imap(end_at_three, range(6))
        found = []
        for _ in range(6):
            try:
                found.append(each.next(LIMIT))
            except mp.ProcessExitedException:
                found.append("ended")
        assert found == [0, 1, 2, "ended", 4, 5]
        assert pool.map_async(same, range(50)).get(LIMIT) == list(range(50))
        last = pool.map_async(end_at_three, range(5), 1)
        pool.close()
        pool.join()
        assert type(error_of(last)) is mp.ProcessExitedException


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_cannot_be_unpickled_fails_its_task_alone(method: str) -> None:
    with mp.get_context(method).Pool(1) as pool:
        assert "LookupError: not here" in str(error_of(pool.apply_async(same, (NotAgain(),))))
        assert type(error_of(pool.apply_async(return_not_again, (1,)))) is LookupError
        said = str(error_of(pool.apply_async(raise_with_two, (1,))))
        assert "raised TwoArguments: a and b" in said and "in raise_with_two" in said
        x = vesta.ones(3)
        assert pool.apply_async(same, (x,)).get(LIMIT).data_ptr() == x.data_ptr()
        pool.close()
        pool.join()


def test_killing_workers_from_outside_fails_what_they_had_and_nothing_else() -> None:
    with mp.get_context("fork").Pool(2) as pool:
        results = [pool.apply_async(take_time, (i,)) for i in range(6)]
        time.sleep(0.1)
        os.kill(pool._pool[0].pid, signal.SIGKILL)
        ends = [value_or_end(result) for result in results]
        assert len([end for end in ends if end == "ended"]) == 1
        assert all(end in ("ended", i) for i, end in enumerate(ends))
        os.kill(pool._pool[0].pid, signal.SIGKILL)  # it is idle
        assert pool.map_async(same, range(10)).get(LIMIT) == list(range(10))
        pool.close()
        pool.join()


def test_a_task_that_vanishes_between_queue_and_worker_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    once = vesta.ones(1, dtype=vesta.int64).share_memory_()
    noted = pool_module._Tasks._arrived

    def die_once(self, head) -> None:
        if head[0] >= 0 and head[1] == 2 and once.item():
            once.zero_()
            os.kill(os.getpid(), signal.SIGKILL)
        noted(self, head)

    monkeypatch.setattr(pool_module._Tasks, "_arrived", die_once)
    with mp.get_context("fork").Pool(2) as pool:
        error = error_of(pool.map_async(take_time, range(5), 1))
        assert type(error) is mp.ProcessExitedException and "when it took a task" in str(error)
        assert pool.map_async(same, range(5), 1).get(LIMIT) == list(range(5))
        wait_for(lambda: pool.Process._searching is None)
        pool.close()
        pool.join()


def test_workers_that_cannot_start_are_an_error_of_every_task(capfd: pytest.CaptureFixture) -> None:
    with mp.get_context("fork").Pool(1, initializer=fail_to_start) as pool:
        for _ in range(2):
            error = error_of(pool.apply_async(same, (1,)))
            assert type(error) is mp.ProcessExitedException and "when it started" in str(error)
        many = pool.map_async(same, range(3000), 1)  # more failures than fit into a pipe
        assert type(error_of(many)) is mp.ProcessExitedException
    assert "cannot start" in capfd.readouterr().err


def test_workers_that_end_by_agreement_lose_nothing() -> None:
    with mp.get_context("fork").Pool(2, maxtasksperchild=1) as pool:
        assert pool.map_async(same, range(12), 1).get(LIMIT) == list(range(12))
        pool.close()
        pool.join()
