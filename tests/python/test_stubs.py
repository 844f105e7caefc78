"""The type stubs that the build writes beside the package match the op list."""

import importlib.util
import os
from pathlib import Path

import pytest
import vesta

SCRIPT = Path(__file__).resolve().parents[2] / "python" / "make_stubs.py"
PACKAGE = Path(vesta.__file__).parent

pytestmark = pytest.mark.skipif("VESTA_SANITIZE" in os.environ, reason="a sanitized build writes no stubs")


@pytest.fixture(scope="module")
def stubs():
    if not SCRIPT.is_file():
        pytest.skip("needs the source tree")
    spec = importlib.util.spec_from_file_location("make_stubs", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "writer"), [("_C.pyi", "extension"), ("__init__.pyi", "package")])
def test_stubs_are_current(stubs, name, writer):
    assert (PACKAGE / name).read_text(encoding="utf-8") == getattr(stubs, writer)(), "build the target stubs"
    assert (PACKAGE / "py.typed").is_file()  # without it type checkers ignore the stubs


@pytest.mark.parametrize("name", ["_C.pyi", "__init__.pyi"])
def test_stubs_are_python_and_know_every_op(name):
    text = (PACKAGE / name).read_text(encoding="utf-8")
    compile(text, name, "exec")
    ops = {entry["name"] for entry in vesta._C._registry() if entry["function"]}
    named = [op for op in ops if name == "_C.pyi" or op in vars(vesta)]
    assert len(named) > 100 and not [op for op in named if f"def {op}(" not in text and f" {op}" not in text]
