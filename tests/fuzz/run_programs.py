"""Runs random programs and compares them with the reference, and with PyTorch where it can be imported.

    python -m fuzz.run_programs --seed 17             one program: its source, and what is wrong with it
    python -m fuzz.run_programs --first 0 --count 200 many; those that fail are printed, shrunk

What is compared: values, what shares memory and with which strides, requires_grad, first and second derivatives, kept
gradients, that an error leaves nothing changed, and that no tensor is left behind. A program whose backward refuses,
because something that it needs was written, is right if something was.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.util
import os
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz.hyper_dual import Array, Ref, Rejected
from fuzz.program import Program, Run, Step, direction
from fuzz.steps import generate

PRELUDE = """
class Cube(m.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def packed(m, f, x):
    with m.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        return f(x)


def weights(m, t, weight):
    n = t.numel()
    return weight + 0.25 * m.arange(n, dtype=m.float64).cos().view(t.shape)


def scaled(factor):
    return lambda g: g * factor


def must_raise(call):
    try:
        call()
    except RuntimeError:
        return
    raise AssertionError("it does not raise")


"""
#: The call of each mode; the gradients of leaves stand in ``.grad``.
ASK = {
    "values": "",
    "backward": "loss.backward()",
    "twice": "loss.backward(retain_graph=True)\nloss.backward()",
    "grad": "gradients = m.autograd.grad(loss, leaves, allow_unused=True)",
    "second": "gradients = m.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)\n"
    "along = [(g * v).sum() for g, v in zip(gradients, directions) if g is not None and g.requires_grad]\n"
    "second = m.autograd.grad(sum(along), leaves, allow_unused=True) if along else [None] * len(leaves)",
    "threads": "in_threads(lambda: program(m, *arguments)[0].backward())",
    "one graph": "in_threads(lambda: loss.backward(retain_graph=True))",
}
#: How often the gradient is added to ``.grad``.
TIMES = {"twice": 2, "threads": 2, "one graph": 2}


#: Where PyTorch raises and this library runs, correctly (docs/differences.md).
KNOWN = re.compile(
    "refer to a single memory location|is a view and its base|output of a function that returns multiple"
)


class Failure(Exception):
    """What differs: the kind, by which a shrunk program is known to fail in the same way, and a sentence."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


def in_threads(work: Any, count: int = 2) -> None:
    """Runs ``work`` on several threads at once; raises what one of them raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(count)

    def run() -> None:
        start.wait()
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    if any(thread.is_alive() for thread in threads):
        raise Failure("hang", "two threads wait for each other")
    if errors:
        raise errors[0]


def mode_of(program: Program, run: Run) -> str:
    """Returns the mode, or a milder one where two threads would write the same leaf or nothing needs a gradient."""
    written = any(run.reference.names[leaf.name].memory.writes for leaf in program.leaves)
    if not run.loss.history.tracked:
        return "values"
    return "backward" if program.mode == "threads" and written else program.mode


@functools.lru_cache(None)
def prelude(m: Any) -> dict[str, Any]:
    """Returns what every program may use. (Its class knows its globals: they must not be a program's tensors.)"""
    names: dict[str, Any] = {"m": m, "in_threads": in_threads}
    exec(compile(PRELUDE, "prelude", "exec"), names)
    return names


def execute(m: Any, program: Program, mode: str) -> dict[str, Any]:
    """Runs a program with a module; returns its names, and ``error`` if asking for the gradient raised."""
    names = dict(prelude(m))
    exec(compile(program.source(), f"program {program.seed}", "exec"), names)
    arguments = [m.tensor(leaf.value.tolist(), dtype=m.float64).reshape(leaf.value.shape) for leaf in program.leaves]
    for leaf, t in zip(program.leaves, arguments):
        t.requires_grad_(leaf.requires_grad)
    names["arguments"] = arguments
    names["leaves"] = [t for t in arguments if t.requires_grad]
    names["directions"] = [
        m.tensor(direction(leaf).tolist(), dtype=m.float64).reshape(leaf.value.shape)
        for leaf in program.leaves
        if leaf.requires_grad
    ]
    loss, found = names["program"](m, *arguments)
    names["loss"] = loss
    found = {name: t for name, t in found.items() if isinstance(t, m.Tensor)}
    error = None
    try:
        exec(ASK[mode], names)
    except RuntimeError as raised:
        error = str(raised)
    return {**names, "found": found, "error": error}


def array(t: Any) -> Array:
    return np.array(t.detach().numpy(force=True))  # PyTorch has tensors of zeros without memory


def differs(have: Array, want: Array, scale: float) -> bool:
    return have.shape != want.shape or not np.allclose(have, want, rtol=1e-8, atol=1e-9 * scale)


def check(m: Any, program: Program, run: Run) -> str:
    """Runs a program and compares; returns how it ended ("compared", "refused", "corner"). Raises Failure."""
    mode = mode_of(program, run)
    try:
        got = execute(m, program, mode)
    except Failure:
        raise
    except Exception as error:
        raise Failure(f"raises {type(error).__name__}", str(error)) from error
    names = run.reference.names
    try:
        for name, t in got["found"].items():
            if name in names:
                compare_tensor(name, t, names[name], got["found"], names)
    except RuntimeError as error:
        raise Failure("raises when looked at", str(error)) from error
    if got["error"] is not None:
        if "modified by an in" not in got["error"] or not run.reference.may_refuse:
            raise Failure("backward raises", got["error"])
        return "refused"
    if mode != "values" and not run.reference.corner:
        compare_gradients(got, program, run, mode)
    return "corner" if run.reference.corner else "compared"


def compare_tensor(name: str, t: Any, want: Ref, found: dict[str, Any], names: dict[str, Ref]) -> None:
    if t.requires_grad != want.history.tracked:
        raise Failure("requires_grad", f"{name}.requires_grad is {t.requires_grad}")
    if t.is_leaf != (not want.history.tracked or (want.history.leaf and not want.view)):
        raise Failure("is_leaf", f"{name}.is_leaf is {t.is_leaf}")
    have = array(t)
    if differs(have, want.value, max(1.0, float(np.abs(want.value).max(initial=0.0)))):
        raise Failure("values", f"{name} is {have.tolist()} instead of {want.value.tolist()}")
    if not have.size:
        return
    if want.view and same_layout(t, want) is False and base_layout(want, found, names):
        raise Failure("strides", f"{name} has strides {tuple(t.stride())} instead of {want.value.strides}")
    for other, ref in names.items():
        if other == name or other not in found or not ref.value.size:
            continue
        shared = start_of(found[other]) == start_of(t)
        if shared != (ref.memory is want.memory):
            raise Failure("memory", f"{name} and {other} {'share' if shared else 'do not share'} memory")
        apart = (want.value.__array_interface__["data"][0] - ref.value.__array_interface__["data"][0]) // 8
        if shared and base_layout(want, found, names) and (t.data_ptr() - found[other].data_ptr()) // 8 != apart:
            raise Failure("offset", f"{name} is not {apart} elements behind {other}")


def same_layout(t: Any, ref: Ref) -> bool:
    return all(s == w // 8 for s, w, n in zip(t.stride(), ref.value.strides, ref.shape) if n > 1)


def base_layout(ref: Ref, found: dict[str, Any], names: dict[str, Ref]) -> bool:
    """Returns whether the tensor that was allocated has NumPy's layout, so that its views must have it as well."""
    bases = [name for name, other in names.items() if other.memory is ref.memory and not other.view]
    return all(name in found and same_layout(found[name], names[name]) for name in bases)


def start_of(t: Any) -> int:
    """Returns where the storage of a tensor begins."""
    return t.data_ptr() - t.storage_offset() * t.element_size()


def compare_gradients(got: dict[str, Any], program: Program, run: Run, mode: str) -> None:
    scale, times = run.reference.scale, TIMES.get(mode, 1)
    leaves = [leaf for leaf in program.leaves if leaf.requires_grad]
    gradients = got.get("gradients") or [t.grad for t in got["leaves"]]
    for leaf, g in zip(leaves, gradients):
        want = times * run.gradient(leaf.name, leaf.value.size).reshape(leaf.value.shape)
        have = np.zeros(leaf.value.shape) if g is None else array(g)
        if differs(have, want, scale):
            raise Failure("gradient", f"that of {leaf.name} is {have.tolist()} instead of {want.tolist()}")
    for leaf, h in zip(leaves, got.get("second", [])):
        want = run.second(leaf.name, leaf.value.size).reshape(leaf.value.shape)
        have = np.zeros(leaf.value.shape) if h is None else array(h)
        if differs(have, want, scale):
            raise Failure("second gradient", f"that of {leaf.name} is {have.tolist()} instead of {want.tolist()}")
    for name in run.reference.kept if mode in ("backward", "twice", "one graph") else ():
        ref = run.reference.names[name]
        want = times * run.gradient(name, ref.value.size).reshape(ref.shape)
        g = got["found"][name].grad
        have = np.zeros(ref.shape) if g is None else array(g)
        if differs(have, want, scale):
            raise Failure("kept gradient", f"that of {name} is {have.tolist()} instead of {want.tolist()}")


def compare_with(torch: Any, m: Any, program: Program, run: Run) -> str:
    """Runs a program with PyTorch as well; returns "" or what differs in kind (a Failure if a number differs)."""
    mode = mode_of(program, run)
    if any(run.reference.names[leaf.name].memory.writes for leaf in program.leaves):
        return ""  # PyTorch loses gradients of views of a leaf that is written without recording
    if run.reference.overlapped:
        return ""  # PyTorch reads some of what it has just written
    if mode == "one graph" and run.reference.kept:
        return ""  # PyTorch loses what one of two threads adds to a kept gradient, now and then
    try:
        check(torch, program, run)
        theirs = "runs"
    except Failure as failure:
        theirs = str(failure)
    try:
        ours = "runs" if check(m, program, run) != "refused" else "refuses"
    except Failure as failure:
        ours = str(failure)
    if theirs == "runs" and execute(torch, program, mode)["error"]:
        theirs = "refuses"
    if KNOWN.search(theirs) or (theirs, ours) == ("refuses", "runs"):  # less is saved here
        return ""
    return "" if ours == theirs else f"PyTorch: {theirs}. Vesta: {ours}."


# ---- shrinking ----


def shorter(program: Program) -> Iterator[Program]:
    """Yields programs with less in them, the ones with much less first."""
    steps = program.steps
    size = len(steps)
    while size:
        for begin in range(0, len(steps), size):
            yield with_steps(program, steps[:begin] + steps[begin + size :])
        size //= 2
    for i in range(len(steps) - 1):
        for name in steps[i].defines:
            yield Program(program.seed, program.leaves, steps[: i + 1], [(name, 1.0)], program.mode)
    for i in range(len(program.loss)):
        yield Program(program.seed, program.leaves, steps, program.loss[:i] + program.loss[i + 1 :], program.mode)
    for i in range(len(program.leaves)):
        fewer = program.leaves[:i] + program.leaves[i + 1 :]
        yield Program(program.seed, fewer, steps, program.loss, program.mode)
    milder = {"values": (), "backward": ("values",)}.get(program.mode, ("values", "backward"))
    for mode in milder:
        yield Program(program.seed, program.leaves, steps, program.loss, mode)


def with_steps(program: Program, steps: list[Step]) -> Program:
    """Returns the program with these steps only, and of these only those whose names are there."""
    known, kept = {leaf.name for leaf in program.leaves}, []
    for step in steps:
        if all(name in known for name in step.needs):
            kept.append(step)
            known.update(step.defines)
    loss = [(name, weight) for name, weight in program.loss if name in known]
    return Program(program.seed, program.leaves, kept, loss, program.mode)


def failure_of(m: Any, program: Program) -> Failure | None:
    try:
        with np.errstate(all="ignore"):
            run = program.run()
    except (Rejected, ValueError, IndexError, KeyError):
        return None
    try:
        check(m, program, run)
    except Failure as failure:
        return failure
    return None


def shrink(m: Any, program: Program, failure: Failure) -> tuple[Program, Failure]:
    """Takes away what the failure does not need."""
    again = True
    while again:
        again = False
        for candidate in shorter(program):
            found = failure_of(m, candidate)
            if found and found.kind == failure.kind:
                program, failure, again = candidate, found, True
                break
    return program, failure


def script(program: Program) -> str:
    """Returns a program that stands on its own, with the reference's answers."""
    run = program.run()
    mode = mode_of(program, run)
    lines = [f"# seed {program.seed}", "import vesta as m", PRELUDE + program.source()]
    for leaf in program.leaves:
        made = f"m.tensor({leaf.value.tolist()}, dtype=m.float64).reshape({leaf.value.shape})"
        lines.append(f"{leaf.name} = {made}.requires_grad_({leaf.requires_grad})")
    names = ", ".join(leaf.name for leaf in program.leaves)
    tracked = [leaf for leaf in program.leaves if leaf.requires_grad]
    lines.append(f"arguments, leaves = [{names}], [{', '.join(leaf.name for leaf in tracked)}]")
    lines.append(f"loss, found = program(m, {names})")
    if mode == "second":
        lines.append(
            f"directions = [{', '.join(f'm.tensor({direction(leaf).tolist()}, dtype=m.float64)' for leaf in tracked)}]"
        )
    if "in_threads" in ASK[mode]:
        lines.insert(2, "from fuzz.run_programs import in_threads")
    lines.append(ASK[mode])
    for leaf in tracked:
        if mode != "values":
            lines.append(f"# the gradient of {leaf.name}: {run.gradient(leaf.name, leaf.value.size).tolist()}")
        if mode == "second":
            lines.append(f"# the second one: {run.second(leaf.name, leaf.value.size).tolist()}")
    return "\n".join(lines)


# ---- many ----


def may_leave(program: Program, run: Run) -> bool:
    """Returns whether a program may end in a cycle of saved tensors, which is not collected (EXCEPTIONS.md, 3).

    Such are a write to what was saved, and a kept gradient that is recorded itself.
    """
    return run.reference.may_refuse or (program.mode == "second" and bool(run.reference.kept))


def run_many(m: Any, torch: Any, first: int, count: int, progress: Any = None) -> int:
    """Runs programs of consecutive seeds; prints those that fail and a summary; returns how many failed."""
    ended: Counter[str] = Counter()
    failed = 0
    gc.collect()
    gc.freeze()  # what exists now is not looked through again: a collection takes a millisecond
    live = m._C._live_tensors()
    for seed in range(first, first + count):
        if progress:
            os.pwrite(progress, b"%12d" % seed, 0)
        with np.errstate(all="ignore"):
            program = generate(seed)
            run = program.run()
        try:
            ended[check(m, program, run)] += 1
            if torch and (said := compare_with(torch, m, program, run)):
                ended["unlike PyTorch"] += 1
                failed += 1
                print(f"seed {seed}: {said}\n{script(program)}\n", flush=True)
        except Failure as failure:
            failed += 1
            small, smaller = shrink(m, program, failure)
            print(f"seed {seed}: {smaller}\n{script(small)}\n", flush=True)
        if m._C._live_tensors() != live:
            gc.collect()
            if (now := m._C._live_tensors()) > live and not may_leave(program, run):
                failed += 1
                print(f"seed {seed}: {now - live} tensors are left\n{script(program)}\n", flush=True)
            live = now
    print(f"{count} programs from seed {first}: {failed} failed, {dict(ended)}", flush=True)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--progress", help="a file for the number of the program that runs")
    parser.add_argument("--torch", action="store_true", help="compare with PyTorch as well")
    parser.add_argument("--torch-if-there", action="store_true", help="the same, where it is installed")
    options = parser.parse_args()
    torch = None
    if options.torch or (options.torch_if_there and importlib.util.find_spec("torch")):
        import torch  # first: both bring libraries of the same name

        torch.set_num_threads(1)
    import vesta

    if options.seed is not None:
        print(script(generate(options.seed)))
        return run_many(vesta, torch, options.seed, 1)
    progress = os.open(options.progress, os.O_RDWR | os.O_CREAT) if options.progress else None
    return int(run_many(vesta, torch, options.first, options.count, progress) > 0)


if __name__ == "__main__":
    sys.exit(main())
