"""examples/digits_distributed: two processes learn the digits; killed and restarted, they end with the same bits."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_nccl
import pytest
import vesta

ROOT = Path(__file__).resolve().parents[2]
TRAIN = ROOT / "examples" / "digits_distributed" / "train.py"
LIMIT = 300


def command(out: Path, *launcher: str, processes: int = 2, epochs: int = 2, options: Sequence[str] = ()) -> list[str]:
    start = [sys.executable, "-m", "vesta.distributed.run", f"--nproc-per-node={processes}", *launcher]
    return [*start, str(TRAIN), f"--epochs={epochs}", "--checkpoint-every=10", f"--out={out}", *options]


def run(*arguments: Any, environment: dict[str, str] | None = None, **options: Any) -> str:
    done = subprocess.run(
        command(*arguments, **options), capture_output=True, text=True, timeout=LIMIT, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def accuracy(printed: str) -> float:
    found = re.search(r"test accuracy ([\d.]+)%", printed)
    assert found, printed
    return float(found[1])


def bits(out: Path) -> bytes:
    assert not (out / "checkpoint.safetensors").exists()
    return (out / "digits.safetensors").read_bytes()


def killed_when(
    out: Path, changes: int, *launcher: str, environment: dict[str, str] | None = None, **options: Any
) -> subprocess.Popen:
    """Starts a run and returns it when its checkpoint has been written ``changes`` times."""
    process = subprocess.Popen(
        command(out, *launcher, **options),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env=environment,
    )
    path, seen, deadline = out / "checkpoint.safetensors", set(), time.monotonic() + LIMIT
    while len(seen) < changes and process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            seen.add(path.stat().st_mtime_ns)
        time.sleep(0.001)
    return process


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("undisturbed")
    return out, run(out)


def test_two_processes_reach_the_accuracy_of_one(undisturbed: tuple[Path, str], tmp_path: Path) -> None:
    out, printed = undisturbed
    alone = accuracy(run(tmp_path, processes=1))
    assert alone > 90
    assert accuracy(printed) >= alone - 2  # rounding differs, and so the network: at most two in a hundred
    assert set(vesta.load_file(out / "digits.safetensors")) == set(vesta.load_file(tmp_path / "digits.safetensors"))


@pytest.mark.parametrize("changes", [1, 8])
def test_killed_and_started_again_it_ends_with_the_same_bits(
    undisturbed: tuple[Path, str], tmp_path: Path, changes: int
) -> None:
    process = killed_when(tmp_path, changes)
    process.kill()  # the launcher; all its processes end with it
    printed, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == -signal.SIGKILL, printed
    printed = run(tmp_path)
    assert "goes on at step" in printed
    assert bits(tmp_path) == bits(undisturbed[0])


def test_the_launcher_starts_it_again(undisturbed: tuple[Path, str], tmp_path: Path) -> None:
    process = killed_when(tmp_path, 3, "--max-restarts=2")
    os.kill(workers_of(process)[-1], signal.SIGKILL)
    printed, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, printed
    assert "rank 1 killed by SIGKILL" in printed and "restart 1 of 2" in printed
    assert bits(tmp_path) == bits(undisturbed[0])


def workers_of(launcher: subprocess.Popen) -> list[int]:
    """Lists the processes that run the program, in order of their ranks; those that have just ended are missing."""
    found = []
    with contextlib.suppress(OSError):
        for pid in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
            with contextlib.suppress(OSError):
                if "train.py" in Path(f"/proc/{pid}/cmdline").read_text():
                    found.append(int(pid))
    return found


#: Variables for training on emulated GPUs, which are slow: one epoch is enough.
ON_NCCL = {"epochs": 1, "environment": {**os.environ, **fake_nccl.ENVIRONMENT, "OMP_NUM_THREADS": "1"}}


@fake_nccl.needed
def test_gpus_over_nccl_learn_it_too(tmp_path: Path) -> None:
    for part, count in (("train", 200), ("t10k", 100)):  # the first of the digits
        for kind, item in (("images-idx3", 64), ("labels-idx1", 1)):
            name, head = f"{part}-{kind}-ubyte", 4 if item == 1 else 12
            whole = (ROOT / "examples" / "data" / "digits" / name).read_bytes()
            sizes = count.to_bytes(4, "big") + whole[8 : 4 + head]
            (tmp_path / name).write_bytes(whole[:4] + sizes + whole[4 + head :][: count * item])
    assert accuracy(run(tmp_path / "out", options=["--backend=nccl", f"--data={tmp_path}"], **ON_NCCL)) > 40


@fake_nccl.needed
@pytest.mark.campaign
def test_over_nccl_it_goes_on_with_the_same_bits(tmp_path: Path) -> None:
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    run(calm, options=["--backend=nccl"], **ON_NCCL)
    process = killed_when(killed, 2, options=["--backend=nccl"], **ON_NCCL)
    process.kill()
    process.communicate(timeout=LIMIT)
    assert "goes on at step" in run(killed, options=["--backend=nccl"], **ON_NCCL)
    assert bits(killed) == bits(calm)


@pytest.mark.campaign
def test_twenty_kills_at_random_times_change_nothing(tmp_path: Path) -> None:
    out, calm = tmp_path / "killed", tmp_path / "calm"
    run(calm, epochs=24)
    chance = random.Random(20)
    process = killed_when(out, 1, "--max-restarts=60", epochs=24)
    kills = 0
    while kills < 20 and process.poll() is None:
        time.sleep(chance.uniform(0.3, 1.2))
        workers = workers_of(process)
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
                kills += 1
    printed, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, printed
    assert kills == 20, f"it was over after {kills} kills"
    assert bits(out) == bits(calm)


def test_another_number_of_processes_is_refused(tmp_path: Path) -> None:
    process = killed_when(tmp_path, 1)
    process.kill()
    process.communicate(timeout=LIMIT)
    done = subprocess.run(command(tmp_path, processes=1), capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 1
    assert "expected a checkpoint of 1 processes, got one of 2" in done.stderr
