"""Every collective x dtype x number of ranks against a local reference; the ranks are threads of this process."""

from __future__ import annotations

import functools
import gc
import operator

import pytest
import vesta
from distributed_ranks import make_groups, on_threads
from vesta.distributed import ReduceOp

DTYPES = [
    vesta.bool, vesta.uint8, vesta.int8, vesta.int16, vesta.int32, vesta.int64, vesta.float16, vesta.bfloat16,
    vesta.float32, vesta.float64, vesta.complex64, vesta.complex128,
]  # fmt: skip
FLOATS = (vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64, vesta.complex64, vesta.complex128)
INTEGERS = (vesta.uint8, vesta.int8, vesta.int16, vesta.int32, vesta.int64)
COMPLEX = (vesta.complex64, vesta.complex128)
SIZES = (1, 2, 3, 4)
#: Few elements are sent in our own messages, many (more than 256 KiB in any dtype) by Gloo.
FEW, MANY = 7, 270_011
SIMPLE = {
    "SUM": operator.add,
    "PRODUCT": operator.mul,
    "MIN": lambda a, b: vesta.where(a < b, a, b),
    "MAX": lambda a, b: vesta.where(a < b, b, a),
    "BAND": operator.and_,
    "BOR": operator.or_,
    "BXOR": operator.xor,
}
#: The meaning of PyTorch's operators for bools.
TRUTH = {
    "SUM": operator.or_, "PRODUCT": operator.and_, "MIN": operator.and_, "MAX": operator.or_, "BAND": operator.and_,
    "BOR": operator.or_, "BXOR": operator.xor,
}  # fmt: skip


@pytest.fixture(scope="module")
def groups():
    """Groups of 1 to 4 ranks, each with all its members in this process."""
    made = {size: make_groups(size) for size in SIZES}
    yield made
    for members in made.values():
        on_threads(len(members), lambda rank, members=members: members[rank].shutdown())
    made.clear()
    gc.collect()


def values(rank, numel, dtype, salt=0):
    """Returns values that differ by rank and position; sums and products of four are exact in every dtype."""
    base = (vesta.arange(numel) * 7 + rank * 3 + salt) % 5
    if dtype == vesta.bool:
        return base % 2 == 0
    if dtype in COMPLEX:
        return base.to(dtype) + 1j * ((base + 1) % 3).to(dtype)
    return (base - (0 if dtype == vesta.uint8 else 2)).to(dtype)


def same(got, expected):
    assert got.dtype == expected.dtype and got.shape == expected.shape
    assert bool((got == expected).all()), f"got {got.flatten()[:8]}, expected {expected.flatten()[:8]}"


def operators(dtype):
    names = ["SUM", "PRODUCT"]
    if dtype not in COMPLEX:
        names += ["MIN", "MAX"]
    if dtype in INTEGERS or dtype == vesta.bool:
        names += ["BAND", "BOR", "BXOR"]
    if dtype in FLOATS:
        names += ["AVG"]
    return names


def reduced(tensors, op, dtype):
    """Computes the local reference, in rank order."""
    if op == "AVG":
        total = functools.reduce(operator.add, tensors)
        return (total.to(vesta.float32) / len(tensors)).to(dtype) if dtype in FLOATS[:2] else total / len(tensors)
    return functools.reduce((TRUTH if dtype == vesta.bool else SIMPLE)[op], tensors)


def everywhere(members, work):
    """Calls work(rank, group) on a thread per rank."""
    return on_threads(len(members), lambda rank: work(rank, members[rank]))


@pytest.mark.differs
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions(groups, size, dtype):
    members = groups[size]
    for op in operators(dtype):
        for numel in (FEW, MANY) if op in ("SUM", "MAX", "BXOR") else (FEW,):
            inputs = [values(r, numel, dtype) for r in range(size)]
            expected = reduced(inputs, op, dtype)
            code = getattr(ReduceOp, op)

            def work(rank, g, inputs=inputs, expected=expected, code=code, numel=numel, op=op):
                t = inputs[rank].clone()
                g.allreduce([t], code).wait()
                same(t, expected)
                t = inputs[rank].clone()
                g.reduce(t, size - 1, code).wait()
                same(t, expected if rank == size - 1 else inputs[rank])
                parts = [values(rank, numel, dtype, salt) for salt in range(size)]
                out = vesta.empty(numel, dtype=dtype)
                wanted = reduced([values(r, numel, dtype, rank) for r in range(size)], op, dtype)
                g.reduce_scatter(out, parts, code).wait()
                same(out, wanted)
                out = vesta.empty(numel, dtype=dtype)
                g._reduce_scatter_base(out, vesta.cat(parts), code).wait()
                same(out, wanted)

            everywhere(members, work)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_copies(groups, size, dtype):
    members = groups[size]
    for numel in (FEW, MANY):
        inputs = [values(r, numel, dtype) for r in range(size)]
        scattered = [values(r, numel, dtype, 2) for r in range(size)]

        def work(rank, g, inputs=inputs, scattered=scattered, numel=numel):
            def empty(n=numel):
                return vesta.empty(n, dtype=dtype)

            t = inputs[rank].clone()
            g.broadcast([t], size - 1).wait()
            same(t, inputs[size - 1])
            outs = [empty() for _ in range(size)]
            g.allgather(outs, inputs[rank]).wait()
            for got, expected in zip(outs, inputs):
                same(got, expected)
            whole = empty(numel * size)
            g._allgather_base(whole, inputs[rank]).wait()
            same(whole, vesta.cat(inputs))
            outs = [empty() for _ in range(size)] if rank == 0 else []
            g.gather(outs, inputs[rank], 0).wait()
            for got, expected in zip(outs, inputs):
                same(got, expected)
            t = empty()
            g.scatter(t, scattered if rank == size - 1 else [], size - 1).wait()
            same(t, scattered[rank])

        everywhere(members, work)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_to_all(groups, size, dtype):
    members = groups[size]

    def rows(sender, receiver, base):
        return base + 2 * sender + receiver  # every pair has its own size

    for base in (0, 90_000):

        def work(rank, g, base=base):
            sent = [values(rank, 3 * rows(rank, r, base), dtype, r).reshape(-1, 3) for r in range(size)]
            wanted = [values(r, 3 * rows(r, rank, base), dtype, rank).reshape(-1, 3) for r in range(size)]
            outs = [vesta.empty(t.shape, dtype=dtype) for t in wanted]
            g.alltoall(outs, sent).wait()
            for got, expected in zip(outs, wanted):
                same(got, expected)
            out = vesta.empty((sum(t.shape[0] for t in wanted), 3), dtype=dtype)
            g.alltoall_base(out, vesta.cat(sent), [t.shape[0] for t in wanted], [t.shape[0] for t in sent]).wait()
            same(out, vesta.cat(wanted))

        everywhere(members, work)

    def equal_parts(rank, g):
        out = vesta.empty(size * 2, dtype=dtype)
        g.alltoall_base(out, vesta.cat([values(rank, 2, dtype, r) for r in range(size)])).wait()
        same(out, vesta.cat([values(r, 2, dtype, rank) for r in range(size)]))

    everywhere(members, equal_parts)


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_messages(groups, size, dtype):
    def work(rank, g):
        after, before = (rank + 1) % size, (rank - 1) % size
        for numel in (FEW, MANY):
            into = [vesta.empty(numel, dtype=dtype) for _ in range(2)]
            # Receives first, on all ranks, with swapped tags: the order must not matter.
            receives = [g.recv(into[0], before, 5), g.recv(into[1], before, 6)]
            sends = [g.send(values(rank, numel, dtype, 6), after, 6), g.send(values(rank, numel, dtype, 5), after, 5)]
            for message in receives + sends:
                message.wait()
            same(into[0], values(before, numel, dtype, 5))
            same(into[1], values(before, numel, dtype, 6))
            assert receives[0].source_rank() == before
        if rank == 0:  # from any rank
            seen = set()
            for _ in range(size - 1):
                t = vesta.empty(FEW, dtype=dtype)
                message = g.recv(t, -1, 9)
                message.wait()
                same(t, values(message.source_rank(), FEW, dtype))
                seen.add(message.source_rank())
            assert seen == set(range(1, size))
        else:
            g.send(values(rank, FEW, dtype), 0, 9).wait()

    everywhere(groups[size], work)


def test_several_tensors_are_one_operation(groups):
    def work(rank, g):
        before = g._sequence_number()
        for lengths in ((3, 0, 5), (80_000, 3, 1)):
            tensors = [vesta.full((n,), float(rank + i)) for i, n in enumerate(lengths)]
            g.allreduce(tensors).wait()
            for i, t in enumerate(tensors):
                assert t.tolist() == [3.0 * i + 3] * lengths[i]
            tensors = [vesta.full((n,), float(rank)) for n in lengths]
            g.broadcast(tensors, 2).wait()
            assert all((t == 2).all() for t in tensors)
        assert g._sequence_number() == before + 4

    everywhere(groups[3], work)


def test_coalesced_calls_end_with_one_work(groups):
    def work(rank, g):
        a, b = vesta.ones(3), vesta.ones(3)
        g._start_coalescing()
        g.allreduce([a])
        g.broadcast([b.mul_(rank)], 1)
        done = g._end_coalescing()
        done.wait()
        assert a.tolist() == [3.0] * 3 and b.tolist() == [1.0] * 3

    everywhere(groups[3], work)


@pytest.mark.differs
def test_strided_and_empty_tensors(groups):
    def work(rank, g):
        base = vesta.zeros(4, 6)
        view = base[:, ::2].t()
        view.fill_(float(rank + 1))
        g.allreduce([view]).wait()
        assert base[:, ::2].tolist() == [[3.0] * 3] * 4 and base[:, 1::2].sum().item() == 0
        target = vesta.zeros(2, 3).t()
        g.broadcast([target if rank else vesta.arange(6.0).reshape(3, 2)], 0).wait()
        if rank:
            assert target.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
        empty = vesta.empty(0, 3)
        g.allreduce([empty]).wait()
        outs = [vesta.empty(0, 3) for _ in range(2)]
        g.allgather(outs, empty).wait()
        g.alltoall_base(vesta.empty(0), vesta.empty(0)).wait()

    everywhere(groups[2], work)


@pytest.mark.parametrize("numel", (FEW, MANY))
def test_floats_have_the_same_bits_on_all_ranks_and_every_time(groups, numel):
    vesta.manual_seed(0)
    inputs = [vesta.randn(numel) for _ in range(4)]

    def work(rank, g):
        t = inputs[rank].clone()
        g.allreduce([t]).wait()
        return t

    first = everywhere(groups[4], work)
    again = everywhere(groups[4], work)
    for t in first[1:] + again:
        assert (t == first[0]).all()
    total = sum(t.to(vesta.float64) for t in inputs)
    assert (first[0].to(vesta.float64) - total).abs().max().item() < 1e-5


def test_premultiplied_sum_and_nan(groups):
    from vesta._C._distributed import _make_premul_sum

    def work(rank, g):
        t = vesta.full((3,), 2.0)
        g.allreduce([t], _make_premul_sum(rank + 0.5)).wait()
        assert t.tolist() == [4.0] * 3
        t = vesta.tensor([float("nan") if rank else 1.0, 1.0 + rank])
        g.allreduce([t], ReduceOp.MAX).wait()
        assert t.isnan().tolist() == [True, False] and t[1].item() == 2

    everywhere(groups[2], work)


def test_order_is_kept_and_work_knows_its_state(groups):
    def work(rank, g):
        t = vesta.ones(1)
        works = [g.allreduce([t]) for _ in range(20)]
        numbers = [w._sequence_number() for w in works]
        assert numbers == list(range(numbers[0], numbers[0] + 20))
        works[-1].wait()
        assert all(w.is_completed() and w.is_success() and w.exception() is None for w in works)
        assert t.item() == 2.0**20

    everywhere(groups[2], work)


@pytest.mark.differs
def test_nothing_is_kept_after_wait(groups):
    live = vesta._C._live_tensors

    def work(rank, g):
        kept = []
        for numel in (FEW, MANY):
            t, outs = vesta.ones(numel), [vesta.empty(numel) for _ in range(2)]
            kept += [g.allreduce([t]), g.allgather(outs, t), g.broadcast([t], 0), g.barrier()]
            kept.append(g.send(t, 1, 3) if rank == 0 else g.recv(t, 0, 3))
        for each in kept:
            each.wait()
            assert each.result() == []
        return kept  # keeps the Works alive

    everywhere(groups[2], work)
    gc.collect()
    before = live()
    kept = everywhere(groups[2], work)
    gc.collect()
    assert live() == before, "a Work that was waited for keeps a tensor alive"
    del kept


def test_results_and_futures(groups):
    from vesta.distributed._collectives import get_future

    def work(rank, g):
        t = vesta.ones(2)
        future = get_future(g.allreduce([t])).then(lambda f: f.value()[0] / 2)
        assert future.wait().tolist() == [1.0, 1.0]
        done = g.allreduce([t])
        while not done.is_completed():
            pass
        assert done.result()[0] is t

    everywhere(groups[2], work)


def test_bad_arguments_are_refused_before_anything_is_sent(groups):
    g = groups[2][0]
    with pytest.raises(TypeError, match="ReduceOp.MAX: expected another dtype, got complex64"):
        g.allreduce([vesta.zeros(2, dtype=vesta.complex64)], ReduceOp.MAX)
    with pytest.raises(TypeError, match=r"ReduceOp.AVG: expected another dtype, got int32"):
        g.allreduce([vesta.zeros(2, dtype=vesta.int32)], ReduceOp.AVG)
    with pytest.raises(TypeError, match="ReduceOp.BAND"):
        g.allreduce([vesta.zeros(2)], ReduceOp.BAND)
    with pytest.raises(ValueError, match="broadcast: expected a rank of the group, 0 to 1, got 2"):
        g.broadcast([vesta.zeros(2)], 2)
    with pytest.raises(ValueError, match="expected a tensor for each of 2 ranks, got 1"):
        g.allgather([vesta.zeros(2)], vesta.zeros(2))
    with pytest.raises(ValueError, match="expected tensors of the same size"):
        g.allgather([vesta.zeros(2), vesta.zeros(3)], vesta.zeros(2))
    with pytest.raises(ValueError, match="expected an output of 4 elements"):
        g._allgather_base(vesta.zeros(3), vesta.zeros(2))
    with pytest.raises(TypeError, match="expected tensors of one dtype"):
        g._allgather_base(vesta.zeros(4), vesta.zeros(2, dtype=vesta.int32))
    with pytest.raises(ValueError, match="splits that add up to 4 rows"):
        g.alltoall_base(vesta.zeros(4), vesta.zeros(4), [2, 2], [1, 2])
    with pytest.raises(ValueError, match="rows that 2 ranks can share, got 3"):
        g.alltoall_base(vesta.zeros(3), vesta.zeros(3))
    with pytest.raises(ValueError, match="send: expected another rank, got this one"):
        g.send(vesta.zeros(1), 0)
    with pytest.raises(ValueError, match="expected no list on a rank that is not the destination"):
        g.gather([vesta.zeros(1)] * 2, vesta.zeros(1), 1)
    with pytest.raises(ValueError, match="at least one tensor"):
        g.allreduce([])
    everywhere(groups[2], lambda rank, member: member.barrier().wait())  # the group still works
