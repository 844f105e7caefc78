"""A program that trains on a loader and is ended in a given way; test_data_kill.py checks what is left.

    python data_trainer.py '{"target": "worker", "way": "SIGKILL", "method": "fork", "persistent": false, "at": 7, ...}'

target: which process is ended: "worker", "parent" (this process) or "all". The last line of the output is a JSON
report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import warnings

import data_sets
from vesta.utils import data


class Armed(data.Dataset):
    """A dataset that acts at one index once a file exists, and records the time before it does."""

    def __init__(self, options: dict) -> None:
        self.options = options

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> int:
        options = self.options
        time.sleep(0.002)
        acts = options["target"] == "worker" or (options["target"] == "all" and not options["way"].startswith("SIG"))
        if acts and index == options["at"] and os.path.exists(options["folder"] + "/armed"):
            note(options["folder"])
            data_sets.WAYS[options["way"]]()
        return index


def note(folder: str) -> None:
    with open(folder + "/time", "w") as file:
        file.write(repr(time.monotonic()))


def act(options: dict) -> None:
    """Ends this process, or all of them, in the given way."""
    note(options["folder"])
    if options["target"] == "all" and options["way"].startswith("SIG"):
        os.killpg(0, getattr(signal, options["way"]))
        time.sleep(0.1)  # a signal to this process may arrive a moment later
    else:
        data_sets.WAYS[options["way"]]()


def main(options: dict) -> None:
    loader = data.DataLoader(
        Armed(options), batch_size=2, num_workers=2, multiprocessing_context=options["method"],
        persistent_workers=options["persistent"],
    )  # fmt: skip
    report: dict = {"passes": [], "pids": []}
    for number in range(3):
        if number == options["epoch"]:
            open(options["folder"] + "/armed", "w").close()
        batches = iter(loader)
        pool = batches._pool
        count = 0
        try:
            for batch in batches:
                count += len(batch)
                mine = options["target"] in ("parent", "all") and number == options["epoch"]
                if mine and count >= options["at"] and "acted" not in report:
                    report["acted"] = True
                    act(options)
        except Exception as error:
            if "acted" in report and options["target"] != "all":
                raise
            caught = time.monotonic()
            report["pids"] += pool.pids
            with open(options["folder"] + "/time") as file:
                delay = caught - float(file.read())
            chain = f"{error} {error.__cause__}"
            report["error"] = {"type": type(error).__name__, "text": chain, "delay": delay, "count": count}
            if options["target"] == "all":
                raise
            os.unlink(options["folder"] + "/armed")
        report["pids"] += pool.pids
        del batches, pool
        report["passes"].append(count)
    del loader
    report["left"] = [pid for pid in report["pids"] if os.path.exists(f"/proc/{pid}")]
    print(json.dumps(report))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(json.loads(sys.argv[1]))
