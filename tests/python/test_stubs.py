"""The committed type stubs say what the roll call says."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "python" / "make_stubs.py"


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
    current = (stubs.FOLDER / name).read_text(encoding="utf-8")
    assert current == getattr(stubs, writer)(), "run: python python/make_stubs.py"


@pytest.mark.parametrize("writer", ["extension", "package"])
def test_stubs_are_python(stubs, writer):
    compile(getattr(stubs, writer)(), writer, "exec")
