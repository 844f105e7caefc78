"""The cost of the CUDA backend's host side, in instructions, which do not depend on other load on the machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "bin" / "allocator"
MOST = 350  # for a pair of allocate and free, statistics included


def is_sanitized() -> bool:
    return PROGRAM.exists() and b"__asan_init" in PROGRAM.read_bytes()


@pytest.mark.skipif(not shutil.which("valgrind"), reason="valgrind counts the instructions")
@pytest.mark.skipif(not PROGRAM.exists() or is_sanitized(), reason="needs the build tree's benchmark of the allocator")
def test_a_pair_of_allocate_and_free(tmp_path: Path) -> None:
    def instructions(pairs: int) -> int:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={tmp_path}/out", PROGRAM, "pair", str(pairs)]
        said = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stderr
        found = re.search(r"Collected : (\d+)", said)
        assert found, said
        return int(found[1])

    few, many = 4_000, 24_000
    cost = (instructions(many) - instructions(few)) / (many - few)
    assert 100 < cost <= MOST
