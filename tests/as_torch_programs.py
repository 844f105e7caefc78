"""Runs programs under ``vesta.as_torch`` for its tests, each in a process of its own: there is no way back from it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

RUN = [sys.executable, "-m", "vesta.as_torch"]
LIMIT = 120  # seconds; whatever takes this long, even on a busy machine, hangs


def environment() -> dict[str, str]:
    """Returns this process's environment without a device."""
    drop = ("VESTA_CUDA_LIBRARY", "RANK", "WORLD_SIZE", "OMP_NUM_THREADS")
    return {name: value for name, value in os.environ.items() if name not in drop}


def run(*command: str, **options: object) -> str:
    """Runs a command, which must end with status 0, and returns what it prints."""
    done = subprocess.run(
        [*command], capture_output=True, text=True, timeout=LIMIT, env=environment(), check=False, **options
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def program(folder: Path, text: str, *arguments: str) -> str:
    """Runs a program as a script under ``vesta.as_torch`` and returns what it prints."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(text))
    return run(*RUN, str(path), *arguments)
