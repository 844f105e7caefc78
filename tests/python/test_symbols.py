"""The symbols of libvesta.so, read with nm: code of an instruction set has its namespace, only our names are exported.

Without the namespaces the linker keeps one weak copy of a template for all instruction sets, and a machine without
AVX-512 runs zmm code.
"""

import os
import platform
import re
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("VESTA_BUILD", Path(__file__).resolve().parents[2] / "build"))
LIBRARY = BUILD / "lib" / "libvesta.so"
ISA = re.compile(r"\bvesta::([\w:]+::)?(baseline|avx2|avx512|avx512_bf16|avx512_amx)::")

pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason=f"{LIBRARY} is not built")


def symbols(path, *options):
    """Returns (type letter, demangled name) of each symbol that a file defines."""
    command = ["nm", "-C", "--defined-only", *options, str(path)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    parts = [line.split(maxsplit=2) for line in lines]
    return [(p[1], p[2]) for p in parts if len(p) == 3]


@pytest.fixture(scope="module")
def library():
    return symbols(LIBRARY)


@pytest.fixture(scope="module")
def high_objects():
    folders = BUILD.glob("CMakeFiles/vesta_kernels_avx*.dir")
    return [path for folder in folders for path in folder.rglob("*.o")]


def test_vector_code_lives_in_the_namespace_of_its_isa(library):
    vector = [name for _, name in library if re.search(r"\bVec<|\bsimd::", name)]
    loose = [name for name in vector if not ISA.search(name)]
    assert not loose, "\n".join(loose[:20])


def test_functors_of_kernels_live_in_the_namespace_of_their_isa(high_objects):
    if not high_objects:
        pytest.skip("no kernels for AVX2 or AVX-512 on this machine")
    loose = {
        f"{path.name}: {name}"
        for path in high_objects
        for kind, name in symbols(path)
        if kind in "WVu" and re.search(r"::(forward|backward)\b", name) and not ISA.search(name)
    }
    assert not loose, "\n".join(sorted(loose)[:20])


def test_no_strong_symbol_of_a_high_isa_is_outside_its_namespace(high_objects):
    loose = {
        f"{path.name}: {name}"
        for path in high_objects
        for kind, name in symbols(path, "--extern-only")
        if kind in "TDB" and name.startswith("vesta::") and not ISA.search(name)
    }
    assert not loose, "\n".join(sorted(loose)[:20])


def test_shared_inline_functions_are_taken_from_code_that_runs_everywhere():
    """Objects of higher instruction sets are last on the link line: symbols that exist are not taken from them."""
    ninja = BUILD / "build.ninja"
    if not ninja.exists():
        pytest.skip("built without Ninja")
    line = next(text for text in ninja.read_text().splitlines() if re.match(r"build lib/libvesta\.so\b.*:", text))
    objects = re.findall(r"CMakeFiles/vesta_(\w+)\.dir/", line.split("|")[0])
    first_high = next((i for i, name in enumerate(objects) if "_avx" in name), len(objects))
    assert objects and all("_avx" in name for name in objects[first_high:]), objects


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads x86-64 instructions")
def test_code_outside_those_namespaces_runs_on_any_machine():
    """Every instruction of AVX and later is spelled v...; code that runs at load is outside, and so is checked."""
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", str(LIBRARY)]
    function, inside, outside = "", 0, set()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.endswith(">:\n"):
                function = line.split("<", 1)[1]
            elif line.split("\t", 2)[1:2] and line.split("\t", 2)[1].startswith("v"):
                # some names stay mangled, such as 6avx512
                bfloat16 = re.search(r"(^|[:<_])avx512_(bf16|amx)\b|^_ZN5vesta\w*?\davx512_(bf16|amx)", function)
                if re.search(r"\tv(dpbf16|cvtne2?ps2bf16)", line) and not bfloat16:
                    outside.add(function)
                elif bfloat16 or re.search(r"(^|[:<_])avx(2|512)\b|^_ZN5vesta\w*?\davx(2|512)", function):
                    inside += 1
                else:
                    outside.add(function)
    assert inside, "no code for AVX2 or AVX-512 in the library"
    assert not outside, "\n".join(sorted(outside)[:20])


def test_only_our_own_names_leave_the_library():
    """SLEEF, fmt and the standard library are not exported again."""
    exported = [name for kind, name in symbols(LIBRARY, "--dynamic") if kind in "TDBR"]
    foreign = [name for name in exported if "vesta" not in name and name not in ("__bss_start", "_edata", "_end")]
    assert exported and not foreign, foreign[:20]


def test_functions_and_methods_of_the_op_list_are_exported():
    """A program has declarations only; their bodies are in core/ops/functions.cpp and methods.cpp."""
    exported = {name.partition("(")[0] for _, name in symbols(LIBRARY, "--dynamic")}
    private = (BUILD / "include/vesta/core/ops/topics.h").read_text().partition("VESTA_PRIVATE_LISTS(X)")[2]
    private = set(re.findall(r"X\((\w+),", private))  # their functions are inline
    wanted = set()
    for path in (BUILD / "include/vesta/core/ops/lists").glob("*.h"):
        if path.stem in private:
            continue
        for kind, rest in re.findall(r"\bOP\((\w+),\s*([^()]*)", path.read_text()):
            words = [word.strip() for word in rest.split(",")]
            if kind in ("POINTWISE", "POINTWISE_FUNCTION"):
                wanted |= {f"vesta::{words[0]}", f"vesta::{words[0]}_out"}
            if kind == "POINTWISE":
                wanted |= {f"vesta::Tensor::{words[0]}", f"vesta::Tensor::{words[0]}_"}
            if kind in ("METHOD", "FUNCTION"):
                wanted.add(f"vesta::{words[1]}")
            if kind == "METHOD":
                wanted.add(f"vesta::Tensor::{words[1]}")
            if kind == "IN":
                wanted |= {f"vesta::{words[0]}_{words[2]}", f"vesta::{words[0]}::{words[2]}"}
    assert len(wanted) > 1000 and not wanted - exported, sorted(wanted - exported)[:20]


def test_no_cuda_symbol_is_needed():
    command = ["nm", "-D", "--undefined-only", str(LIBRARY)]
    needed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert not re.findall(r"\b(cuda\w+|cublas\w+|cudnn\w+|nccl\w+)", needed)
