"""Runs calls with wrong arguments in processes of their own, so that a signal or a hang names its call.

    python -m fuzz.run_calls --count 20000            calls 0 to 19999, in worker processes
    python -m fuzz.run_calls --call 17                one call: what it is, and what it says

Found are: signals, hangs, SystemError, messages that are not ours, errors after which an argument is another, and
tensors that are left behind.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
if __package__ in (None, ""):
    sys.path.insert(0, str(ROOT))

#: Bytes that a worker may have besides what it has at its start.
MEMORY = 1 << 30
#: Seconds of the processor that a call may take where no signal ends it, and seconds that it may wait.
SECONDS, WAITS = 40, 600
#: After so many calls what is left behind is counted.
BATCH = 250


#: Calls that run a method of an argument, and what that says.
PASSED_ON = {
    "Subset": "list index out of range",
    "Tensor.__array__": "object of type 'int' has no len",
    **dict.fromkeys((f"Size.__{name}__" for name in "lt le gt ge".split()), "not supported between instances of"),
    "utils.checkpoint.checkpoint": "object cannot be interpreted as an integer",  # checkpoint(int, x, range(3))
}


class Worker:
    """Runs calls one after another in this process."""

    def __init__(self) -> None:
        from fuzz import calls, complaints

        self.complain, self.caller = complaints.complaint, calls.Caller()
        import vesta

        self.vesta = vesta
        self.live = vesta._C._live_tensors

    def state(self, args: Any) -> list:
        """Returns what of the tensors and lists among the arguments must not change."""
        found = []
        for value in args:
            if isinstance(value, self.vesta.Tensor):
                bits = value.detach().tolist() if value.numel() <= 32 and not value.is_inference() else None
                found.append((tuple(value.shape), value.stride(), value.data_ptr(), value.requires_grad, repr(bits)))
                found.append(value._version if not value.is_inference() else 0)
            elif type(value) in (list, dict):
                found.append(len(value))
        return found

    def run(self, number: int) -> str:
        """Runs one call; returns what is wrong, or nothing."""
        call = self.caller.make(number)
        everything = (*call.args, *call.kwargs.values())
        before = self.state(everything) if call.pure else []
        raised, said = self.complain(call.function, call.args, call.kwargs)
        if said and (known := PASSED_ON.get(call.name)) and re.search(known, said):
            said = ""  # an argument's own error
        if not said and raised and call.pure and self.state(everything) != before:
            said = "raises, and an argument is another"
        vesta = self.vesta
        if not vesta.is_grad_enabled() or vesta.get_default_dtype() is not vesta.float32:
            vesta.set_grad_enabled(True)
            vesta.set_default_dtype(vesta.float32)
        return f"{call}: {said}" if said else ""

    def run_many(self, first: int, count: int, progress: int) -> None:
        """Runs calls of consecutive numbers; prints a line for each that is wrong."""
        self.warm_up()
        live = self.live()
        for number in range(first, first + count):
            os.pwrite(progress, b"%-12d" % number, 0)
            if said := self.run(number):
                print(f"{number}\t{said!r}", flush=True)
            if (number + 1 - first) % BATCH == 0 or number + 1 == first + count:
                gc.collect()
                if self.live() > live:
                    self.name_leaks(number + 1 - min(BATCH, count), number)
                live = self.live()

    def warm_up(self) -> None:
        for number in range(3000, 3050):
            self.run(number)
        gc.collect()
        gc.freeze()

    def name_leaks(self, first: int, last: int) -> None:
        """Runs the calls of a batch again, one by one, and prints those that leave tensors behind."""
        for number in range(first, last + 1):
            live = self.live()
            self.run(number)
            if self.live() > live:
                gc.collect()
                if self.live() > live:
                    print(
                        f"{number}\t{f'{self.caller.make(number)}: leaves {self.live() - live} tensors'!r}", flush=True
                    )


def limit_memory() -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))


def campaign(first: int, count: int) -> list[tuple[int, str]]:
    """Runs calls in worker processes; returns the number of each wrong call and what is wrong with it."""
    found: list[tuple[int, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder) / "progress"
        at = first
        while at < first + count:
            progress.write_text(str(at))
            status, printed = run_worker(at, first + count - at, folder, progress)
            for line in printed.splitlines():
                if re.match(r"\d+\t", line):
                    number, said = line.split("\t", 1)
                    found.append((int(number), said))
            if status == 0:
                break
            if status > 0:
                raise RuntimeError(f"a worker ended with status {status}: {printed[-3000:]}")
            at = int(progress.read_text())
            found.append((at, f"{signal.Signals(-status).name}: {description(at)}: {printed[-1500:]}"))
            at += 1
    return found


def processor_seconds(pid: int) -> float:
    """Returns the time that a process had on the processor, whatever else the machine does."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run_worker(first: int, count: int, folder: str, progress: Path) -> tuple[int, str]:
    """Runs one worker until it ends, or does not go on."""
    command = [sys.executable, "-m", "fuzz.run_calls", "--worker", "--first", str(first), "--count", str(count)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = f"{ROOT}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    with open(Path(folder) / "output", "w+") as output:
        worker = subprocess.Popen(
            [*command, "--progress", str(progress)], cwd=folder, env=environment, stdout=output, stderr=output,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        last, since, used = "", time.monotonic(), 0.0
        while (status := worker.poll()) is None:
            time.sleep(0.05)
            now = progress.read_text()
            if now != last:
                last, since, used = now, time.monotonic(), processor_seconds(worker.pid)
            elif processor_seconds(worker.pid) - used > SECONDS or time.monotonic() - since > WAITS:
                worker.kill()
        output.seek(0)
        return status, output.read()


def description(number: int) -> str:
    """Writes a call without running it."""
    from fuzz import calls

    return str(calls.Caller().make(number))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--call", type=int)
    parser.add_argument("--worker", action="store_true")
    parser.add_argument("--progress")
    options = parser.parse_args()
    faulthandler.enable()
    if options.call is not None:
        print(description(options.call), flush=True)
        print(Worker().run(options.call) or "nothing is wrong")
        return 0
    if options.worker:
        worker = Worker()
        limit_memory()
        worker.run_many(options.first, options.count, os.open(options.progress, os.O_RDWR | os.O_CREAT))
        return 0
    started = time.monotonic()
    found = campaign(options.first, options.count)
    for number, said in found:
        print(f"call {number}: {said}")
    print(f"{options.count} calls from {options.first}: {len(found)} wrong, {time.monotonic() - started:.0f} s")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
