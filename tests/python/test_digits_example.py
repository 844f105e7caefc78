"""A short run of the demo: Python trains and writes a checkpoint, C++ reads it and computes bitwise the same logits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import vesta

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "data" / "digits"
PROGRAM = Path(vesta.__file__).parents[2] / "bin" / "digits_evaluate"


def run(*command: object) -> subprocess.CompletedProcess:
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Trains for one epoch; returns the output folder and the printed text."""
    out = tmp_path_factory.mktemp("digits")
    done = run(sys.executable, ROOT / "examples" / "digits" / "train.py", "--epochs", 1, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out, done.stdout


@pytest.fixture(scope="module")
def program() -> Path:
    if not PROGRAM.exists():
        pytest.skip("needs the build tree with the examples built")
    return PROGRAM


def accuracy(output: str) -> str:
    return re.search(r"^test accuracy ([0-9.]+)%$", output, re.M)[1]


def test_one_epoch_learns_something_and_writes_its_files(trained: tuple[Path, str]) -> None:
    out, printed = trained
    assert float(accuracy(printed)) > 80
    assert (out / "digits.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert sorted(path.name for path in out.iterdir()) == [
        "digits.png",
        "digits.safetensors",
        "digits_logits.safetensors",
    ]


def test_cpp_computes_the_same_logits(trained: tuple[Path, str], program: Path) -> None:
    out, printed = trained
    done = run(program, out, DIGITS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert accuracy(done.stdout) == accuracy(printed)
    assert "3600 logits, bit-identical to Python's" in done.stdout


def test_cpp_notices_other_logits(trained: tuple[Path, str], program: Path, tmp_path: Path) -> None:
    out, _ = trained
    logits = vesta.load_file(out / "digits_logits.safetensors")["logits"]
    logits[17, 3] += 1e-4
    vesta.save_file({"logits": logits}, tmp_path / "digits_logits.safetensors")
    (tmp_path / "digits.safetensors").write_bytes((out / "digits.safetensors").read_bytes())
    done = run(program, tmp_path, DIGITS)
    assert done.returncode == 1
    assert "NOT those of Python" in done.stdout


def test_cpp_says_what_is_wrong_with_its_files(trained: tuple[Path, str], program: Path, tmp_path: Path) -> None:
    out, _ = trained
    (tmp_path / "t10k-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03\0\0\0\x02")
    done = run(program, out, tmp_path)
    assert done.returncode == 1
    assert "expected an IDX file" in done.stderr
    done = run(program, tmp_path, DIGITS)
    assert done.returncode == 1
    assert "digits.safetensors" in done.stderr
