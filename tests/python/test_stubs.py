"""The type stubs that the build writes beside the package match the op list."""

import subprocess
import sys
from pathlib import Path

import pytest
import vesta
from sanitized import SANITIZED

SCRIPT = Path(__file__).resolve().parents[2] / "python" / "make_stubs.py"
PACKAGE = Path(vesta.__file__).parent

pytestmark = pytest.mark.skipif(SANITIZED, reason="a sanitized build writes no stubs")


def test_stubs_are_current(tmp_path: Path) -> None:
    """They are written by a fresh interpreter: what is imported when it is first asked for is not there yet."""
    if not SCRIPT.is_file():
        pytest.skip("needs the source tree")
    subprocess.run([sys.executable, str(SCRIPT), str(tmp_path)], check=True)
    names = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*.pyi"))
    assert len(names) > 10
    for name in names:
        text = (PACKAGE / name).read_text(encoding="utf-8")
        assert text == (tmp_path / name).read_text(encoding="utf-8"), f"{name}: build the target stubs"
        compile(text, str(name), "exec")
    assert (PACKAGE / "py.typed").is_file()  # without it type checkers ignore the stubs


def test_stubs_know_every_op() -> None:
    """As a function where it is one, as a method where it is one."""
    text = {name: (PACKAGE / "_C" / f"{name}.pyi").read_text(encoding="utf-8") for name in ("__init__", "_ops")}
    registry = vesta._C._registry()
    functions = {entry["name"] for entry in registry if entry["name"] in vars(vesta._C._ops)}
    methods = {entry["name"] for entry in registry if entry["method"] and hasattr(vesta.Tensor, entry["name"])}
    assert len(functions) > 300 and not [name for name in functions if f"def {name}(" not in text["_ops"]]
    assert len(methods) > 300 and not [name for name in methods if f" {name}(" not in text["__init__"]]
