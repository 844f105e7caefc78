"""``vesta.utils.checkpoint``: both kinds give the gradients of the plain model, run the part twice, and keep less."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import vesta
from vesta.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_early_stop,
)

KINDS = [True, False]


def model() -> Any:
    vesta.manual_seed(0)
    return vesta.nn.Sequential(vesta.nn.Linear(3, 8), vesta.nn.Tanh(), vesta.nn.Linear(8, 8), vesta.nn.ReLU())


def gradients(part: Any, run: Any) -> list[Any]:
    part.zero_grad()
    x = vesta.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    run(x).pow(2).sum().backward()
    return [x.grad, *(p.grad for p in part.parameters())]


@pytest.mark.parametrize("reentrant", KINDS)
def test_gradients_are_those_of_the_plain_model(reentrant: bool) -> None:
    part = model()
    expected = gradients(part, part)
    found = gradients(part, lambda x: checkpoint(part, x, use_reentrant=reentrant))
    for a, b in zip(expected, found):
        assert vesta.equal(a, b)


@pytest.mark.parametrize("reentrant", KINDS)
def test_the_part_runs_twice_and_only_if_backward_needs_it(reentrant: bool) -> None:
    calls = []

    def part(x: Any) -> Any:
        calls.append(vesta.is_grad_enabled())
        return x.exp().sin()

    x = vesta.ones(2, requires_grad=True)
    y = checkpoint(part, x, use_reentrant=reentrant)
    assert len(calls) == 1
    y.sum().backward()
    assert len(calls) == 2 and calls[1] is True
    with vesta.no_grad():
        checkpoint(part, x, use_reentrant=reentrant)
    assert len(calls) == 3


@pytest.mark.parametrize("reentrant", KINDS)
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers_are_the_same_in_both_runs(reentrant: bool, preserve: bool) -> None:
    masks = []

    def part(x: Any) -> Any:
        masks.append(vesta.rand(4))
        return (x * masks[-1]).sin()

    x = vesta.ones(4, requires_grad=True)
    vesta.manual_seed(1)
    y = checkpoint(part, x, use_reentrant=reentrant, preserve_rng_state=preserve)
    after = vesta.get_rng_state()
    y.sum().backward()
    assert vesta.equal(masks[0], masks[1]) is preserve
    assert vesta.equal(vesta.get_rng_state(), after) is preserve


@pytest.mark.parametrize("reentrant", KINDS)
def test_autocast_is_the_same_in_both_runs(reentrant: bool) -> None:
    dtypes = []

    def part(x: Any, w: Any) -> Any:
        y = x @ w
        dtypes.append(y.dtype)
        return y.sin()

    x, w = vesta.ones(2, 2, requires_grad=True), vesta.ones(2, 2, requires_grad=True)
    with vesta.autocast("cpu", dtype=vesta.bfloat16):
        y = checkpoint(part, x, w, use_reentrant=reentrant)
    y.sum().backward()
    assert dtypes == [vesta.bfloat16, vesta.bfloat16]


def test_without_reentry_less_is_kept() -> None:
    def live(run: Any) -> int:
        x = vesta.ones(1000, requires_grad=True)
        gc.collect()
        before = vesta._C._live_tensors()
        y = run(x)
        after = vesta._C._live_tensors()
        del y
        return after - before

    def part(x: Any) -> Any:
        for _ in range(20):
            x = x.sin()
        return x

    assert live(lambda x: checkpoint(part, x, use_reentrant=False)) < live(part) - 10


def test_without_reentry_keywords_structures_and_nesting_work() -> None:
    def inner(x: Any, scale: float) -> Any:
        return {"a": (x * scale).sin(), "b": [x.cos()]}

    def outer(x: Any) -> Any:
        made = checkpoint(inner, x, scale=2.0, use_reentrant=False)
        return made["a"] * made["b"][0]

    x = vesta.linspace(0.1, 1.0, 5, dtype=vesta.float64).requires_grad_()
    (plain,) = vesta.autograd.grad(((x * 2).sin() * x.cos()).sum(), x)
    (found,) = vesta.autograd.grad(checkpoint(outer, x, use_reentrant=False).sum(), x)
    assert vesta.equal(plain, found)


def test_without_reentry_backward_may_run_again_and_be_recorded() -> None:
    x = vesta.linspace(0.1, 1.0, 5, dtype=vesta.float64).requires_grad_()
    y = checkpoint(lambda x: x.sin() * x, x, use_reentrant=False)
    (first,) = vesta.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = vesta.autograd.grad(first.sum(), x, retain_graph=True)
    assert vesta.allclose(second, 2 * x.cos() - x * x.sin())
    (again,) = vesta.autograd.grad(y.sum(), x)
    assert vesta.equal(first, again)


def test_a_part_that_changes_is_an_error() -> None:
    sizes = iter([2, 3])

    def part(x: Any) -> Any:
        return x[: next(sizes)].sin().cos()

    x = vesta.ones(3, requires_grad=True)
    y = checkpoint(part, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"different metadata.*\n.*position 0:\nsaved metadata: {'shape': \(2,\)"):
        y.sum().backward()
    counts = iter([3, 2])

    def shorter(x: Any) -> Any:
        for _ in range(next(counts)):
            x = x.sin()
        return x

    y = checkpoint(shorter, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="during forward: 3\nNumber of tensors saved during recomputation: 2"):
        y.sum().backward()


def test_the_second_run_stops_early_unless_told_otherwise() -> None:
    steps = []

    def part(x: Any) -> Any:
        y = x.sin()
        steps.append("after")
        return y + 0

    x = vesta.ones(2, requires_grad=True)
    checkpoint(part, x, use_reentrant=False).sum().backward()
    assert steps == ["after"]
    with set_checkpoint_early_stop(False):
        y = checkpoint(part, x, use_reentrant=False)
    y.sum().backward()
    assert steps == ["after"] * 3
    checkpoint(part, x, use_reentrant=False, early_stop=False).sum().backward()
    assert steps == ["after"] * 5


def test_contexts_surround_the_runs() -> None:
    seen: list[str] = []

    class Mark:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> None:
            seen.append(self.name)

        def __exit__(self, *_: Any) -> None:
            seen.append("end of " + self.name)

    x = vesta.ones(2, requires_grad=True)
    y = checkpoint(lambda x: x.sin(), x, use_reentrant=False, context_fn=lambda: (Mark("first"), Mark("second")))
    y.sum().backward()
    assert seen == ["first", "end of first", "second", "end of second"]


@pytest.mark.parametrize("reentrant", KINDS)
@pytest.mark.parametrize("segments", [1, 2, 3, 4])
def test_sequences_in_segments(reentrant: bool, segments: int) -> None:
    part = model()
    expected = gradients(part, part)
    found = gradients(part, lambda x: checkpoint_sequential(part, segments, x, use_reentrant=reentrant))
    for a, b in zip(expected, found):
        assert vesta.equal(a, b)


def test_wrong_arguments() -> None:
    x = vesta.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(vesta.sin, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(vesta.sin, x, use_reentrant=True, scale=1)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(vesta.sin, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="expected 'default' or 'none', got 'all'"):
        checkpoint(vesta.sin, x, use_reentrant=False, determinism_check="all")
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(vesta.sin, vesta.ones(2), use_reentrant=True)


def test_a_decorated_method_is_a_method() -> None:
    class Block(vesta.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = vesta.nn.Linear(2, 2)

        @checkpoint(use_reentrant=False)
        def forward(self, x: Any) -> Any:
            return self.layer(x).tanh()

    block, x = Block(), vesta.randn(3, 2)
    block(x).sum().backward()
    got = block.layer.weight.grad.clone()
    block.zero_grad()
    block.layer(x).tanh().sum().backward()
    assert vesta.equal(got, block.layer.weight.grad)
