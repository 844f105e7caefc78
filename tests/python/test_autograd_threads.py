"""Autograd's state is touched on some threads while graphs are built and run on others: nothing crashes or is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

#: What one thread does to leaf ``x``, non-leaf ``y`` and its node while another one runs backward through them.
TOUCHES = {
    "hook of a leaf": "x.register_hook(lambda g: g).remove()",
    "hook of a result": "y.register_hook(lambda g: g).remove()",
    "hook after accumulation": "x.register_post_accumulate_grad_hook(lambda t: None).remove()",
    "hook of a node": "y.grad_fn.register_hook(lambda i, o: None).remove()",
    "hook before a node": "y.grad_fn.register_prehook(lambda o: None).remove()",
    "notes of a node": "y.grad_fn.metadata['a'] = 1",
    "retained gradient": "z = y * 1; z.retain_grad(); z.sum().backward(retain_graph=True); z.grad",
    "grad read": "x.grad",
    "grad dropped": "x.grad = None",
    "grad given": "x.grad = vesta.ones(3)",
    "requires_grad": "w.requires_grad_(False); w.requires_grad_()",
    "views": "x.detach()[1:].view(2)",
    "data": "x.data.mul_(1)",
    "another backward": "(x * y).sum().backward(retain_graph=True)",
    "recorded backward": "vesta.autograd.grad((x * x).sum(), x, create_graph=True)",
    "collection": "gc.collect(0)",
}

PROGRAM = """
import gc, sys, threading, time
import vesta
seconds, touch = float(sys.argv[1]), compile(sys.argv[2], "touch", "exec")
x, w = vesta.ones(3, requires_grad=True), vesta.ones(3, requires_grad=True)
y = x * 2
names, failed = {"x": x, "w": w, "y": y, "vesta": vesta, "gc": gc}, []
end = time.monotonic() + seconds
def work(step):
    try:
        while time.monotonic() < end and not failed:
            step()
    except BaseException as error:
        failed.append(error)
def backward():
    (x * 2 + w).sum().backward()
    y.sum().backward(retain_graph=True)
steps = (backward, lambda: exec(touch, dict(names)), backward)
threads = [threading.Thread(target=work, args=(step,)) for step in steps]
sys.setswitchinterval(1e-5)
[t.start() for t in threads]
[t.join(60) for t in threads]
assert not any(t.is_alive() for t in threads), "the threads wait for each other"
if failed: raise failed[0]
print("done")
"""


def run(touch: str, seconds: float) -> None:
    """Runs one pair in a process of its own, which a crash would end."""
    command = [sys.executable, "-c", PROGRAM, str(seconds), touch]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0 and "done" in done.stdout, f"status {done.returncode}: {done.stderr[-2000:]}"


@pytest.mark.parametrize("name", TOUCHES)
def test_state_is_touched_while_backward_runs(name: str) -> None:
    run(TOUCHES[name], 0.4)


@pytest.mark.campaign
@pytest.mark.parametrize("name", TOUCHES)
def test_state_is_touched_for_long(name: str) -> None:
    run(TOUCHES[name], 20)


def test_no_gradient_is_lost() -> None:
    """Threads that accumulate into one leaf, with hooks that come and go, lose nothing."""
    program = textwrap.dedent(
        """
        import sys, threading, vesta
        sys.setswitchinterval(1e-5)
        x, seen = vesta.zeros(2, requires_grad=True), []
        kept = x.register_hook(lambda g: seen.append(1))
        def backward():
            for _ in range(300):
                (x * 1).sum().backward()
        def touch():
            for _ in range(300):
                x.register_hook(lambda g: g * 1).remove()
        threads = [threading.Thread(target=f) for f in (backward, backward, touch)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        assert x.grad.tolist() == [600.0, 600.0] and len(seen) == 600
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
