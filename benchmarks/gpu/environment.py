"""Describes the machine: GPU, driver, clocks, versions. Only reads: clocks, MIG and persistence stay as they are.

environment.py REPORT [--torch-python PYTHON] [--device-properties FILE]
"""

from __future__ import annotations

import argparse
import ctypes
import glob
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from report import Report

QUERY = {
    "gpu": "name", "driver": "driver_version", "memory": "memory.total", "sm_clock": "clocks.sm",
    "memory_clock": "clocks.mem", "most_sm_clock": "clocks.max.sm", "power_limit": "power.limit",
    "mig": "mig.mode.current", "persistence": "persistence_mode", "temperature": "temperature.gpu",
}  # fmt: skip

TORCH = "import torch as t; print(t.__version__, 'CUDA', t.version.cuda, 'cuDNN', t.backends.cudnn.version())"


def output(*command: str) -> str:
    """Returns the output of a command, or "" if it does not exist or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def nvidia_smi(*fields: str) -> list[str]:
    """Returns fields of the first GPU as nvidia-smi prints them; an empty list without a GPU."""
    lines = output("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader").splitlines()
    return [value.strip() for value in lines[0].split(",")] if lines else []


def clocks() -> dict[str, str]:
    """Returns the current clocks."""
    return dict(zip(("sm", "memory", "temperature", "power"), nvidia_smi(
        "clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")))  # fmt: skip


def facts() -> dict[str, Any]:
    """Returns everything about the machine that a figure may depend on."""
    found: dict[str, Any] = dict(zip(QUERY, nvidia_smi(*QUERY.values())))
    found["cpus"], found["python"] = os.cpu_count(), platform.python_version()
    found["system"] = f"{platform.platform()}, glibc {platform.libc_ver()[1]}"
    found["compiler"] = (output("c++", "--version").splitlines() or [""])[0]
    found["cmake"] = (output("cmake", "--version").splitlines() or [""])[0]
    found["nvcc"] = (output("nvcc", "--version").splitlines() or [""])[-1]
    return found


def find_cudnn() -> ctypes.CDLL | None:
    """Loads cuDNN from the loader's search path, else from the packages of this interpreter."""
    for name in ["libcudnn.so.9"] + [hit for p in sys.path for hit in glob.glob(f"{p}/nvidia/cudnn/lib/libcudnn.so.9")]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def cudnn_device_properties() -> bytes | None:
    """Returns cuDNN's JSON description of device 0, None without cuDNN. With it plans can be made on other machines.

    The numbers are those of cudnn_graph.h 9: descriptor 38 (DEVICEPROP), attributes 2700 (DEVICE_ID) and 2702 (JSON),
    types 23 (INT32) and 24 (CHAR).
    """
    cudnn = find_cudnn()
    if cudnn is None:
        return None
    descriptor, device, count = ctypes.c_void_p(), ctypes.c_int32(0), ctypes.c_int64()
    text = ctypes.create_string_buffer(1 << 20)
    number, wide = ctypes.c_int, ctypes.c_int64
    steps = [
        lambda: cudnn.cudnnBackendCreateDescriptor(number(38), ctypes.byref(descriptor)),
        lambda: cudnn.cudnnBackendSetAttribute(descriptor, number(2700), number(23), wide(1), ctypes.byref(device)),
        lambda: cudnn.cudnnBackendFinalize(descriptor),
        lambda: cudnn.cudnnBackendGetAttribute(
            descriptor, number(2702), number(24), wide(len(text)), ctypes.byref(count), text
        ),
    ]
    for step in steps:
        if step() != 0:
            return None
    return text.raw[: count.value].rstrip(b"\0")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--torch-python")
    parser.add_argument("--device-properties", type=Path, help="where cuDNN's JSON of the device goes")
    options = parser.parse_args()
    found = facts()
    Report(options.report).update("env", facts=found)
    if options.torch_python:  # last: its import may take longer than the phase's limit
        found["torch"] = output(options.torch_python, "-c", TORCH)
        Report(options.report).update("env", facts=found)
    for key, value in found.items():
        print(f"{key:14} {value}")
    if os.environ.get("VESTA_GPU") == "emulation":
        return 0
    if options.device_properties and (text := cudnn_device_properties()):
        options.device_properties.write_bytes(text)
    if "gpu" not in found:
        print("nvidia-smi shows no GPU", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
