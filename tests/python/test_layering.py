"""The house rules that can be checked: which folder includes which, file sizes, READMEs, forbidden words."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

BASE = {"core/base"}
CORE = BASE | {"core"}
OPS = CORE | {"core/dispatch", "core/ops"}
IO = OPS | {"core/io"}
TAPE = IO | {"autograd"}
GROUPS = OPS | {"multiprocessing"}
NET = TAPE | {"nn"}
ALL_BUT_LEAVES = NET | GROUPS | {"multiprocessing/ddp", "python/bindings", "python/extension"}

# Folder (with everything below that has no row of its own) -> folders whose headers it may include.
ALLOWED = {
    "core/base": BASE,
    "core": CORE,
    "core/dispatch": CORE | {"core/dispatch"},
    "core/ops": OPS,
    "core/cpu": OPS | {"core/cpu"},
    "core/meta": OPS | {"core/meta"},
    "core/io": IO,
    "multiprocessing": GROUPS,
    "autograd": TAPE,
    "multiprocessing/ddp": TAPE | GROUPS | {"multiprocessing/ddp"},
    "nn": NET,
    "python/bindings": ALL_BUT_LEAVES,
    "python/extension": NET | {"python/extension"},
    "cuda": ALL_BUT_LEAVES - {"python/bindings"} | {"cuda", "cuda/memory"},
    "cuda/memory": BASE | {"cuda/memory"},
    "cuda/python": ALL_BUT_LEAVES | {"cuda", "cuda/memory"},
    "tests": ALL_BUT_LEAVES | {"core/cpu", "cuda/memory", "tests"},
    "tests/cpp/cuda": ALL_BUT_LEAVES | {"cuda", "cuda/memory", "tests"},
    "benchmarks": ALL_BUT_LEAVES | {"core/cpu", "cuda/memory", "benchmarks"},
    "examples": NET | {"multiprocessing", "multiprocessing/ddp"},
    "examples/extension": NET | {"python/extension", "cuda"},
}

# Headers that the lowest levels share with those above; they include only core/base, which a test checks. The op list
# generates Tensor's methods in core/tensor.h, layer.h defines the layer bits that a TensorImpl has.
HEADERS_OF_ALL = ("core/dispatch/layer.h",)

# Single includes of a higher level, with the reason.
EXCEPTIONS = {
    ("core/tensor.cpp", "core/ops/copy.h"): "to() of Tensor is a call of an op",
    ("core/tensor.h", "core/ops/methods.h"): "methods of Tensor follow from the op list",
    (
        "python/bindings/settings.cpp",
        "core/cpu/parallel.h",
    ): "Python sets the number of threads and ends loops by Ctrl-C",
}

# The files of the library that include all ops: those that define them, and what users include.
LIBRARY = ("core/", "autograd/", "nn/", "multiprocessing/", "cuda/", "python/")
ALL_OPS = {
    "core/ops/functions.cpp",
    "core/ops/methods.cpp",
    "core/ops/profiled_ops.cpp",
    "nn/functional.h",
    "nn/layers/linear.cpp",
    "nn/layers/vision.cpp",
    "nn/vesta.h",
    "python/extension/extension.h",
}

# The one file that connects the parts (vesta::initialize), and the leaves that it registers.
COMPOSITION = (
    ("autograd/register.cpp", "core/cpu/register.h"),
    ("autograd/register.cpp", "core/meta/register.h"),
)

# Headers of other projects -> the folders that may include them.
THIRD_PARTY = {
    r"(cuda|cublas|cudnn|nccl|cub/|thrust/|cooperative_groups|nvtx)": ("cuda", "examples/extension"),
    r"(dnnl|oneapi/dnnl)": ("benchmarks",),
    r"sleef": ("core/cpu", "tests", "benchmarks"),
    r"kissfft/": ("core/cpu",),
    r"(pybind11/|Python\.h)": ("python/bindings", "python/extension", "cuda/python", "benchmarks"),
    r"fmt/": ("core", "autograd", "nn", "multiprocessing", "python/bindings", "cuda", "tests"),
    r"nlohmann/": ("core/io", "autograd", "tests"),
    r"catch2/": ("tests",),
    r"omp\.h": ("core/cpu", "tests", "benchmarks"),
    r"gloo/": ("multiprocessing",),
}

CPP = (".h", ".cpp", ".cu", ".cuh")
SOURCE = (*CPP, ".py", ".pyi")


def tracked():
    """Returns the files that git knows or would add, as paths relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [Path(name) for name in listed if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def files():
    try:
        return tracked()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the git checkout")


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="replace")


def row_of(path):
    """Returns the row of ALLOWED that applies to a file: the longest one that is a prefix of its folder."""
    folder = path.parent
    while folder != Path("."):
        if str(folder) in ALLOWED:
            return str(folder)
        folder = folder.parent
    return None


def included(path):
    """Yields (line number, style, name) of every #include."""
    for number, line in enumerate(text_of(path).splitlines(), 1):
        match = re.match(r"\s*#\s*include\s*([<\"])([^>\"]+)[>\"]", line)
        if match:
            yield number, match[1], match[2]


def forbidden(path, style, name):
    """Returns why a file may not include a header, or None."""
    row = row_of(path)
    if row is None:
        return "stands in no folder of the allow-table"
    if name == "vesta/vesta.h":
        return None if "nn" in ALLOWED[row] else f"{row} may not include the umbrella header"
    if name == "vesta/extension.h":
        return None if "python/extension" in ALLOWED[row] else f"{row} may not include the header of extensions"
    if name.startswith("vesta/"):
        target = Path(name[len("vesta/") :])
        if str(target) in HEADERS_OF_ALL or (str(path), str(target)) in EXCEPTIONS:
            return None
        if (str(path), str(target)) in COMPOSITION:
            return None
        target_row = row_of(target)
        return None if target_row in ALLOWED[row] else f"{row} may not include {target_row}"
    if style == '"':
        folders = [path.parent]
        if str(path.parent) in ("python/bindings/ops", "python/bindings/examples", "cuda/python"):
            folders.append(Path("python/bindings"))
        beside = any((ROOT / folder / name).is_file() for folder in folders) and "/" not in name
        ours = row == "cuda/python" or row.split("/")[0] in ("python", "tests", "benchmarks")
        return None if beside and ours else "spell it <vesta/...>"
    for pattern, folders in THIRD_PARTY.items():
        if re.match(pattern, name):
            known = any(row == folder or row.startswith(folder + "/") for folder in folders) and row != "core/base"
            return None if known else f"{row} may not know {name}"
    return None


def test_includes_point_down_only(files):
    wrong = [
        f"{path}:{number}: {name}: {reason}"
        for path in files
        if path.suffix in CPP
        for number, style, name in included(path)
        if (reason := forbidden(path, style, name))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("path", "style", "name"),
    [
        ("core/tensor.h", "<", "vesta/autograd/node.h"),
        ("core/base/error.h", "<", "vesta/core/tensor.h"),
        ("core/ops/reduce.h", "<", "vesta/core/cpu/simd.h"),
        ("autograd/rules/matmul.cpp", "<", "vesta/core/cpu/loops.h"),
        ("autograd/node.h", "<", "vesta/nn/module.h"),
        ("nn/module.h", "<", "vesta/cuda/stream.h"),
        ("core/cpu/matmul.cpp", "<", "cuda_runtime.h"),
        ("python/bindings/module.cpp", "<", "vesta/core/cpu/simd.h"),
        ("core/base/error.h", "<", "fmt/format.h"),
        ("core/tensor.cpp", '"', "tensor.h"),
        ("elsewhere/x.cpp", "<", "vector"),
    ],
)
def test_the_table_refuses(path, style, name):
    assert forbidden(Path(path), style, name)


@pytest.mark.parametrize("header", HEADERS_OF_ALL)
def test_headers_of_all_stand_on_the_base_alone(header):
    ours = [name for _, _, name in included(Path(header)) if name.startswith("vesta/")]
    assert all(name.startswith("vesta/core/base/") for name in ours), ours


def test_the_op_list_includes_nothing():
    for path in sorted((ROOT / "core/ops/lists").glob("*.h")):
        assert not list(included(path.relative_to(ROOT)))


def test_the_library_includes_topics_instead_of_all_ops(files):
    """A file that includes all ops is compiled again for every new one: those that define them, and users' headers."""
    every = {"vesta/core/ops/ops.h", "vesta/nn/functional.h", "vesta/vesta.h"}
    library = [path for path in files if path.suffix in CPP and str(path).startswith(LIBRARY)]
    library = [path for path in library if path.parts[:2] != ("nn", "as_torch")]  # users' headers
    assert {str(path) for path in library if every & {name for _, _, name in included(path)}} == ALL_OPS


def test_no_exception_is_stale():
    unused = [pair for pair in EXCEPTIONS if f"vesta/{pair[1]}" not in [n for _, _, n in included(Path(pair[0]))]]
    assert not unused


def test_no_file_is_long(files):
    long = {
        str(p): n
        for p in files
        if p.suffix in SOURCE and p.suffix != ".pyi" and (n := len(text_of(p).splitlines())) > 800
    }
    assert not long, f"over 800 lines: {long}. Extract a noun."


def test_no_line_is_long(files):
    wanted = [p for p in files if p.suffix in SOURCE or p.name in ("CMakeLists.txt", "Makefile") or p.parts[0] == ".ci"]
    long = [f"{p}:{i}" for p in wanted for i, line in enumerate(text_of(p).splitlines(), 1) if len(line) > 120]
    assert not long, f"over 120 columns: {long}"


def test_every_difference_is_listed_with_its_test(files):
    """docs/differences.md has a row for each test that is marked `differs`, and each row names tests that exist."""
    rows = text_of(Path("docs/differences.md"))
    texts = {p.name: text_of(p) for p in files if p.parts[:2] == ("tests", "python") and p.suffix == ".py"}
    marked = re.compile(r"@pytest\.mark\.differs\b.*\n(?:[@# \])].*\n)*(?:def|class) (\w+)")
    unlisted = [
        f"{file}::{name}"
        for file, text in texts.items()
        for name in marked.findall(text)
        if not re.search(rf"\b{name}\b", rows) and f"`{file}`" not in rows
    ]
    assert not unlisted, f"docs/differences.md has no row for {unlisted}"
    file, missing = "", []
    for named, whole, more in re.findall(r"`(test_\w+\.py)(?:::([\w:]+)[^`]*)?`|`(test_\w+)`", rows):
        file = named or file
        for name in filter(None, (whole or more).split("::")):
            if not re.search(rf"^ *(def|class) {name}\b", texts.get(file, ""), re.MULTILINE):
                missing.append(f"{file}::{name}")
    assert not missing, f"docs/differences.md names tests that do not exist: {missing}"


def test_every_folder_has_a_short_readme(files):
    folders = {p.parent for p in files if p.suffix in SOURCE or p.parts[0] in (".ci", "docs")}
    missing = [str(f) for f in sorted(folders) if not (ROOT / f / "README.md").is_file()]
    assert not missing, f"README.md is missing in {missing}"
    long = [str(f) for f in folders if f != Path(".") and len(text_of(f / "README.md").splitlines()) > 80]
    assert not long, f"README.md is over 80 lines in {long}"


WORDS = {
    "a build switch for CUDA (a plug-in is loaded, never compiled in)": r"#\s*if(def)?\b.*\bUSE_" + "CUDA",
    "a path of one machine": r"(?<![\w.$}])/(?:home|root|work|Users)/\w",
    "unfinished work": r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX)\b",
}


@pytest.mark.parametrize("what", WORDS)
def test_no_source_holds(files, what):
    texts = [p for p in files if p.suffix in (*SOURCE, ".md", ".toml", ".yaml", ".txt", "") and "data" not in p.parts]
    found = [
        f"{path}:{number}: {line.strip()[:100]}"
        for path in texts
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if re.search(WORDS[what], line)
    ]
    assert not found, f"{what}:\n" + "\n".join(found)


def test_the_root_holds_what_the_readme_maps(files):
    folders = {p.parts[0] for p in files if len(p.parts) > 1 and not p.parts[0].startswith(".")}
    allowed = "core autograd nn cuda multiprocessing python tests benchmarks examples docs".split()
    assert folders <= set(allowed), folders - set(allowed)
