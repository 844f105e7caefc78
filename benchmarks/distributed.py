"""Times all_reduce on some ranks of this machine, against PyTorch's Gloo in the same run, and the cost of the check.

    .venv/bin/python benchmarks/distributed.py --torch-python /path/to/a/venv/with/torch/bin/python
    .venv/bin/python benchmarks/distributed.py --check

All processes live through the whole run and are measured alternately, so that a change of the machine's speed affects
all of them. A round's figure is the median of its calls on rank 0. The table shows the median of the rounds and, beside
it, the median of the ratios of each round. `processor` is the CPU time that all threads of all ranks used, which other
load on the machine disturbs less. `--check` compares with groups that do not check whether the ranks' calls agree
(VESTA_UNCHECKED_COLLECTIVES=1, for this measurement only).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

BUILT = Path(__file__).resolve().parent.parent / "build" / "python"
SIZES = {4: 300, 1024: 300, 65536: 150, 1 << 20: 60, 26_000_000: 6}  # bytes: calls per round


def worker(name: str, rank: int, size: int, port: int) -> None:
    """Answers each request with a JSON line: {"bytes", "calls"} -> seconds of the median call, CPU seconds per call."""
    lib = importlib.import_module(name)
    dist = importlib.import_module(name + ".distributed")
    lib.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        tensor = lib.zeros(request["bytes"] // 4)
        dist.all_reduce(tensor)
        dist.barrier()
        times, used = [], time.process_time()
        for _ in range(request["calls"]):
            start = time.perf_counter()
            dist.all_reduce(tensor)
            times.append(time.perf_counter() - start)
        used = (time.process_time() - used) / request["calls"]
        print(json.dumps([statistics.median(times), used]), flush=True)
    dist.destroy_process_group()


class Ranks:
    """The processes of one library."""

    def __init__(self, name: str, python: str, size: int, environment: dict[str, str] | None = None) -> None:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        env = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
        if name == "vesta":
            env.setdefault("PYTHONPATH", str(BUILT))
        else:
            env.pop("PYTHONPATH", None)
        self.processes = [
            subprocess.Popen(
                [python, __file__, "--worker", name, str(rank), str(size), str(port)],
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]
        for process in self.processes:
            assert process.stdout and process.stdout.readline() == "ready\n", f"{name}: a rank did not start"

    def measure(self, size: int, calls: int) -> tuple[float, float]:
        """Returns rank 0's median in seconds, and the CPU time of all ranks per call."""
        for process in self.processes:
            assert process.stdin
            process.stdin.write(json.dumps({"bytes": size, "calls": calls}) + "\n")
            process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for process in self.processes if process.stdout]
        return answers[0][0], sum(used for _, used in answers)

    def end(self) -> None:
        for process in self.processes:
            assert process.stdin
            process.stdin.close()
        for process in self.processes:
            process.wait(60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", help="an interpreter that can import torch")
    parser.add_argument("--check", action="store_true", help="compare with groups that check nothing")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES), help="bytes")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        name, *numbers = args.worker
        worker(name, *map(int, numbers))
        return
    sides = {"vesta": Ranks("vesta", sys.executable, args.ranks)}
    if args.torch_python:
        sides["torch"] = Ranks("torch", args.torch_python, args.ranks)
    if args.check:
        sides["unchecked"] = Ranks("vesta", sys.executable, args.ranks, {"VESTA_UNCHECKED_COLLECTIVES": "1"})
    results: dict[str, dict[str, float]] = {}
    names = list(sides)
    for size in args.sizes:
        rounds = []
        for i in range(args.rounds):
            order = names if i % 2 == 0 else names[::-1]
            rounds.append({name: sides[name].measure(size, SIZES.get(size, 60)) for name in order})
        row = {name: statistics.median(r[name][0] for r in rounds) * 1e6 for name in names}
        for other in names[1:]:
            row[f"{other} / vesta"] = statistics.median(r[other][0] / r["vesta"][0] for r in rounds)
            row[f"processor {other} / vesta"] = statistics.median(r[other][1] / r["vesta"][1] for r in rounds)
        results[str(size)] = row
        figures = "  ".join(f"{k} {v:10.1f} us" if "/" not in k else f"{k} {v:5.2f}" for k, v in row.items())
        print(f"all_reduce of {size:>9} B on {args.ranks} ranks:  {figures}", flush=True)
    for side in sides.values():
        side.end()
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
