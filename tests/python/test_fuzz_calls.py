"""Calls with wrong arguments, by number: never a signal, a hang, a message not ours, or a tensor left behind."""

from __future__ import annotations

import re

import pytest
import vesta
from fuzz import calls, complaints, run_calls


def report(found: list[tuple[int, str]]) -> str:
    lines = [f"call {number}: {said[:500]}" for number, said in found[:50]]
    return f"{len(found)} calls (python -m fuzz.run_calls --call NUMBER runs one):\n" + "\n".join(lines)


def test_calls_with_wrong_arguments() -> None:
    found = run_calls.campaign(0, 5000)
    assert not found, report(found)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_a_million_calls_with_wrong_arguments(part: int) -> None:
    found = run_calls.campaign(part * 100_000, 100_000)
    assert not found, report(found)


# ---- the harness itself ----


def worker_of(function: object, monkeypatch: pytest.MonkeyPatch, *args: object) -> run_calls.Worker:
    """Returns a worker whose every call is this one."""
    worker = run_calls.Worker()
    made = lambda number: calls.Call("f", function, args, {}, True)
    monkeypatch.setattr(worker.caller, "make", made)
    return worker


def test_what_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def writes_and_raises(x: vesta.Tensor) -> None:
        x.add_(1)
        raise ValueError("f: expected something else (x).")

    for function, said in (
        (lambda x: x.no_such_name, "AttributeError"),
        (lambda x: 1 // 0, "ZeroDivisionError"),
        (lambda x: {}["a"], "KeyError"),
        (writes_and_raises, "an argument is another"),
    ):
        assert said in worker_of(function, monkeypatch, vesta.ones(2)).run(0)
    assert worker_of(lambda x: vesta.mm(x, x), monkeypatch, vesta.ones(2)).run(0) == ""


def test_a_signal_names_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies is reported with the call that it was in, and the calls after it run."""
    ended = iter([(-11, ""), (0, "7\t'f(1): says nothing'\n")])

    def run_worker(first: int, count: int, folder: str, progress: object) -> tuple[int, str]:
        if first == 0:
            progress.write_text("3")
        else:
            assert (first, count) == (4, 6)
        return next(ended)

    monkeypatch.setattr(run_calls, "run_worker", run_worker)
    found = run_calls.campaign(0, 10)
    assert [number for number, _ in found] == [3, 7] and found[0][1].startswith("SIGSEGV: ")


def test_a_call_that_does_not_end_is_ended() -> None:
    def forever() -> None:
        while True:
            pass

    assert complaints.complaint(forever, (), {}, seconds=1)[1] == "TookTooLong: it does not end"


def test_a_call_is_made_from_its_number() -> None:
    caller, other = calls.Caller(), calls.Caller()
    for number in range(200):
        first, second = (re.sub("0x[0-9a-f]+", "", str(of.make(number))) for of in (caller, other))
        assert first == second
    assert len(caller.names) > 500 and len(caller.rows) > 150


# ---- findings ----


def optimizer() -> vesta.optim.Optimizer:
    return vesta.optim.SGD([vesta.ones(2, requires_grad=True)], 0.1)


def test_a_truncated_normal_far_from_its_mean_ends() -> None:
    """The density at a distance d falls as exp(-d x / std**2): the mean of x is the bound and std**2 / d."""
    near = vesta.nn.init.trunc_normal_(vesta.empty(10000), mean=-50.0, std=1.0, a=0.0, b=10.0)
    assert near.min().item() >= 0.0 and abs(near.mean().item() - 1 / 50) < 2e-3
    near = vesta.nn.init.trunc_normal_(vesta.empty(10000), mean=50.0, std=1.0, a=0.0, b=10.0)
    assert near.max().item() <= 10.0 and abs(near.mean().item() - (10 - 1 / 40)) < 2e-3
    for dtype in (vesta.float32, vesta.bfloat16):
        assert (vesta.nn.init.trunc_normal_(vesta.empty(4, dtype=dtype), mean=1e39) == 2.0).all()


@pytest.mark.parametrize("name", ["sort", "cummax", "topk", "kthvalue", "median"])
def test_a_refused_out_is_not_written(name: str) -> None:
    """An out of the wrong form (one tensor for two results) was written before it was refused."""
    for value in (9, 9.0):
        out = vesta.full((2, 2), value)
        with pytest.raises(TypeError, match="must be a tuple of 2 Tensors"):
            getattr(vesta, name)(vesta.tensor([[1.0, 2.0], [3.0, 0.0]]), 1, out=out)
        assert (out == value).all()


def test_writes_recorded_by_another_operand_keep_what_they_read() -> None:
    """x.clamp_(w) of a plain x and a w that requires grad: backward raised, and the graph was never freed."""
    w = vesta.tensor([0.5, 0.5, 0.5], requires_grad=True)
    x = vesta.tensor([0.0, 1.0, 2.0])
    x.clamp_(w)
    x.sum().backward()
    assert w.grad.tolist() == [1.0, 0.0, 0.0] and x.tolist() == [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: vesta.broadcast_shapes((2, "a")),
        lambda: vesta.broadcast_shapes(1.5),
        lambda: vesta.einsum(1.5, vesta.ones(2)),
        lambda: vesta.einsum(vesta.ones(2), 3),
        lambda: vesta.combinations(vesta.ones(3), "a"),
        lambda: vesta.unique_consecutive(vesta.ones(3), dim=[0]),
        lambda: vesta.tensordot(vesta.ones(2), vesta.ones(2), 1.5),
        lambda: vesta.futures.wait_all([1]),
        lambda: vesta.futures.wait_all(1),
        lambda: vesta.Tensor(2, "a"),
        lambda: vesta.Size(2.5),
        lambda: vesta.device("cpu", "a"),
        lambda: vesta.amp.GradScaler("cpu", growth_factor="a"),
        lambda: vesta.ones(2).__array_wrap__("a"),
        lambda: vesta.Tensor.__torch_function__(vesta.exp, 1),
        lambda: vesta.ones(2).__deepcopy__((1,)),
        lambda: vesta.utils.data.SubsetRandomSampler(iter((1, 2))),
        lambda: vesta.Tensor.__torch_function__(vesta.ones(2), ()),
        lambda: vesta.Tensor.is_shared(1),
        lambda: vesta.optim.Optimizer([vesta.ones(2)], [1, 2]),
        lambda: vesta.optim.lr_scheduler.LambdaLR(optimizer(), lambda epoch: None),
        lambda: vesta.optim.lr_scheduler.MultiStepLR(optimizer(), [1, {}]),
    ],
)
def test_arguments_are_named(call: object) -> None:
    """The messages that were Python's own."""
    with pytest.raises(TypeError) as caught:
        call()
    assert not complaints.NOT_OURS.search(str(caught.value)), str(caught.value)
