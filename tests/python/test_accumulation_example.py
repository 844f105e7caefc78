"""``examples/accumulation`` trains the same network with whole batches and in parts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "accumulation" / "train.py"


@pytest.mark.parametrize("part", [32, 50])  # 50 leaves a part of another size
def test_parts_train_the_network_of_the_whole_batch(part: int) -> None:
    command = [sys.executable, str(PROGRAM), "--batch-size", "128", "--micro-batch-size", str(part), "--epochs", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = re.search(r"^test accuracy ([0-9.]+)%; largest difference of a parameter (\S+)$", done.stdout, re.M)
    assert found is not None, done.stdout
    assert float(found[1]) > 80
    assert 0 < float(found[2]) < 1e-4
