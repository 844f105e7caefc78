"""No op lets the device read a host tensor: each tensor argument of every op in turn lies on the host, in pages that
are closed when the call has returned. On the emulated device with late streams, a kernel that still reads them ends
the process; a real device could not read them at all. Most such calls are refused. A tensor without dimensions may be
accepted; the host then reads it before the call returns."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import warnings
from typing import Any, Callable

import numpy as np
import op_db_check as check
import pytest
import vesta
from op_db import OPS
from op_db_cases import describe
from op_db_row import DTYPES, Maker, Row, Sample

EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
emulated = pytest.mark.skipif(not EMULATED or not vesta.cuda.is_available(), reason="needs the emulated device")
device = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a CUDA device, emulated or not")

FIRST = ("float32", "complex64", "int64", "bool")
OPEN, CLOSED = mmap.PROT_READ | mmap.PROT_WRITE, 0


class Pages:
    """Host memory of its own, which can be closed."""

    def __init__(self, like: Any) -> None:
        values = like.detach().cpu().contiguous().numpy()
        self.memory = mmap.mmap(-1, max(values.nbytes, 1))
        self.array = np.frombuffer(self.memory, dtype=values.dtype, count=values.size).reshape(values.shape)
        self.array[...] = values

    def protect(self, access: int) -> None:
        at, size = ctypes.c_void_p(self.array.ctypes.data), ctypes.c_size_t(len(self.memory))
        assert ctypes.CDLL(None).mprotect(at, size, access) == 0


def change(value: Any, numbers: list[int], which: int, function: Callable[[Any], Any]) -> Any:
    """Rebuilds nested arguments with tensor number ``which`` replaced; leaves their count in ``numbers``."""
    if isinstance(value, vesta.Tensor):
        numbers.append(len(numbers))
        return function(value) if numbers[-1] == which else value
    if isinstance(value, dict):
        return {key: change(item, numbers, which, function) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(change(item, numbers, which, function) for item in value)
    return value


def attempt(row: Row, sample: Sample, dtype: str, which: int, one: bool, grad: bool) -> None:
    """Calls a row with one argument on the host (``one``: an element of it), and lets the device catch up."""
    pages: list[Pages] = []

    def on_host(tensor: Any) -> Any:
        if one and tensor.numel():
            tensor = tensor.detach().flatten()[0]
        pages.append(Pages(tensor))
        made = vesta.from_numpy(pages[-1].array)
        return made.requires_grad_() if grad and made.is_floating_point() else made

    arguments = check.materialize(sample, dtype, "cuda", requires_grad=grad)
    args, kwargs = change(list(arguments), [], which, on_host)
    try:
        results = check.results(check.function_of(row)(*args, **kwargs))
        outputs = [r for r in results if isinstance(r, vesta.Tensor) and r.requires_grad]
        if outputs:
            ones = [vesta.ones_like(r) for r in outputs]
            vesta.autograd.grad(outputs, check.leaves_of([args, kwargs]), ones, allow_unused=True)
    except Exception as refusal:  # of any class: a matrix that has become a number is refused in many ways
        assert "internal error" not in str(refusal), (row.name, describe(sample), which, refusal)
    for p in pages:
        p.protect(CLOSED)
    vesta.cuda.synchronize()
    for p in pages:
        p.protect(OPEN)


def sweep() -> int:
    """Attempts every row of the table that takes tensors; returns the number of calls."""
    calls = 0
    warnings.simplefilter("ignore")
    for row in OPS:
        dtypes = [d for d in FIRST if row.accepts(d)]
        if row.kind in ("factory", "random") or not dtypes:
            continue
        for sample in row.samples(Maker(DTYPES[dtypes[0]], row.name)):
            numbers: list[int] = []
            change(list(check.materialize(sample, dtypes[0], "cuda")), numbers, -1, lambda t: t)
            for which in numbers:
                for one in (False, True):
                    print(row.name, describe(sample), "argument", which, "one" if one else "", flush=True)
                    attempt(row, sample, dtypes[0], which, one, row.grad)
                    calls += 1
    return calls


def run_sweep() -> int:
    """Runs a sweep in a process of its own, which a kernel that reads closed pages ends."""
    paths = os.pathsep.join([os.path.dirname(__file__), *filter(None, sys.path)])
    env = {**os.environ, "VESTA_EMULATION_SCHEDULE": "lazy", "PYTHONPATH": paths}
    program = "import test_cuda_host_memory as t; print(t.sweep())"
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=1200, check=False
    )
    assert done.returncode == 0, (done.returncode, done.stdout[-200:], done.stderr[-2000:])
    return int(done.stdout.split()[-1])


@emulated
def test_no_op_reads_a_host_tensor_on_the_device() -> None:
    assert run_sweep() > 8000


@device
@pytest.mark.parametrize("holds", [True, False])
def test_a_condition_may_be_a_number_on_the_host(holds: bool) -> None:
    x = vesta.tensor([1.0, 2.0, 3.0]).cuda().requires_grad_()
    y = vesta.where(vesta.tensor(holds), x, -1.0)
    assert y.tolist() == ([1, 2, 3] if holds else [-1, -1, -1])
    assert vesta.autograd.grad(y.sum(), x)[0].tolist() == [float(holds)] * 3
    assert vesta.where(vesta.tensor(holds), 0, x.detach().int()).tolist() == ([0, 0, 0] if holds else [1, 2, 3])


@device
def test_a_number_on_the_host_gets_its_gradient_there() -> None:
    number, x = vesta.tensor(3.0, requires_grad=True), vesta.tensor([1.0, 2.0]).cuda().requires_grad_()
    for call in (vesta.mul, vesta.add, vesta.div, vesta.sub):
        of_number, of_x = vesta.autograd.grad(call(x, number).sum(), (number, x))
        assert not of_number.is_cuda and of_number.shape == () and of_x.is_cuda
        want = vesta.autograd.grad(call(x.detach().cpu(), number).sum(), number)[0]
        assert vesta.allclose(of_number, want)


@device
def test_a_result_on_the_host_does_not_take_what_a_device_computes() -> None:
    host, number = vesta.tensor(2.0), vesta.tensor(3.0).cuda()
    for call in (
        lambda: vesta.add(number, 1, out=host),
        lambda: host.add_(number),
        lambda: vesta.exp(number, out=host),
    ):
        with pytest.raises(
            vesta.DeviceError, match="expected (out|self) on cuda:0, where the other operands are, got cpu"
        ):
            call()
    assert host.item() == 2
    assert vesta.add(host, 1, out=number) is number
    assert number.item() == 3 and number.is_cuda
