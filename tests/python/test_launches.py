"""The device that counts bytes (cuda/emulation/counting), and benchmarks/launches.py, which stands on it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import vesta

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("VESTA_BUILD", "build")).resolve()
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
pytestmark = [
    pytest.mark.campaign,  # the kernels are compiled once more
    pytest.mark.skipif(not EMULATED or not vesta.cuda.is_available(), reason="needs the emulated device"),
]

KERNELS = """
import sys
sys.path.insert(0, "benchmarks")
import vesta
from launches import Counter
x, y = vesta.randn(1000, 1000).cuda(), vesta.randn(1000, 1000).cuda()
def moved(call):
    with Counter() as counter:
        call()
        vesta.cuda.synchronize()
    return [(l.read, l.written) for l in counter.launches]
n = 4_000_000
assert moved(lambda: x + y) == [(2 * n, n)]
assert moved(lambda: x.exp_()) == [(n, n)]
assert moved(lambda: x[:, ::16].exp()) == [(63 * 1000 * 32, 63 * 4000)]  # a sector for each element
assert moved(lambda: x.copy_(y)) == [(n, n)]
(read, written), = moved(lambda: x.sum(1))
assert read == n and written == 4000, (read, written)
"""


def counted(model: str, launches: int, ratio: float) -> str:
    """Returns the tables of a model's step, which has no more launches than these and moves fewer bytes."""
    counting = [sys.executable, "benchmarks/launches.py", "--only", model]
    environment = {**os.environ, "VESTA_BUILD": str(BUILD)}
    done = subprocess.run(counting, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1500, check=True)
    found = re.search(r"total: (\d+) launches, .* ratio ([\d.]+) .* (\d+) layout copies", done.stdout)
    assert found and int(found[1]) <= launches and float(found[2]) < ratio and int(found[3]) == 0, done.stdout
    return done.stdout


def test_a_training_step_of_gpt2() -> None:
    table = counted("gpt2", 125, 1.2)
    assert not re.search(r"^Gelu", table, re.M), table  # its gradient is in the product of the layer behind
    assert re.search(r"^add +5 +5 ", table, re.M), table  # float32 with bfloat16, in one kernel


def test_a_training_step_of_a_resnet() -> None:
    counted("resnet50", 675, 1.3)  # the bar of launches.py


def test_bytes_of_launches() -> None:
    table = counted("mlp", 17, 1.1)
    assert re.search(r"^linear +1 +1 ", table, re.M), table
    assert re.search(r"^_linear_activation +2 +4 ", table, re.M), table  # relu is an op of its own

    environment = {**os.environ, "VESTA_BUILD": str(BUILD)}
    environment["VESTA_CUDA_LIBRARY"] = str(BUILD / "lib" / "libvesta_cuda_counting.so")
    environment["VESTA_EMULATION_DEVICES"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", KERNELS], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
