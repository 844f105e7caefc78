"""Libraries of different builds: each is detected before it is called, and the error says what to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("VESTA_BUILD", "build")).resolve()
HEADER = BUILD / "include" / "vesta_build_identity.h"
pytestmark = pytest.mark.skipif(not HEADER.exists(), reason="needs the build tree")


def identity() -> str:
    found = re.search(r'VESTA_BUILD_IDENTITY "([^"]+)"', HEADER.read_text())
    assert found
    return found[1]


def of_another_build(library: str, folder: Path) -> Path:
    """Copies a library of this build and changes the name of the build in it."""
    source = BUILD / "lib" / library
    if not source.exists():
        pytest.skip(f"{library} was not built")
    ours = identity().encode()
    theirs = ours[:-1] + (b"0" if ours.endswith(b"1") else b"1")
    data = source.read_bytes()
    assert data.count(ours) == 1
    copy = folder / library
    copy.write_bytes(data.replace(ours, theirs))
    return copy


def python(body: str, **environment: object) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    return subprocess.run(
        [sys.executable, "-c", body], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_backend_of_another_build(tmp_path: Path) -> None:
    library = of_another_build("libvesta_cuda_emulation.so", tmp_path)
    done = python(
        """
import warnings, vesta
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert not vesta.cuda.is_available() and not vesta.cuda.is_available()
assert len(said) == 1 and "another build than libvesta.so" in str(said[0].message), said
for use in (lambda: vesta.zeros(1, device="cuda"), lambda: vesta.ones(1).cuda(), vesta.cuda.current_device):
    try: use()
    except RuntimeError as e: assert "another build than libvesta.so" in str(e), e
    else: raise AssertionError
print(vesta.ones(2).sum().item())
""",
        VESTA_CUDA_LIBRARY=library,
    )
    assert done.returncode == 0 and done.stdout == "2.0\n", done.stdout + done.stderr


def test_a_backend_that_states_no_build(tmp_path: Path) -> None:
    library = of_another_build("libvesta_cuda_emulation.so", tmp_path)
    data = library.read_bytes()
    library.write_bytes(data.replace(b"vesta_plug_in_build", b"vesta_plug_in_older"))
    done = python("import vesta; vesta.zeros(1, device='cuda')", VESTA_CUDA_LIBRARY=library)
    assert "DeviceError: device: expected a cuda backend" in done.stderr and "another build" in done.stderr, done.stderr


def test_an_extension_for_cuda_of_another_build(tmp_path: Path) -> None:
    """A package in which ``_C_cuda`` is older than the rest: a warning says so, once, and errors do."""
    package = tmp_path / "vesta"
    shutil.copytree(BUILD / "python" / "vesta", package, symlinks=True)
    (extension,) = package.glob("_C_cuda*.so")
    ours = identity().encode()
    data = extension.read_bytes()
    assert data.count(ours) == 1
    extension.unlink()
    extension.write_bytes(data.replace(ours, ours[:-1] + (b"0" if ours.endswith(b"1") else b"1")))
    done = python(
        """
import warnings, vesta
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    assert not vesta.cuda.is_available() and vesta.cuda.device_count() == 0 and not vesta.cuda.is_available()
(one,) = said
assert "vesta._C_cuda is of another build than libvesta.so" in str(one.message), one
assert "build both again" in str(one.message) and one.filename == "<string>", one
try: vesta.cuda.current_device()
except RuntimeError as e: assert "vesta._C_cuda is of another build than libvesta.so" in str(e), e
else: raise AssertionError
""",
        PYTHONPATH=tmp_path,
        LD_LIBRARY_PATH=BUILD / "lib",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_process_groups_of_another_build(tmp_path: Path) -> None:
    library = of_another_build("libvesta_gloo.so", tmp_path)
    done = python(
        f"""
import vesta.distributed as dist
dist.init_process_group("gloo", init_method="file://{tmp_path}/store", rank=0, world_size=1)
""",
        VESTA_GLOO_LIBRARY=library,
    )
    assert "Error" in done.stderr and "another build than libvesta.so" in done.stderr, done.stdout + done.stderr


def test_an_extension_of_another_build(tmp_path: Path) -> None:
    library = of_another_build("libvesta.so", tmp_path)
    preloaded = " ".join([*filter(None, [os.environ.get("LD_PRELOAD")]), str(library)])
    done = python("import vesta", LD_PRELOAD=preloaded)
    assert "ImportError: vesta._C is of another build than libvesta.so" in done.stderr, done.stdout + done.stderr


@pytest.mark.skipif(not shutil.which("cmake"), reason="cmake names the build")
def test_the_name_of_a_build_follows_its_headers_alone(tmp_path: Path) -> None:
    header, at = tmp_path / "source" / "core" / "a.h", tmp_path / "name.h"
    header.parent.mkdir(parents=True)

    def name(text: str, version: str = "0.1.0", settings: str = "") -> str:
        header.write_text(text)
        values = {
            "VERSION": version,
            "SOURCE": header.parents[1],
            "HEADER": at,
            "FOLDERS": "core",
            "SETTINGS": settings,
        }
        command = ["cmake", *(f"-D{k}={v}" for k, v in values.items()), "-P", ROOT / "core" / "build_identity.cmake"]
        subprocess.run(command, check=True, timeout=60)
        return at.read_text()

    first = name("int a;")
    assert '"0.1.0+' in first
    os.utime(at, (1, 1))
    assert name("int a;") == first and at.stat().st_mtime == 1  # unchanged: nothing is compiled again
    assert len({first, name("long a;"), name("int a;", "0.2.0"), name("int a;", settings="sanitize")}) == 4
