"""The report of a GPU run: one JSON file that every phase adds to, and the table that is printed from it.

    report.py FILE begin MODE              starts a report
    report.py FILE end PHASE STATUS SECS   notes how a phase ended (a command's exit status; 124 is a time-out)
    report.py FILE print                   prints the tables; exit status 1 if a phase or a test failed

The file is replaced as a whole at every step, so that it is always complete, even if the run is cut off.
../results/h200/README.md describes its contents.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

#: The share of the ceiling (measured in the same run) that a family should reach; families are those of cases.py.
FRACTIONS = {"elementwise": 0.85, "reductions": 0.75, "rows": 0.80}
#: The share that cuda/kernels/README.md reasons for a case, by the beginning of its name; others have their family's.
EXPECTED = {
    "layer_norm, forward and backward, 16384x1024, bfloat16": 0.65,
    "rms_norm, forward and backward, 16384x4096, bfloat16": 0.65,
    "batch_norm": 0.75,
    "group_norm": 0.75,
    "cross entropy": 0.75,
    "max_pool2d": 0.75,
    "avg_pool2d": 0.75,
    "interpolate": 0.75,
    "SGD": 0.85,
    "Adam": 0.85,
    "cat": 0.85,
    "masked_fill": 0.85,
}
#: The bytes that a case must move for its fraction to be judged: smaller cases measure launches, not traffic.
LEAST_MOVED = 64e6
#: PyTorch's time / ours that a family should reach; 1 if it is not listed here.
RATIOS = {"host": 1.43}


class Report:
    """The file of a run. Each method reads it, changes it and writes it back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, Any]:
        """Returns the contents of the file; an empty report if there is none."""
        return json.loads(self.path.read_text()) if self.path.exists() else {"run": {}, "phases": {}}

    def write(self, content: dict[str, Any]) -> None:
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(beside, self.path)

    def begin(self, **run: Any) -> None:
        """Starts a new report."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.write({"run": run, "phases": {}})

    def update(self, phase: str, **values: Any) -> None:
        """Sets values of a phase; a dict is merged into the existing one."""
        content = self.read()
        entry = content["phases"].setdefault(phase, {})
        for key, value in values.items():
            entry[key] = {**entry[key], **value} if isinstance(entry.get(key), dict) else value
        self.write(content)

    def add_row(self, phase: str, row: dict[str, Any]) -> None:
        """Appends a case's row to a phase."""
        content = self.read()
        content["phases"].setdefault(phase, {}).setdefault("rows", []).append(row)
        self.write(content)


def rows_of(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for phase in content["phases"].values() for row in phase.get("rows", [])]


def rate(figures: dict[str, Any], key: str) -> float:
    """Returns the number of `key` (moves, flops, items) per second; 0 if it is not known."""
    return figures.get(key, 0) / figures["median"] if figures.get("median") else 0.0


def ceilings(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the rates measured here: bytes/s of a copy (the better library's), flop/s of PyTorch's matmul by dtype.

    Without PyTorch the matrix ceilings are left out: a library is not a ceiling for itself.
    """
    found: dict[str, float] = {}
    for row in rows:
        if row["family"] != "ceilings":
            continue
        if row["case"].startswith("copy"):
            found["copy"] = max(rate(row.get(library, {}), "moves") for library in ("vesta", "torch"))
        elif unit := row.get("torch", {}).get("unit"):
            found[unit] = rate(row["torch"], "flops")
    return {name: value for name, value in found.items() if value}


def expected_of(row: dict[str, Any]) -> float | None:
    """Returns the share of the ceiling that is expected of a case, None where nothing has been reasoned."""
    for start, share in EXPECTED.items():
        if row["case"].startswith(start):
            return share
    return FRACTIONS.get(row["family"])


def judge(row: dict[str, Any], ceiling: dict[str, float]) -> dict[str, Any]:
    """Returns the row's figures for the table: ratio, achieved rate, fraction of its ceiling, and missed goals."""
    ours, theirs = row["vesta"], row.get("torch", {})
    ratio = theirs["median"] / ours["median"] if theirs.get("median") and ours.get("median") else None
    fraction: float | None = None
    achieved = ""
    if not ours.get("on_host"):
        flops, moved = rate(ours, "flops"), rate(ours, "moves")
        if flops:
            achieved = f"{flops / 1e12:.1f} TFLOP/s"
            fraction = flops / ceiling[ours["unit"]] if ours.get("unit") in ceiling else None
        elif moved:
            achieved = f"{moved / 1e9:.0f} GB/s"
            fraction = moved / ceiling["copy"] if "copy" in ceiling else None
        elif ours.get("items"):
            achieved = f"{rate(ours, 'items'):.0f} items/s"
    family = row["family"]
    below = []
    if ratio is not None and family != "ceilings" and ratio < RATIOS.get(family, 1.0):
        below.append("ratio")
    if fraction is not None and ours.get("moves", 0) >= LEAST_MOVED and fraction < FRACTIONS.get(family, 0.0):
        below.append("fraction")
    return {"ratio": ratio, "achieved": achieved, "fraction": fraction, "below": below}


def human(seconds: float | None) -> str:
    return f"{seconds * 1e6:.2f}" if seconds else "-"


def print_rows(content: dict[str, Any]) -> None:
    """Prints a line per case, and the geometric mean of the ratios per family."""
    rows = rows_of(content)
    ceiling = ceilings(rows)
    tiny = content["run"].get("device") == "emulation"
    if tiny:
        print("A rehearsal on the emulated device with tiny sizes: its times say nothing about speed.\n")
    head = (
        f"{'case':64} {'vesta us':>11} {'torch us':>11} {'spread':>7} {'ratio':>6} {'achieved':>15} {'of ceiling':>10} "
        f"{'expected':>8}"
    )
    print(head)
    family, means, missing = "", {}, 0
    for row in rows:
        if row["family"] != family:
            family = row["family"]
            print(f"-- {family}")
        ours, theirs = row["vesta"], row.get("torch", {})
        if "median" not in ours:
            kind = "missing" if "missing" in ours else "ERROR"
            missing += kind == "missing"
            print(f"{row['case']:64} {kind:>11} {human(theirs.get('median')):>11}  {ours.get(kind.lower())}")
            continue
        verdict = judge(row, ceiling)
        ratio, fraction, share = verdict["ratio"], verdict["fraction"], expected_of(row)
        if ratio:
            means.setdefault(family, []).append(math.log(ratio))
        below = f"  below: {', '.join(verdict['below'])}" if verdict["below"] and not tiny else ""
        print(
            f"{row['case']:64} {human(ours['median']):>11} {human(theirs.get('median')):>11} {ours['spread']:7.1%} "
            f"{f'{ratio:.2f}' if ratio else '-':>6} {verdict['achieved']:>15} "
            f"{f'{fraction:.1%}' if fraction else '-':>10} {f'{share:.0%}' if share and fraction else '-':>8}{below}"
        )
    print_summary(ceiling, means)
    print(f"{missing} of {len(rows)} cases are missing in Vesta on CUDA")


def print_summary(ceiling: dict[str, float], means: dict[str, list[float]]) -> None:
    """Prints the ceilings, and the geometric mean of each family's ratios."""
    print("\nceilings measured here:")
    for name, value in ceiling.items():
        print(f"  {name:12} " + (f"{value / 1e12:.2f} TB/s" if name == "copy" else f"{value / 1e12:.1f} TFLOP/s"))
    if means:
        print("PyTorch's time / Vesta's, geometric mean (above 1: Vesta is faster):")
        for family, logs in means.items():
            print(f"  {family:14} {math.exp(sum(logs) / len(logs)):.2f}  of {len(logs)}")


def failures(content: dict[str, Any]) -> list[str]:
    """Returns what failed, one line for each failure."""
    found = []
    for name, phase in content["phases"].items():
        status = phase.get("status", "unfinished")
        if status not in ("ok", "skipped"):
            found.append(f"phase {name}: {status}")
        for test in phase.get("failed", []):
            found.append(f"{name}: {test}")
        for row in phase.get("rows", []):
            if "error" in row["vesta"]:
                found.append(f"{name}: {row['family']}, {row['case']}: {row['vesta']['error']}")
    return found


def print_report(content: dict[str, Any]) -> int:
    """Prints everything and returns the exit status."""
    run = content["run"]
    print(f"GPU run of {run.get('date', '?')}, {run.get('mode', '?')}, commit {run.get('commit', '?')}")
    for name, phase in content["phases"].items():
        counts = phase.get("counts")
        told = f"  {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped" if counts else ""
        told += f"  ({phase['note']})" if phase.get("note") else ""
        print(f"  {name:10} {phase.get('status', 'unfinished'):10} {phase.get('seconds', 0):7.1f} s{told}")
    facts = content["phases"].get("env", {}).get("facts", {})
    print(
        "  " + ", ".join(f"{key} {facts[key]}" for key in ("gpu", "driver", "nvcc", "torch") if facts.get(key)) + "\n"
    )
    if rows_of(content):
        print_rows(content)
    wrong = failures(content)
    print("\n" + ("\n".join(["FAILED", *wrong]) if wrong else "everything passed"))
    return 1 if wrong else 0


def main(arguments: list[str]) -> int:
    report, action, *rest = Report(Path(arguments[0])), *arguments[1:]
    if action == "begin":
        device = os.environ.get("VESTA_GPU", "cuda")
        date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        report.begin(date=date, mode=rest[0], commit=rest[1] if len(rest) > 1 else "unknown", device=device)
    elif action == "end":
        name, status, seconds = rest[0], int(rest[1]), float(rest[2])
        text = {0: "ok", 124: "cut off", 137: "cut off", 77: "skipped"}.get(status, f"failed ({status})")
        report.update(name, status=text, seconds=round(seconds, 1))
    elif action == "print":
        return print_report(report.read())
    else:
        raise SystemExit(f"report.py: expected begin, end or print, got {action!r}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
