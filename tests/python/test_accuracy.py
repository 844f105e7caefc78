"""Holds the functions of float32 tensors to the errors that docs/accuracy.md states."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import pytest
import vesta

ROOT = Path(__file__).resolve().parents[2]


def load_measurement():
    spec = importlib.util.spec_from_file_location("accuracy", ROOT / "benchmarks" / "accuracy.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for its annotations
    spec.loader.exec_module(module)
    return module


def read_table() -> dict[str, tuple[float, float]]:
    """The stated errors by function: with FMA instructions, and without."""
    table = {}
    for line in (ROOT / "docs" / "accuracy.md").read_text().splitlines():
        row = re.fullmatch(r"\| `(.+?)` \| .+? \| ([\d.]+) \| ([\d.]+) \| .+ \|", line)
        if row:
            table[row[1]] = (float(row[2]), float(row[3]))
    return table


measurement = load_measurement()
stated = read_table()


def test_every_measured_function_has_a_row():
    assert list(stated) == list(measurement.CASES)


@pytest.mark.parametrize("name", measurement.CASES)
def test_errors_are_not_above_what_is_stated(name):
    has_fma = vesta.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    error, at = measurement.error(vesta, name, samples=100_000, seed=1)
    assert error <= stated[name][0 if has_fma else 1], f"{name}({at!r})"
    assert error > 0.2, "a measurement that finds no rounding measures nothing"


def test_wrong_values_are_found(monkeypatch):
    """The measurement itself: a relative error of 1e-6, NaN and infinity where there is a number."""
    for wrong, least in ((1 + 1e-6, 8), (float("nan"), float("inf")), (float("inf"), float("inf"))):
        case = measurement.Case(lambda lib, x, w=wrong: x.exp() * (w if x.dtype == lib.float32 else 1), ((-9.0, 9.0),))
        monkeypatch.setitem(measurement.CASES, "wrong", case)
        assert measurement.error(vesta, "wrong", samples=3000)[0] >= least
