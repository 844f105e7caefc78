"""Times cases with one library, one JSON line per request; or runs every case once (--once), for compute-sanitizer.

    {"family", "case", "repeats"} -> {"median", "spread", "moves", "flops", ...}, {"missing": why} or {"error": what}

Device time is measured by CUDA events around each run, without waiting in between: 3 warm-ups, then `repeats` runs.
Data that would fit into the L2 cache is rotated over several preparations. Host time is measured by the host's clock,
over calls that the device easily keeps up with.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import sys
import time
from typing import Any

import cases  # noqa: F401  (enters its cases)
import models  # noqa: F401
from work import CASES, Gpu, Work, is_missing

WARM_UPS = 3
MOST_PREPARATIONS = 16
HOST_CALLS = 200


def preparations(gpu: Gpu, family: str, name: str) -> list[Work]:
    """Prepares a case as often as it takes for its data to be three times the L2 cache."""
    works = [CASES[family][name](gpu)]
    cache = 0 if gpu.device == "cpu" else gpu.lib.cuda.get_device_properties(0).L2_cache_size
    if works[0].moves and not works[0].on_host:
        wanted = min(MOST_PREPARATIONS, -(-3 * cache // works[0].moves))
        works += [CASES[family][name](gpu) for _ in range(1, 2 if gpu.tiny else wanted)]
    return works


def synchronize(gpu: Gpu) -> None:
    if gpu.device != "cpu":
        gpu.lib.cuda.synchronize()


def host_seconds(gpu: Gpu, work: Work, repeats: int) -> list[float]:
    """Returns the host's seconds per call for `repeats` bursts of calls."""
    calls = 3 if gpu.tiny else HOST_CALLS
    seconds = []
    for i in range(WARM_UPS + repeats):
        start = time.perf_counter()
        for _ in range(calls):
            work.run()
        if i >= WARM_UPS:
            seconds.append((time.perf_counter() - start) / calls)
        synchronize(gpu)
    return seconds


def device_seconds(gpu: Gpu, works: list[Work], repeats: int) -> list[float]:
    """Returns the device's seconds per run, `repeats` times; on the CPU (a rehearsal's PyTorch) the host's."""
    for i in range(max(WARM_UPS, len(works))):
        works[i % len(works)].run()
    synchronize(gpu)
    if gpu.device == "cpu":
        ends = [time.perf_counter()]
        for i in range(repeats):
            works[i % len(works)].run()
            ends.append(time.perf_counter())
        return [b - a for a, b in zip(ends, ends[1:])]
    Event = gpu.lib.cuda.Event
    events = [(Event(enable_timing=True), Event(enable_timing=True)) for _ in range(repeats)]
    for i, (start, end) in enumerate(events):
        start.record()
        works[i % len(works)].run()
        end.record()
    synchronize(gpu)
    return [start.elapsed_time(end) * 1e-3 for start, end in events]


def answer(gpu: Gpu, family: str, name: str, repeats: int) -> dict[str, Any]:
    """Times one case and returns its figures."""
    on_cuda = gpu.device != "cpu"
    try:
        gpu.lib.manual_seed(0)
        works = preparations(gpu, family, name)
        if on_cuda:
            gpu.lib.cuda.reset_peak_memory_stats()
        work = works[0]
        seconds = host_seconds(gpu, work, repeats) if work.on_host else device_seconds(gpu, works, repeats)
        peak = gpu.lib.cuda.max_memory_allocated() if on_cuda else 0
    except Exception as error:  # a case that a library cannot run still gets a row in the report
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        return {"missing" if is_missing(error) else "error": what}
    median = statistics.median(seconds)
    ordered = sorted(seconds)
    spread = (ordered[-1 - len(ordered) // 10] - ordered[len(ordered) // 10]) / median if median else 0.0
    figures = {"median": median, "spread": round(spread, 4), "repeats": repeats, "preparations": len(works)}
    told = {key: getattr(work, key) for key in ("moves", "flops", "unit", "items", "on_host") if getattr(work, key)}
    return {**figures, **told, "peak_mb": round(peak / 2**20, 1)}


def clear(gpu: Gpu) -> None:
    """Releases the memory of the last case: the other library needs it."""
    gc.collect()
    if gpu.device != "cpu":
        gpu.lib.cuda.empty_cache()


def run_once(gpu: Gpu) -> int:
    """Runs every case once and prints what happened; returns how many failed (missing ones do not)."""
    failed = 0
    for family, members in CASES.items():
        for name in members:
            try:
                CASES[family][name](gpu).run()
                synchronize(gpu)
                outcome = "ran"
            except Exception as error:
                outcome = "missing" if is_missing(error) else "FAILED"
                failed += outcome == "FAILED"
                outcome += f": {error}".splitlines()[0]
            print(f"{family:14} {name:70} {outcome}", flush=True)
            clear(gpu)
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", choices=("vesta", "torch"))
    parser.add_argument("--tiny", action="store_true", help="tiny sizes, for a rehearsal or compute-sanitizer")
    parser.add_argument("--once", action="store_true", help="run every case once and leave")
    options = parser.parse_args()
    out = os.fdopen(os.dup(1), "w")  # only answers go there: the output of libraries goes to stderr
    os.dup2(2, 1)
    lib = importlib.import_module(options.library)
    if not lib.cuda.is_available() and not (options.tiny and options.library == "torch"):
        print(f"{options.library} finds no CUDA device", file=sys.stderr)
        return 3
    gpu = Gpu(lib, "cuda" if lib.cuda.is_available() else "cpu", options.tiny)
    if options.once:
        return 1 if run_once(gpu) else 0
    name = "the CPU" if gpu.device == "cpu" else lib.cuda.get_device_name()
    print(json.dumps({"version": str(getattr(lib, "__version__", "?")), "device": name}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        figures = answer(gpu, request["family"], request["case"], request["repeats"])
        clear(gpu)
        print(json.dumps(figures), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
