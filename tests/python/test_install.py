"""`cmake --install` makes a tree that can be moved and that another CMake project uses with find_package(vesta)."""

import os
import shutil
import subprocess
import sys
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


def build_consumer(prefix, folder):
    """Builds a project of somebody else, which must find Vesta in a folder; returns what its program prints."""
    shutil.copytree(ROOT / "tests" / "install", folder / "source")
    options = f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Debug"
    run("cmake", "-S", folder / "source", "-B", folder / "build", *options)
    run("cmake", "--build", folder / "build")
    return run(folder / "build" / "consumer")


def test_another_project_finds_builds_and_runs(installed, tmp_path):
    assert build_consumer(installed, tmp_path) == "gradient: tensor([2., 4., 6.])\n"


def test_a_build_folder_serves_cpp_without_installing(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(BUILD / "python")}
    prefix = run(sys.executable, "-m", "vesta", "--cmake-prefix", env=env).strip()
    assert Path(prefix) == BUILD.resolve() / "share" / "cmake"
    run("cmake", "-S", ROOT / "tests" / "install", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}")
    flags = next((tmp_path / "CMakeFiles" / "consumer.dir").glob("flags.make")).read_text()
    assert str(BUILD.resolve() / "include") in flags


def test_what_a_wheel_holds_is_enough_for_cpp(tmp_path):
    """The files of the wheel, from libraries that are built already: headers, package and library of C++ are there."""
    options = "-DSKBUILD=ON", "-DVESTA_BUILD_TESTS=OFF", "-DVESTA_BUILD_EXAMPLES=OFF", "-DCMAKE_SKIP_RPATH=ON"
    run("cmake", "-S", ROOT, "-B", tmp_path / "wheel", "-G", "Ninja", *options)
    shutil.copytree(BUILD / "lib", tmp_path / "wheel" / "lib", dirs_exist_ok=True)
    shutil.copy(BUILD / "include" / "vesta_build_identity.h", tmp_path / "wheel" / "include")
    for file in (BUILD / "python" / "vesta").iterdir():
        if not file.is_symlink() and (file.suffix in (".so", ".pyi") or file.name == "_C"):
            copy = shutil.copytree if file.is_dir() else shutil.copy
            copy(file, tmp_path / "wheel" / "python" / "vesta" / file.name)
    site = tmp_path / "site"
    run("cmake", "--install", tmp_path / "wheel", "--prefix", site, "--component", "python")
    assert {path.name for path in site.iterdir()} == {"vesta"}
    for name in ("libvesta.so", "libsleef.so.3", "include/vesta/extension.h", "_C/__init__.pyi"):
        assert (site / "vesta" / name).is_file(), name
    shutil.copytree(ROOT / "python" / "vesta", site / "vesta", dirs_exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(site)}
    prefix = run(sys.executable, "-m", "vesta", "--cmake-prefix", env=env).strip()
    assert prefix == str(site / "vesta" / "share" / "cmake")
    assert build_consumer(prefix, tmp_path) == "gradient: tensor([2., 4., 6.])\n"


def test_the_umbrella_header_compiles_quickly(installed, tmp_path):
    """A user's file that includes <vesta/vesta.h> compiles in 2 s; five times that is a regression."""
    source = tmp_path / "user.cpp"
    source.write_text("#include <vesta/vesta.h>\nint main() {}\n")
    started = time.process_time(), os.times().children_user
    run("g++", "-std=c++20", "-fsyntax-only", f"-I{installed / 'include'}", source)
    assert os.times().children_user - started[1] < 10


def test_a_single_header_of_nn_gives_the_methods_of_ops(installed, tmp_path):
    """The library is compiled without them (core/tensor.h), programs are not."""
    source = tmp_path / "user.cpp"
    body = "vesta::Tensor f(const vesta::Tensor& x) { return x.narrow(0, 0, 2).relu_().sum(); }\n"
    source.write_text(f"#include <vesta/nn/module.h>\n{body}")
    run("g++", "-std=c++20", "-fsyntax-only", f"-I{installed / 'include'}", source)
