"""Loaders whose batches are copied to page-locked memory or to a GPU."""

from __future__ import annotations

import gc
from collections import namedtuple

import pytest
import vesta
from data_sets import Raising
from vesta._C import _shared
from vesta.utils import data

pytestmark = [
    pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device"),
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]
Pair = namedtuple("Pair", "x y")
METHODS = ["spawn", "forkserver"]  # a process that uses a GPU cannot be forked


class Pairs(data.Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> Pair:
        return Pair({"v": vesta.full((3,), index), "s": str(index)}, [index, 1.5 * index])


@pytest.fixture(scope="module", autouse=True)
def helpers_of_the_process() -> None:
    """Starts the helpers that stay until the end of the process."""
    _shared.life_of_this_process()
    (vesta.zeros(1, device="cuda") + 1).item()
    for method in METHODS:
        list(data.DataLoader([1, 2], num_workers=1, multiprocessing_context=method))


@pytest.fixture(autouse=True)
def arenas_closed():
    """Closes the arenas of workers that have ended, before descriptors are counted."""
    yield
    gc.collect()
    _shared.collect()


def check(batches: list, kind: str) -> None:
    assert len(batches) == 4
    for i, batch in enumerate(batches):
        indices = list(range(3 * i, min(10, 3 * i + 3)))
        assert type(batch) is Pair and batch.x["s"] == [str(k) for k in indices]
        assert batch.x["v"].tolist() == [[k] * 3 for k in indices] and batch.y[1].tolist() == [1.5 * k for k in indices]
        for tensor in (batch.x["v"], *batch.y):
            assert tensor.is_pinned() if kind == "pinned" else tensor.device == vesta.device("cuda:0")


@pytest.mark.parametrize("method", [None, *METHODS])
@pytest.mark.parametrize("kind, options", [("pinned", {"pin_memory": True}), ("device", {"device": "cuda"})])
def test_batches_arrive_where_they_are_wanted(kind: str, options: dict, method: str | None) -> None:
    if method:
        options = {**options, "num_workers": 2, "multiprocessing_context": method}
    loader = data.DataLoader(Pairs(), batch_size=3, **options)
    check(list(loader), kind)
    check(list(loader), kind)


def test_kept_workers_and_passes_that_are_given_up() -> None:
    loader = data.DataLoader(
        Pairs(),
        batch_size=3,
        device="cuda",
        num_workers=2,
        multiprocessing_context="forkserver",
        persistent_workers=True,
    )
    first = iter(loader)
    next(first)
    pids = [worker.pid for worker in first._pool.workers]
    check(list(loader), "device")
    assert [worker.pid for worker in loader._iterator._pool.workers] == pids


def test_a_pass_resumes_at_what_the_caller_has_got() -> None:
    def loader() -> data.DataLoader:
        return data.DataLoader(
            Pairs(), batch_size=3, shuffle=True, device="cuda", num_workers=1, multiprocessing_context="forkserver"
        )

    first = loader()
    batches = iter(first)
    next(batches)
    state = first.state_dict()
    rest = [batch.x["s"] for batch in batches]
    second = loader()
    second.load_state_dict(state)
    assert state["batches"] == 1 and [batch.x["s"] for batch in second] == rest


def test_errors_come_through_the_thread() -> None:
    loader = data.DataLoader(
        Raising("TwoArguments"), batch_size=2, num_workers=2, device="cuda", multiprocessing_context="forkserver"
    )
    batches = iter(loader)
    next(batches), next(batches)
    with pytest.raises(Exception, match="1 and b") as caught:
        next(batches)
    assert type(caught.value).__name__ == "TwoArguments"
    assert [batch.tolist() for batch in batches] == [[6, 7], [8, 9], [10, 11]]
    del caught
