"""CMake without the packages that the build needs: one list of all of them, and the commands that install them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.skipif(not (ROOT / "CMakeLists.txt").exists(), reason="not in the source tree"),
    pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("ninja"), reason="CMake is not installed"),
]


def configure(folder: Path, *options: str, **environment: str) -> str:
    """Configures, which must fail; returns CMake's message with single spaces."""
    done = subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja", *options],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode, done.stdout
    return re.sub(r"\s+", " ", done.stderr)


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    nowhere = [f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=ONLY" for kind in ("INCLUDE", "LIBRARY", "PACKAGE")]
    text = configure(tmp_path, f"-DCMAKE_FIND_ROOT_PATH={tmp_path}/none", *nowhere)
    packages = text.partition("apt-get install ")[2].partition(" Call Stack")[0].split()
    assert {"libfmt-dev", "libsleef-dev", "libkissfft-dev", "nlohmann-json3-dev", "catch2"} <= set(packages)
    for words in ("fmt 9 or newer", "SLEEF (sleef.h", "KissFFT (", "nlohmann-json (", "Catch2 ("):
        assert words in text, words
    without_tests = configure(tmp_path / "2", f"-DCMAKE_FIND_ROOT_PATH={tmp_path}/none", *nowhere,
                              "-DVESTA_BUILD_TESTS=OFF")  # fmt: skip
    assert "Catch2" not in without_tests


def test_a_missing_package_of_python_is_named_with_the_interpreter(tmp_path: Path) -> None:
    bare = tmp_path / "bare" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    text = configure(tmp_path / "build", f"-DPython_EXECUTABLE={bare}")
    assert "pybind11 3 or newer" in text and f"{bare} -m pip install 'pybind11>=3'" in text
    assert "apt-get" not in text  # the system's packages are there
