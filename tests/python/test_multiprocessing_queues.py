"""Queues, pools and spawned functions with shared tensors; memory when a process ends or is killed."""

from __future__ import annotations

import contextlib
import os
import queue as standard_queue
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import vesta
import vesta.multiprocessing as mp
from sanitized import SANITIZED
from shared_checks import LIMIT, METHODS, nothing_shared_is_left, reserved, standard_helpers, wait_for  # noqa: F401
from vesta._C import _shared

KINDS = ("Queue", "SimpleQueue", "JoinableQueue")


def close(queue):
    queue.close()
    if hasattr(queue, "join_thread"):
        queue.join_thread()


def get(queue):
    return queue.get() if not hasattr(queue, "join_thread") else queue.get(timeout=LIMIT)


def finished(process):
    process.join(LIMIT)
    code = process.exitcode
    assert code is not None, "the process hangs"
    process.close()
    return code


def answer(requests, replies):
    for x in iter(lambda: get(requests), None):
        x.mul_(10)
        replies.put([x, x + 1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_queues_carry_the_memory_itself(method, kind):
    context = mp.get_context(method)
    requests, replies = getattr(context, kind)(), getattr(context, kind)()
    process = context.Process(target=answer, args=(requests, replies))
    process.start()
    x = vesta.arange(4.0)
    requests.put(x)
    same, new = get(replies)
    assert x.tolist() == [0, 10, 20, 30] and same.data_ptr() == x.data_ptr() and new.tolist() == [1, 11, 21, 31]
    requests.put(None)
    assert finished(process) == 0
    close(requests)
    close(replies)


def put_some(queue, count):
    for i in range(count):
        queue.put((i, vesta.full((1000,), float(i))))


@pytest.mark.differs
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_what_is_in_a_queue_outlives_its_sender(method, kind):
    context = mp.get_context(method)
    queue = getattr(context, kind)()
    process = context.Process(target=put_some, args=(queue, 5))
    process.start()
    assert finished(process) == 0
    got = [get(queue) for _ in range(5)]
    assert [i for i, _ in got] == list(range(5)) and all(x[999] == i for i, x in got)
    close(queue)


def pass_on(source, sink):
    sink.put(get(source))


def test_memory_travels_on_through_a_process_that_ends():
    context = mp.get_context("fork")
    first, second = context.Queue(), context.Queue()
    x = vesta.ones(10)
    first.put(x)
    process = context.Process(target=pass_on, args=(first, second))
    process.start()
    assert finished(process) == 0
    del x
    _shared.collect()
    assert vesta.ones(10).share_memory_().sum() == 10  # it does not reuse the block that is being sent
    assert get(second).sum() == 10
    close(first)
    close(second)


def test_queues_behave_as_the_standard_ones():
    queue = mp.Queue(2)
    with pytest.raises(standard_queue.Empty):
        queue.get(timeout=0.01)
    queue.put(vesta.ones(1))
    queue.put("text")
    with pytest.raises(standard_queue.Full):
        queue.put(3, timeout=0.01)
    assert get(queue).item() == 1 and get(queue) == "text"
    wait_for(queue.empty)
    queue.put(lambda: None)  # not picklable: reported by the queue's thread, which continues
    queue.put(vesta.zeros(1))
    assert get(queue).item() == 0
    close(queue)
    queue = mp.JoinableQueue()
    queue.put(vesta.ones(1))
    get(queue)
    queue.task_done()
    queue.join()
    close(queue)


def hold_and_wait(queue, ready):
    kept = get(queue)
    ready.put(float(kept[0]))
    time.sleep(LIMIT)


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_receiver_gives_back_what_it_held_and_what_it_had_not_read(method):
    context = mp.get_context(method)
    sizes = []
    for _ in range(3):
        queue, ready = context.SimpleQueue(), context.SimpleQueue()
        process = context.Process(target=hold_and_wait, args=(queue, ready))
        process.start()
        queue.put(vesta.ones(500000))
        assert ready.get() == 1
        queue.put(vesta.ones(500000))  # never read
        process.kill()
        assert finished(process) == -signal.SIGKILL
        close(queue)
        close(ready)
        _shared.collect()
        sizes.append(reserved())
    assert sizes == [0, 0, 0]


def test_a_thousand_messages_take_no_more_memory_than_a_few():
    context = mp.get_context("fork")
    queue = context.SimpleQueue()
    for turn in range(1000):
        queue.put(vesta.full((3000,), float(turn)))
        assert queue.get()[0] == turn
    assert reserved() <= 2 << 20
    close(queue)


def get_for_ever(queue, ready):
    ready.put(True)
    while True:
        get(queue)


def put_for_ever(queue):
    while True:
        queue.put(vesta.ones(100))


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue"])
def test_nobody_waits_for_a_killed_reader_or_writer(kind):
    context = mp.get_context("fork")
    queue, ready = getattr(context, kind)(), context.SimpleQueue()
    reader = context.Process(target=get_for_ever, args=(queue, ready))
    reader.start()
    assert ready.get()
    time.sleep(0.05)  # it waits for a message; the lock of a standard queue would be lost with it
    reader.kill()
    assert finished(reader) == -signal.SIGKILL
    for _ in range(5):
        writer = context.Process(target=put_for_ever, args=(queue,))
        writer.start()
        for _ in range(20):
            assert get(queue).sum() == 100
        writer.kill()
        assert finished(writer) == -signal.SIGKILL
    queue.put(None)
    while get(queue) is not None:
        pass
    close(queue)
    close(ready)


@pytest.mark.parametrize("kind", ["Queue", "SimpleQueue"])
def test_queues_have_no_names_anywhere(kind):
    before = set(os.listdir("/dev/shm"))
    queue = getattr(mp.get_context("spawn"), kind)()
    assert set(os.listdir("/dev/shm")) == before
    queue.put(list(range(100000)))  # longer than a packet
    assert get(queue)[-1] == 99999
    if kind == "Queue":
        assert queue.qsize() == 0 and not queue.full()
    close(queue)


# ---- Pools ----


def times_two(x):
    return x * 2


def in_place(x):
    x += 1


def fail(x):
    raise ValueError(f"sum {float(x.sum())}")


@pytest.mark.parametrize("method", METHODS)
def test_pools_take_and_return_tensors(method):
    with mp.get_context(method).Pool(2) as pool:
        assert [x.item() for x in pool.map(times_two, [vesta.tensor(i) for i in range(10)])] == list(range(0, 20, 2))
        x = vesta.zeros(3)
        pool.apply(in_place, (x,))
        assert x.tolist() == [1, 1, 1]
        with pytest.raises(ValueError, match="sum 3"):
            pool.apply(fail, (x,))
        assert pool.apply_async(times_two, (x,)).get(LIMIT).tolist() == [2, 2, 2]
        pool.close()
        pool.join()


# ---- spawn ----


def count(index, totals):
    totals[index] += index + 1


def raise_in_one(index, x):
    if index == 1:
        raise ValueError(f"I am {index} and x is {x.tolist()}")
    time.sleep(LIMIT)


def end_by(index, how):
    if index == 0:
        how(index)
    time.sleep(LIMIT)


def kill_self(_):
    os.kill(os.getpid(), signal.SIGKILL)


def exit_with_three(_):
    sys.exit(3)


def test_spawn_runs_a_function_over_shared_tensors():
    totals = vesta.zeros(3)
    assert mp.spawn(count, args=(totals,), nprocs=3) is None
    assert totals.tolist() == [1, 2, 3]
    context = mp.spawn(count, args=(totals,), nprocs=2, join=False)
    assert len(context.pids()) == 2
    while not context.join(timeout=LIMIT):
        pass
    assert context.join() and totals.tolist() == [2, 4, 3]


@pytest.mark.parametrize("method", METHODS)
def test_the_first_failure_ends_the_others_and_is_raised(method):
    with pytest.raises(mp.ProcessRaisedException) as raised:
        mp.start_processes(raise_in_one, args=(vesta.ones(1),), nprocs=2, start_method=method)
    message = str(raised.value)
    assert message.startswith(
        "\n\n-- Process 1 terminated with the following error:\nTraceback (most recent call last):"
    )
    assert "ValueError: I am 1 and x is [1.0]" in message
    assert raised.value.error_index == 1 and raised.value.error_pid > 0 and raised.value.msg == message
    with pytest.raises(mp.ProcessExitedException, match="^process 0 terminated with signal SIGKILL$") as ended:
        mp.start_processes(end_by, args=(kill_self,), nprocs=2, start_method=method)
    assert ended.value.exit_code == -signal.SIGKILL and ended.value.signal_name == "SIGKILL"
    with pytest.raises(mp.ProcessExitedException, match="^process 0 terminated with exit code 3$") as ended:
        mp.start_processes(end_by, args=(exit_with_three,), nprocs=2, start_method=method)
    assert ended.value.exit_code == 3 and ended.value.signal_name is None
    copied = ended.value.__reduce__()
    assert copied[0](*copied[1]).exit_code == 3


def test_spawn_says_what_it_does_not_do():
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(count, args=(vesta.zeros(1),), nprocs=1, start_method="fork")
    with pytest.raises(ValueError, match="cannot find context for 'threads'"):
        mp.start_processes(count, nprocs=1, start_method="threads")
    with pytest.warns(UserWarning, match="renamed to ProcessContext"):
        mp.SpawnContext([], [])


# ---- Names ----


@pytest.mark.differs
def test_every_name_of_multiprocessing_is_here():
    import multiprocessing

    assert set(multiprocessing.__all__) <= set(dir(mp)) and mp.get_start_method() == multiprocessing.get_start_method()
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    assert mp.get_sharing_strategy() == "file_descriptor"
    mp.set_sharing_strategy("file_system")
    mp.set_sharing_strategy("file_descriptor")
    with pytest.raises(AssertionError, match="invalid sharing strategy 'names'"):
        mp.set_sharing_strategy("names")
    with mp.Manager() as manager:
        assert manager.list([1])[0] == 1


# ---- Small limits ----

PROGRAM = """
import os, resource, sys
import vesta, vesta.multiprocessing as mp

def produce(queue, count):
    for i in range(count):
        queue.put([vesta.full((16, 64), float(i)), vesta.full((16,), i)])

if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    before = set(os.listdir("/dev/shm"))
    context = mp.get_context(sys.argv[1])
    queue = context.SimpleQueue()
    process = context.Process(target=produce, args=(queue, 5000))
    process.start()
    kept = [queue.get() for _ in range(5000)]
    process.join(60)
    assert all(x[15, 63] == i and n[0] == i for i, (x, n) in enumerate(kept))
    left = {name for name in os.listdir("/dev/shm") if not name.startswith("sem.")} - before
    print(len(kept), len(os.listdir("/proc/self/fd")) < 20, left)
"""


FULL = """
import vesta
from vesta._C import _shared

arena, kept = _shared.Arena(), []
try:
    while True:
        kept.append(arena.empty((8 << 20,), vesta.uint8).fill_(1))
except MemoryError as error:
    print(len(kept), error)
kept.clear()
print((arena.empty((8 << 20,), vesta.uint8).fill_(1) == 1).all().item())
"""


@contextlib.contextmanager
def memory_group(limit):
    """Makes a memory control group; yields a command that runs its arguments in it, None if that is not allowed."""
    try:
        groups = [line.split(":") for line in Path("/proc/self/cgroup").read_text().splitlines()]
        (path,) = [path for _, controllers, path in groups if controllers == "memory"]
        group = Path("/sys/fs/cgroup/memory" + path) / f"vesta-test-{os.getpid()}"
        group.mkdir()
    except (OSError, ValueError):
        yield None
        return
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()


def test_full_memory_is_an_exception_and_not_a_signal():
    command = [sys.executable, "-c", FULL]
    with memory_group((192 << 20) * (5 if SANITIZED else 1)) as grouped:
        limited = grouped or ["sh", "-c", 'ulimit -f 131072 && exec "$@"', "sh"]  # files are limited to 64 MiB
        done = subprocess.run([*limited, *command], capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, (done.returncode, done.stderr)
    count, said = done.stdout.split(maxsplit=1)
    assert int(count) >= 4 and "tried to reserve" in said and said.rstrip().endswith("True")


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_five_thousand_batches_with_few_descriptors_and_little_shm(method, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), method]
    alone = "mount -t tmpfs -o size=16m none /dev/shm && exec"
    isolated = ["unshare", "--mount", "--", "sh", "-c", f'{alone} "$@"', "sh"]
    if subprocess.run([*isolated, "true"], capture_output=True).returncode == 0:  # /dev/shm of 16 MiB
        command = [*isolated, *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["5000", "True", "set()"]
