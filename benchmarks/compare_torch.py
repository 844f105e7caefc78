"""Times Vesta against PyTorch in one run and prints a table of ratios.

    .venv/bin/python benchmarks/compare_torch.py --torch-python /path/to/a/venv/with/torch/bin/python
    .venv/bin/python benchmarks/compare_torch.py --torch-python ... --family small --rounds 9

Each library runs in its own process (PyTorch in its own environment: the project does not depend on it). A case is
timed in both alternately, `--rounds` times, so that a change of the machine's speed affects both. A round's figure is
the best of several repetitions. The table shows the median of the rounds and the ratio PyTorch / Vesta (above 1: Vesta
is faster). If matplotlib is installed, a bar chart is written to --png. See cases.py for what is measured.

With --memory the memory of networks is compared instead, each in new processes: the most that a process held beyond
what the import took, and what it holds at the end (ratio Vesta / PyTorch, below 1: Vesta needs less).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "build" / "python"  # the Vesta that is measured: PYTHONPATH's, this one, or the installed one
sys.path.insert(0, str(HERE))
from cases import CASES  # noqa: E402
from networks import geometric_mean  # noqa: E402  (importing it adds the families "training" and "serving")

FORMS = ("eager", "channels_last", "compile")  # how PyTorch runs a network
NETWORKS = ("training", "serving")  # the families whose cases take a form

# The goal for PyTorch's time / ours, at least.
GOALS = {
    "a + b": 4.0, "a + b, recorded": 2.5, "(w * x).sum().backward()": 3.5, "x * 2.0": 2.5, "x.view(2, 4)": 2.5,
    "x[3]": 2.5, "8x8 @ 8x8": 2.5, "x.sum()": 2.5, "zeros(8)": 2.5, "nn.Linear(8, 8)(x)": 2.5,
    "MLP 64-64-64-10, tanh, batch 32, Adam": 8.0, "LeNet 28x28, batch 64, Adam": 1.8,
    "ResNet-50, batch 2": 1.3, "MobileNet v1, batch 4": 1.3, "MobileNet v2, batch 4": 1.3, "VGG-19, batch 2": 1.7,
    "AlexNet, batch 8": 1.9, "GPT, 4 layers, 256 wide, 256 long, batch 4": 1.4,
    "LSTM translator, 256 wide, 24 long, batch 32": 1.3, "neural collaborative filtering, batch 256": 3.0,
    "ResNet-50, one image": 1.3, "MobileNet v1, one image": 1.3, "MobileNet v2, one image": 1.3,
    "encoder, 6 layers, 384 wide, 128 long": 1.3, "GPT, 6 layers, 384 wide, 64 tokens one by one": 2.0,
    "Adam, fused, 400 tensors of 64 elements": 20.0, "Adam, fused, 25 million elements": 1.4,
}  # fmt: skip


def resident_mb() -> float:
    """Returns the resident memory of this process in MB."""
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def peak_mb() -> float:
    """Returns the most that the resident memory of this process has been, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def best_time(run, budget: float) -> float:
    """Returns seconds per call: the best of repetitions that fill `budget` seconds."""
    run()
    count, spent = 1, 0.0
    while spent < budget / 10 and count < 1 << 24:  # finds how many calls fill a tenth of the budget
        start = time.perf_counter()
        for _ in range(count):
            run()
        spent = time.perf_counter() - start
        if spent < budget / 10:
            count *= 2
    best, end = spent / count, time.perf_counter() + budget
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(count):
            run()
        best = min(best, (time.perf_counter() - start) / count)
    return best


def worker(name: str, threads: int) -> None:
    """Answers each request, {"family", "case", "form", "budget"}, with a line: {"seconds", "held_mb", "peak_mb"}.

    The last two count from the import on.
    """
    start = time.perf_counter()
    lib = importlib.import_module(name)
    imported = time.perf_counter() - start
    import_mb = resident_mb()
    lib.set_num_threads(threads)
    version = getattr(lib, "__version__", "?")
    print(json.dumps({"version": version, "import_seconds": imported, "import_mb": import_mb}), flush=True)
    prepared, current = {}, None  # form -> what is timed, of the current case
    for line in sys.stdin:
        request = json.loads(line)
        key = request["family"], request["case"]
        form = request["form"]
        try:
            if key != current:
                prepared.clear()
                current = key
            if form not in prepared:
                lib.manual_seed(0)
                prepared[form] = CASES[key[0]][key[1]](lib, *([form] if form else []))
            answer = {"seconds": best_time(prepared[form], request["budget"])}
            answer |= {"held_mb": resident_mb() - import_mb, "peak_mb": peak_mb() - import_mb}
        except Exception as e:  # a case that one library cannot run still gets a row in the table
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


class Library:
    """A worker process of one library."""

    def __init__(self, name: str, python: str, threads: int):
        command = [python, str(Path(__file__).resolve()), "--worker", name, "--threads", str(threads)]
        env = dict(os.environ)
        if name == "vesta" and BUILT.is_dir():
            env["PYTHONPATH"] = os.pathsep.join(filter(None, [env.get("PYTHONPATH"), str(BUILT)]))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.about = self.read()

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a worker ended early; see its error above")
        return json.loads(line)

    def time(self, family: str, case: str, form: str | None, budget: float) -> dict:
        time.sleep(0.02)  # the other library's threads spin for milliseconds after its last loop
        request = {"family": family, "case": case, "form": form, "budget": budget}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def human(seconds: float) -> str:
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def compare(options) -> list[dict]:
    ours = Library("vesta", sys.executable, options.threads)
    theirs = Library("torch", options.torch_python, options.threads)
    for name, lib in (("vesta", ours), ("torch", theirs)):
        about = lib.about
        print(
            f"{name} {about['version']}: import {about['import_seconds']:.3f} s, {about['import_mb']:.0f} MB resident"
        )
    print(f"\n{'case':44} {'vesta':>11} {'torch':>11} {'ratio':>7} {'goal':>6}")
    rows = []
    for family, cases in CASES.items():
        if options.family and family not in options.family:
            continue
        for name in cases:
            if options.only and options.only not in name:
                continue
            forms = options.form if family in NETWORKS else [None]
            rounds = [
                (ours.time(family, name, forms[0] and "eager", options.budget),
                 *(theirs.time(family, name, form, options.budget) for form in forms))
                for _ in range(options.rounds)
            ]  # fmt: skip
            error = next((answer["error"] for answer in rounds[0] if "error" in answer), None)
            if error:
                print(f"{name:44} {error}")
                rows.append({"family": family, "case": name, "error": error})
                continue
            medians = [statistics.median(r[i]["seconds"] for r in rounds) for i in range(len(rounds[0]))]
            best = min(range(1, len(medians)), key=medians.__getitem__)
            a, b = medians[0], medians[best]
            ratio = statistics.median(r[best]["seconds"] / r[0]["seconds"] for r in rounds)
            goal = GOALS.get(name, 1.0)
            mark = "" if ratio >= goal else "  below"
            mark += f"  ({', '.join(f'{f} {human(m)}' for f, m in zip(forms, medians[1:]))})" if len(forms) > 1 else ""
            print(f"{name:44} {human(a):>11} {human(b):>11} {ratio:7.2f} {goal:6.1f}{mark}", flush=True)
            rows.append({"family": family, "case": name, "vesta": a, "torch": b, "ratio": ratio, "goal": goal,
                         "form": forms[best - 1]})  # fmt: skip
    for family in dict.fromkeys(r["family"] for r in rows):
        ratios = [r["ratio"] for r in rows if r["family"] == family and "ratio" in r]
        print(f"{'geometric mean of ' + family:68} {geometric_mean(ratios):7.2f}")
    return rows


def compare_memory(options) -> list[dict]:
    """Compares the MB that networks hold beyond the import; each runs in processes of its own, PyTorch's eagerly."""
    print(f"{'case':44} {'vesta':>7} {'torch':>7} {'ratio':>7}   at the end")
    rows = []
    for family in NETWORKS:
        for name in CASES[family]:
            if (options.family and family not in options.family) or (options.only and options.only not in name):
                continue
            answers = []
            for library, python in (("vesta", sys.executable), ("torch", options.torch_python)):
                process = Library(library, python, options.threads)
                answers.append(process.time(family, name, "eager", options.budget))
                process.close()
            peaks, held = ([answer[key] for answer in answers] for key in ("peak_mb", "held_mb"))
            print(f"{name:44} {peaks[0]:7.0f} {peaks[1]:7.0f} {peaks[0] / peaks[1]:7.2f} "
                  f"  {held[0]:.0f} {held[1]:.0f} {held[0] / held[1]:.2f}", flush=True)  # fmt: skip
            rows.append({"family": family, "case": name, "peak_mb": peaks, "held_mb": held})
    return rows


def draw(rows: list[dict], path: str) -> None:
    try:
        import matplotlib
    except ImportError:
        print("no chart: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = [r for r in rows if "ratio" in r][::-1]
    figure, axes = plt.subplots(figsize=(9, 1 + 0.28 * len(rows)))
    colours = ["#2a7f62" if r["ratio"] >= r["goal"] else "#c0504d" for r in rows]
    axes.barh([r["case"] for r in rows], [r["ratio"] for r in rows], color=colours)
    axes.plot([r["goal"] for r in rows], range(len(rows)), "|", color="black", markersize=9, label="goal")
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("PyTorch's time / Vesta's time (higher is better)")
    axes.legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    print(f"chart: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", help="interpreter of an environment with PyTorch")
    parser.add_argument("--family", action="append", help=f"one of {', '.join(CASES)}; may be repeated")
    parser.add_argument("--only", help="cases whose name contains this")
    parser.add_argument("--form", action="append", choices=FORMS, help="how PyTorch runs networks; may be repeated; "
                        "the best counts (eager and channels_last)")  # fmt: skip
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.15, help="seconds per case, library and round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--memory", action="store_true", help="compares the memory of networks instead of times")
    parser.add_argument("--json", help="writes the rows there")
    parser.add_argument("--png", default="out/compare_torch.png")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.threads)
        return
    if not options.torch_python:
        parser.error("--torch-python is needed: an interpreter with PyTorch installed")
    options.form = options.form or ["eager", "channels_last"]
    rows = compare_memory(options) if options.memory else compare(options)
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n")
    if options.memory:
        return
    Path(options.png).parent.mkdir(parents=True, exist_ok=True)
    draw(rows, options.png)


if __name__ == "__main__":
    main()
