"""Gradients of tensors that are read in pieces (split, chunk, unbind, one index after the other): a backward run joins
the pieces instead of adding each to zeros."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import vesta
from vesta import Tensor

DEVICES = ["cpu", "cuda"] if vesta.cuda.is_available() else ["cpu"]

#: Functions of a tensor [6, 4, 8] that read it in pieces.
READERS: dict[str, Callable[[Tensor], list[Tensor]]] = {
    "split": lambda x: [*x.split(2, 2)],
    "uneven": lambda x: [*x.split([1, 5, 2], 2)],
    "chunk": lambda x: [*x.chunk(3, 0)],
    "unbind": lambda x: [*x.unbind(1)],
    "steps": lambda x: [x[:, i] for i in range(4)],
    "from behind": lambda x: [x[..., -3:], x[..., :5]],
    "with a gap": lambda x: [x[:2], x[4:]],
    "one": lambda x: [x[:, 1:3]],
    "overlapping": lambda x: [x[:4], x[2:], x[3]],
    "twice": lambda x: [x[1], x[1], x[0]],
    "along two": lambda x: [x[:3], x[3:], x[:, :2], x[0]],
    "steps of two": lambda x: [x[::2], x[1::2]],
    "empty": lambda x: [x[:0], x, x[6:]],
    "beside others": lambda x: [x[:3], x.sin(), x[3:]],
    "views of views": lambda x: [p.transpose(0, 1) for h in x.split(4, 2) for p in h.unbind(0)],
}


def gradient(read: Callable[[Tensor], list[Tensor]], x: Tensor, through: bool, **options: Any) -> Tensor:
    """Returns the gradient of a sum of pieces with a weight each; ``through``: of what x was computed from."""
    x = x.detach().requires_grad_()
    parts = read(x * 2 if through else x)
    weighted = [(p * p * (i + 1)).sum() for i, p in enumerate(parts)]
    return vesta.autograd.grad(sum(weighted), x, **options)[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", READERS)
def test_pieces_are_joined(name: str, device: str) -> None:
    x = vesta.arange(192, dtype=vesta.float64).reshape(6, 4, 8) / 64 - 1
    for through in (False, True):
        got = gradient(READERS[name], x.to(device), through)
        recorded = gradient(READERS[name], x.to(device), through, create_graph=True)  # added up by ops
        assert vesta.allclose(got, recorded, rtol=1e-12)
        leaf = x.to(device).detach().requires_grad_()
        sum((p * p * (i + 1)).sum() for i, p in enumerate(READERS[name](leaf))).backward()
        leaf.grad.add_(1)  # the user's own
        if not through:
            assert vesta.equal(leaf.grad, got + 1)
    assert vesta.autograd.gradcheck(READERS[name], x.to(device).detach().requires_grad_(), fast_mode=True)


@pytest.mark.parametrize("device", DEVICES)
def test_hooks_see_whole_gradients(device: str) -> None:
    x = vesta.arange(12.0, device=device).reshape(3, 4).requires_grad_()
    y = x * 1
    seen: list[Tensor] = []
    y.register_hook(lambda g: seen.append(g.clone()))
    y.retain_grad()
    a, b = y.split(2, 1)
    (a.sum() + 3 * b.sum()).backward()
    want = vesta.tensor([[1.0, 1, 3, 3]] * 3, device=device)
    assert len(seen) == 1 and vesta.equal(seen[0], want) and vesta.equal(y.grad, want) and vesta.equal(x.grad, want)


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_parts_stay_what_they_are(device: str) -> None:
    x = vesta.arange(8.0, device=device).requires_grad_()
    a, b = (x * 1).split(4)
    a.retain_grad()
    ga = vesta.ones(4, device=device)
    vesta.autograd.backward([a, b], [ga, ga * 2])
    x.grad.mul_(0)
    assert vesta.equal(ga, vesta.ones(4, device=device)) and vesta.equal(a.grad, ga)


@pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")
@pytest.mark.parametrize(("name", "count"), [("split", 1), ("chunk", 1), ("unbind", 1), ("steps", 1), ("one", 2)])
def test_a_gradient_in_pieces_is_written_once(name: str, count: int) -> None:
    x = vesta.rand(6, 4, 8).cuda().requires_grad_()
    parts = READERS[name](x)
    read = [p.sin() for p in parts]  # each has a gradient of its own
    grads = [vesta.ones_like(p) for p in parts]
    before = dict(vesta._C_cuda.counters())["launches"]
    vesta.autograd.grad(read, x, grads)
    assert dict(vesta._C_cuda.counters())["launches"] - before == len(parts) + count


class Tripled(vesta.autograd.Function):
    """Changes the gradient that it is given in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad.mul_(3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("read", [lambda y: y[:2], lambda y: y[0] + 0 * y[1:3], lambda y: y.split(2)[0]])
def test_a_gradient_that_others_have_is_no_piece(read: Callable[[Tensor], Tensor], device: str) -> None:
    x, w = (vesta.ones(4, device=device, requires_grad=True) for _ in range(2))
    y, tripled = x * 1, Tripled.apply(w[:2] * 1)
    part = read(y)  # whose gradient is the first to be computed
    (part + tripled).backward(vesta.ones(2, device=device))
    alone = vesta.ones(4, device=device, requires_grad=True)
    read(alone * 1).backward(vesta.ones_like(part))
    assert vesta.equal(x.grad, alone.grad) and w.grad.tolist() == [3, 3, 0, 0]


@pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")
def test_pieces_take_no_more_memory_than_the_gradient() -> None:
    """Prefixes, as of attention step by step: kept all, they would take the square of the length."""
    x = vesta.ones(64, 256, device="cuda", requires_grad=True)
    y = x * 1
    loss = sum((y[: t + 1] * (t + 1)).sum() for t in range(64))
    vesta.cuda.reset_peak_memory_stats()
    before = vesta.cuda.memory_allocated()
    loss.backward()
    assert vesta.cuda.max_memory_allocated() - before <= 8 * x.numel() * 4
    want = [float(sum(range(t + 1, 65))) for t in range(64)]
    assert x.grad[:, 0].tolist() == want

    first = vesta.ones(10, 256, device="cuda", requires_grad=True)
    rest = vesta.ones(2000, 256, device="cuda", requires_grad=True)
    vesta.cat([first[:5], rest]).mul(2).sum().backward()
    assert first.grad[:, 0].tolist() == [2.0] * 5 + [0.0] * 5


STREAMS = """
import vesta
from vesta import cuda

for seed in range(4):
    vesta.manual_seed(seed)
    x = vesta.randn(64, 64).cuda().requires_grad_()
    first, second, third = (vesta.randn(32, 64).cuda() for _ in range(3))
    side, base = cuda.Stream(), x * 1
    side.wait_stream(cuda.current_stream())
    with cuda.stream(side):
        stepped = (base[::2].clone() * first).sum()
    cuda.current_stream().wait_stream(side)
    (stepped + (base[:32] * second).sum() + (base[32:] * third).sum()).backward()
    want = vesta.cat([second, third])
    want[::2] += first
    assert vesta.allclose(x.grad, want), seed
"""


@pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")
def test_pieces_are_joined_on_their_stream() -> None:
    """Some pieces are read on a side stream; work is done as late as CUDA would allow, in any order."""
    environment = {**os.environ, "VESTA_EMULATION_SCHEDULE": "random"}
    subprocess.run([sys.executable, "-c", STREAMS], check=True, env=environment, timeout=120)
