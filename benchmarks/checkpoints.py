"""Times saving and loading of a state dict of 516 MB, against PyTorch's.

    PYTHONPATH=build/python python benchmarks/checkpoints.py [--torch-python VENV/bin/python] [--rounds 5]

Both libraries take turns, each in a process of its own. Files are saved to the disk, where Vesta waits until they are
there and PyTorch does not, and to /dev/shm, where nobody waits.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time
from typing import Any

PLACES = {"disk": "/tmp", "memory": "/dev/shm"}
ACTIONS = ("save", "load", "map")


def serve(library: str) -> None:
    """Answers each line ``save PLACE``, ``load PLACE`` or ``map PLACE`` with its time."""
    module: Any = importlib.import_module(library)
    state = {f"layer{i}.weight": module.randn(1024, 1024 * (1 + i % 3)) for i in range(62)}
    for line in sys.stdin:
        action, place = line.split()
        path = f"{PLACES[place]}/checkpoint-{library}-{os.getpid()}.pt"
        if action == "remove":
            os.unlink(path)
            continue
        begin = time.perf_counter()
        if action == "save":
            module.save(state, path)
        else:
            module.load(path, mmap=action == "map")
        print(time.perf_counter() - begin, flush=True)


def ask(process: Any, action: str, place: str) -> float:
    """Returns how long a library took."""
    print(action, place, file=process.stdin, flush=True)
    return float(process.stdout.readline()) if action != "remove" else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", help="a Python that has PyTorch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve)
        return
    pythons = {"vesta": sys.executable, "torch": arguments.torch_python}
    running = {}
    for name, python in pythons.items():
        if python:
            command, plain = [python, __file__, "--serve", name], {"PATH": "/usr/bin:/bin"}
            environment = plain if name == "torch" else None
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            running[name] = subprocess.Popen(command, env=environment, **pipes)
    for place in PLACES:
        times: dict[tuple[str, str], list[float]] = {(a, n): [] for a in ACTIONS for n in running}
        for _ in range(arguments.rounds):
            for action, name in times:
                times[action, name].append(ask(running[name], action, place))
        for action in ACTIONS:
            middle = {name: statistics.median(times[action, name]) for name in running}
            shown = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in middle.items())
            ratio = f", {middle['vesta'] / middle['torch']:.2f} of PyTorch's" if "torch" in middle else ""
            print(f"{action} ({place}): {shown}{ratio}", flush=True)
        for process in running.values():
            ask(process, "remove", place)
    for process in running.values():
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main()
