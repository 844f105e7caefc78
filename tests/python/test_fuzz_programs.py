"""Random programs of ops, views, writes, hooks and threads: values, memory and derivatives are the reference's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import vesta
from fuzz import functions, program, run_programs, steps
from fuzz.hyper_dual import Reference

TESTS = Path(__file__).resolve().parents[1]


def run(first: int, count: int, tmp_path: Path, *more: str) -> None:
    """Runs programs in a process of its own, so that a crash names its program."""
    progress = tmp_path / "progress"
    progress.write_text("none")
    command = [sys.executable, "-m", "fuzz.run_programs", "--first", str(first), "--count", str(count)]
    path = f"{TESTS}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    done = subprocess.run(
        [*command, "--progress", str(progress), *more], capture_output=True, text=True, timeout=1200,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
    )  # fmt: skip
    assert (
        done.returncode == 0
    ), f"status {done.returncode} at program {progress.read_text()}:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}"


def test_random_programs(tmp_path: Path) -> None:
    run(0, 200, tmp_path)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_random_programs(part: int, tmp_path: Path) -> None:
    """With PyTorch as a second reference where it is installed."""
    run(part * 1000 + 1000, 1000, tmp_path, "--torch-if-there")


# ---- the harness itself: it finds what is wrong, and shrinks it ----


class Wrong:
    """The library, with a function that is wrong."""

    def __init__(self, **wrong: object) -> None:
        self.__dict__.update(wrong)

    def __getattr__(self, name: str) -> object:
        return getattr(vesta, name)


def first_failure(module: object) -> tuple[program.Program, run_programs.Failure]:
    for seed in range(300):
        made = steps.generate(seed)
        if failure := run_programs.failure_of(module, made):
            return made, failure
    raise AssertionError("nothing was found")


@pytest.mark.no_leak_check  # programs that write what a graph has saved leave it behind (EXCEPTIONS.md, 3)
def test_a_wrong_gradient_is_found_and_shrunk() -> None:
    """A product that forgets the derivative by one factor is found; little is left of the program."""
    wrong = Wrong(maximum=lambda a, b: vesta.maximum(a, b.detach()))
    found, failure = first_failure(wrong)
    small, failure = run_programs.shrink(wrong, found, failure)
    assert failure.kind in ("gradient", "second gradient", "requires_grad")
    assert len(small.steps) <= 3 and "m.maximum" in small.source()
    assert f"# seed {found.seed}" in run_programs.script(small)


@pytest.mark.no_leak_check  # the same
def test_a_wrong_value_and_a_copy_for_a_view_are_found() -> None:
    for wrong, kinds in (
        (Wrong(cos=lambda x: vesta.cos(x) * (1 + 1e-6)), {"values"}),
        (Wrong(where=lambda c, a, b: vesta.where(c, a, b).detach()), {"requires_grad", "gradient"}),
    ):
        assert first_failure(wrong)[1].kind in kinds


def test_the_reference_has_exact_derivatives() -> None:
    """Hyper-dual numbers of a function whose derivatives are known: f = x**3 sin(y)."""
    r = Reference(2)
    x, y = (r.fresh(np.array([value]), None, True, True) for value in (0.7, 0.4))
    r.probe(x, np.array([0.3]))
    r.probe(y, np.array([-0.2]))
    f = r.mul(r.unary(functions.UNARY["{0}**3"], x), r.unary(functions.UNARY["{0}.sin()"], y))
    s, c = np.sin(0.4), np.cos(0.4)
    np.testing.assert_allclose(f.dual[1:3, 0], [3 * 0.49 * s, 0.343 * c], rtol=1e-14)
    mixed = [6 * 0.7 * s * 0.3 + 3 * 0.49 * c * -0.2, 3 * 0.49 * c * 0.3 - 0.343 * s * -0.2]
    np.testing.assert_allclose(f.dual[3:5, 0], mixed, rtol=1e-14)


def test_retained_gradients_of_two_threads_are_added() -> None:
    """The finding: a gradient that two threads add to a non-leaf's at once was lost."""
    for _ in range(200):
        x = vesta.ones(3, dtype=vesta.float64, requires_grad=True)
        y = x * 2
        y.retain_grad()
        loss = (y * y).sum()
        run_programs.in_threads(lambda loss=loss: loss.backward(retain_graph=True))
        assert y.grad.tolist() == [8.0] * 3 and x.grad.tolist() == [16.0] * 3
