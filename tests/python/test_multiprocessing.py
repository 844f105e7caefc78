"""Tensors between processes: the same memory at both ends, whichever starts, drops, ends or dies first."""

from __future__ import annotations

import multiprocessing as standard
import os
import signal
import time

import numpy
import pytest
import vesta
import vesta.multiprocessing as mp
from shared_checks import LIMIT, METHODS, nothing_shared_is_left, reserved, standard_helpers  # noqa: F401
from vesta._C import _shared

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
    """Adds one to each received tensor and sends it back with a new one, until it is told to end."""
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
        assert reply["new"].tolist() == [6, 8, 10, 12]  # the process that made it has ended
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


def test_kept_arenas_do_not_pile_up_descriptors():
    ours, theirs = mp.Pipe()
    before = len(os.listdir("/proc/self/fd"))
    with ours, theirs:
        for _ in range(20):
            process = standard.get_context("fork").Process(target=send_one, args=(ours,))
            process.start()
            assert theirs.recv(timeout=LIMIT).tolist() == [3, 3]
            process.join(LIMIT)
            process.close()
        assert len(os.listdir("/proc/self/fd")) <= before + 3


def send_one(connection):
    connection.send(vesta.full((2,), 3), timeout=LIMIT)


# ---- What a sent tensor keeps ----


def travelled(value):
    """Sends an object through a pipe; returns what arrives."""
    ours, theirs = mp.Pipe()
    with ours, theirs:
        ours.send(value, timeout=LIMIT)
        return theirs.recv(timeout=LIMIT)


@pytest.mark.parametrize(
    "dtype", [vesta.bool, vesta.uint8, vesta.int64, vesta.bfloat16, vesta.float64, vesta.complex64]
)
def test_every_dtype_and_shape_arrives(dtype):
    for shape in ((), (0,), (3, 0), (1,), (2, 3, 5), (300, 301)):
        x = vesta.ones(shape).to(dtype)
        y = travelled(x)
        assert y.dtype == dtype and y.shape == x.shape and vesta.equal(x, y)


def test_views_stay_views_of_one_memory():
    base = vesta.arange(12.0).reshape(3, 4)
    got, transposed, row = travelled((base, base.t(), base[1]))
    assert transposed.stride() == base.t().stride() and row.storage_offset() == 4
    row[0] = -1
    assert got[1, 0] == -1 and transposed[0, 1] == -1 and base[1, 0] == -1
    assert row._version == got._version  # one storage, one version counter


def test_gradients_are_asked_for_but_not_sent():
    leaf = vesta.ones(2, requires_grad=True)
    got = travelled(leaf)
    assert got.requires_grad and got.is_leaf and got.grad is None
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        travelled(leaf * 2)
    parameter, buffer = travelled([vesta.nn.Parameter(vesta.ones(2)), vesta.nn.Buffer(vesta.ones(2))])
    assert type(parameter) is vesta.nn.Parameter and parameter.requires_grad and type(buffer) is vesta.nn.Buffer


class Named(vesta.Tensor):
    """A subclass with an attribute."""


def test_a_subclass_shares_too():
    x = vesta.ones(3).as_subclass(Named)
    x.label = "x"
    y = travelled(x)
    assert type(y) is Named and y.label == "x"
    y.add_(1)
    assert x.tolist() == [2, 2, 2]


def test_a_module_arrives_over_the_same_parameters():
    model = vesta.nn.Sequential(vesta.nn.Linear(2, 3), vesta.nn.BatchNorm2d(3))
    assert model.share_memory() is model
    assert all(p.is_shared() for p in model.parameters()) and all(b.is_shared() for b in model.buffers())
    other = travelled(model)
    with vesta.no_grad():
        other[0].weight.fill_(7)
    other[1].running_mean.fill_(8)
    assert model[0].weight[2, 1] == 7 and model[1].running_mean[0] == 8


def test_share_memory_takes_views_along_and_ends_resizing():
    x = vesta.ones(5)
    view = x[2:]
    assert not x.is_shared() and x.share_memory_() is x and view.is_shared()
    address = x.data_ptr()
    x.share_memory_()
    view[0] = 9
    assert x[2] == 9 and x.data_ptr() == address
    assert vesta.empty(0).share_memory_().is_shared()


@pytest.mark.differs
def test_memory_under_an_array_stays_where_the_array_is():
    array = numpy.arange(1000.0)
    x = vesta.from_numpy(array)
    x.share_memory_()
    x.fill_(-1)
    assert array[999] == 999  # a foreign array keeps its own memory
    y = vesta.zeros(100000)
    array = y.numpy()
    y.share_memory_()
    others = [vesta.full((100000,), 5.0) for _ in range(3)]
    assert (array == 0).all() and len(others) == 3
    del others
    y.fill_(2)
    assert (array == 0).all()


# ---- Other transports ----


def put_and_end(queue, started):
    queue.put(vesta.full((3,), 5.0))
    queue.close()
    queue.join_thread()
    if started is not None:
        started.wait(LIMIT)


def test_a_standard_queue_works_while_its_sender_lives():
    context = standard.get_context("spawn")
    queue, received = context.Queue(), context.Event()
    process = context.Process(target=put_and_end, args=(queue, received))
    process.start()
    assert queue.get(timeout=LIMIT).tolist() == [5, 5, 5]
    received.set()
    process.join(LIMIT)
    process.close()
    close(queue)


def test_a_standard_queue_says_that_its_sender_has_ended():
    context = standard.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=put_and_end, args=(queue, None))
    process.start()
    process.join(LIMIT)
    with pytest.raises(RuntimeError, match="the process that sent it has ended"):
        queue.get(timeout=LIMIT)
    process.close()
    close(queue)


def close(queue):
    queue.close()
    if hasattr(queue, "join_thread"):
        queue.join_thread()
        queue._writer.close()
