"""Messages beside collectives on devices with few hardware queues.

A stream of the emulated device shares its hardware queue with others: a task that waits for another rank holds up what
is queued behind it. So ranks that queue messages and collectives in different orders hang, here as on a GPU.
"""

from __future__ import annotations

import fake_nccl
import pytest
from distributed_ranks import Ranks, run_ranks
from fake_nccl import ENVIRONMENT

pytestmark = fake_nccl.needed

PRELUDE = """
import random
dist.init_process_group("nccl", timeout=timedelta(seconds=SECONDS))
def full(value, size=64):
    return vesta.full((size,), float(value), device="cuda")
def holds(t, value, what):
    assert t.cpu().tolist() == [float(value)] * t.numel(), (what, value, t[:3].cpu().tolist())
"""


def run(size: int, program: str, queues: int, schedule: str = "eager") -> None:
    environment = {**ENVIRONMENT, "VESTA_EMULATION_QUEUES": str(queues), "VESTA_EMULATION_SCHEDULE": schedule}
    run_ranks(size, "SECONDS = 40\n" + PRELUDE + program, 100, environment=environment)


EXCHANGES = """
# each pair sends and receives in opposite orders, in both directions, again and again
for size in (8, 100_000):
    for other in [r for r in range(n) if r != rank] + [r for r in reversed(range(n)) if r != rank]:
        got, t = full(-1, size), full(10 * rank + other, size)
        works = [dist.isend(t, other), dist.irecv(got, other)] if rank < other else [
                 dist.irecv(got, other), dist.isend(t, other)]
        for w in works: w.wait()
        holds(got, 10 * other + rank, "exchange")
# everything at once, begun in an order of each rank's own
peers = [(rank * (k + 1) + k) % n for k in range(n)] + list(range(n))
peers = [p for i, p in enumerate(peers) if p != rank and p not in peers[:i]]
gots = {p: full(-1) for p in peers}
works = [dist.isend(full(10 * rank + p), p) for p in peers] + [dist.irecv(gots[p], p) for p in reversed(peers)]
for w in works: w.wait()
for p in peers: holds(gots[p], 10 * p + rank, "all pairs")
# a ring as one batch
got = full(-1)
ops = [dist.P2POp(dist.isend, full(rank), (rank + 1) % n), dist.P2POp(dist.irecv, got, (rank - 1) % n)]
for w in dist.batch_isend_irecv(ops): w.wait()
holds(got, (rank - 1) % n, "ring")
# collectives between messages: before both, between the two calls of a message, after both
for turn in range(3):
    for early_send in (False, True):
        for early_receive in (False, True):
            got, total = full(-1), full(rank)
            if rank == 0 and early_send: w = dist.isend(full(turn), 1)
            if rank == 1 and early_receive: w = dist.irecv(got, 0)
            reduced = dist.all_reduce(total, async_op=turn == 2)
            if rank == 0 and not early_send: w = dist.isend(full(turn), 1)
            if rank == 1 and not early_receive: w = dist.irecv(got, 0)
            if rank < 2: w.wait()
            if turn == 2: reduced.wait()
            holds(total, n * (n - 1) // 2, "sum")
            if rank == 1: holds(got, turn, "beside a sum")
# a message first on one side, begun before the collective on the other
got, total = full(-1), full(1)
if rank == 0: w = dist.isend(full(5), 1)
if rank == 1:
    dist.recv(got, 0)
    holds(got, 5, "first")
dist.all_reduce(total)
if rank == 0: w.wait()
holds(total, n, "sum")
# groups of their own have messages, too
pairs = [dist.new_group([r, r + 1]) for r in range(0, n, 2)]
mine, other = pairs[rank // 2], rank ^ 1
got = full(-1)
w = dist.isend(full(rank), other, group=mine)
dist.recv(got, other, group=mine)
w.wait()
holds(got, other, "in a group")
dist.barrier()
"""


@pytest.mark.parametrize(
    ("queues", "schedule"),
    [(1, "eager"), (2, "random"), (8, "lazy"),
     *(pytest.param(q, s, marks=pytest.mark.campaign) for q in (1, 2, 8) for s in ("eager", "lazy", "random"))],
)  # fmt: skip
def test_exchanges_and_collectives_do_not_block_each_other(queues: int, schedule: str) -> None:
    run(4, EXCHANGES, queues, schedule)


PIPELINE = """
# one forward, one backward: a stage keeps at most n - rank microbatches under way; gradients travel beside activations
microbatches, last = 6, rank == n - 1
weight, grad = full(rank + 1), vesta.zeros(64, device="cuda")
def forward(k):
    x = full(k)
    if rank: dist.recv(x, rank - 1)
    y = x * weight
    sent = None if last else dist.isend(y, rank + 1)
    return x, y, sent
def backward(x, y):
    global grad
    g = vesta.ones_like(y)
    if not last: dist.recv(g, rank + 1)
    grad = grad + g * x
    return dist.isend(g * weight, rank - 1) if rank else None
for step in range(2):
    grad.zero_()
    under_way, sends = [], []
    warm_up = min(n - rank - 1, microbatches)
    for k in range(microbatches):
        x, y, sent = forward(k)
        under_way.append((x, y))
        sends.append(sent)
        if k >= warm_up: sends.append(backward(*under_way.pop(0)))
    while under_way: sends.append(backward(*under_way.pop(0)))
    norm = (grad * grad).sum().reshape(1)
    dist.all_reduce(norm)  # while sends may be under way
    for w in sends:
        if w is not None: w.wait()
    product = 1.0
    for r in range(n): product *= r + 1
    want = sum(range(microbatches)) * product / (rank + 1)
    holds(grad, want, "gradient")
    total = sum((sum(range(microbatches)) * product / (r + 1)) ** 2 * 64 for r in range(n))
    assert abs(norm.item() / total - 1) < 1e-5, (norm.item(), total)
"""


@pytest.mark.parametrize("queues", [1, 2, 8])
def test_a_pipeline_of_four_stages(queues: int) -> None:
    run(4, PIPELINE, queues)


RANDOM = """
class Step:
    def __init__(self, kind, source, target, number):
        self.kind, self.source, self.target, self.number = kind, source, target, number
def make_program(rng):
    # in this order everything could run one after the other, so it is valid; the ranks begin and end it in others
    steps = []
    for number in range(rng.randrange(6, 22)):
        if rng.random() < 0.3: steps.append(Step(rng.choice(["sum", "gather"]), -1, -1, number))
        else:
            source, target = rng.sample(range(n), 2)
            steps.append(Step("message", source, target, number))
    return steps
def run_program(seed):
    rng = random.Random(seed)
    steps = make_program(rng)
    own = random.Random(seed * 100 + rank)
    mine = [s for s in steps if s.kind != "message" or rank in (s.source, s.target)]
    # a message is begun up to three places earlier, but not before one of its direction
    order = []
    for s in mine:
        at = len(order)
        for _ in range(own.randrange(4)):
            before = order[at - 1] if at else None
            if s.kind != "message" or before is None: break
            if before.kind == "message" and (before.source, before.target) == (s.source, s.target): break
            at -= 1
        order.insert(at, s)
    begun, done, results = {}, set(), []
    def end(s):
        if s.number in done: return
        done.add(s.number)
        begun[s.number][0].wait()
    place = {s.number: i for i, s in enumerate(mine)}
    ended = 0
    for s in order:
        # before what comes later in the common order may be waited for, everything before it is begun
        if s.kind == "message":
            t = full(s.number) if rank == s.source else full(-1)
            w = dist.isend(t, s.target) if rank == s.source else dist.irecv(t, s.source)
            if rank == s.target: results.append((t, s.number, s.kind))
        elif s.kind == "sum":
            t = full(rank + s.number)
            w = dist.all_reduce(t, async_op=True)
            results.append((t, n * (n - 1) // 2 + n * s.number, s.kind))
        else:
            parts = [full(-1) for _ in range(n)]
            w = dist.all_gather(parts, full(rank * s.number), async_op=True)
            results += [(parts[r], r * s.number, s.kind) for r in range(n)]
        begun[s.number] = (w, s)
        # wait for a prefix of the common order that has been begun
        while ended < len(mine) and mine[ended].number in begun and own.random() < 0.7:
            end(mine[ended])
            ended += 1
    for s in mine[ended:]: end(s)
    for t, value, kind in results: holds(t, value, (seed, kind))
for seed in SEEDS: run_program(seed)
"""


@pytest.mark.parametrize("queues", [1, 2, 8])
def test_random_programs_end_with_the_right_values(queues: int) -> None:
    run(3 if queues == 2 else 4, RANDOM.replace("SEEDS", f"range({100 * queues}, {100 * queues + 25})"), queues)


@pytest.mark.campaign
@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
@pytest.mark.parametrize("queues", [1, 2, 3])
def test_many_random_programs(queues: int, schedule: str) -> None:
    for size in (2, 3, 4, 6):
        run(size, RANDOM.replace("SEEDS", f"range({1000 * size}, {1000 * size + 60})"), queues, schedule)


@pytest.mark.parametrize("dies", [0, 2])
def test_a_rank_that_dies_is_named_by_messages_and_collectives_that_wait(dies: int) -> None:
    program = (
        "SECONDS = 40\n"
        + PRELUDE
        + f"""
got = full(-1)
dist.all_reduce(full(1))
w = dist.isend(full(rank), (rank + 1) % n)
dist.recv(got, (rank - 1) % n)
holds(got, (rank - 1) % n, "ring")
if rank == {dies}:
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGKILL)
works = [dist.isend(full(1), r) for r in range(n) if r != rank]
try:
    start = time.monotonic()
    t = full(1)
    dist.all_reduce(t)
    t.item()
    raise SystemExit("no error")
except dist.DistributedError as error:
    assert "rank {dies}" in str(error) and "died" in str(error), str(error)
    assert time.monotonic() - start < 20
time.sleep(1)
"""
    )
    with Ranks(3, program, environment={**ENVIRONMENT, "VESTA_EMULATION_QUEUES": "1"}) as ranks:
        results = ranks.wait(60)
    for rank, (code, out, err) in enumerate(results):
        assert code == (-9 if rank == dies else 0), (rank, code, out, err)


def test_a_message_that_nobody_takes_is_named_when_time_is_over() -> None:
    run_ranks(
        2,
        "SECONDS = 3\n"
        + PRELUDE
        + """
try:
    if rank == 0:
        w = dist.isend(full(1), 1)  # returns at once
        t = full(1)
        dist.all_reduce(t)  # rank 1 neither receives nor calls this
        t.item()
        raise SystemExit("no error")
    time.sleep(6)
    dist.all_reduce(full(1))
except dist.DistributedError as error:
    assert "timed out" in str(error) and ("rank 1" in str(error)), str(error)
""",
        60,
        environment={**ENVIRONMENT, "VESTA_EMULATION_QUEUES": "1"},
    )


def test_messages_go_on_after_the_first_rank_has_left() -> None:
    run(
        3,
        """
dist.all_reduce(full(1))
if rank:
    for turn in range(40):  # rank 0 leaves somewhere between
        got = full(-1)
        w = dist.isend(full(turn + rank), 3 - rank)
        dist.recv(got, 3 - rank)
        w.wait()
        holds(got, turn + 3 - rank, "after rank 0")
        time.sleep(0.01)
dist.destroy_process_group()
""",
        1,
    )
