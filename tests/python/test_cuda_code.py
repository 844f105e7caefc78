"""What nvcc makes of the kernels, and for which GPUs: read from its output, without a GPU."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import vesta

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("VESTA_BUILD", ROOT / "build")).resolve()
NVCC = shutil.which("nvcc", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
EMULATED = vesta.cuda.is_available() and "Emulated" in vesta.cuda.get_device_name()
COMMANDS = BUILD / "compile_commands.json"

HAS_DEVICE_CODE = COMMANDS.exists() and "nvcc" in COMMANDS.read_text()  # a sanitized build has none
needs_nvcc = pytest.mark.skipif(not NVCC or not HAS_DEVICE_CODE, reason="needs nvcc and a build tree with its commands")


needs_cmake = pytest.mark.skipif(
    not shutil.which("cmake") or not (ROOT / "cuda").exists(), reason="needs CMake and the sources"
)


def compiler(source: str) -> list[str]:
    """Returns how the build calls nvcc for a file of cuda/kernels, without what, for which GPUs and where to."""
    command = next(
        entry["command"].split()
        for entry in json.loads(COMMANDS.read_text())
        if entry["file"].endswith(f"/kernels/{source}") and "nvcc" in entry["command"]
    )
    place = command.index("-c") if "-c" in command else command.index("-dc")
    kept = [word for word in command[:place] if not word.startswith(("--generate-code", "-gencode", "-arch"))]
    return kept[next(i for i, word in enumerate(kept) if word.endswith("nvcc")) :]


def ptx(source: Path, architecture: str, to: Path) -> str:
    """Compiles a .cu file as the build does, but to PTX for one architecture."""
    kept = compiler("optim.cu" if source.name == "optim.cu" else "select.cu")
    subprocess.run([*kept, f"-arch={architecture}", "-ptx", "-o", str(to), str(source)], check=True, cwd=BUILD)
    return to.read_text()


def widest_access(text: str) -> int:
    """Returns the bytes of the widest load or store of global memory, or of memory that may be global."""
    widest = 0
    for modifiers, count, bits in re.findall(
        r"\b(?:ld|ldu|st)((?:\.\w+(?:::\w+)*)*?)(?:\.v([248]))?\.[bfsu](8|16|32|64|128)\b", text
    ):
        if not re.search(r"\.(?:shared|param|local|const)\b", modifiers):
            widest = max(widest, int(count or 1) * int(bits) // 8)
    return widest


def gpus_that_nvcc_knows() -> list[int]:
    """Returns the architectures for which the kernels can be compiled: 80, 86, ..."""
    known = subprocess.run([NVCC, "--list-gpu-arch"], capture_output=True, text=True, check=True).stdout.split()
    return sorted(number for name in known if (number := int(name.removeprefix("compute_"))) >= 80)


PROBE = """
#include <vesta/cuda/kernels/loops.cuh>
namespace vesta::cuda {
template <class From, class To>
struct Convert {
  static constexpr int inputs = 1;
  static constexpr bool mask = false, pair = false;
  using In = From;
  using C = From;
  using Result_ = To;
  using Widest = From;
  VESTA_HD static To call(const From* v, bool, const double*) { return convert<To>(v[0]); }
};
void probe(const PointwiseLaunch& l) {
  run_loop<Convert<float, double>>(l);
  run_loop<Convert<BFloat16, double>>(l);
  run_loop<Convert<uint8_t, Complex<double>>>(l);
}
}
"""


@needs_nvcc
def test_no_access_is_wider_than_what_the_host_checks(tmp_path: Path) -> None:
    source = tmp_path / "probe.cu"
    source.write_text(PROBE)
    wanted = gpus_that_nvcc_knows()
    assert wanted
    for architecture in wanted:
        assert widest_access(ptx(source, f"compute_{architecture}", tmp_path / "probe.ptx")) == 16, architecture


def test_accesses_are_read_from_ptx() -> None:
    assert widest_access("ld.global.nc.v4.f32 {%f1}, [%rd1];\nst.global.u8 [%rd2], %rs1;") == 16
    assert widest_access("ld.global.v8.b32 {%r1}, [%rd1];") == 32 == widest_access("st.global.v4.f64 [%rd1], {%fd1};")
    assert widest_access("ld.v4.b64 {%rd1}, [%rd9];") == 32 == widest_access("st.relaxed.gpu.v8.f32 [%rd1], {%f1};")
    assert widest_access("ld.global.nc.L1::no_allocate.L2::256B.v8.f32 {%f1}, [%rd1];") == 32
    assert widest_access("ld.param.u64 %rd1, [p];\nld.param::entry.v4.b64 {%rd1}, [p];") == 0
    assert widest_access("ld.shared.v8.f32 {%f1}, [%r1];\nst.shared::cta.v4.b64 [%r1], {%rd1};\nst.local.v8.b32 ") == 0


@pytest.mark.campaign
@needs_nvcc
@pytest.mark.parametrize("source", sorted(path.name for path in (ROOT / "cuda" / "kernels").glob("*.cu")))
def test_no_access_of_any_kernel_is_wider(source: str, tmp_path: Path) -> None:
    text = ptx(ROOT / "cuda" / "kernels" / source, "compute_100", tmp_path / "kernel.ptx")
    assert widest_access(text) <= 16


@pytest.mark.campaign
@needs_nvcc
@pytest.mark.parametrize("whose", ["of a wheel", "of none"])
@pytest.mark.parametrize("source", sorted(path.name for path in (ROOT / "cuda" / "kernels").glob("*.cu")))
def test_every_kernel_compiles_for_every_gpu_without_a_warning(source: str, whose: str, tmp_path: Path) -> None:
    """Machine code of each architecture, those of the wheel as in the wheel, and those that nvcc knows beyond them
    (Jetson, DGX Spark, ...): ptxas has its own warnings. pytest -n runs many at once."""
    options: list[str] = []
    wheel = architectures(tmp_path, None, wheel=True)
    for architecture in wheel:
        number, _, real = architecture.partition("-")
        code = f"sm_{number}" if real else f"[sm_{number},compute_{number}]"
        options.append(f"--generate-code=arch=compute_{number},code={code}")
    assert len(options) >= 4
    if whose == "of none":
        others = [number for number in gpus_that_nvcc_knows() if not {str(number), f"{number}-real"} & set(wheel)]
        if not others:
            return  # an older nvcc
        options = [f"--generate-code=arch=compute_{number},code=sm_{number}" for number in others]
    object_file = tmp_path / "kernel.o"
    command = [*compiler(source), "-Werror", "all-warnings", *options, "-c", str(ROOT / "cuda" / "kernels" / source)]
    done = subprocess.run([*command, "-o", str(object_file)], capture_output=True, text=True, cwd=BUILD)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "warning" not in done.stderr and object_file.stat().st_size > 0


@needs_nvcc
def test_the_steps_of_optimizers_are_not_fused_multiply_adds(tmp_path: Path) -> None:
    text = ptx(ROOT / "cuda" / "kernels" / "optim.cu", "compute_90", tmp_path / "optim.ptx")
    kernels = [part for part in re.split(r"\.(?:entry|func) ", text)[1:] if "step_kernel" in part.partition("(")[0]]
    assert len(kernels) > 20
    for kernel in kernels:
        assert "mul.rn.f" in kernel and "fma." not in kernel, kernel[:200]


@needs_nvcc
def test_blocks_combine_the_moments_of_floats_in_float(tmp_path: Path) -> None:
    text = ptx(ROOT / "cuda" / "kernels" / "norm.cu", "compute_90", tmp_path / "norm.ptx")
    kernels = [
        part for part in re.split(r"\.(?:entry|func) ", text)[1:] if "moments_kernelIf" in part.partition("(")[0]
    ]
    assert len(kernels) == 3  # of runs, of pixels, and of neither
    assert all("st.shared.f32" in kernel and "shared.f64" not in kernel for kernel in kernels)
    assert re.search(r"ld\.global\S*\.v4\.f32", kernels[0])  # whole packs where no pack leaves its channel


@pytest.mark.campaign
@needs_nvcc
@pytest.mark.parametrize("source", ["float", "half", "bfloat"])
def test_attention_uses_tensor_cores(source: str, tmp_path: Path) -> None:
    text = ptx(ROOT / "cuda" / "kernels" / f"attention_{source}.cu", "compute_80", tmp_path / "attention.ptx")
    kernels = [part for part in re.split(r"\.(?:entry|func) ", text)[1:] if "fused_" in part.partition("(")[0]]
    step = {
        "float": "m16n8k8.row.col.f32.tf32",
        "half": "m16n8k16.row.col.f32.f16",
        "bfloat": "m16n8k16.row.col.f32.bf16",
    }
    assert len(kernels) == 8  # two widths of: the result, that of few queries, gradients by query and by key
    assert all(f"mma.sync.aligned.{step[source]}" in kernel and "cp.async" in kernel for kernel in kernels)


def test_what_kernels_report_is_text_of_the_host() -> None:
    """A literal in device code lies on the device: the host would read it at that address."""
    for path in sorted((ROOT / "cuda" / "kernels").glob("*.cu*")):
        for call in re.findall(r"\breport\([^;]*;", path.read_text()):
            assert '"' not in call, (path.name, call)


# ---- for which GPUs ---------------------------------------------------------------------------------------------


def architectures(tmp_path: Path, listed: str | None, wheel: bool) -> list[str]:
    """Returns what cuda/architectures.cmake chooses with an nvcc that knows `listed`, or with the one that is here."""
    nvcc = tmp_path / "nvcc" if listed is not None else NVCC
    if listed is not None:
        nvcc.write_text("#!/bin/sh\n" + "".join(f"echo compute_{name}\n" for name in listed.split()))
        nvcc.chmod(0o755)
    script = tmp_path / "choose.cmake"
    script.write_text(
        f"include({ROOT}/cuda/architectures.cmake)\n"
        f'vesta_cuda_architectures(chosen {nvcc} "{int(wheel)}")\nmessage("${{chosen}}")\n'
    )
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho 8.6\necho 9.0\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True, check=True, env=environment)
    return done.stderr.strip().split(";")


@needs_cmake
def test_a_wheel_has_code_for_all_and_a_developer_for_one(tmp_path: Path) -> None:
    newest = "75 80 86 87 88 89 90 100 110 103 120 121"
    expected = ["80-real", "86-real", "89-real", "90-real", "100-real", "120"]
    assert architectures(tmp_path, newest, wheel=True) == expected
    assert architectures(tmp_path, "50 70 80 86 87 89 90", wheel=True) == ["80-real", "86-real", "89-real", "90"]
    assert architectures(tmp_path, newest, wheel=False) == ["86"]  # the first GPU of the machine


def run_cmake(tmp_path: Path, line: str) -> subprocess.CompletedProcess:
    """Runs a line of CMake after including cuda/architectures.cmake."""
    script = tmp_path / "line.cmake"
    script.write_text(f"include({ROOT}/cuda/architectures.cmake)\n{line}\n")
    done = subprocess.run(["cmake", "-P", str(script)], capture_output=True, text=True)
    done.stderr = " ".join(done.stderr.split())
    return done


@needs_cmake
@pytest.mark.parametrize(
    "listed, usable", [("75", False), ("90;75-real", False), ("70-virtual", False), ("80", True), ("90a;100f", True)]
)
def test_architectures_without_the_kernels_instructions_are_refused(tmp_path: Path, listed: str, usable: bool) -> None:
    done = run_cmake(tmp_path, f"vesta_check_cuda_architectures({listed})")
    assert (done.returncode == 0) == usable
    assert usable or "need compute capability 8.0 or later" in done.stderr
    assert run_cmake(tmp_path, "vesta_check_cuda_architectures(native all)").returncode == 0


@needs_cmake
def test_a_wheel_of_cuda_needs_nvcc(tmp_path: Path) -> None:
    assert "no nvcc; libvesta_cuda.so is left out" in run_cmake(tmp_path, 'vesta_without_nvcc("")').stdout
    done = run_cmake(tmp_path, 'vesta_without_nvcc("cuda")')
    assert done.returncode != 0 and "no nvcc was found" in done.stderr


@pytest.mark.skipif(not EMULATED, reason="a GPU has the capability that it has")
@pytest.mark.parametrize(
    "built, runs, refused",
    [
        ("90", [90, 100, 121], [75, 80, 89]),  # machine code, and PTX for what comes later
        (
            "80-real,86-real,89-real,90-real,100-real,120",
            [80, 86, 87, 89, 90, 100, 103, 120, 121],
            [75, 110],
        ),  # a wheel
        ("80-real,90-real", [80, 89, 90], [75, 100, 120]),  # nothing for what comes later
        ("90a", [90], [75, 89, 100]),
        ("100f", [100, 103], [75, 90, 120]),
    ],
)
def test_a_device_without_code_is_refused_at_once(built: str, runs: list[int], refused: list[int]) -> None:
    for capability in runs:
        check_capability(built, capability, [])
    for capability in refused:
        named = [f"built for {built}", f"CMAKE_CUDA_ARCHITECTURES={capability}"]
        check_capability(built, capability, named if capability >= 80 else ["the kernels need 8.0 or later"])


def check_capability(built: str, capability: int, expected: list[str]) -> None:
    """Checks that a device runs, or is refused with these words, with kernels that are built for some architectures."""
    program = (
        "import vesta\ntry: print(vesta.zeros(2, device='cuda:1').tolist())\nexcept vesta.DeviceError as e: print(e)"
    )
    environment = {**os.environ, "VESTA_EMULATION_CAPABILITY": str(capability), "VESTA_EMULATION_ARCHITECTURES": built}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    if not expected:
        assert done.stdout.strip() == "[0.0, 0.0]", (built, capability, done.stdout)
    else:
        for words in ("cuda:1 (Emulated H200)", f"compute capability {capability / 10}", *expected):
            assert words in done.stdout, done.stdout
        assert ("CMAKE_CUDA_ARCHITECTURES" in done.stdout) == (capability >= 80)  # no build has code for older ones


@pytest.mark.skipif(
    not (BUILD / "lib" / "libvesta_cuda.so").exists() or os.path.exists("/dev/nvidiactl"),
    reason="needs the library that nvcc built, and no driver",
)
def test_a_machine_without_a_driver_says_so() -> None:
    """Not that the driver is too old, which is the runtime's word for it; for any device number."""
    code = "import vesta\ntry: vesta.zeros(2, device='cuda:1')\nexcept RuntimeError as error: print(error)"
    env = {name: value for name, value in os.environ.items() if name != "VESTA_CUDA_LIBRARY"}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert "no NVIDIA driver was found on this machine" in out


CUBLAS_LT = {  # what we call it: what NVIDIA's headers call it
    "compute_32f": "CUBLAS_COMPUTE_32F", "compute_64f": "CUBLAS_COMPUTE_64F",
    "compute_32f_fast_tf32": "CUBLAS_COMPUTE_32F_FAST_TF32",
    "r_32f": "CUDA_R_32F", "r_64f": "CUDA_R_64F", "r_16f": "CUDA_R_16F", "r_16bf": "CUDA_R_16BF",
    "c_32f": "CUDA_C_32F", "c_64f": "CUDA_C_64F", "op_n": "CUBLAS_OP_N", "op_t": "CUBLAS_OP_T",
    "desc_transa": "CUBLASLT_MATMUL_DESC_TRANSA", "desc_transb": "CUBLASLT_MATMUL_DESC_TRANSB",
    "desc_epilogue": "CUBLASLT_MATMUL_DESC_EPILOGUE", "desc_bias_pointer": "CUBLASLT_MATMUL_DESC_BIAS_POINTER",
    "desc_aux_pointer": "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER",
    "desc_aux_ld": "CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD",
    "desc_bias_data_type": "CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE",
    "layout_batch_count": "CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT",
    "layout_strided_batch_offset": "CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET",
    "layout_batch_mode": "CUBLASLT_MATRIX_LAYOUT_BATCH_MODE",
    "batch_strided": "CUBLASLT_BATCH_MODE_STRIDED", "batch_pointer_array": "CUBLASLT_BATCH_MODE_POINTER_ARRAY",
    "pref_max_workspace_bytes": "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES",
    "pref_min_alignment_a": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES",
    "pref_min_alignment_b": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES",
    "pref_min_alignment_c": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES",
    "pref_min_alignment_d": "CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES",
    "epilogue_default": "CUBLASLT_EPILOGUE_DEFAULT", "epilogue_relu": "CUBLASLT_EPILOGUE_RELU",
    "epilogue_bias": "CUBLASLT_EPILOGUE_BIAS", "epilogue_relu_bias": "CUBLASLT_EPILOGUE_RELU_BIAS",
    "epilogue_relu_aux": "CUBLASLT_EPILOGUE_RELU_AUX", "epilogue_relu_aux_bias": "CUBLASLT_EPILOGUE_RELU_AUX_BIAS",
    "epilogue_relu_backward": "CUBLASLT_EPILOGUE_DRELU", "epilogue_gelu": "CUBLASLT_EPILOGUE_GELU",
    "epilogue_gelu_bias": "CUBLASLT_EPILOGUE_GELU_BIAS", "epilogue_gelu_aux": "CUBLASLT_EPILOGUE_GELU_AUX",
    "epilogue_gelu_aux_bias": "CUBLASLT_EPILOGUE_GELU_AUX_BIAS",
    "epilogue_gelu_backward": "CUBLASLT_EPILOGUE_DGELU", "epilogue_bias_gradient_b": "CUBLASLT_EPILOGUE_BGRADB",
}  # fmt: skip


@pytest.mark.skipif(not Path("/usr/local/cuda/include/cublasLt.h").exists(), reason="needs the headers of cuBLASLt")
def test_numbers_and_structures_of_cublas_lt_are_those_of_the_headers(tmp_path: Path) -> None:
    abi = (ROOT / "cuda/lib/cublas_lt_abi.h").read_text()
    assert set(re.findall(r"\b(\w+) = \d+", abi)) == set(CUBLAS_LT)
    checks = [f"static_assert(int(ours::{ours}) == int({theirs}));" for ours, theirs in CUBLAS_LT.items()]
    result, its = "ours::HeuristicResult", "cublasLtMatmulHeuristicResult_t"
    checks += [
        f"static_assert(sizeof(ours::Algo) == sizeof(cublasLtMatmulAlgo_t) && sizeof({result}) == sizeof({its}));",
        f"static_assert(offsetof({result}, workspace) == offsetof({its}, workspaceSize));",
        f"static_assert(offsetof({result}, state) == offsetof({its}, state));",
    ]
    source = tmp_path / "abi.cpp"
    includes = f'#include <cublasLt.h>\n#include "{ROOT}/cuda/lib/cublas_lt_abi.h"\n'
    source.write_text(includes + "namespace ours = vesta::cuda::cublas_lt;\n" + "\n".join(checks) + "\n")
    command = ["g++", "-std=c++20", "-fsyntax-only", "-I/usr/local/cuda/include", str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
