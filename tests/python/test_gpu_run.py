"""The GPU run (benchmarks/gpu_run.sh) rehearsed without a GPU: its report, one case, interruptions and failures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GPU = ROOT / "benchmarks" / "gpu"
BUILD = Path(os.environ.get("VESTA_BUILD", ROOT / "build")).resolve()
EMULATION = BUILD / "lib" / "libvesta_cuda_emulation.so"

needs_emulation = pytest.mark.skipif(not EMULATION.exists(), reason="needs the build tree's emulated device")


@pytest.fixture
def report_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Returns the module report and a file for it."""
    monkeypatch.syspath_prepend(str(GPU))
    import report

    yield report, report.Report(tmp_path / "report.json")
    for name in ("report", "compare", "device_tests", "environment", "cases", "models", "work"):
        sys.modules.pop(name, None)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a part of the GPU run on the emulated device, without PyTorch."""
    env = {**os.environ, "VESTA_GPU": "emulation", "VESTA_BUILD": str(BUILD), "VESTA_CUDA_LIBRARY": str(EMULATION)}
    env["PYTHONPATH"] = str(BUILD / "python")
    return subprocess.run(command, env={**env, **environment}, capture_output=True, text=True, cwd=ROOT)


def figures(seconds: float, **more: Any) -> dict[str, Any]:
    return {"median": seconds, "spread": 0.01, **more}


# ---- the report ----------------------------------------------------------------------------------------------------


def test_a_report_holds_ratios_and_fractions_of_its_own_ceilings(report_of: Any, capsys: Any) -> None:
    module, report = report_of
    report.begin(date="today", mode="quick", commit="abc", device="cuda")
    for family, case, ours, theirs in (
        ("ceilings", "copy, 1 GiB", figures(1e-3, moves=4e9), figures(2e-3, moves=4e9)),
        ("ceilings", "matmul", figures(2e-3, flops=8e11, unit="bfloat16"), figures(1e-3, flops=8e11, unit="bfloat16")),
        ("elementwise", "x + y", figures(1e-3, moves=3e9), figures(2e-3, moves=3e9)),
        ("products", "a @ b", figures(4e-3, flops=8e11, unit="bfloat16"), figures(2e-3, flops=8e11, unit="bfloat16")),
        ("rows", "layer_norm", {"missing": "no such op"}, figures(1e-3, moves=1e9)),
    ):
        report.add_row("micro", {"family": family, "case": case, "vesta": ours, "torch": theirs})
    assert module.main([str(report.path), "end", "micro", "0", "12.5"]) == 0
    content = report.read()
    rows = module.rows_of(content)
    ceiling = module.ceilings(rows)
    assert ceiling == {"copy": pytest.approx(4e12), "bfloat16": pytest.approx(8e14)}
    add, product = module.judge(rows[2], ceiling), module.judge(rows[3], ceiling)
    assert add["ratio"] == pytest.approx(2) and add["fraction"] == pytest.approx(0.75) and add["below"] == ["fraction"]
    assert product["fraction"] == pytest.approx(0.25) and product["below"] == ["ratio"]
    assert module.main([str(report.path), "print"]) == 0
    printed = capsys.readouterr().out
    assert "below: fraction" in printed and "1 of 5 cases are missing" in printed and "everything passed" in printed


@pytest.mark.parametrize(
    ("status", "says"), [(124, "phase tests: cut off"), (1, "phase tests: failed (1)"), (0, "tests: t::x")]
)
def test_a_phase_or_a_test_that_failed_fails_the_run(report_of: Any, capsys: Any, status: int, says: str) -> None:
    module, report = report_of
    report.begin(mode="quick")
    report.update("tests", counts={"passed": 3, "failed": 1, "skipped": 0}, failed=["t::x: 1 is not 2"])
    module.main([str(report.path), "end", "tests", str(status), "2"])
    assert module.main([str(report.path), "print"]) == 1
    assert says in capsys.readouterr().out


def test_a_case_that_raised_fails_the_run_and_a_missing_one_does_not(report_of: Any) -> None:
    module, report = report_of
    report.begin(mode="quick")
    module.main([str(report.path), "end", "micro", "0", "1"])
    report.add_row("micro", {"family": "rows", "case": "a", "vesta": {"missing": "no CUDA kernel"}})
    assert module.main([str(report.path), "print"]) == 0
    report.add_row("micro", {"family": "rows", "case": "b", "vesta": {"error": "RuntimeError: illegal address"}})
    assert module.main([str(report.path), "print"]) == 1


def test_a_junit_file_is_counted(report_of: Any, tmp_path: Path) -> None:
    import device_tests

    junit = tmp_path / "tests.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase classname="c" name="good"/><testcase classname="c" name="bad">'
        '<failure message="1 is not 2&#10;more"/></testcase><testcase classname="c" name="none">'
        '<skipped message="needs a GPU"/></testcase></testsuite></testsuites>'
    )
    result = device_tests.merge([device_tests.read_junit(junit)] * 2)
    assert result["counts"] == {"passed": 2, "failed": 2, "skipped": 2}
    assert result["failed"] == ["c::bad: 1 is not 2"] * 2 and result["skipped"] == {"needs a GPU": 2}


# ---- cases -----------------------------------------------------------------------------------------------------------


@needs_emulation
def test_one_case_is_timed_on_the_emulated_device(tmp_path: Path) -> None:
    done = run(
        sys.executable, str(GPU / "compare.py"), "micro", "elementwise", "--report", str(tmp_path / "report.json"),
        "--only", "x * 2, float32", "--tiny", "--rounds", "2", "--repeats", "3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    phase = json.loads((tmp_path / "report.json").read_text())["phases"]["micro"]
    (row,) = phase["rows"]
    assert (row["family"], row["case"]) == ("elementwise", "x * 2, float32") and "torch" not in row
    assert row["vesta"]["median"] > 0 and row["vesta"]["moves"] == 8000 and len(row["vesta"]["rounds"]) == 2
    assert "Emulated" in phase["about"]["vesta"]["device"]


def test_a_worker_that_ends_is_a_row_and_not_the_end(report_of: Any) -> None:
    import compare

    worker = compare.Worker("vesta", "false", tiny=True, patience=5)
    for _ in range(2):
        assert worker.ask("host", "x.view(2, 4)", 2) == {"error": "the worker ended with status 1"}
    rounds = [figures(3.0), figures(1.0), figures(2.0)]
    assert compare.together(rounds)["median"] == 2.0
    assert compare.together([figures(1.0), {"error": "e"}]) == {"error": "e"}


# ---- the script ------------------------------------------------------------------------------------------------------


def test_the_script_refuses_an_unknown_phase(tmp_path: Path) -> None:
    done = run("benchmarks/gpu_run.sh", "quick", "nonsense", OUT=str(tmp_path))
    assert done.returncode == 2 and "expected a phase of env build tests" in done.stderr


@needs_emulation
def test_a_run_out_of_time_says_which_phases_were_cut(tmp_path: Path) -> None:
    done = run("benchmarks/gpu_run.sh", "quick", "env", "models", OUT=str(tmp_path), VESTA_GPU_SECONDS="4")
    assert done.returncode == 1 and "phase models: cut off" in done.stdout, done.stdout
    phases = json.loads((tmp_path / "report.json").read_text())["phases"]
    assert phases["models"]["status"] == "cut off"
    assert not (tmp_path / "report.part").exists() and "phase models: cut off" in (tmp_path / "table.txt").read_text()


@needs_emulation
@pytest.mark.campaign
def test_the_whole_run_is_rehearsed(tmp_path: Path) -> None:
    done = run("benchmarks/gpu_run.sh", "quick", OUT=str(tmp_path))
    assert done.returncode == 0, done.stdout[-4000:]
    content = json.loads((tmp_path / "report.json").read_text())
    assert list(content["phases"]) == ["env", "build", "tests", "sanitizer", "micro", "models"]
    assert content["phases"]["tests"]["counts"]["passed"] > 0 and len(list(tmp_path.iterdir())) <= 8
    families = {row["family"] for phase in content["phases"].values() for row in phase.get("rows", [])}
    assert {"ceilings", "host", "elementwise", "products", "convolutions", "models"} <= families
