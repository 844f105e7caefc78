"""Programs written for libtorch: found by CMake as PyTorch's are, compiled as they are, run to their end."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import vesta
from sanitized import SANITIZED

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests" / "cpp" / "as_torch"
DIGITS = ROOT / "examples" / "data" / "digits"

pytestmark = [
    pytest.mark.skipif(SANITIZED, reason="the programs are built without sanitizers"),
    pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("ninja"), reason="CMake is not installed"),
]


def run(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("as_torch")
    prefix = run(sys.executable, "-m", "vesta", "--cmake-prefix").strip()
    run("cmake", "-S", PROGRAMS, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}")
    run("cmake", "--build", folder, "-j", 1)
    return folder


def test_tensors(built: Path, tmp_path: Path) -> None:
    assert run(built / "tensors", tmp_path) == "tensors: all as expected\n"


def test_functions_and_files_of_python(built: Path, tmp_path: Path) -> None:
    """Functions; and files that torch.save writes are read in C++, those of torch::pickle_save in Python."""
    state = {"fc.weight": vesta.arange(6.0).view(3, 2), "fc.bias": vesta.zeros(3), "calls": vesta.tensor([7.0])}
    vesta.save(state, tmp_path / "state.pt")
    mixed = {"name": "net", "rate": 0.5, "steps": 2**40, "sizes": [1, 2], "none": None, "on": True, "pair": ("a", "b")}
    mixed |= {"half": vesta.tensor([1.0, 2.0], dtype=vesta.float16), "turned": vesta.arange(6).view(2, 3).t()}
    vesta.save(mixed, tmp_path / "mixed.pt")
    hostile = {"deep": b"]" * 10**6 + b"a" * (10**6 - 1) + b".", "left": b"]" * 10**6 + b"a" * 10**6 + b"."}
    hostile |= {"itself": b"]q\x00h\x00a.", "shared": b"]" + b"2\x86" * 100 + b"."}
    for name, pickled in hostile.items():
        with zipfile.ZipFile(tmp_path / f"{name}.pt", "w") as archive:
            archive.writestr("archive/data.pkl", pickled)
    assert run(built / "functions", tmp_path) == "functions: all as expected\n"
    weights = vesta.load(tmp_path / "weights.pt")
    assert list(weights) == ["w", "b"] and weights["b"].dtype == vesta.bfloat16
    assert weights["w"].tolist() == [[0, 3], [1, 4], [2, 5]]


def alike(got: str, expected: str) -> bool:
    """Compares two words: numbers up to rounding."""
    try:
        return got == expected or math.isclose(float(got), float(expected), rel_tol=1e-6, abs_tol=1e-7)
    except ValueError:
        return False


@pytest.mark.parametrize("program", ["modules", "optimizers"])
def test_output_is_libtorchs(built: Path, program: str) -> None:
    lines = run(built / program).splitlines()
    expected = (PROGRAMS / f"{program}.txt").read_text().splitlines()
    assert len(lines) == len(expected)
    for got, wanted in zip(lines, expected):
        words, wanted_words = got.split(), wanted.split()
        assert len(words) == len(wanted_words) and all(map(alike, words, wanted_words)), (got, wanted)


def test_training_and_its_checkpoint_in_python(built: Path, tmp_path: Path) -> None:
    assert run(built / "training", DIGITS, tmp_path).startswith("training: accuracy 0.9")
    state = vesta.load_file(tmp_path / "net.pt")
    names = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
    assert set(state) == {"scale", "calls", "conv.weight", "conv.bias", "fc.weight", "fc.bias"} | {
        f"norm.{name}" for name in names
    }
    assert state["conv.weight"].shape == (8, 1, 3, 3)


def test_a_layer_alone_compiles(tmp_path: Path) -> None:
    """Headers of one topic are enough, and Vesta's own before them are refused with the reason."""
    include = [f"-I{ROOT / 'nn' / 'as_torch'}", f"-I{Path(vesta._C.__file__ or '').parents[2] / 'include'}"]
    compiler = ["g++", "-std=c++20", "-fsyntax-only", *include, "-x", "c++", "-"]
    source = "#include <torch/nn/pimpl.h>\n#include <torch/types.h>\ntorch::Tensor t;"
    assert subprocess.run(compiler, input=source, text=True, capture_output=True).returncode == 0
    wrong = subprocess.run(
        compiler, input="#include <vesta/vesta.h>\n#include <torch/types.h>", text=True, capture_output=True
    )
    assert "Include <torch/torch.h> before the headers of Vesta." in wrong.stderr
