"""The NCCL backend of vesta.distributed, with a stand-in for NCCL that computes on the emulated device.

Each test runs one program on some processes; the errors of a program with many cases name the case that failed.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import fake_nccl
import pytest
from distributed_ranks import Ranks, run_ranks
from fake_nccl import ENVIRONMENT

pytestmark = fake_nccl.needed

PRELUDE = """
import ctypes, gc
import numpy as np
fake = ctypes.CDLL(os.environ["VESTA_CUDA_LIB_DIR"] + "/libnccl.so.2")
SECONDS = 60
def make(seconds=SECONDS):
    dist.init_process_group("nccl", timeout=timedelta(seconds=seconds))
def values(r, shape=(5,), dtype=vesta.float32):
    whole = np.random.default_rng(r).integers(0, 4, shape)
    whole = whole + 1j * np.random.default_rng(r + 99).integers(0, 4, shape) if dtype.is_complex else whole
    return vesta.tensor(whole).to(dtype)
def same(got, want, what, rounds=False):
    assert got.is_cuda and got.dtype == want.dtype and got.shape == want.shape, what
    # Reductions of more than two floating values round in an order of their own; all else is exact.
    rounds = rounds and n > 2 and (want.is_floating_point() or want.is_complex())
    np.testing.assert_allclose(np.array(got.cpu().tolist()), np.array(want.tolist()), err_msg=str(what),
                               rtol=n * vesta.finfo(want.dtype).eps if rounds else 0)
def raised(call, *words, within=None):
    start = time.monotonic()
    try:
        call()
    except dist.DistributedError as error:
        for word in words:
            assert word in str(error), (word, str(error))
        assert within is None or time.monotonic() - start < within, (time.monotonic() - start, str(error))
        return str(error)
    raise AssertionError("no error")
def leave():
    # All ranks have had their errors before one ends: a process that ends is an error for the others.
    store.set(f"done{rank}", "")
    store.wait([f"done{r}" for r in range(n)])
store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), None, False)
"""


def run(size: int, program: str, limit: float = 120, **environment: str) -> list[str]:
    return run_ranks(size, PRELUDE + program, limit, environment={**ENVIRONMENT, **environment})


COLLECTIVES = """
make()
assert dist.get_backend() == "nccl"
DTYPES = [vesta.bool, vesta.uint8, vesta.int8, vesta.int16, vesta.int32, vesta.int64, vesta.float16, vesta.bfloat16,
          vesta.float32, vesta.float64, vesta.complex64, vesta.complex128]
Op = dist.ReduceOp
NUMBERS = {Op.SUM: sum, Op.PRODUCT: lambda v: np.prod(v, axis=0), Op.MIN: lambda v: np.min(v, axis=0),
           Op.MAX: lambda v: np.max(v, axis=0), Op.AVG: lambda v: sum(v) / n}
BOOLS = {Op.SUM: np.any, Op.MAX: np.any, Op.BOR: np.any, Op.PRODUCT: np.all, Op.MIN: np.all, Op.BAND: np.all}
def reference(op, dtype, shape):
    each = [values(r, shape, dtype) for r in range(n)]
    if dtype == vesta.bool:
        return vesta.tensor(BOOLS[op]([t.numpy() for t in each], axis=0))
    wide = vesta.complex128 if dtype.is_complex else vesta.float64 if dtype.is_floating_point else vesta.int64
    return vesta.tensor(np.asarray(NUMBERS[op]([t.to(wide).numpy() for t in each]))).to(dtype)
def known(op, dtype):
    if dtype == vesta.int16: return False
    if dtype == vesta.bool: return op in BOOLS
    if op in (Op.BAND, Op.BOR, Op.BXOR): return False
    if dtype.is_complex: return op in (Op.SUM, Op.AVG)
    return op != Op.AVG or dtype.is_floating_point
def reductions(dtype, op):
    shape = (n, 3)
    want = reference(op, dtype, shape)
    t = values(rank, shape, dtype).cuda()
    dist.all_reduce(t, op)
    same(t, want, ("all_reduce", op, dtype), True)
    t = values(rank, shape, dtype).cuda()
    dist.reduce(t, n - 1, op)
    same(t, want if rank == n - 1 else values(rank, shape, dtype), ("reduce", op, dtype), True)
    out = vesta.zeros(3, dtype=dtype, device="cuda")
    dist.reduce_scatter_tensor(out, values(rank, shape, dtype).cuda(), op)
    same(out, want[rank], ("reduce_scatter_tensor", op, dtype), True)
    out = vesta.zeros(3, dtype=dtype, device="cuda")
    dist.reduce_scatter(out, list(values(rank, shape, dtype).cuda().unbind(0)), op)
    same(out, want[rank], ("reduce_scatter", op, dtype), True)
def copies(dtype):
    mine, each = values(rank, (2, 3), dtype), [values(r, (2, 3), dtype) for r in range(n)]
    t = mine.cuda()
    dist.broadcast(t, n - 1)
    same(t, each[n - 1], ("broadcast", dtype))
    outs = [vesta.zeros(2, 3, dtype=dtype, device="cuda") for _ in range(n)]
    dist.all_gather(outs, mine.cuda())
    for r in range(n): same(outs[r], each[r], ("all_gather", dtype))
    whole = vesta.zeros(2 * n, 3, dtype=dtype, device="cuda")
    dist.all_gather_into_tensor(whole, mine.cuda())
    same(whole, vesta.cat(each), ("all_gather_into_tensor", dtype))
    outs = [vesta.zeros(2, 3, dtype=dtype, device="cuda") for _ in range(n)]
    dist.gather(mine.cuda(), outs if rank == 1 else None, 1)
    if rank == 1:
        for r in range(n): same(outs[r], each[r], ("gather", dtype))
    out = vesta.zeros(2, 3, dtype=dtype, device="cuda")
    dist.scatter(out, [(values(r + 7, (2, 3), dtype)).cuda() for r in range(n)] if rank == 0 else None, 0)
    same(out, values(rank + 7, (2, 3), dtype), ("scatter", dtype))
    outs = [vesta.zeros(3, dtype=dtype, device="cuda") for _ in range(n)]
    dist.all_to_all(outs, [values(rank * n + r, (3,), dtype).cuda() for r in range(n)])
    for r in range(n): same(outs[r], values(r * n + rank, (3,), dtype), ("all_to_all", dtype))
    send = [1 + (rank + r) % 3 for r in range(n)]
    got = vesta.zeros(sum(send), 2, dtype=dtype, device="cuda")
    dist.all_to_all_single(got, vesta.cat([values(rank * n + r, (send[r], 2), dtype) for r in range(n)]).cuda(),
                           send, send)
    same(got, vesta.cat([values(r * n + rank, (send[r], 2), dtype) for r in range(n)]), ("all_to_all_single", dtype))
    got = vesta.zeros(2, 3, dtype=dtype, device="cuda")
    if rank == 0: dist.send(mine.cuda(), 1)
    if rank == 1:
        assert dist.recv(got, 0) == 0
        same(got, each[0], ("recv", dtype))
"""


@pytest.mark.parametrize(
    ("size", "dtypes", "schedule"),
    [(2, "DTYPES", "eager"), (2, "[vesta.float32]", "random"), (2, "[vesta.float32]", "lazy"),
     (8, "[vesta.bool, vesta.bfloat16, vesta.int64]", "eager"),
     *(pytest.param(n, "DTYPES", s, marks=pytest.mark.campaign) for n in (3, 8) for s in ("eager", "lazy", "random"))],
)  # fmt: skip
def test_all_collectives_agree_with_a_local_reference(size: int, dtypes: str, schedule: str) -> None:
    run(
        size,
        COLLECTIVES
        + f"""
for dtype in {dtypes}:
    copies(dtype)
    for op in (*NUMBERS, Op.BAND, Op.BOR, Op.BXOR):
        if known(op, dtype):
            reductions(dtype, op)
            continue
        try: dist.all_reduce(values(rank, (4,), dtype).cuda(), op)
        except (TypeError, ValueError) as error: assert dtype.is_complex or "NCCL" in str(error), error
        else: raise AssertionError((op, dtype))
for dtype in (vesta.float16, vesta.float32, vesta.float64, vesta.complex64):
    t = values(rank, (4,), dtype).cuda()
    dist.all_reduce(t, vesta._C._distributed._make_premul_sum(0.5 * (rank + 1)))
    same(t, sum((values(r, (4,), dtype) * (0.5 * (r + 1)) for r in range(n))).to(dtype), ("premul", dtype), True)
dist.barrier()
dist.destroy_process_group()
""",
        VESTA_EMULATION_SCHEDULE=schedule,
        VESTA_EMULATION_SEED="3",
    )


def test_strides_sizes_orders_and_groups_of_calls() -> None:
    run(
        2,
        """
make()
# large values (reduced in parts), none at all, strided ones, a list as one operation
big = vesta.arange(300_007, dtype=vesta.float64, device="cuda") * (rank + 1)
dist.all_reduce(big)
assert (big.cpu() == vesta.arange(300_007, dtype=vesta.float64) * 3).all()
empty = vesta.zeros(0, device="cuda")
dist.all_reduce(empty)
base = vesta.zeros(4, 6, device="cuda")
view = base[:, ::2]
view.copy_(values(rank, (4, 3)).cuda())
dist.all_reduce(view)
want = vesta.zeros(4, 6)
want[:, ::2] = values(0, (4, 3)) + values(1, (4, 3))
same(base, want, "strided all_reduce")
dist.broadcast(base.t(), 1)
rows = vesta.zeros(6, 2, device="cuda").t()
dist.all_gather_into_tensor(rows, vesta.full((3, 2), float(rank), device="cuda").t())
same(rows, vesta.tensor([0.0] * 6 + [1.0] * 6).reshape(2, 6), "strided all_gather")

# what was queued before comes before, what comes after comes after; on a side stream too
side = vesta.cuda.Stream()
t = vesta.ones(1000, device="cuda")
for i in range(5):
    t.mul_(2)
    with vesta.cuda.stream(side):
        side.wait_stream(vesta.cuda.default_stream())
        t.add_(rank)
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        t.div_(2)
    vesta.cuda.default_stream().wait_stream(side)
want = 1.0
for i in range(5): want = want * 2 + 0.5
same(t, vesta.full((1000,), want), "streams")
assert vesta.cuda.current_stream() == vesta.cuda.default_stream()

# several collectives as one group of NCCL's
from vesta.distributed import _collectives
dist.barrier()
before = fake.fake_nccl_groups()
parts = [vesta.full((7,), float(rank + i), device="cuda") for i in range(10)]
with _collectives._coalescing_manager():
    for p in parts: dist.all_reduce(p)
assert fake.fake_nccl_groups() == before + 1
for i, p in enumerate(parts): same(p, vesta.full((7,), 2.0 * i + 1), "coalesced")

# a Work: what it knows, and what it lets go
x = vesta.ones(3, device="cuda")
work = dist.all_reduce(x, async_op=True)
work.wait()
vesta.cuda.synchronize()
for _ in range(2000):
    if work.is_completed(): break
    time.sleep(0.01)
assert work.is_completed() and work.is_success() and work.exception() is None
seen = []
future = dist.all_reduce(x, async_op=True)
if hasattr(future, "get_future"):
    done = future.get_future().then(lambda f: f.value()[0].sum().item())
    assert done.wait() == 12.0
work = dist.barrier(async_op=True)
work.wait(timedelta(seconds=30))
assert work.is_completed()
# a group within the group, and one that one rank is not in
half = dist.new_group([1], backend="nccl")
if rank == 1:
    y = vesta.ones(2, device="cuda")
    dist.all_reduce(y, group=half)
    assert y.tolist() == [1.0, 1.0]
dist.destroy_process_group()
""",
    )


def test_messages_any_order_tags_and_sources() -> None:
    run(
        3,
        """
make()
next, before = (rank + 1) % n, (rank - 1) % n
# each sends first and receives then, where NCCL alone would hang; in both directions of a pair, too
for size in (5, 200_000):
    got, back = (vesta.zeros(size, device="cuda") for _ in range(2))
    works = [dist.isend(vesta.full((size,), float(rank), device="cuda"), next),
             dist.isend(vesta.full((size,), float(rank) + 10, device="cuda"), before),
             dist.irecv(got, before), dist.irecv(back, next)]
    for w in works: w.wait()
    same(got, vesta.full((size,), float(before)), "ring")
    same(back, vesta.full((size,), float(next) + 10), "ring back")
ops = [dist.P2POp(dist.irecv, got, before), dist.P2POp(dist.isend, vesta.full_like(got, float(rank)), next)]
for w in dist.batch_isend_irecv(ops): w.wait()
same(got, vesta.full((200_000,), float(before)), "batch")
# a stride on both sides
wide = vesta.zeros(4, 4, device="cuda")
w1 = dist.isend(values(rank, (4, 4)).cuda().t(), next)
dist.recv(wide[:, :].t(), before)
w1.wait()
same(wide, values(before, (4, 4)), "strided")
# tags: receives find theirs, whichever was given first
if rank == 0:
    for tag in (3, 1, 2): dist.isend(vesta.full((2,), float(tag), device="cuda"), 1, tag=tag)
if rank == 1:
    outs = {tag: vesta.zeros(2, device="cuda") for tag in (1, 2, 3)}
    works = [dist.irecv(outs[tag], 0, tag=tag) for tag in (1, 2, 3)]
    for w in works: w.wait()
    for tag in (1, 2, 3): same(outs[tag], vesta.full((2,), float(tag)), "tags")
# from any rank
if rank == 2:
    seen = set()
    for _ in range(2):
        t = vesta.zeros(1, device="cuda")
        source = dist.recv(t)
        assert t.item() == source
        seen.add(source)
    assert seen == {0, 1}
else:
    dist.send(vesta.full((1,), float(rank), device="cuda"), 2)
# what is sent is not what is expected: both know, before a byte moves
store.set(f"arrived{rank}", "")  # not before all messages have: the next error ends the group for everybody
store.wait([f"arrived{r}" for r in range(n)])
def differs():
    if rank == 0:
        dist.isend(vesta.zeros(3, device="cuda"), 1).wait()  # few bytes may leave before anybody knows
        dist.barrier()
    elif rank == 1: dist.irecv(vesta.zeros(4, device="cuda"), 0).wait(timedelta(seconds=50))
    else: dist.barrier()
error = raised(differs, "send(float32 [3]", "recv(", "float32 [4]")
leave()
""",
    )


@pytest.mark.parametrize("groups", [30, pytest.param(1000, marks=pytest.mark.campaign)])
def test_nothing_is_kept_after_wait_and_no_group_leaves_a_trace(groups: int) -> None:
    run(
        2,
        """
def kept():
    gc.collect()
    return vesta.cuda.memory_allocated()
def counts():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
make()
x = vesta.ones(1 << 18, device="cuda")
dist.all_reduce(x)
dist.barrier()
base = kept()
t = vesta.ones(1 << 20, device="cuda")
work = dist.all_reduce(t, async_op=True)
del t
assert kept() - base >= 4 << 20
work.wait()
assert kept() == base                               # the input is let go, though the Work lives
out, parts = vesta.zeros(2 << 18, device="cuda"), [vesta.zeros(1 << 18, device="cuda") for _ in range(2)]
works = [dist.all_gather_into_tensor(out, x, async_op=True), dist.all_gather(parts, x, async_op=True)]
for w in works: w.wait()
del out, parts
vesta.cuda.synchronize()
assert kept() == base, kept() - base
if rank == 0:
    t = vesta.ones(1 << 20, device="cuda")
    w = dist.isend(t, 1)
    del t
    w.wait()
    vesta.cuda.synchronize()
else:
    t = vesta.zeros(1 << 20, device="cuda")
    dist.recv(t, 0)
    assert t.sum().item() == 1 << 20
    del t
assert kept() == base
# never waited for: let go when it has ended
dist.all_reduce(vesta.ones(1 << 20, device="cuda"), async_op=True)
dist.barrier()
for _ in range(3000):
    if kept() == base: break
    time.sleep(0.01)
assert kept() == base
# no stream was recorded in the way
dist.destroy_process_group()
first = None
for i in range(ROUNDS):
    limit = timedelta(seconds=SECONDS)
    group = dist.distributed_c10d._new_process_group("nccl", store, rank, n, f"g{i}", limit, [0, 1])
    y = vesta.ones(1, device="cuda")
    group.allreduce([y]).wait()
    if i % 3 == 0: (group.send if rank == 0 else group.recv)(y, 1 - rank).wait()
    assert y.item() == 2.0
    group.shutdown()
    del group
    if i == 2: first = counts()
def no_more():  # a thread that was joined may be listed for a moment
    return all(now <= then for now, then in zip(counts(), first))
for _ in range(3000):
    if no_more(): break
    time.sleep(0.01)
assert no_more(), (first, counts())
""".replace("ROUNDS", str(groups)),
        limit=120 + groups,
    )


MISMATCHES = {
    "op": ("dist.all_reduce(x)", "dist.broadcast(x, 0)", "all_reduce(SUM", "broadcast("),
    "shape": ("dist.all_reduce(x)", "dist.all_reduce(x[:3])", "float32 [4]", "float32 [3]"),
    "dtype": ("dist.all_reduce(x)", "dist.all_reduce(x.double())", "float32 [4]", "float64 [4]"),
    "reduction": ("dist.all_reduce(x)", "dist.all_reduce(x, dist.ReduceOp.MAX)", "SUM", "MAX"),
    "root": ("dist.broadcast(x, 0)", "dist.broadcast(x, 1)", "src=0", "src=1"),
    "parts": (
        "dist.all_to_all_single(x, x.clone(), [1, 3], [1, 3])",
        "dist.all_to_all_single(x, x.clone(), [1, 3], [1, 3])",
        "sizes do not agree",
        "bytes",
    ),
}


def test_ranks_that_differ_are_told_at_once_with_both_call_sites() -> None:
    outputs = run(
        2,
        f"""
for name, (mine, theirs, *words) in {MISMATCHES!r}.items():
    make()
    x = vesta.ones(4, device="cuda")
    dist.all_reduce(x)
    x.fill_(1)
    y = x * 1
    vesta.cuda.synchronize()
    def differ():
        # the call returns at once; the values that nobody wrote are not handed out
        exec(compile((mine, theirs)[rank], f"site_{{'ab'[rank]}}.py", "exec"))
        x.tolist()
        dist.barrier()  # a rank whose own values are right hears of it here
    start = time.monotonic()
    error = raised(differ, *words, "group 'default", "rank 0 (host", "rank 1 (host")
    print(name, time.monotonic() - start)
    if name != "parts": assert "site_a.py:1" in error and "site_b.py:1" in error, error
    raised(lambda: dist.all_reduce(y))               # the group is of no use any more
    assert y.tolist() == [1.0] * 4                   # the device is
    store.set(f"{{name}}{{rank}}", "")
    store.wait([f"{{name}}{{r}}" for r in range(n)])
    dist.destroy_process_group()
make()
z = vesta.ones(2, device="cuda")
dist.all_reduce(z)
assert z.tolist() == [2.0, 2.0]
dist.destroy_process_group()
""",
    )
    for out in outputs:
        times = dict(line.split() for line in out.splitlines())
        assert set(times) == set(MISMATCHES)
        assert max(map(float, times.values())) < 20, times  # a second on an idle machine


DEATH = """
make()
x = vesta.ones(4, device="cuda")
dist.all_reduce(x)
dist.barrier()
"""


def test_a_killed_rank_is_named_and_its_streams_hang_nobody() -> None:
    program = (
        PRELUDE
        + DEATH
        + """
if rank == 1:
    store.set("pid", str(os.getpid()))
    time.sleep(600)
else:
    store.wait(["pid"])
    work = dist.all_reduce(x, async_op=True)
    os.kill(int(store.get("pid")), signal.SIGKILL)
    start = time.monotonic()
    error = raised(lambda: (work.wait(), x.tolist()), "all_reduce #3", "rank 1", "died", "SIGKILL")
    print(time.monotonic() - start)
    raised(lambda: work.wait(), "rank 1")
    raised(lambda: dist.barrier(), "rank 1")
    assert (x * 0).tolist() == (x * 0).tolist()
    dist.destroy_process_group()
"""
    )
    with Ranks(2, program, environment=ENVIRONMENT) as ranks:
        results = ranks.wait()
    assert results[0][0] == 0, results[0][2]
    assert float(results[0][1]) < 20
    assert results[1][0] == -9


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("async_error@3", ("remote process exited",)),
        ("hang@3", ("timed out after 3000 ms",)),
        ("call_error@3", ("internal error",)),
    ],
)
def test_faults_of_nccl_end_the_group_on_every_rank(fault: str, words: tuple[str, ...]) -> None:
    run(
        2,
        f"""
if rank == 1: os.environ["FAKE_NCCL"] = {fault!r}
make(3 if {fault!r} == "hang@3" else SECONDS)
x = vesta.ones(4, device="cuda")
for _ in range(2): dist.all_reduce(x)
vesta.cuda.synchronize()  # NCCL's error is the communicator's: it ends what is under way, and that is to be the third
store.set(f"two{{rank}}", "")
store.wait(["two0", "two1"])
def third():
    dist.all_reduce(x)
    x.tolist()
error = raised(third, "all_reduce #3", *{words!r}, within=40)
if rank == 0 and not {fault!r}.startswith("hang"): assert "rank 1" in error or "group" in error, error
leave()
os.environ.pop("FAKE_NCCL", None)
dist.destroy_process_group()
assert (vesta.ones(2, device="cuda") + 1).tolist() == [2.0, 2.0]
""",
    )


def test_what_is_under_way_when_the_group_fails_is_let_go() -> None:
    run(
        2,
        """
if rank == 1: os.environ["FAKE_NCCL"] = "hang@2"
make()
dist.all_reduce(vesta.ones(1, device="cuda"))
vesta.cuda.synchronize()
def kept():
    gc.collect()
    return vesta.cuda.memory_allocated()
base = kept()
works = [dist.all_reduce(vesta.ones(1 << 18, device="cuda"), async_op=True) for _ in range(4)]
assert kept() - base >= 4 << 20
futures = [w.get_future() for w in works]
store.set(f"queued{rank}", "")
store.wait(["queued0", "queued1"])
if rank == 1: dist.group.WORLD.abort("enough")
raised(vesta.cuda.synchronize, "aborted by rank 1", "enough", within=40)  # nobody wrote what was to be there
for w, f in zip(works, futures):
    raised(w.wait, "aborted by rank 1", "enough")
    raised(f.wait, "aborted by rank 1", "enough")
del futures, f
assert kept() == base, kept() - base
assert (vesta.ones(2, device="cuda") + 1).tolist() == [2.0, 2.0]
leave()
dist.destroy_process_group()
""",
    )


def test_a_process_that_ends_lets_its_last_collective_end() -> None:
    run(
        2,
        """
make()
x = vesta.ones(4, device="cuda")
dist.all_reduce(x)
if rank == 0: time.sleep(0.5)
dist.all_reduce(x)  # rank 1 ends without reading the result, and without destroy_process_group
if rank == 0: assert x.tolist() == [4.0] * 4, x
""",
    )


def test_a_rank_that_does_not_come_is_named_when_time_is_over() -> None:
    run(
        2,
        """
make(4)
x = vesta.ones(4, device="cuda")
if rank == 0:
    # the first call, so that the others are waited for while the communicator is made
    raised(lambda: dist.all_reduce(x), "timed out after 4000 ms", "rank 1", "has not come", within=40)
else:
    time.sleep(7)
leave()
dist.destroy_process_group()
make(4)
dist.all_reduce(x)
if rank == 0:
    def late():
        dist.all_reduce(x)
        vesta.cuda.synchronize()
    raised(late, "all_reduce #2", "timed out after 4000 ms", "rank 1", "has not come", within=40)
store.set(f"second{rank}", "")
store.wait(["second0", "second1"])
""",
    )


def test_faults_while_a_communicator_is_made() -> None:
    run(
        2,
        """
make(4)
x = vesta.ones(4, device="cuda")
if rank == 1: os.environ["FAKE_NCCL"] = "init_hang"
raised(lambda: dist.all_reduce(x), "timed out after 4000 ms", within=40)
leave()
dist.destroy_process_group()
if rank == 1: os.environ["FAKE_NCCL"] = "init_error"
make()
error = raised(lambda: dist.all_reduce(x), "ncclCommInitRankConfig", within=40)
store.set(f"second{rank}", "")
store.wait(["second0", "second1"])
dist.destroy_process_group()
os.environ.pop("FAKE_NCCL", None)
make()
dist.all_reduce(x)
assert x.tolist() == [2.0] * 4
dist.destroy_process_group()
""",
    )


def test_an_abort_that_hangs_raises_and_the_device_is_lost() -> None:
    program = (
        PRELUDE
        + """
os.environ["FAKE_NCCL"] = "abort_hang,hang@2"
make(2)
x = vesta.ones(4, device="cuda")
dist.all_reduce(x)
dist.all_reduce(x)
for wait in (vesta.cuda.synchronize, x.tolist, vesta.cuda.current_stream().synchronize):
    try: wait()
    except dist.DistBackendError as error: print("raised", error)
"""
    )
    start = time.monotonic()
    with Ranks(2, program, environment={**ENVIRONMENT, "VESTA_NCCL_ABORT_TIMEOUT": "1.5"}) as ranks:
        results = ranks.wait()
    for code, out, err in results:
        assert code == 0 and out.count("raised") == 3, (code, out, err)
        for words in ("NCCL did not end its operations within 1.5 s", "timed out after 2000 ms", "End this process"):
            assert words in out, (out, err)
    assert time.monotonic() - start < 60


def test_a_patience_that_is_no_number_of_seconds_is_refused() -> None:
    run(
        1,
        """
for wrong in ("soon", "5 s", "nan", "inf", "-1", " "):
    os.environ["VESTA_NCCL_ABORT_TIMEOUT"] = wrong
    try: make()
    except ValueError as error:
        assert "VESTA_NCCL_ABORT_TIMEOUT" in str(error) and f"'{wrong}'" in str(error), error
    else: raise AssertionError(wrong)
for right in ("", "0", "2.5", "1e9"):
    os.environ["VESTA_NCCL_ABORT_TIMEOUT"] = right
    make()
    x = vesta.ones(4, device="cuda")
    dist.all_reduce(x)
    assert x.tolist() == [1.0] * 4
    dist.destroy_process_group()
""",
    )


def test_what_does_not_fit_is_refused_before_anything_is_sent() -> None:
    run(
        2,
        """
make()
x = vesta.ones(4, device="cuda")
def refused(call, kind, *words):
    try: call()
    except kind as error:
        for word in words: assert word in str(error), (word, str(error))
    else: raise AssertionError(words)
refused(lambda: dist.all_reduce(vesta.ones(2)), vesta.DeviceError, "got one on cpu", "cpu:gloo,cuda:nccl")
refused(lambda: dist.all_gather([vesta.ones(4, device="cuda:1"), x], x), vesta.DeviceError, "one device")
refused(lambda: dist.all_gather([x], x), ValueError, "2 ranks")
refused(lambda: dist.all_reduce(vesta.ones(2, dtype=vesta.int16, device="cuda")), TypeError, "int16")
refused(lambda: dist.all_reduce(vesta.ones(2, dtype=vesta.int32, device="cuda"), dist.ReduceOp.BAND), TypeError, "BAND")
refused(lambda: dist.broadcast(x, 5), ValueError)
refused(lambda: dist.all_to_all_single(x, x, [1, 1], [2, 2]), ValueError, "output")
dist.all_reduce(x)
assert x.tolist() == [2.0] * 4
# a device of its own for each communicator
y = vesta.ones(4, device="cuda:1")
dist.all_reduce(y)
assert y.tolist() == [2.0] * 4 and y.get_device() == 1
dist.destroy_process_group()
""",
    )


def test_a_backend_for_each_device_and_objects() -> None:
    run(
        2,
        """
make()
got = [None, None]
dist.all_gather_object(got, {"rank": rank, "more": "x" * rank})
assert got == [{"rank": 0, "more": ""}, {"rank": 1, "more": "x"}]
seen = [rank, "a"] if rank == 0 else [None, None]
dist.broadcast_object_list(seen, 0)
assert seen == [0, "a"]
dist.destroy_process_group()
dist.init_process_group("cpu:gloo,cuda:nccl", timeout=timedelta(seconds=SECONDS))
assert dist.get_backend_config() == "cpu:gloo,cuda:nccl"
before = fake.fake_nccl_operations()
x = vesta.ones(3)
dist.all_reduce(x)
assert x.tolist() == [2.0] * 3 and fake.fake_nccl_operations() == before
y = vesta.ones(3, device="cuda")
dist.all_reduce(y)
assert y.tolist() == [2.0] * 3 and fake.fake_nccl_operations() == before + 1
got = [None, None]
dist.all_gather_object(got, rank)
assert got == [0, 1]
works = [dist.isend(t, 1 - rank) for t in (vesta.full((2,), float(rank)), vesta.full((2,), 5.0 + rank, device="cuda"))]
outs = [vesta.zeros(2), vesta.zeros(2, device="cuda")]
for out in outs: dist.recv(out, 1 - rank)
for w in works: w.wait()
assert outs[0].tolist() == [1.0 - rank] * 2 and outs[1].tolist() == [6.0 - rank] * 2
dist.barrier()
dist.destroy_process_group()
""",
    )


def test_versions_and_libraries_that_are_missing() -> None:
    program = """
import vesta, vesta.distributed as dist
print(dist.is_nccl_available())
try: print(vesta.cuda.nccl.version())
except RuntimeError as error: print(error)
if not dist.is_nccl_available():
    try: dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    except dist.DistributedError as error: print(error)
"""

    def told(**environment: str) -> str:
        env = {**os.environ, **ENVIRONMENT, **environment}
        done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert told().splitlines() == ["True", "(2, 28, 9)"]
    old = told(FAKE_NCCL="old")
    assert old.startswith("False") and old.count("NCCL 21200") == 2 and "too old" in old
    missing = told(VESTA_CUDA_LIB_DIR="/nowhere")
    assert missing.startswith("False") and missing.count("NCCL was not found in /nowhere") == 2
    out = told(VESTA_CUDA_LIBRARIES="cublas")
    assert out.startswith("False") and "left out by VESTA_CUDA_LIBRARIES" in out


def headers() -> list[Path]:
    roots = [
        Path("/usr/local/cuda/include"),
        Path("/usr/include"),
        *Path(sys.prefix).glob("lib/*/site-packages/nvidia/*/include"),
    ]
    return [root / "nccl.h" for root in roots if (root / "nccl.h").exists()]


@pytest.mark.skipif(not headers(), reason="needs NCCL's header")
def test_the_numbers_are_those_of_the_header() -> None:
    ours = (Path(__file__).resolve().parents[2] / "cuda/nccl/nccl_abi.h").read_text()
    theirs = headers()[0].read_text()
    pairs = {
        "success": "ncclSuccess", "unhandled_cuda_error": "ncclUnhandledCudaError", "system_error": "ncclSystemError",
        "internal_error": "ncclInternalError", "invalid_argument": "ncclInvalidArgument",
        "invalid_usage": "ncclInvalidUsage", "remote_error": "ncclRemoteError", "in_progress": "ncclInProgress",
        "int8": "ncclInt8", "uint8": "ncclUint8", "int32": "ncclInt32", "uint32": "ncclUint32", "int64": "ncclInt64",
        "uint64": "ncclUint64", "float16": "ncclFloat16", "float32": "ncclFloat32", "float64": "ncclFloat64",
        "bfloat16": "ncclBfloat16", "op_sum": "ncclSum", "op_prod": "ncclProd", "op_max": "ncclMax",
        "op_min": "ncclMin", "op_avg": "ncclAvg", "num_ops": "ncclNumOps", "scalar_device": "ncclScalarDevice",
        "scalar_host_immediate": "ncclScalarHostImmediate",
    }  # fmt: skip
    for mine, its in pairs.items():
        (a,) = re.findall(rf"\b{mine} = (\d+)", ours)
        (b,) = re.findall(rf"\b{its}\s*=\s*(\d+)", theirs)
        assert a == b, (mine, a, b)
    fields = re.search(r"size_t size;\s*unsigned int magic;\s*unsigned int version;.*?int splitShare;", theirs, re.S)
    assert fields and re.findall(r"(?:int|char \*) ?(\w+);", fields[0])[:8] == [
        "magic", "version", "blocking", "cgaClusterSize", "minCTAs", "maxCTAs", "netName", "splitShare",
    ]  # fmt: skip
    assert "0xcafebeef" in theirs and "char internal[NCCL_UNIQUE_ID_BYTES]" in theirs
    assert re.search(r"NCCL_UNIQUE_ID_BYTES 128", theirs)


@pytest.mark.skipif(not headers(), reason="needs NCCL")
def test_the_library_has_every_function() -> None:
    for folder in (headers()[0].parents[1] / "lib64", headers()[0].parents[1] / "lib"):
        if not (folder / "libnccl.so.2").exists():
            continue
        real = ctypes.CDLL(str(folder / "libnccl.so.2"))
        source = (Path(__file__).resolve().parents[2] / "cuda/nccl/nccl_library.cpp").read_text()
        names = re.findall(r'"(nccl[A-Z]\w+)"', source)
        assert len(names) == 20
        for name in names:
            assert hasattr(real, name), name
        number = ctypes.c_int()
        assert real.ncclGetVersion(ctypes.byref(number)) == 0 and number.value >= 21700
        return
    pytest.skip("needs NCCL")
