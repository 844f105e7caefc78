"""Extensions in C++: compiled when they are needed, tensors and errors both ways."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import vesta
from sanitized import SANITIZED
from vesta.utils import cpp_extension

ROOT = Path(__file__).resolve().parents[2]

pytest.importorskip("pybind11")
pytestmark = pytest.mark.skipif(SANITIZED, reason="extensions are built without sanitizers")

OURS = """
#include <stdexcept>
using vesta::Tensor;
Tensor same(const Tensor& x) { return x; }
Tensor made(std::vector<int64_t> sizes, vesta::DType dtype, vesta::Device device) {
  return vesta::zeros(vesta::IntSpan(sizes), dtype, device);
}
std::pair<vesta::DType, vesta::Device> kind(const Tensor& x) { return {x.dtype(), x.device()}; }
Tensor added(const Tensor& x, std::optional<Tensor> y) { return y ? x + *y : x; }
std::vector<Tensor> halves(const Tensor& x) { return {x / 2, x / 2}; }
void fail(int how) {
  if (how == 0) throw std::out_of_range("an index of C++");
  if (how == 1) throw pybind11::value_error("a value of pybind11");
  throw std::runtime_error("an error of C++");
}
Tensor differentiated(const Tensor& x) { Tensor y = (x * x).sum(); y.backward(); return y; }
"""
FUNCTIONS = ["same", "made", "kind", "added", "halves", "fail", "differentiated"]


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("ours")
    docs = {name: f'what "{name}"\ndoes: é1 \\' for name in FUNCTIONS}
    return cpp_extension.load_inline("ours", OURS, functions=docs, extra_cflags=["-O0"], build_directory=folder)


def test_values_pass_both_ways(ours: Any) -> None:
    x = vesta.nn.Parameter(vesta.ones(2))
    assert ours.same(x) is x and 'what "same"\ndoes: é1 \\' in ours.same.__doc__
    made = ours.made([2, 3], vesta.int32, "cpu")
    assert made.shape == (2, 3) and made.dtype == vesta.int32
    assert ours.kind(made) == (vesta.int32, vesta.device("cpu"))
    assert ours.added(x, None) is x and ours.added(x, x).tolist() == [2, 2]
    assert [half.tolist() for half in ours.halves(vesta.ones(1))] == [[0.5], [0.5]]


def test_gradients_pass_through(ours: Any) -> None:
    x = vesta.tensor([1.0, 2.0], requires_grad=True)
    ours.added(x * 3, x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [4, 4]
    seen = []
    x.grad = None
    x.register_hook(lambda grad: seen.append(grad.tolist()))
    ours.differentiated(x)
    assert seen == [[2, 4]] and x.grad.tolist() == [2, 4]


def test_errors_are_those_of_python(ours: Any) -> None:
    with pytest.raises(RuntimeError, match="add: "):
        ours.added(vesta.ones(2), vesta.ones(3))
    for how, kind, text in [
        (0, IndexError, "index of C"),
        (1, ValueError, "value of pyb"),
        (2, RuntimeError, "error of"),
    ]:
        with pytest.raises(kind, match=text):
            ours.fail(how)
    for wrong in (None, 1, [1.0], "x"):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            ours.same(wrong)

    class Broken(Exception):
        pass

    def hook(grad: vesta.Tensor) -> None:
        raise Broken("in a hook")

    x = vesta.ones(2, requires_grad=True)
    x.register_hook(hook)
    with pytest.raises(Broken, match="in a hook"):
        ours.differentiated(x)


PROGRAM = '#include "part.h"\n#include <cstdio>\nint main() { std::printf("%d %d\\n", PART, OPTION); }\n'


def test_what_has_changed_is_compiled_again(tmp_path: Path) -> None:
    source, part = tmp_path / "program.cpp", tmp_path / "part.h"
    source.write_text(PROGRAM)
    part.write_text("#define PART 1\n")
    target = tmp_path / "0_program.o"

    def build(option: int) -> str:
        options = {"extra_cflags": [f"-DOPTION={option}"], "build_directory": str(tmp_path)}
        program = cpp_extension.load("program", source, is_standalone=True, **options)
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout

    assert build(5) == "1 5\n"
    first = target.stat().st_mtime_ns
    assert build(5) == "1 5\n" and target.stat().st_mtime_ns == first
    part.write_text("#define PART 2\n")  # a header counts
    later = first + 10**9
    os.utime(part, ns=(later, later))
    os.utime(source, ns=(first - 10**9, first - 10**9))
    assert build(5) == "2 5\n"
    assert build(6) == "2 6\n"  # an option counts
    source.write_text("int main() { return broken; }\n")
    os.utime(source, ns=(later + 10**10, later + 10**10))
    for _ in range(2):  # what failed is tried again
        with pytest.raises(RuntimeError, match="Error building extension 'program'(?s:.*)broken. was not declared"):
            build(6)


def test_a_changed_extension_is_imported_anew(tmp_path: Path) -> None:
    """An extension without headers, which compiles in no time: a module with one constant."""
    text = """
#include <Python.h>
static PyModuleDef def = {PyModuleDef_HEAD_INIT, "tiny"};
extern "C" __attribute__((visibility("default"))) PyObject* PyInit_tiny() {
  PyObject* m = PyModule_Create(&def);
  PyModule_AddIntConstant(m, "value", VALUE);
  return m;
}
"""

    def load(value: int) -> Any:
        return cpp_extension.load_inline(
            "tiny", text.replace("VALUE", str(value)), build_directory=tmp_path, no_implicit_headers=True
        )  # fmt: skip

    first, again, other = load(1), load(1), load(2)
    assert first is again and first.value == 1
    assert other is not first and other.value == 2 and first.value == 1
    assert load(2) is other and not list(tmp_path.glob("*_v*"))


def test_an_extension_whose_building_was_killed_is_linked_again(tmp_path: Path, monkeypatch: Any) -> None:
    """The objects are younger than the program then, and all commands are the same."""
    source = tmp_path / "program.cpp"

    def build(value: int) -> str:
        source.write_text(f'#include <cstdio>\nint main() {{ std::printf("%d", {value}); }}\n')
        program = cpp_extension.load("program", source, is_standalone=True, build_directory=str(tmp_path))
        return subprocess.run([program], capture_output=True, text=True, check=True).stdout

    def killed(*_: Any) -> bool:
        raise KeyboardInterrupt

    assert build(1) == "1"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(cpp_extension.jit._Build, "link", killed)
        build(2)
    assert build(2) == "2"


def test_texts_become_strings_of_cpp() -> None:
    """Each number has three digits: the digit that follows is one of the text."""
    text = cpp_extension.jit._bindings({"f": 'é1 "\\\n'})
    assert '"\\303\\2511 \\042\\134\\012"' in text


def test_mistakes_are_named(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"load: expected a source file, found none at .*missing.cpp"):
        cpp_extension.load("ours", [str(tmp_path / "missing.cpp")])
    with pytest.raises(FileNotFoundError, match=r"expected a folder, found none at .*nowhere \(build_directory\)"):
        cpp_extension.load_inline("ours", "", build_directory=tmp_path / "nowhere")
    with pytest.raises(ValueError, match="a Python identifier, got 'a-b'"):
        cpp_extension.load("a-b", [__file__])
    with pytest.raises(ValueError, match="at least one source"):
        cpp_extension.load("ours", [])
    with pytest.raises(ValueError, match=r"names of functions and texts, got 'f\(\)'"):
        cpp_extension.load_inline("ours", "", functions=["f()"], build_directory=folder)
    with pytest.raises(TypeError, match=r"load: expected a list of texts, got '-O0' \(extra_cflags\)"):
        cpp_extension.load("ours", [__file__], extra_cflags="-O0", build_directory=folder)
    with pytest.raises(TypeError, match=r"load: expected a list of texts, got \[1\] \(sources\)"):
        cpp_extension.load("ours", [1])
    with pytest.raises(NotImplementedError, match="no SYCL"):
        cpp_extension.load("ours", [__file__], with_sycl=True)


def test_a_missing_cuda_toolkit_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpp_extension.compiler, "CUDA_HOME", None)
    source = tmp_path / "kernel.cu"
    source.write_text("")
    for call in (
        lambda: cpp_extension.include_paths("cuda"),
        lambda: cpp_extension.load("kernel", source, build_directory=tmp_path),
        lambda: cpp_extension.CUDAExtension("kernel", ["kernel.cu"]),
    ):
        with pytest.raises(OSError, match="expected a CUDA toolkit with nvcc"):
            call()


def test_the_example_is_right(tmp_path: Path) -> None:
    env = {**os.environ, "TORCH_EXTENSIONS_DIR": str(tmp_path), "VESTA_CUDA_LIBRARY": "none"}
    command = [sys.executable, str(ROOT / "examples" / "extension" / "squared_relu.py")]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} on cpu: right, gradient included" for name in ("C++", "Python")]


@pytest.mark.campaign
def test_an_extension_of_another_build_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vesta_build_identity.h").write_text('#define VESTA_BUILD_IDENTITY "0.0.1+other"\n')
    other = cpp_extension.load_inline(
        "other", "vesta::Tensor same(const vesta::Tensor& x) { return x; }", functions="same",
        extra_cflags=["-O0"], extra_include_paths=[str(tmp_path)], build_directory=tmp_path,
    )  # fmt: skip
    with pytest.raises(ImportError, match="compiled against Vesta 0.0.1.other, and this is .* Compile it again"):
        other.same(vesta.ones(1))


@pytest.mark.campaign
def test_an_extension_is_built_by_setuptools(tmp_path: Path) -> None:
    pytest.importorskip("setuptools")
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nfrom vesta.utils.cpp_extension import BuildExtension, CppExtension\n"
        "module = CppExtension('built', ['built.cpp'], extra_compile_args=['-O0'])\n"
        "setup(name='built', ext_modules=[module], cmdclass={'build_ext': BuildExtension})\n"
    )
    (tmp_path / "built.cpp").write_text(
        "#include <vesta/extension.h>\nvesta::Tensor twice(const vesta::Tensor& x) { return x + x; }\n"
        'PYBIND11_MODULE(VESTA_EXTENSION_NAME, m) { m.def("twice", &twice); }\n'
    )
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, check=True)
    code = "import vesta, built; print(built.twice(vesta.ones(2)).tolist())"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[2.0, 2.0]\n"


@pytest.mark.campaign
def test_sources_of_cuda_are_compiled_and_linked(tmp_path: Path) -> None:
    try:
        cpp_extension.include_paths("cuda")
    except OSError:
        pytest.skip("there is no nvcc")
    sources = [ROOT / "examples" / "extension" / f"squared_relu.{ending}" for ending in ("cpp", "cu")]
    module = cpp_extension.load("squared_relu", sources, ["-DWITH_CUDA", "-O0"], build_directory=tmp_path)
    assert module.squared_relu(vesta.tensor([-1.0, 3.0])).tolist() == [0, 9]
