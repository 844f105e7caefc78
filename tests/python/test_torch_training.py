"""A hundred steps of training against PyTorch's, from the same weights and data, as they were recorded."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vesta
from torch_training import run


@cache
def recorded() -> dict[str, Any]:
    return json.loads((Path(run.__file__).parent / "recorded.json").read_text())


#: Relative to the largest value: what rounding grows to in 100 steps, ten times what was seen.
BOUNDS = {"float64": 1e-12, "float32": 4e-4}


@pytest.mark.parametrize("dtype", run.DTYPES)
@pytest.mark.parametrize("name", run.RUNS)
def test_a_hundred_steps_are_pytorchs(name: str, dtype: str) -> None:
    wanted, found = recorded()[f"{name}-{dtype}"], run.RUNS[name](vesta, getattr(vesta, dtype))
    assert len(found["losses"]) == run.STEPS and found["losses"][-1] < 0.9 * found["losses"][0]
    for key in ("losses", "summary", "outputs"):
        own, theirs = np.array(found[key]), np.array(wanted[key])
        assert own.shape == theirs.shape
        assert np.abs(own - theirs).max() <= BOUNDS[dtype] * np.abs(theirs).max(), key
    first = slice(0, 5)  # rounding has not grown yet
    near = 1e-13 if dtype == "float64" else 3e-6
    np.testing.assert_allclose(found["losses"][first], wanted["losses"][first], rtol=near)
