"""A short run of the demo: Python trains and writes a checkpoint, C++ reads it and computes bitwise the same logits."""

from __future__ import annotations

import importlib.util
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
import vesta

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "data" / "digits"
PROGRAM = Path(vesta.__file__).parents[2] / "bin" / "digits_evaluate"


TRAIN = ROOT / "examples" / "digits" / "train.py"


def run(*command: object, **environment: str) -> subprocess.CompletedProcess:
    env = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    env.update(environment)
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=300, env=env)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Trains for one epoch; returns the output folder and the printed text."""
    out = tmp_path_factory.mktemp("digits")
    done = run(sys.executable, TRAIN, "--epochs", 1, "--out", out)
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
    written = {"digits.safetensors", "digits_logits.safetensors"}
    if importlib.util.find_spec("matplotlib"):
        written.add("digits.png")
    assert {path.name for path in out.iterdir()} == written


def test_the_picture_has_axes_with_names_and_all_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure_module = pytest.importorskip("matplotlib.figure")
    spec = importlib.util.spec_from_file_location("digits_picture", TRAIN.with_name("picture.py"))
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    drawn = []
    save = figure_module.Figure.savefig
    monkeypatch.setattr(figure_module.Figure, "savefig", lambda self, *a: (drawn.append(self), save(self, *a)))
    predicted = vesta.arange(16) % 10
    labels = predicted.clone()
    labels[3] = 8
    picture.draw(tmp_path / "digits.png", vesta.rand(4, 5), vesta.rand(16, 8, 8), predicted, labels, 0.98)
    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    curve, *digits = drawn[0].axes
    assert (curve.get_xlabel(), curve.get_ylabel()) == ("epoch", "cross entropy")
    assert [tick for tick in curve.get_xticks() if 0 <= tick <= 4] == [0, 1, 2, 3, 4]
    assert [len(line.get_xdata()) for line in curve.lines] == [20, 4]
    assert [axes.get_title() for axes in digits[:5]] == ["0", "1", "2", "3 (is 8)", "4"] and len(digits) == 16
    assert all(axes.images[0].get_array().shape == (8, 8) for axes in digits)


def test_without_matplotlib_and_tqdm_it_trains_and_says_what_is_missing(tmp_path: Path) -> None:
    hide = "import importlib.util as u\nfind = u.find_spec\n"
    hide += "u.find_spec = lambda name, *a: None if name in ('matplotlib', 'tqdm') else find(name, *a)\n"
    program = f"{hide}import runpy, sys\nsys.argv = ['train.py', '--epochs', '1', '--out', sys.argv[1]]\n"
    program += f"sys.path.insert(0, {str(TRAIN.parent)!r})\nrunpy.run_path({str(TRAIN)!r}, run_name='__main__')\n"
    program += "assert not {'matplotlib', 'tqdm'} & set(sys.modules)\n"
    done = run(sys.executable, "-c", program, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "pip install matplotlib tqdm" in done.stdout
    assert {path.name for path in tmp_path.iterdir()} == {"digits.safetensors", "digits_logits.safetensors"}


def test_a_terminal_shows_a_bar(tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "LINES": "40", "COLUMNS": "100"}
    command = f"stty rows 40 cols 100; exec {sys.executable} {TRAIN} --epochs 1 --out {tmp_path}"
    process = subprocess.Popen(["sh", "-c", command], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    text = b""
    try:
        while data := os.read(ours, 4096):
            text += data
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait(timeout=300) == 0, text.decode()
    assert re.search(rb"epoch 1/1: +\d+%\|.*loss=0\.\d{4}", text), text.decode()


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
