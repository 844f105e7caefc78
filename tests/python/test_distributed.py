"""vesta.distributed as programs use it: default group, subgroups, objects, in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta

import pytest
import vesta.distributed as dist
from distributed_ranks import run_ranks


def test_two_processes_start_and_reduce():
    outputs = run_ranks(
        2,
        """
        dist.init_process_group("gloo")
        assert dist.is_initialized() and dist.get_backend() == "gloo"
        assert dist.get_rank() == rank and dist.get_world_size() == n
        t = vesta.ones(5) * (rank + 1)
        work = dist.all_reduce(t, async_op=True)
        work.wait()
        assert work.is_completed() and work.is_success() and t.tolist() == [3.0] * 5
        dist.broadcast(t, 1)
        dist.barrier()
        dist.destroy_process_group()
        assert not dist.is_initialized()
        print("done")
        """,
    )
    assert outputs == ["done\n"] * 2


def test_every_function_of_the_api():
    run_ranks(
        3,
        """
        dist.init_process_group()  # everything from the environment
        assert dist.get_node_local_rank() == rank and dist.get_pg_count() == 1
        after, before = (rank + 1) % n, (rank - 1) % n

        def full(value, size=2):
            return vesta.full((size,), float(value))

        t = full(rank); dist.all_reduce(t, dist.ReduceOp.MAX); assert t.tolist() == [2.0, 2.0]
        t = full(rank); dist.all_reduce(t, op=dist.ReduceOp.AVG); assert t.tolist() == [1.0, 1.0]
        a, b = full(1), full(rank, 3)
        dist.all_reduce_coalesced([a, b]); assert a.tolist() == [3.0] * 2 and b.tolist() == [3.0] * 3
        t = full(rank); dist.reduce(t, dst=1); assert t.tolist() == ([3.0] * 2 if rank == 1 else [float(rank)] * 2)
        t = full(rank); dist.broadcast(t, src=2); assert t.tolist() == [2.0] * 2
        outs = [full(9) for _ in range(n)]
        assert dist.all_gather(outs, full(rank)) is None and [o[0].item() for o in outs] == [0, 1, 2]
        whole = vesta.empty(n, 2); dist.all_gather_into_tensor(whole, full(rank))
        assert whole.tolist() == [[0.0] * 2, [1.0] * 2, [2.0] * 2]
        lists = [[full(9), full(9, 1)] for _ in range(n)]
        dist.all_gather_coalesced(lists, [full(rank), full(rank + 5, 1)])
        assert [pair[1].item() for pair in lists] == [5, 6, 7]
        outs = [full(9) for _ in range(n)] if rank == 0 else None
        dist.gather(full(rank), outs)
        assert rank or [o[1].item() for o in outs] == [0, 1, 2]
        t = full(9); dist.scatter(t, [full(10 + i) for i in range(n)] if rank == 1 else None, src=1)
        assert t.tolist() == [10.0 + rank] * 2
        t = full(9); dist.reduce_scatter(t, [full(i) for i in range(n)]); assert t.tolist() == [3.0 * rank] * 2
        t = full(9); dist.reduce_scatter_tensor(t, vesta.arange(6.0)); assert t.tolist() == [6.0 * rank, 6.0 * rank + 3]
        t = full(9, 3); dist.all_to_all_single(t, vesta.arange(3.0) + 10 * rank)
        assert t.tolist() == [rank, 10.0 + rank, 20.0 + rank]
        outs = [full(9) for _ in range(n)]; dist.all_to_all(outs, [full(10 * rank + i) for i in range(n)])
        assert [o[0].item() for o in outs] == [rank, 10 + rank, 20 + rank]

        t = full(9)
        ops = [dist.P2POp(dist.irecv, t, before), dist.P2POp(dist.isend, full(rank), after)]
        for work in dist.batch_isend_irecv(ops): work.wait()
        assert t.tolist() == [float(before)] * 2 and "isend" in repr(ops[1])
        if rank == 0:
            dist.send(full(5), 1, tag=7)
        elif rank == 1:
            assert dist.recv(t, tag=7) == 0 and t.tolist() == [5.0] * 2
        dist.monitored_barrier(timeout=timedelta(seconds=60))

        objects = [None] * n; dist.all_gather_object(objects, {"rank": rank, "long": "x" * 1000 * rank})
        assert [o["rank"] for o in objects] == [0, 1, 2] and len(objects[2]["long"]) == 2000
        objects = [None] * n if rank == 2 else None; dist.gather_object(("r", rank), objects, dst=2)
        assert rank != 2 or objects == [("r", 0), ("r", 1), ("r", 2)]
        objects = [rank, "s" * rank, None]; dist.broadcast_object_list(objects, src=2)
        assert objects == [2, "ss", None]
        out = [None]; dist.scatter_object_list(out, ["a", 2, {3}] if rank == 0 else None)
        assert out[0] == ["a", 2, {3}][rank]
        if rank == 0: dist.send_object_list(["x", 1], 2)
        if rank == 2:
            got = [None, None]; assert dist.recv_object_list(got, 0) == 0 and got == ["x", 1]

        with dist._coalescing_manager(async_ops=True) as manager:
            a, b = full(1), full(2); dist.all_reduce(a); dist.all_reduce(b)
        manager.wait(); assert a[0].item() == 3 and b[0].item() == 6
        future = dist.all_reduce(full(1), async_op=True).get_future().then(lambda f: f.value()[0] + 1)
        assert future.wait().tolist() == [4.0, 4.0]
        dist.destroy_process_group()
        """,
    )


def test_groups():
    run_ranks(
        4,
        """
        dist.init_process_group("gloo")
        world = dist.group.WORLD
        assert world is dist.GroupMember.WORLD and dist.get_process_group_ranks(None) == [0, 1, 2, 3]
        odd = dist.new_group([3, 1])
        even = dist.new_group([0, 2], timeout=timedelta(seconds=50))
        mine, other = (odd, even) if rank % 2 else (even, odd)
        assert other is dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(other) == -1 == dist.get_world_size(other)
        assert dist.get_rank(mine) == rank // 2 and dist.get_world_size(mine) == 2
        assert dist.get_process_group_ranks(mine) == ([1, 3] if rank % 2 else [0, 2])
        assert dist.get_global_rank(mine, 1) == 2 + rank % 2 and dist.get_group_rank(mine, rank) == rank // 2
        t = vesta.tensor([float(rank)])
        dist.all_reduce(t, group=mine); assert t.item() == (4 if rank % 2 else 2)
        import warnings
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            assert dist.all_reduce(t, group=other) is None
        assert "does not belong to the given group" in str(seen[0].message)
        t = vesta.tensor([float(rank)])
        dist.broadcast(t, src=2 + rank % 2, group=mine); assert t.item() == 2 + rank % 2  # global ranks
        dist.broadcast(t, group_src=0, group=mine); assert t.item() == 2 + rank % 2
        pair, pairs = dist.new_subgroups(2)
        assert dist.get_process_group_ranks(pair) == ([0, 1] if rank < 2 else [2, 3]) and len(pairs) == 2
        t = vesta.ones(1); dist.all_reduce(t, group=pair); assert t.item() == 2
        mine2, both = dist.new_subgroups_by_enumeration([[0, 3], [1, 2]])
        assert dist.get_rank(mine2) == (0 if rank < 2 else 1)
        if rank in (1, 2):
            local = dist.new_group([1, 2], use_local_synchronization=True)
            t = vesta.ones(1); dist.all_reduce(t, group=local); assert t.item() == 2
        dist.destroy_process_group(pair)
        try:
            dist.get_process_group_ranks(pair)
        except ValueError as error:
            assert "is not registered" in str(error)
        # One group fails, the others are as good as before.
        try:
            if rank < 2: dist.all_reduce(vesta.ones(1 + rank), group=mine2 if False else None)
            else: dist.all_reduce(vesta.ones(1))
        except dist.DistributedError:
            pass
        t = vesta.ones(1); dist.all_reduce(t, group=mine); assert t.item() == 2
        dist.destroy_process_group()
        # And anew, with the same store and names.
        dist.init_process_group("gloo")
        again = dist.new_group([0, 1, 2, 3])
        t = vesta.ones(1); dist.all_reduce(t, group=again); assert t.item() == 4
        dist.destroy_process_group()
        """,
    )


@pytest.mark.parametrize("method", ("tcp", "file"))
def test_init_methods(method, tmp_path):
    if method == "tcp":
        import socket

        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            url = f"tcp://127.0.0.1:{s.getsockname()[1]}"
    else:
        url = f"file://{tmp_path}/meet"
    run_ranks(
        2,
        f"""
        for _ in range(2):
            dist.init_process_group("gloo", init_method="{url}", rank=rank, world_size=n)
            t = vesta.ones(1); dist.all_reduce(t); assert t.item() == 2
            dist.barrier()
            dist.destroy_process_group()
        """,
    )


def test_methods_of_a_group_take_lists_of_one():
    run_ranks(
        2,
        """
        dist.init_process_group()
        world, t = dist.group.WORLD, vesta.full((2,), float(rank))
        world.allreduce(t).wait(); assert t.tolist() == [1, 1]
        scalar = vesta.tensor(1.0); world.allreduce(scalar).wait(); assert scalar.item() == 2
        world.broadcast(scalar, 1).wait()
        outs = [vesta.zeros(2) for _ in range(n)]
        world.allgather([outs], [vesta.full((2,), float(rank))]).wait()
        assert [o.tolist() for o in outs] == [[0, 0], [1, 1]]
        t = vesta.ones(1); world.reduce([t], 1).wait(); assert t.item() == 1 + rank
        world.reduce_scatter([t], [[vesta.ones(1), vesta.full((1,), 2.0)]]).wait(); assert t.item() == 2 + 2 * rank
        world.gather([outs] if rank == 0 else [], [vesta.full((2,), 5.0 + rank)], 0).wait()
        assert rank or outs[1].tolist() == [6, 6]
        world.scatter([t], [[vesta.ones(1), vesta.full((1,), 3.0)]] if rank == 0 else [], 0).wait()
        assert t.item() == 1 + 2 * rank
        if rank == 0:
            world.send([vesta.full((1,), 7.0)], 1, 4).wait()
        else:
            world.recv_anysource([t], 4).wait(); assert t.item() == 7
        t = vesta.ones(1)
        dist.all_reduce(t, dist._make_nccl_premul_sum(vesta.tensor(2.0 + rank))); assert t.item() == 5
        try:
            world.allgather([outs, outs], [t, t])
        except vesta.ArgumentError as error:
            assert "allgather: expected a list of one, got 2" in str(error)
        else:
            raise AssertionError("no error")
        dist.destroy_process_group()
        """,
    )


def test_a_timeout_of_any_length():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timedelta.max)
    dist.destroy_process_group()


def test_a_rank_may_leave_as_soon_as_it_is_in():
    run_ranks(
        3,
        """
        for _ in range(12):
            dist.init_process_group()
            dist.destroy_process_group()
        """,
    )


def test_ranks_of_a_group_in_the_order_they_are_given():
    run_ranks(
        3,
        """
        dist.init_process_group()
        group = dist.new_group([2, 0], sort_ranks=False, group_desc="reversed")
        if rank == 1:
            assert group is dist.GroupMember.NON_GROUP_MEMBER
        else:
            assert dist.get_process_group_ranks(group) == [2, 0] and dist.get_rank(group) == (0 if rank == 2 else 1)
            assert group.group_desc == "reversed" and dist.group.WORLD.group_desc == "default_pg"
            outs = [vesta.zeros(1), vesta.zeros(1)]
            dist.all_gather(outs, vesta.full((1,), float(rank)), group=group)
            assert [t.item() for t in outs] == [2, 0]
            t = vesta.full((1,), float(rank))
            dist.broadcast(t, 2, group)
            assert t.item() == 2 and dist.get_group_rank(group, 0) == 1 and dist.get_global_rank(group, 0) == 2
        dist.destroy_process_group()
        """,
    )


def test_a_rank_that_does_not_come_is_named():
    outputs = run_ranks(
        2,
        """
        try:
            if rank == 0:
                dist.init_process_group("gloo", timeout=timedelta(seconds=2), world_size=3, rank=0)
            else:
                dist.init_process_group("gloo", timeout=timedelta(seconds=2), world_size=3, rank=2)
        except dist.DistributedError as error:
            print(error)
        """,
    )
    for out in outputs:
        assert "process group 'default': expected 3 ranks, rank 1" in out and "did not come in time" in out, out


def test_arguments_are_checked_as_pytorch_does():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.get_rank()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.all_reduce(__import__("vesta").zeros(1))
    with pytest.raises(AssertionError, match="Cannot specify both init_method and store"):
        dist.init_process_group("gloo", init_method="env://", store=dist.HashStore())
    with pytest.raises(TypeError, match="timeout argument to be of type datetime.timedelta"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=5)
    for timeout in (timedelta(0), timedelta(seconds=-1)):
        with pytest.raises(ValueError, match="timeout argument to be positive"):
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1, timeout=timeout)
    with pytest.raises(ValueError, match="must be string-ish, not <class 'int'>"):
        dist.init_process_group(3, store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="expected a rank from 0 to 0, got 1"):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=1, world_size=1)
    with pytest.raises(dist.DistBackendError, match="there is no backend 'mpi'"):
        dist.init_process_group("mpi", store=dist.HashStore(), rank=0, world_size=1)
    dist.init_process_group("cpu:gloo,cuda:gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        import vesta

        with pytest.raises(ValueError, match="default process group twice"):
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        with pytest.raises(TypeError, match="Expected parameter `tensor` of type vesta.Tensor, got list"):
            dist.all_reduce([1.0])
        with pytest.raises(TypeError, match=r"of type List\[vesta.Tensor\], got list with int"):
            dist.all_gather([1], vesta.zeros(1))
        with pytest.raises(TypeError, match="Expected a ProcessGroup, got list"):
            dist.all_reduce(vesta.zeros(1), group=[0])
        with pytest.raises(ValueError, match="does not support ReduceOp.MAX on complex tensors"):
            dist.all_reduce(vesta.zeros(1, dtype=vesta.complex64), dist.ReduceOp.MAX)
        with pytest.raises(ValueError, match="different dtypes"):
            dist.all_gather([vesta.zeros(1)], vesta.zeros(1, dtype=vesta.int32))
        with pytest.raises(ValueError, match="must be specified on destination rank"):
            dist.gather(vesta.zeros(1))
        with pytest.raises(ValueError, match="destination rank should not be the same"):
            dist.send(vesta.zeros(1), 0)
        with pytest.raises(ValueError, match="Expected ``op``"):
            dist.P2POp(dist.all_reduce, vesta.zeros(1), 0)
        with pytest.raises(ValueError, match="out of range"):
            dist.new_group([1])
        assert dist.get_backend_config() == "cpu:gloo,cuda:gloo"
    finally:
        dist.destroy_process_group()


def test_what_there_is():
    assert dist.is_available() and dist.is_gloo_available() and not dist.is_mpi_available()
    assert dist.is_backend_available("gloo") and not dist.is_backend_available("ucc")
    assert dist.Backend("GLOO") == "gloo" and dist.get_default_backend_for_device("cpu") == "gloo"
    assert issubclass(dist.DistBackendError, dist.DistError) and issubclass(dist.DistributedError, RuntimeError)
    assert dist.ReduceOp.SUM == dist.ReduceOp(dist.ReduceOp.SUM) == dist.ReduceOp.RedOpType.SUM != dist.ReduceOp.MAX
    assert repr(dist.ReduceOp.PREMUL_SUM) == "ReduceOp.PREMUL_SUM" and dist.reduce_op.MIN == dist.ReduceOp.MIN
    import copy
    import pickle

    assert pickle.loads(pickle.dumps(dist.ReduceOp.AVG)) == dist.ReduceOp.AVG == copy.copy(dist.ReduceOp.AVG)
    from vesta.distributed.distributed_c10d import ReduceOp, _get_default_group, all_reduce

    assert all_reduce is dist.all_reduce and ReduceOp is dist.ReduceOp and _get_default_group


def test_without_the_plug_in_the_error_says_what_to_install():
    code = """
import vesta.distributed as dist
assert not dist.is_gloo_available()
try:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
except dist.DistBackendError as error:
    print(error)
"""
    env = {**os.environ, "VESTA_GLOO_LIBRARY": "/nowhere/libvesta_gloo.so"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert "there is no backend 'gloo' (/nowhere/libvesta_gloo.so" in done.stdout, done.stderr
    assert "Install Gloo (Debian: libgloo0)" in done.stdout


def test_a_backend_of_ones_own():
    made = []

    def make(store, rank, size, timeout):
        made.append((rank, size, timeout))
        from vesta._C import _distributed

        return _distributed._new_process_group("gloo", store, rank, size, "inner", timeout)

    dist.Backend.register_backend("mine", make)
    dist.init_process_group("mine", store=dist.HashStore(), rank=0, world_size=1)
    dist.barrier()
    assert dist.get_backend() == "mine" and made[0][:2] == (0, 1)
    dist.destroy_process_group()
    with pytest.raises(ValueError, match="already exist"):
        dist.Backend.register_backend("mine", make)


def test_an_uncaught_exception_names_its_rank():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import vesta.distributed as dist\n"
            "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
            "raise ValueError('no data')",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "[rank0]: ValueError: no data" in done.stderr
