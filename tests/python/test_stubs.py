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


def test_stubs_are_current(stubs):
    for name, text in stubs.stubs().items():
        assert (PACKAGE / name).read_text(encoding="utf-8") == text, f"{name}: build the target stubs"
        compile(text, name, "exec")
    assert (PACKAGE / "py.typed").is_file()  # without it type checkers ignore the stubs


def test_stubs_know_every_op():
    """As a function where it is one, as a method where it is one."""
    text = {name: (PACKAGE / "_C" / f"{name}.pyi").read_text(encoding="utf-8") for name in ("__init__", "_ops")}
    registry = vesta._C._registry()
    functions = {entry["name"] for entry in registry if entry["name"] in vars(vesta._C._ops)}
    methods = {entry["name"] for entry in registry if entry["method"] and hasattr(vesta.Tensor, entry["name"])}
    assert len(functions) > 300 and not [name for name in functions if f"def {name}(" not in text["_ops"]]
    assert len(methods) > 300 and not [name for name in methods if f" {name}(" not in text["__init__"]]
