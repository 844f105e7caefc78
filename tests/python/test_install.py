"""`cmake --install` makes a tree that can be moved and that another CMake project uses with find_package(vesta)."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from sanitized import SANITIZED

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("VESTA_BUILD", ROOT / "build"))

pytestmark = [
    pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason=f"{BUILD} is not a build folder"),
    pytest.mark.skipif(SANITIZED, reason="a consumer is built without sanitizers"),
]


def run(*command, **options):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Installs into one folder, moves the tree to another and returns that one."""
    folder = tmp_path_factory.mktemp("install")
    run("cmake", "--install", BUILD, "--prefix", folder / "first")
    shutil.move(folder / "first", folder / "moved")
    return folder / "moved"


def test_no_installed_file_names_the_source_tree(installed):
    for path in [*installed.rglob("*.cmake"), *installed.rglob("*.h"), installed / "lib" / "libvesta.so"]:
        assert str(ROOT).encode() not in path.read_bytes(), path


def test_installed_headers_are_those_of_the_levels_that_users_see(installed):
    include = installed / "include" / "vesta"
    assert (include / "vesta.h").is_file() and (include / "core" / "tensor.h").is_file()
    assert not (include / "core" / "cpu").exists()
    assert not [p for p in include.rglob("*") if p.is_file() and p.suffix != ".h"]


def test_another_project_finds_builds_and_runs(installed, tmp_path):
    shutil.copytree(ROOT / "tests" / "install", tmp_path / "source")
    prefix = f"-DCMAKE_PREFIX_PATH={installed}"
    run("cmake", "-S", tmp_path / "source", "-B", tmp_path / "build", prefix, "-DCMAKE_BUILD_TYPE=Debug")
    run("cmake", "--build", tmp_path / "build")
    output = run(tmp_path / "build" / "consumer")
    assert output == "gradient: tensor([2., 4., 6.])\n"


def test_the_umbrella_header_compiles_quickly(installed, tmp_path):
    """A user's file that includes <vesta/vesta.h> compiles in 2 s; five times that is a regression."""
    source = tmp_path / "user.cpp"
    source.write_text("#include <vesta/vesta.h>\nint main() {}\n")
    started = time.process_time(), os.times().children_user
    run("g++", "-std=c++20", "-fsyntax-only", f"-I{installed / 'include'}", source)
    assert os.times().children_user - started[1] < 10
