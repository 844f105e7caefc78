"""Times Vesta's data loaders against PyTorch's in one run: batches per second, and seconds until the first batch.

    .venv/bin/python benchmarks/dataloader.py --torch-python /path/to/a/venv/with/torch/bin/python
    .venv/bin/python benchmarks/dataloader.py --torch-python ... --rounds 5 --only images
    .venv/bin/python benchmarks/dataloader.py --pack 1500000     memory of workers with pack=True, and without

Every measurement is a separate process that runs this file with one library. The libraries alternate, `--rounds` times,
and a round's ratio is PyTorch's time / ours (above 1: Vesta is faster). Both use the same datasets:

    images   float32 3x224x224 from memory, batches of 32 small    64 floats and a number, batches of 128 text     128
    tokens, a mask and a label as a dict, batches of 32 first    the first batch of a dataset of 500 MB (list of
    arrays), with 4 workers, for each start method
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "build" / "python"
LIB = os.environ.get("LOADER_BENCHMARK_LIBRARY", "vesta")  # a worker that is not forked reads it too

if LIB == "vesta" and BUILT.is_dir():
    sys.path.insert(0, str(BUILT))
lib = importlib.import_module(LIB)
data = importlib.import_module(LIB + ".utils.data")
if LIB == "vesta":  # PyTorch imports its own loader with the package; neither library's import is measured
    importlib.import_module("vesta.utils.data.by_workers")


class Images(data.Dataset):
    """Images from memory."""

    batch, count = 32, 1536

    def __init__(self) -> None:
        self.images = lib.randn(48, 3, 224, 224)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        return self.images[index % 48], index


class Small(data.Dataset):
    """64 floats."""

    batch, count = 128, 100_000

    def __init__(self) -> None:
        self.rows = lib.randn(self.count, 64)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        return self.rows[index], index


class Text(data.Dataset):
    """Tokenised sentences."""

    batch, count = 32, 30_000

    def __init__(self) -> None:
        chance = random.Random(0)
        self.tokens = lib.tensor([[chance.randrange(30_000) for _ in range(128)] for _ in range(2000)])
        self.masks = (self.tokens > 500).long()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        at = index % 2000
        return {"input_ids": self.tokens[at], "attention_mask": self.masks[at], "label": index % 2}


class Large(data.Dataset):
    """500 MB in arrays."""

    batch, count = 4, 2000

    def __init__(self) -> None:
        import numpy

        self.arrays = [numpy.full(62_500, i, numpy.float32) for i in range(self.count)]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int):
        return self.arrays[index]


class Records(data.Dataset):
    """Many small dicts."""

    batch = 1000

    def __init__(self, count: int) -> None:
        self.rows = [{"id": i, "name": f"name {i}", "box": (i, i + 1, i + 2, i + 3)} for i in range(count)]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> int:
        return len(self.rows[index]["name"])


KINDS = {"images": Images, "small": Small, "text": Text, "first": Large}
GOALS = {"0 workers": 1.0, "2 workers": 2.0, "first": 3.0}


def throughput(kind: type, workers: int) -> float:
    """Returns the seconds per batch of one pass, without its first batches."""
    dataset = kind()
    batches = iter(data.DataLoader(dataset, batch_size=kind.batch, shuffle=True, num_workers=workers))
    for _ in range(4):
        next(batches)
    start, count = time.perf_counter(), 0
    for _ in batches:
        count += 1
    return (time.perf_counter() - start) / count


def first_batch(method: str) -> float:
    """Returns the seconds until the first batch."""
    dataset = Large()
    start = time.perf_counter()
    loader = data.DataLoader(dataset, batch_size=Large.batch, num_workers=4, multiprocessing_context=method)
    batches = iter(loader)
    next(batches)
    return time.perf_counter() - start


def private_memory(pid: int) -> int:
    """Returns the bytes of a process's memory that no other process shares."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Private_"))


def memory_of_workers(count: int) -> dict[str, float]:
    """Returns the private memory of the larger of two workers after a pass, in MB, with and without pack=True."""
    found = {}
    for pack in (True, False):
        loader = data.DataLoader(
            Records(count), batch_size=1000, num_workers=2, persistent_workers=True, multiprocessing_context="fork",
            pack=pack,
        )  # fmt: skip
        for _ in loader:
            pass
        found[f"pack={pack}"] = max(private_memory(worker.pid) for worker in loader._iterator._pool.workers) / 1e6
        del loader
    return found


def measure(name: str, python: str, case: str, setting: str) -> float:
    """Runs one measurement in a separate process; returns its seconds."""
    env = {**os.environ, "LOADER_BENCHMARK_LIBRARY": name, "PYTHONWARNINGS": "ignore"}
    command = [python, str(Path(__file__).resolve()), "--case", case, "--setting", setting]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(f"{name} {case} {setting}:\n{done.stderr}")
    return float(done.stdout.split()[-1])


def compare(options: argparse.Namespace) -> list[dict]:
    """Measures all cases and prints the table; returns its rows."""
    cases = [(kind, str(workers)) for kind in ("images", "small", "text") for workers in (0, 2)]
    cases += [("first", method) for method in ("fork", "spawn", "forkserver")]
    rows = []
    print(f"{'case':28} {'vesta':>12} {'torch':>12} {'ratio':>7} {'goal':>5}")
    for case, setting in cases:
        label = f"first batch, {setting}" if case == "first" else f"{case}, {setting} workers"
        if options.only and options.only not in label:
            continue
        rounds = [
            (measure("vesta", sys.executable, case, setting), measure("torch", options.torch_python, case, setting))
            for _ in range(options.rounds)
        ]
        ours, theirs = (statistics.median(r[i] for r in rounds) for i in (0, 1))
        ratio = statistics.median(r[1] / r[0] for r in rounds)
        goal = GOALS["first" if case == "first" else f"{setting} workers"]
        mark = "" if ratio >= goal else "  below"
        print(f"{label:28} {ours * 1e3:9.3f} ms {theirs * 1e3:9.3f} ms {ratio:7.2f} {goal:5.1f}{mark}", flush=True)
        rows.append({"case": label, "vesta": ours, "torch": theirs, "ratio": ratio, "goal": goal})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", help="interpreter of an environment with PyTorch")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="cases whose name contains this")
    parser.add_argument("--json", help="writes the rows there")
    parser.add_argument("--pack", type=int, metavar="COUNT", help="measures the memory of workers over COUNT dicts")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--setting", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        kind = KINDS[options.case]
        print(first_batch(options.setting) if kind is Large else throughput(kind, int(options.setting)))
    elif options.pack:
        print({name: f"{megabytes:.0f} MB" for name, megabytes in memory_of_workers(options.pack).items()})
    elif options.torch_python:
        rows = compare(options)
        if options.json:
            Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    else:
        parser.error("--torch-python is needed: an interpreter with PyTorch installed")


if __name__ == "__main__":
    main()
