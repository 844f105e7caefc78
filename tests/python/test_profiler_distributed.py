"""Collectives in profiles: a data-parallel step is accounted for, and its communication has rows of its own."""

from __future__ import annotations

import json
from pathlib import Path

from distributed_ranks import run_ranks


def test_collectives_and_buckets_are_events(tmp_path: Path) -> None:
    outputs = run_ranks(
        2,
        f"""
        import json
        from vesta import nn
        from vesta.profiler import profile
        dist.init_process_group("gloo")
        model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 9)))
        optimizer, x = vesta.optim.SGD(model.parameters(), lr=0.1), vesta.randn(128, 512)
        def step():
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
        step()
        with profile(profile_memory=True) as prof:
            for _ in range(3):
                step()
            t = vesta.ones(1000)
            dist.all_reduce(t)
            dist.broadcast(t, 0)
            dist.barrier()
        if rank == 0:
            prof.export_chrome_trace({str(tmp_path / "trace.json")!r})
            rows = {{event.key: event.count for event in prof.key_averages()}}
            lines = [row.name for row in prof.by_line()]
            print(json.dumps([rows, prof.by_line().accounted, lines, [row.name for row in prof.by_layer()]]))
        dist.destroy_process_group()
        """,
    )
    rows, accounted, lines, layers = json.loads(outputs[0])
    buckets = {name: count for name, count in rows.items() if name.startswith("c10d::all_reduce, Distributed")}
    title = "c10d::all_reduce, DistributedDataParallel, bucket {} of 2"
    assert buckets == {title.format(1): 3, title.format(2): 3}
    expected = {
        "c10d::all_reduce": 1,
        "c10d::broadcast": 1,
        "c10d::barrier": 1,
        "DistributedDataParallel: send of a bucket": 6,
        "DistributedDataParallel: end of backward": 3,
    }
    assert {name: rows.get(name) for name in expected} == expected
    assert accounted > 0.6  # 0.98 where nobody else uses the machine
    assert "(collectives)" in lines and "(collectives)" in layers
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (barrier,) = [event for event in events if event["name"] == "c10d::barrier"]
    (forward,) = {event["tid"] for event in events if event["name"] == "aten::linear"}
    assert barrier["ph"] == "X" and barrier["tid"] != forward
