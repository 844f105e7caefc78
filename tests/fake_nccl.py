"""The environment variables with which ranks use the stand-in for NCCL on the emulated device."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")

ENVIRONMENT = {
    "VESTA_CUDA_LIB_DIR": str(FAKES),
    "VESTA_CUDA_LIBRARIES": "nccl",
    "VESTA_EMULATION_MEMORY": "512",
}

needed = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libnccl.so.2").exists(), reason="needs the emulated device and the fakes"
)
