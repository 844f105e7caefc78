"""Programs that run in a process of their own, with stand-ins for NVIDIA's libraries on the emulated device; what tests
over them share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import vesta

FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
needs_fakes = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcublasLt.so.13").exists() or not vesta.cuda.is_available(),
    reason="needs the emulated device and the fakes",
)
needs_device = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a CUDA device, emulated or not")

#: What programs begin with.
PRELUDE = """
import ctypes, os, warnings
import numpy as np, vesta
from vesta import nn
import vesta.nn.functional as F
warnings.simplefilter("error")
assert vesta.cuda.is_available()
folder = os.environ["VESTA_CUDA_LIB_DIR"]
fake = ctypes.CDLL(folder + ("/libcudnn.so.9" if folder.endswith("cudnn") else "/libcublasLt.so.13"))
def made(*shape, dtype="float32"):
    return vesta.tensor(np.random.default_rng(shape).standard_normal(shape)).to(getattr(vesta, dtype))
def same(got, want, rtol):
    got, want = got.detach().cpu().double().numpy(), want.detach().cpu().double().numpy()
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
def launches():
    return dict(vesta._C_cuda.counters())["launches"]
"""


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
