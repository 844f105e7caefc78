"""The programs in README.md run as printed, and both languages print the same line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import vesta

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(vesta.__file__).parents[2]


def block(language: str) -> str:
    """Returns the code in README.md in one language."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    assert len(blocks) == 1, f"README.md shows one program in {language}"
    return blocks[0]


def run(command: list, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def printed_by_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("readme")
    (folder / "program.py").write_text(block("python"))
    output = run([sys.executable, "program.py"], folder)
    assert (folder / "model.safetensors").stat().st_size > 0
    return output


def test_python(printed_by_python: str) -> None:
    loss, accuracy = map(float, re.fullmatch(r"loss ([0-9.]+), accuracy ([0-9.]+)\n", printed_by_python).groups())
    assert loss < 0.1
    assert accuracy > 0.95


def test_cpp_prints_the_same(printed_by_python: str, tmp_path: Path) -> None:
    library = BUILD / "lib" / "libvesta.so"
    if not library.exists():
        pytest.skip("needs the build tree: headers and libvesta.so")
    (tmp_path / "program.cpp").write_text(block("cpp"))
    compiler = os.environ.get("CXX", "g++")
    sanitized = ["-fsanitize=address,undefined"] if "sanitize" in BUILD.name else []
    flags = ["-std=c++20", *sanitized, f"-I{BUILD / 'include'}", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}"]
    run([compiler, "program.cpp", "-o", "program", *flags, "-lvesta"], tmp_path)
    assert run(["./program"], tmp_path) == printed_by_python


def test_the_programs_are_short() -> None:
    for language in ("python", "cpp"):
        lines = [line for line in block(language).splitlines() if line.strip()]
        assert len(lines) <= 24, f"{language}: {len(lines)} lines"


def test_the_map_names_every_folder_of_the_root() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("needs the git checkout")
    folders = {name.split("/")[0] for name in listed.stdout.splitlines() if "/" in name and not name.startswith(".")}
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [folder for folder in sorted(folders) if f"`{folder}/`" not in readme] == []
