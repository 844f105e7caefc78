"""Runs the tests that use a device and reads their JUnit files into the report.

    device_tests.py REPORT --junit FILE [--seconds 150] [--only EXPRESSION]

pytest stops by itself before the phase's time is over, so that the tests that ran are counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from report import Report

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests" / "python"

# The files, and which of their tests to run. The tests of the CPU alone run elsewhere.
SETS = (
    (("test_cuda*.py",), ""),
    (("test_op_db*.py",), "cuda"),
    (
        ("test_nn*.py", "test_layer*.py", "test_optim*.py", "test_autograd*.py", "test_amp*.py", "test_train*.py"),
        "cuda",
    ),
)


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def device_name() -> str:
    """Asks the library under test, in a separate process, for the name of device 0; "" if there is none."""
    program = "import vesta; print(vesta.cuda.get_device_name() if vesta.cuda.is_available() else '')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
    return done.stdout.strip()


def run_set(files: list[str], expression: str, junit: Path, workers: int, seconds: float) -> int:
    """Runs pytest on some files; returns its exit status, 124 if it had to be ended."""
    command = [sys.executable, "-m", "pytest", "-q", "-rf", "-m", "not campaign", "-p", "no:cacheprovider"]
    command += [f"--junitxml={junit}", *files] + (["-k", expression] if expression else [])
    if workers > 1:
        command += ["-n", str(workers)]
    print("+", *command[1:], flush=True)
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # pytest then ends properly and writes the results so far
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return 124


def read_junit(junit: Path) -> dict[str, Any]:
    """Returns the counts, the names of the failed tests and the reasons for the skipped ones."""
    counts, failed, skipped = {"passed": 0, "failed": 0, "skipped": 0}, [], {}
    for test in ElementTree.parse(junit).getroot().iter("testcase"):
        wrong = test.find("failure") if test.find("failure") is not None else test.find("error")
        skip = test.find("skipped")
        if wrong is not None:
            counts["failed"] += 1
            message = (wrong.get("message") or "").splitlines() or [""]
            failed.append(f"{test.get('classname')}::{test.get('name')}: {message[0][:300]}")
        elif skip is not None:
            counts["skipped"] += 1
            reason = skip.get("message") or "?"
            skipped[reason] = skipped.get(reason, 0) + 1
        else:
            counts["passed"] += 1
    return {"counts": counts, "failed": failed, "skipped": skipped}


def merge(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Adds up the results of several runs."""
    total: dict[str, Any] = {"counts": {"passed": 0, "failed": 0, "skipped": 0}, "failed": [], "skipped": {}}
    for part in parts:
        for key, value in part["counts"].items():
            total["counts"][key] += value
        total["failed"] += part["failed"]
        for reason, count in part["skipped"].items():
            total["skipped"][reason] = total["skipped"].get(reason, 0) + count
    return total


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--junit", type=Path, required=True, help="JUnit files: FILE, with a number per set")
    parser.add_argument("--only", default="", help="pytest's -k, besides what a set asks for")
    parser.add_argument("--seconds", type=float, default=150)
    options = parser.parse_args()
    report = Report(options.report)
    name = device_name()
    emulated = "Emulated" in name
    report.update("tests", device=name)
    if not name or emulated != (os.environ.get("VESTA_GPU") == "emulation"):
        report.update("tests", note=f"expected a device, got {name!r}")
        return 3
    absent = [module for module in ("pytest", "hypothesis", "numpy", "scipy") if not has(module)]
    if absent:
        report.update("tests", note=f"not installed: {', '.join(absent)}")
        return 4
    workers = min(12, os.cpu_count() or 1) if has("xdist") and not emulated else 1
    parts, status, end = [], 0, time.monotonic() + options.seconds
    for number, (patterns, expression) in enumerate(SETS):
        files = sorted(str(path) for pattern in patterns for path in TESTS.glob(pattern))
        wanted = " and ".join(f"({e})" for e in (expression, options.only) if e)
        junit = options.junit.with_name(f"{options.junit.stem}-{number}.xml")
        result = run_set(files, wanted, junit, workers, (end - time.monotonic()) / (len(SETS) - number))
        parts += [read_junit(junit)] if junit.exists() else []
        report.update("tests", **merge(parts))
        status = status or (0 if result == 5 else result)  # 5: no test was selected
    return status


if __name__ == "__main__":
    sys.exit(main())
