"""Times families of cases with Vesta and with PyTorch, alternately in two processes, and adds the rows to the report.

    compare.py PHASE FAMILY... [--report FILE] [--rounds 2] [--repeats 20] [--torch-python PYTHON] [--tiny]

A round asks Vesta, then PyTorch; a row keeps the median over the rounds. A worker that fails, ends or takes too long is
restarted, so one bad case costs one row. Each row is in the report before the next case starts.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import cases  # noqa: F401  (enters its cases)
import environment
import models  # noqa: F401
from report import Report
from work import CASES

HERE = Path(__file__).resolve().parent


class Worker:
    """A process that times cases with one library. It is started by the first request, and again after a failure."""

    def __init__(self, library: str, python: str, tiny: bool, patience: float) -> None:
        self.command = [python, str(HERE / "worker.py"), library] + tiny * ["--tiny"]
        self.patience = patience
        self.process: subprocess.Popen[bytes] | None = None
        self.about: dict[str, Any] = {}
        env = dict(os.environ)
        if library == "torch":  # perhaps in its own environment, for another version of Python
            env.pop("PYTHONPATH", None)
        self.env = env

    def ask(self, family: str, name: str, repeats: int) -> dict[str, Any]:
        """Returns the worker's answer, or {"error": ...} if it gave none."""
        if "error" in self.about:  # it never started: do not wait for it in every case
            return self.about
        if self.process is None:
            self.start()
            if "error" in self.about:
                return self.about
        request = json.dumps({"family": family, "case": name, "repeats": repeats}) + "\n"
        try:
            self.process.stdin.write(request.encode())
        except OSError:  # it has ended since the last answer
            self.stop()
            return {"error": "the worker ended"}
        figures = self.read(self.patience)
        if "error" in figures:
            self.stop()
        return figures

    def start(self) -> None:
        """Starts the process; `about` is then its own description, or {"error": ...}."""
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.env, bufsize=0
        )
        self.about = self.read(max(self.patience, 120))
        if "error" in self.about:
            self.stop()

    def read(self, patience: float) -> dict[str, Any]:
        deadline, text = time.monotonic() + patience, b""
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return {"error": f"no answer within {patience:.0f} s"}
            piece = os.read(self.process.stdout.fileno(), 1 << 16)
            if not piece:
                return {"error": f"the worker ended with status {self.process.wait()}"}
            text += piece
        return json.loads(text)

    def stop(self) -> None:
        """Ends the process, if there is one."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None


def together(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Combines several rounds: the median of medians, the widest spread; or the error of a failed round."""
    for key in ("error", "missing"):
        for figures in rounds:
            if key in figures:
                return {key: figures[key]}
    figures = dict(rounds[-1])
    figures["median"] = statistics.median(r["median"] for r in rounds)
    figures["spread"] = max(r["spread"] for r in rounds)
    figures["rounds"] = [r["median"] for r in rounds]
    return figures


def time_case(workers: dict[str, Worker], family: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Returns the row of one case: {"family", "case", "vesta": figures, "torch": figures}."""
    rounds: dict[str, list[dict[str, Any]]] = {library: [] for library in workers}
    for _ in range(options.rounds):
        for library, worker in workers.items():
            if not any("median" not in figures for figures in rounds[library]):  # do not fail twice
                rounds[library].append(worker.ask(family, name, options.repeats))
    row = {library: together(figures) for library, figures in rounds.items()}
    return {"family": family, "case": name, **row}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase")
    parser.add_argument("families", nargs="+", choices=list(CASES))
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--patience", type=float, default=60, help="seconds one case may take")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--torch-python", help="interpreter of an environment with PyTorch")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    workers = {"vesta": Worker("vesta", sys.executable, options.tiny, options.patience)}
    if options.torch_python:
        workers["torch"] = Worker("torch", options.torch_python, options.tiny, options.patience)
    report = Report(options.report)
    failed = 0
    try:
        for family in options.families:
            for name in CASES[family]:
                if options.only in name:
                    row = time_case(workers, family, name, options)
                    failed += "error" in row["vesta"]
                    report.add_row(options.phase, row)
                    print(json.dumps(row), flush=True)
            about = {library: worker.about for library, worker in workers.items()}
            report.update(options.phase, about=about)
            report.update(options.phase, clocks={family: environment.clocks()})
    finally:
        for worker in workers.values():
            worker.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
