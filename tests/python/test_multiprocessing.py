"""Tensors between processes: the same memory at both ends, whoever starts, drops, ends or dies first."""

from __future__ import annotations

import gc
import multiprocessing as standard
import os
import signal
import time
from multiprocessing import forkserver, resource_tracker

import pytest
import vesta
import vesta.multiprocessing as mp
from vesta._C import _shared

METHODS = ("fork", "spawn", "forkserver")
LIMIT = 60  # seconds for anything on a loaded machine: a hang is a failure, not a wait


@pytest.fixture(scope="module", autouse=True)
def standard_helpers():
    """Starts the helper processes of the standard library before any test counts, and ends them after the last."""
    resource_tracker.ensure_running()
    forkserver.ensure_running()
    yield
    forkserver._forkserver._stop()
    resource_tracker._resource_tracker._stop()


@pytest.fixture(autouse=True)
def nothing_shared_is_left():
    """Fails a test that leaves an arena, or anything in /dev/shm."""
    before = set(os.listdir("/dev/shm"))
    yield
    gc.collect()
    _shared.collect()
    assert _shared.stats() == []
    assert set(os.listdir("/dev/shm")) <= before


def reserved() -> int:
    return sum(arena["reserved"] for arena in _shared.stats() if arena["owner"])


# ---- Memory and channels ----


def test_tensors_in_an_arena_are_writable_and_move_nowhere():
    arena = _shared.Arena()
    x = arena.empty((3, 4), vesta.float32)
    x.fill_(2)
    assert _shared.is_shared(x) and x[1:].sum() == 16
    assert arena.empty((0,), vesta.int64).numel() == 0
    with pytest.raises(MemoryError, match="bytes"):
        arena.empty((1 << 50,), vesta.float64)
    with pytest.raises(TypeError):
        arena.empty((1,), "float32")


def test_five_thousand_blocks_cost_one_descriptor():
    arena = _shared.Arena()
    before = len(os.listdir("/proc/self/fd"))
    kept = [arena.empty((64,), vesta.float32) for _ in range(5000)]
    assert len(os.listdir("/proc/self/fd")) <= before + 1 and len(kept) == 5000


def test_a_handle_is_small_and_a_lease_keeps_its_block():
    x = _shared.empty((10,), vesta.int64)
    x.copy_(vesta.arange(10))
    lease = _shared.Lease()
    index, handle = lease.add(x)
    assert index == 0 and len(handle) == 5 and all(isinstance(n, int) for n in handle)
    del x
    assert _shared.stats()[0]["lent"] == 128
    again = _shared.attach(lease.descriptors()[0], handle)
    lease.close()
    assert _shared.stats()[0]["lent"] == 0 and again.numel() == 80


def test_a_channel_waits_no_longer_than_it_is_told():
    first, second = _shared.Channel.pair()
    started = time.monotonic()
    assert second.receive(timeout=0.05) is None and not second.poll(0)
    assert time.monotonic() - started < LIMIT
    assert first.send(b"text", [0, 1])
    message = second.receive(timeout=LIMIT)
    assert message.bytes == b"text" and len(message) == 2
    first.close()
    with pytest.raises(EOFError, match="other side"):
        second.receive()
    second.close()
    with pytest.raises(ValueError, match="closed one"):
        second.receive()


def test_control_c_ends_a_wait():
    first, second = _shared.Channel.pair()
    standard_handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            second.receive(timeout=LIMIT)
    finally:
        signal.signal(signal.SIGALRM, standard_handler)
    first.close()


# ---- Connections and start methods ----


def serve(connection):
    """Adds one to what comes and sends it back with something new, until it is told to end."""
    while True:
        x = connection.recv(timeout=LIMIT)
        if x is None:
            return
        x += 1
        connection.send({"x": x, "new": x * 2, "pid": os.getpid()}, timeout=LIMIT)


@pytest.mark.parametrize("method", METHODS)
def test_a_tensor_is_the_same_memory_in_both_processes(method):
    ours, theirs = mp.Pipe()
    with ours:
        process = standard.get_context(method).Process(target=serve, args=(theirs,))
        process.start()
        theirs.close()
        x = vesta.arange(6.0)
        ours.send(x[2:], timeout=LIMIT)
        reply = ours.recv(timeout=LIMIT)
        assert x.tolist() == [0, 1, 3, 4, 5, 6]
        assert reply["new"].tolist() == [6, 8, 10, 12] and reply["pid"] == process.pid
        assert reply["x"].data_ptr() == x[2:].data_ptr()
        ours.send(None, timeout=LIMIT)
        process.join(LIMIT)
        assert process.exitcode == 0
        assert reply["new"].tolist() == [6, 8, 10, 12]  # its maker has ended
    process.close()


def test_memory_goes_round_without_growing():
    ours, theirs = mp.Pipe()
    with ours, theirs:
        kept = []
        for turn in range(400):
            ours.send(vesta.full((5000,), float(turn)), timeout=LIMIT)
            kept.append(theirs.recv(timeout=LIMIT))
            assert kept[-1][7] == turn
            del kept[:-3]
        assert reserved() < 4 << 20
        del kept


def test_a_message_that_is_never_received_gives_its_memory_back():
    ours, theirs = mp.Pipe()
    for _ in range(50):
        ours.send(vesta.ones(100), timeout=LIMIT)
    _shared.collect()
    assert _shared.stats()[0]["lent"] > 0
    theirs.close()
    ours.close()
    _shared.collect()
    assert _shared.stats() == []
