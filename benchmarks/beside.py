"""Times training steps of networks.py on a quiet machine and beside one other busy process, and prints the ratio.

    .venv/bin/python benchmarks/beside.py --only LSTM
    VENV/bin/python benchmarks/beside.py --library torch --only LSTM

The times are means: a step that is held up counts. A quiet time is taken before and after, and the smaller one is used.
On two CPUs a fair share beside one busy thread is a third less: 1.5.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "build" / "python")]
import networks  # noqa: E402, F401  (adds the family "training")
from cases import CASES  # noqa: E402


def mean_time(step, budget: float) -> float:
    """Returns the mean seconds of the steps that fill `budget` seconds."""
    start, count = time.perf_counter(), 0
    while time.perf_counter() < start + budget:
        step()
        count += 1
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="vesta", help="vesta or torch")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--budget", type=float, default=3.0, help="seconds per measurement, three for each case")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    lib = importlib.import_module(options.library)
    lib.set_num_threads(options.threads)
    print(f"{'case':46} {'quiet':>10} {'beside':>10} {'ratio':>6}")
    for name, make in CASES["training"].items():
        if options.only not in name:
            continue
        lib.manual_seed(0)
        step = make(lib, "eager")
        for _ in range(3):
            step()
        before = mean_time(step, options.budget)
        other = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
        try:
            time.sleep(0.3)
            busy = mean_time(step, options.budget)
        finally:
            other.kill()
            other.wait()
        quiet = min(before, mean_time(step, options.budget))
        print(f"{name:46} {quiet * 1e3:7.1f} ms {busy * 1e3:7.1f} ms {busy / quiet:6.2f}", flush=True)


if __name__ == "__main__":
    main()
