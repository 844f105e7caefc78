"""A program ends cleanly while daemon threads are inside the library: status 0, no signal, no hang."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

#: What daemon threads do when the main thread returns; each runs in a loop.
WORK = {
    "product": "w @ w",
    "backward": "(w * 2).sum().backward()",
    "hooks": "(w * 2).sum().backward()",
    "custom function": "Twice.apply(w).sum().backward()",
    "saved tensors": "backward_with_saved_tensor_hooks()",
    "copies and items": "(w + 1).sum().item(); w.detach().clone().tolist()",
    "torch function": "vesta.exp(other)",
    "loader": "next(iter(loader))",
    "store": "store.set('a', 'b'); store.get('a')",
}

PROGRAM = """
import sys, threading, time
import vesta
from vesta.utils.data import DataLoader, TensorDataset
size = int(sys.argv[2])
w = vesta.rand(size, size, requires_grad=True)
if sys.argv[1] == "hooks":
    w.register_hook(lambda g: g * sum(range(50)) / 1225)
    w.register_post_accumulate_grad_hook(lambda t: [i for i in range(50)] and None)

class Twice(vesta.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return sum([g] * 2)

class Other(vesta.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return [i for i in range(50)] and super().__torch_function__(func, types, args, kwargs)

other = vesta.rand(size, size).as_subclass(Other)
loader = DataLoader(TensorDataset(vesta.rand(64, 8)), batch_size=4)
if sys.argv[1] == "store":
    from vesta.distributed import HashStore
    store = HashStore()

def backward_with_saved_tensor_hooks():
    with vesta.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        (w * w).sum().backward()

started = threading.Semaphore(0)
code = compile(sys.argv[3], "work", "exec")
def work():
    exec(code, globals())
    started.release()
    while True:
        exec(code, globals())
threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
[t.start() for t in threads]
[started.acquire() for _ in threads]
time.sleep(float(sys.argv[4]))
"""


def ends(name: str, size: int, delay: float) -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM), name, str(size), WORK[name], str(delay)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{name}, {size}: status {done.returncode}: {done.stderr[-1500:]}"


@pytest.mark.parametrize("size", [4, 400])
@pytest.mark.parametrize("name", WORK)
def test_daemon_threads_do_not_end_the_process(name: str, size: int) -> None:
    for delay in (0.0, 0.01):
        ends(name, size, delay)


@pytest.mark.campaign
@pytest.mark.parametrize("name", WORK)
def test_daemon_threads_do_not_end_the_process_often(name: str) -> None:
    for i in range(40):
        ends(name, 4 if i % 2 else 300, i * 0.001)


def test_an_object_that_only_a_graph_keeps() -> None:
    """Its memory goes while modules are cleared, and the collector, which runs after that, must not look at it."""
    program = """
    import vesta
    x = vesta.ones(3, requires_grad=True)
    x.note = "an attribute, so that the graph keeps the object"
    y = (x * 2).sum()
    del x
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
