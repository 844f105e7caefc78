"""Type checkers find the stubs right: no error in them, in the examples and in right calls, one in each wrong call."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import vesta
from sanitized import SANITIZED

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(vesta.__file__).parent
RIGHT, WRONG = (ROOT / "tests" / "typing" / f"{kind}_calls.py" for kind in ("right", "wrong"))
EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))
STUBS = sorted(PACKAGE.rglob("*.pyi"))

pytestmark = pytest.mark.skipif(SANITIZED, reason="a sanitized build writes no stubs")


def _without_path() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LD_LIBRARY_PATH")}


def run_mypy(folder: Path) -> str:
    """Runs mypy for each folder: two examples are called train.py."""
    texts = []
    for files in (
        [*STUBS, RIGHT, WRONG],
        *([p for p in EXAMPLES if p.parent == f] for f in {p.parent for p in EXAMPLES}),
    ):
        config = folder / "mypy.ini"
        config.write_text(
            f"[mypy]\nstrict = True\nmypy_path = {PACKAGE.parent}:{files[0].parent}\n"
            f"python_executable = {sys.executable}\n"
            # what the sources of the package say to themselves is theirs; what a program sees of them is checked
            "[mypy-vesta.*]\nfollow_imports = silent\n"
        )
        command = [
            sys.executable,
            "-m",
            "mypy",
            "--config-file",
            str(config),
            "--cache-dir",
            str(folder),
            *map(str, files),
        ]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=_without_path(), timeout=600)
        assert ran.returncode in (0, 1), ran.stdout + ran.stderr
        texts.append(ran.stdout)
    return "".join(texts)


def run_basedpyright(folder: Path) -> str:
    config = folder / "pyrightconfig.json"
    settings = {
        "typeCheckingMode": "strict",
        "executionEnvironments": [
            {"root": str(folder), "extraPaths": [str(PACKAGE.parent)]}
            for folder in {*(p.parent for p in (*EXAMPLES, RIGHT)), PACKAGE.parent}
        ],
        "include": [str(p) for p in (*STUBS, *EXAMPLES, RIGHT, WRONG)],
        "reportUnusedExpression": False,  # a line of right_calls.py is one
    }
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", str(config), "--pythonpath", sys.executable]
    return subprocess.run(command, capture_output=True, text=True, env=_without_path(), timeout=600).stdout


@pytest.mark.parametrize(
    ("run", "pattern"),
    [(run_mypy, r"^(.+?):(\d+): error: (.*)"), (run_basedpyright, r"^\s*(.+?):(\d+):\d+ - error: (.*)")],
)
def test_checkers_tell_right_from_wrong(run, pattern, tmp_path: Path) -> None:
    text = run(tmp_path)
    found = [(Path(m[1]), int(m[2]), m[3]) for m in re.finditer(pattern, text, re.MULTILINE)]
    assert not [entry for entry in found if entry[0].name != WRONG.name], text[-3000:]
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    first = lines.index("# ---- wrong ----") + 2
    assert len(lines) - first >= 200
    reported = {line for path, line, _ in found if path.name == WRONG.name}
    assert not [lines[k - 1] for k in range(first, len(lines) + 1) if k not in reported]
    assert min(reported) >= first  # nor is what stands before the mark


def test_right_calls_run() -> None:
    assert len([line for line in RIGHT.read_text(encoding="utf-8").splitlines() if "(" in line]) >= 200
    runpy.run_path(str(RIGHT))


def test_wrong_calls_raise() -> None:
    before, after = WRONG.read_text(encoding="utf-8").split("# ---- wrong ----\n")
    scope: dict[str, object] = {}
    exec(before, scope)
    quiet = []
    for line in after.splitlines():
        try:
            exec(line, scope)
        except Exception:
            continue
        quiet.append(line)
    assert not quiet
