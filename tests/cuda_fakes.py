"""Programs that run in a process of their own, with stand-ins for NVIDIA's libraries on the emulated device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program that finds the libraries of ``folder``."""
    env = {**os.environ, "VESTA_CUDA_LIB_DIR": str(folder), **environment}
    return subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300, check=False
    )


def check(program: str, folder: Path, **environment: str) -> str:
    """Runs a program that must succeed; returns what it printed."""
    done = run(program, folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
