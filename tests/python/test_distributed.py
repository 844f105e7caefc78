"""vesta.distributed as programs use it: default group, subgroups, objects, futures, in processes of their own."""

from __future__ import annotations

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
