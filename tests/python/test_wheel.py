"""Wheels that run elsewhere: the glibc that they need, what is in them, and what pip makes of a source distribution."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from sanitized import SANITIZED

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("VESTA_BUILD", ROOT / "build"))
SONAMES = ("libvesta.so", "libsleef.so.3", "libvesta_gloo.so")

pytestmark = [
    pytest.mark.skipif(not (BUILD / "CMakeCache.txt").exists(), reason=f"{BUILD} is not a build folder"),
    pytest.mark.skipif(SANITIZED, reason="wheels are built without sanitizers"),
    pytest.mark.skipif(not shutil.which("readelf"), reason="binutils is not installed"),
]

#: The newest libstdc++ that a system has at the least with a glibc: PEP 600's profiles (auditwheel's policies).
GLIBCXX_OF_GLIBC = {(2, 35): (3, 4, 30), (2, 36): (3, 4, 30), (2, 39): (3, 4, 33), (2, 41): (3, 4, 33)}


def run(*command: object, **options: object) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def highest(files: list[Path], prefix: str) -> tuple[int, ...]:
    """Returns the highest version of symbols named PREFIX_1.2.3 that any of the files needs."""
    found = {(0,)}
    for file in files:
        needs = run("readelf", "--version-info", "--wide", file).partition("Version needs section")[2]
        found |= {tuple(map(int, v.split("."))) for v in re.findall(rf"\b{prefix}_([0-9.]+)\b", needs)}
    return max(found)


def glibc_of(tag: str) -> tuple[int, int]:
    """Returns the version of glibc in a tag such as manylinux_2_36_x86_64."""
    major, minor = re.search(r"manylinux_(\d+)_(\d+)_", tag).groups()
    return int(major), int(minor)


def check_needs(files: list[Path], glibc: tuple[int, int]) -> None:
    """Checks that the files need no newer symbols than a system with this glibc has."""
    assert (2, 17) < highest(files, "GLIBC") <= glibc
    profile = max(version for version in GLIBCXX_OF_GLIBC if version <= glibc)
    assert (3, 4) < highest(files, "GLIBCXX") <= GLIBCXX_OF_GLIBC[profile]


def floor_of_the_readme() -> tuple[int, int]:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    return glibc_of(re.search(r"manylinux_\d+_\d+_x86_64", text)[0])


def test_libraries_need_no_newer_glibc_than_the_readme_states() -> None:
    floor = floor_of_the_readme()
    if tuple(map(int, platform.libc_ver()[1].split("."))) > floor:
        pytest.skip("a wheel that is built here needs this system's glibc, and says so in its name")
    linked = run("ldd", BUILD / "lib" / "libvesta.so")
    beside = [Path(path) for path in re.findall(r"libsleef\S* => (\S+)", linked)]
    assert len(beside) == 1 and "libgomp" not in linked, linked
    ours = [BUILD / "lib" / "libvesta.so", *(BUILD / "python" / "vesta").glob("_C.*.so")]
    check_needs([*ours, *beside], floor)


def test_a_source_distribution_names_all_that_is_missing(tmp_path: Path) -> None:
    """`pip wheel` of it stops with the one list of CMake, not in the middle of compiling."""
    pytest.importorskip("scikit_build_core")
    code = f"from scikit_build_core.build import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    name = run(sys.executable, "-c", code, cwd=ROOT).split()[-1]
    with tarfile.open(tmp_path / name) as archive:
        files = {member.partition("/")[2] for member in archive.getnames()}
    assert {"CMakeLists.txt", "core/dependencies.cmake", "python/vesta/__init__.py", "README.md", "LICENSE"} <= files
    assert not [file for file in files if file.startswith((".ci", "build", "dist", "examples/data"))]
    nowhere = f"-DCMAKE_FIND_ROOT_PATH={tmp_path}/none " + " ".join(
        f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=ONLY" for kind in ("INCLUDE", "LIBRARY", "PACKAGE")
    )
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path / "out"]
    env = {**os.environ, "CMAKE_ARGS": nowhere}
    done = subprocess.run([*command, tmp_path / name], capture_output=True, text=True, env=env)
    text = re.sub(r"\s+", " ", done.stdout + done.stderr)
    assert done.returncode == 1, text
    assert text.count("What is missing:") == 1, text
    packages = text.partition("apt-get install ")[2].split()
    assert {"libfmt-dev", "libsleef-dev", "libkissfft-dev", "nlohmann-json3-dev"} <= set(packages), text
    assert "Building CXX object" not in text


def make_wheel(folder: Path, *options: str, **environment: str) -> Path:
    """Builds the wheel of this Python as `make wheels` does."""
    pytest.importorskip("auditwheel")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    env = {**os.environ, "CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", **environment}
    env.pop("PYTHONPATH", None)
    run(sys.executable, ROOT / ".ci" / "wheels", "--python", version, "--output", folder, *options, env=env)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.campaign
def test_a_wheel_is_all_that_is_needed(tmp_path: Path) -> None:
    """The wheel of `make wheels` in a fresh environment: its tag, its libraries, collectives, and C++ against it."""
    wheel = make_wheel(tmp_path / "dist")
    glibc = glibc_of(wheel.name)
    assert glibc == tuple(map(int, platform.libc_ver()[1].split(".")))
    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-index", wheel)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "VESTA_"))}

    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if re.search(r"\.so(\.|$)", name)]
    package = Path(run(python, "-c", "import vesta; print(vesta.__path__[0])", env=env, cwd=tmp_path).strip())
    files = [package.parent / name for name in names]
    check_needs(files, glibc)
    assert set(SONAMES) < {file.name for file in files}
    for file in files:  # nothing comes from this machine but the C and C++ libraries
        found = [line for line in run("ldd", file).splitlines() if "=> /" in line and str(tmp_path) not in line]
        system = re.compile(r"\s*lib(c|m|stdc\+\+|gcc_s|dl|pthread|rt)\.so")
        assert not [line for line in found if not system.match(line)], (file.name, found)

    (tmp_path / "ranks.py").write_text(
        "import vesta, vesta.distributed as dist\ndist.init_process_group('gloo')\n"
        "t = vesta.ones(2) * (dist.get_rank() + 1)\ndist.all_reduce(t)\n"
        "print(t.tolist() if dist.get_rank() == 0 else '')\ndist.destroy_process_group()\n"
    )
    ranks = run(python, "-m", "vesta.distributed.run", "--nproc-per-node", 2, "ranks.py", env=env, cwd=tmp_path)
    assert "[3.0, 3.0]" in ranks
    report = run(python, "-m", "vesta.utils.collect_env", env=env, cwd=tmp_path)
    for what in ("Vesta", "SLEEF", "Gloo"):
        assert re.search(rf"- {what}: {re.escape(str(package.parent))}\S+$", report, re.M), (what, report)

    prefix = run(python, "-m", "vesta", "--cmake-prefix", env=env, cwd=tmp_path).strip()
    source = ROOT / "tests" / "install"
    run("cmake", "-S", source, "-B", tmp_path / "consumer", f"-DCMAKE_PREFIX_PATH={prefix}", env=env)
    run("cmake", "--build", tmp_path / "consumer", env=env)
    assert run(tmp_path / "consumer" / "consumer", env=env) == "gradient: tensor([2., 4., 6.])\n"


def check_cuda_wheel(wheel: Path, folder: Path) -> None:
    """Checks that a wheel of vesta-cuda links none of NVIDIA's libraries, and that its extras name them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    files = sorted(folder.glob("vesta/*.so"))
    assert [f.name.partition(".")[0] for f in files] == ["_C_cuda", "libvesta_cuda"]
    assert (folder / "vesta" / "licenses" / "vesta-cuda" / "LICENSE").exists()
    check_needs(files, glibc_of(wheel.name))
    for file in files:
        needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", file)))
        system = re.compile(r"lib(c|m|stdc\+\+|gcc_s|dl|pthread|rt)\.so|ld-linux")
        assert {name for name in needed if not system.match(name)} == {"libvesta.so"}, (file.name, needed)
    (metadata,) = folder.glob("*.dist-info/METADATA")
    extras = re.findall(r"Requires-Dist: nvidia-([a-z]+)\S*.*extra == .(cuda1[23])", metadata.read_text("utf-8"))
    libraries = ("cublas", "cudnn", "cufft", "cusolver", "nccl")
    assert sorted(extras) == sorted((name, extra) for name in libraries for extra in ("cuda12", "cuda13"))


@pytest.mark.campaign
@pytest.mark.skipif(not (shutil.which("nvcc") or Path("/usr/local/cuda/bin/nvcc").exists()), reason="needs nvcc")
def test_a_wheel_of_the_cuda_backend(tmp_path: Path) -> None:
    """The wheel of `make cuda-wheels`, for one kind of GPU."""
    wheel = make_wheel(tmp_path / "dist", "--cuda", CMAKE_ARGS="-DCMAKE_CUDA_ARCHITECTURES=90")
    check_cuda_wheel(wheel, tmp_path / "unpacked")
