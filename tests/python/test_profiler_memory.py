"""Who holds memory: categories, modules, the peak, and the files that PyTorch's tools read."""

from __future__ import annotations

import gc
import gzip
import json
import threading
from pathlib import Path
from typing import Any

import pytest
import vesta
from vesta import nn
from vesta.profiler import Category, MemoryTimeline, profile, schedule

F = nn.functional
KB = 1 << 10


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(256, 512), nn.Linear(512, 128)

    def forward(self, x: vesta.Tensor) -> vesta.Tensor:
        return self.second(self.first(x).relu())


def profiled_step(count: int = 1) -> tuple[profile, Net]:
    model, x, y = Net(), vesta.randn(64, 256), vesta.randint(0, 128, (64,))
    optimizer = vesta.optim.Adam(model.parameters())
    with profile(profile_memory=True) as prof:
        for _ in range(count):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    return prof, model


def test_memory_by_category_and_module() -> None:
    prof, model = profiled_step()
    memory = prof.memory()
    weights = sum(p.numel() * 4 for p in model.parameters())
    at_end = memory.by_category(1e18)
    assert at_end[Category.PARAMETER] == at_end[Category.GRADIENT] == weights
    assert 2 * weights <= at_end[Category.OPTIMIZER_STATE] <= 2 * weights + KB  # and the numbers of steps
    assert at_end[Category.ACTIVATION] == 0 and 64 * KB <= at_end[Category.INPUT] <= 65 * KB
    start = memory.by_category(0.0)
    assert start[Category.PARAMETER] == weights and start[Category.GRADIENT] == 0 == start[Category.OPTIMIZER_STATE]
    layers = memory.by_layer(1e18)
    first = 4 * (256 * 512 + 512)
    assert layers["first"][Category.PARAMETER] == layers["first"][Category.GRADIENT] == first
    assert layers["first"][Category.OPTIMIZER_STATE] == pytest.approx(2 * first, abs=16)  # and the numbers of steps
    assert memory.peak >= sum(at_end.values()) and "Alive at the peak" in str(memory) and "<svg" in memory._repr_html_()
    forward = [b for b in memory.blocks if b.category is Category.ACTIVATION and b.nbytes == 64 * 512 * 4]
    assert {(b.op, b.layer) for b in forward} == {("aten::linear", "first"), ("aten::relu", "Net")}
    assert all(b.line is not None and "test_profiler_memory.py" in b.line for b in forward)
    assert all(b.freed is not None and b.freed > b.made for b in forward)


def test_the_peak_and_who_was_alive() -> None:
    with profile(profile_memory=True) as prof:
        a = vesta.ones(1 << 20)
        b = vesta.ones(1 << 18)  # the line of b
        del a
        c = vesta.ones(1 << 16)
    memory = prof.memory()
    assert memory.peak == (1 << 22) + (1 << 20)
    assert [(block.op, block.nbytes) for block in memory.at_peak()] == [
        ("aten::ones", 1 << 22),
        ("aten::ones", 1 << 20),
    ]
    (first, second) = memory.at_peak()
    assert first.freed is not None and second.freed is None
    sizes = [sum(sizes.values()) for _, sizes in memory.steps()]
    assert sizes == [1 << 22, (1 << 22) + (1 << 20), 1 << 20, (1 << 20) + (1 << 18)]
    assert b.shape != c.shape
    table = memory.table(row_limit=1)
    assert "... and 1 more, 1.00 MB" in table and "4.00 MB" in table
    with profile() as prof:
        pass
    with pytest.raises(AssertionError, match="profile_memory"):
        prof.memory()
    with profile(profile_memory=True) as prof:
        pass
    assert prof.memory().peak == 0 and "Peak 0 B" in str(prof.memory())


def test_small_and_older_blocks_are_seen_when_they_are_used() -> None:
    older, small = vesta.ones(1 << 16), vesta.ones(4)
    with profile(profile_memory=True) as prof:
        total = older.sum()
        small.exp()
        del older, small
    blocks = prof.memory().blocks
    assert {(b.nbytes, b.existed, b.freed is not None) for b in blocks} == {
        (1 << 18, True, True),
        (16, True, True),
        (4, False, False),
        (16, False, True),
    }
    assert total.item() == 1 << 16


def test_memory_that_outlives_its_profile_is_freed_as_ever() -> None:
    gc.collect()
    live = vesta._C._live_tensors()
    kept: list[Any] = []
    for _ in range(3):  # a block goes from one profile to the next
        with profile(profile_memory=True) as prof:
            kept.append(vesta.ones(1 << 16))
            [t.exp() for t in kept]
        assert prof.memory().blocks
    del prof
    kept[0].resize_(1 << 17)
    thread = threading.Thread(target=kept.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert vesta._C._live_tensors() == live and vesta._C._profiler_block(vesta.ones(1 << 16)) == 0


def test_blocks_move_to_shared_memory_and_between_threads() -> None:
    x = vesta.ones(1 << 16)
    with profile(profile_memory=True) as prof:
        (x + 1).sum()
        x.share_memory_()
        y = vesta.ones(1 << 16)
        threads = [threading.Thread(target=lambda: [y.exp() for _ in range(50)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (x == 1).all() and prof.memory().peak >= 2 << 18
    assert all(block.freed is not None for block in prof.memory().blocks if block.op == "aten::exp")


def test_the_timeline_in_files(tmp_path: Path) -> None:
    prof, _ = profiled_step()
    prof.export_memory_timeline(str(tmp_path / "memory.html"))
    text = (tmp_path / "memory.html").read_text("utf-8")
    assert text.count("<polygon") >= 5 and "Activations" in text and "Alive at the peak" in text
    prof.export_memory_timeline(tmp_path / "memory.json.gz", device="cpu")
    times, sizes = json.loads(gzip.decompress((tmp_path / "memory.json.gz").read_bytes()))
    assert len(times) == len(sizes) and times == sorted(times) and {len(row) for row in sizes} == {len(Category) + 1}
    memory = prof.memory()
    assert max(map(sum, sizes)) <= memory.peak and sum(sizes[-1]) == sum(memory.by_category(1e18).values())
    prof.export_memory_timeline(tmp_path / "memory.json")
    assert json.loads((tmp_path / "memory.json").read_text()) == [times, sizes]
    prof.export_memory_timeline(str(tmp_path / "memory.raw.json.gz"))
    rows = json.loads(gzip.decompress((tmp_path / "memory.raw.json.gz").read_bytes()))
    assert {action for _, action, _, _ in rows} == {0, 1, 3}
    assert sum(n if action < 3 else -n for _, action, n, _ in rows) == sum(sizes[-1])
    with pytest.raises(ValueError, match="device"):
        prof.export_memory_timeline(tmp_path / "memory.json", device="cuda:0")


def test_memory_of_the_recorded_steps_only() -> None:
    model, x = Net(), vesta.randn(64, 256)
    found: list[MemoryTimeline] = []
    plan = schedule(wait=1, warmup=0, active=1, repeat=1)
    with profile(schedule=plan, profile_memory=True, on_trace_ready=lambda p: found.append(p.memory())) as prof:
        for _ in range(3):
            model(x).sum().backward()
            model.zero_grad()
            prof.step()
    (memory,) = found
    assert memory.by_category(1e18)[Category.GRADIENT] == 0
    assert any(b.category is Category.GRADIENT for b in memory.blocks)
    with profile(profile_memory=True) as outer:
        kept = vesta.ones(1 << 16)
        with profile(profile_memory=True) as inner:
            other = vesta.ones(1 << 15)
        del kept
    assert [b.existed for b in inner.memory().blocks] == [True, False] and other.numel() == 1 << 15
    assert [b.existed for b in outer.memory().blocks] == [False, False]
