"""``vesta.backends.cuda.allow_nondeterministic``: what it changes, and that nothing changes without it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a CUDA device, emulated or not")
flags = vesta.backends.cuda.flags


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    vesta.backends.cuda.allow_nondeterministic = False
    vesta.use_deterministic_algorithms(False)


def numbers(*shape: int, seed: int = 0, dtype: vesta.dtype = vesta.float32) -> vesta.Tensor:
    return vesta.tensor(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


def places(n: int, *shape: int, seed: int = 1) -> vesta.Tensor:
    return vesta.tensor(np.random.default_rng(seed).integers(0, n, shape))


def gradient_of_embedding(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    weight = numbers(7, 33, dtype=dtype).to(device).requires_grad_()
    F.embedding(places(7, 40, 5).to(device), weight).backward(numbers(40, 5, 33, seed=2, dtype=dtype).to(device))
    return weight.grad


def gradient_of_index(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    x = numbers(6, 9, 4, dtype=dtype).to(device).requires_grad_()
    i, j = places(6, 300).to(device) - 6, places(4, 300, seed=3).to(device)
    x[i, :, j].backward(numbers(300, 9, seed=2, dtype=dtype).to(device))
    return x.grad


def gradient_of_max_pool(device: str, dtype: vesta.dtype, **layout: object) -> vesta.Tensor:
    x = numbers(2, 3, 13, 11, dtype=dtype).to(device)
    x = (x.to(**layout) if layout else x).requires_grad_()
    y = F.max_pool2d(x, 5, 1, 2)
    y.backward(numbers(*y.shape, seed=2, dtype=dtype).to(device))
    return x.grad


def index_add(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    x, source = numbers(9, 5, dtype=dtype).to(device), numbers(200, 5, seed=4, dtype=dtype).to(device)
    return x.index_add(0, places(9, 200).to(device), source, alpha=0.5)


def index_add_of_columns(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    x, source = numbers(5, 9, dtype=dtype).to(device), numbers(200, 5, seed=4, dtype=dtype).to(device)
    return x.index_add(1, places(9, 200).to(device), source.t())


def index_put(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    at = places(4, 500).to(device), places(6, 500, seed=5).to(device) - 6
    values = numbers(500, seed=6, dtype=dtype).to(device)
    return numbers(4, 6, dtype=dtype).to(device).index_put(at, values, accumulate=True)


def index_put_of_a_number(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    number = vesta.tensor(0.1).to(dtype).to(device)
    return numbers(4, dtype=dtype).to(device).index_put((places(4, 500).to(device),), number, accumulate=True)


def scatter_add(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    source = numbers(3, 300, seed=7, dtype=dtype).to(device)
    # Of lines that a warp could hold in shared memory, a sixteenth would have to change: the order would then be kept.
    return numbers(3, 6000, dtype=dtype).to(device).scatter_add(1, places(8, 3, 300).to(device), source)


def scatter_add_by_rows(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    source = numbers(300, 4, seed=7, dtype=dtype).to(device)
    return numbers(6000, 3, dtype=dtype).to(device).scatter_add(0, places(8, 300, 3).to(device), source)


def gradient_of_max_pool_channels_last(device: str, dtype: vesta.dtype) -> vesta.Tensor:
    return gradient_of_max_pool(device, dtype, memory_format=vesta.channels_last)


CASES: dict[str, Callable[[str, vesta.dtype], vesta.Tensor]] = {
    case.__name__: case
    for case in (
        index_add, index_add_of_columns, index_put, index_put_of_a_number, scatter_add, scatter_add_by_rows,
        gradient_of_embedding, gradient_of_index, gradient_of_max_pool, gradient_of_max_pool_channels_last,
    )
}  # fmt: skip


def bits(t: vesta.Tensor) -> bytes:
    return (
        t.detach().cpu().contiguous().numpy().tobytes()
        if t.dtype != vesta.bfloat16
        else bytes(str(t.tolist()), "ascii")
    )


@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_both_ways_agree_and_the_default_keeps_its_bits(case: str, dtype: vesta.dtype) -> None:
    run = CASES[case]
    default = run("cuda", dtype)
    if dtype != vesta.bfloat16:
        assert bits(default) == bits(run("cpu", dtype))
    with flags(allow_nondeterministic=True):
        free = run("cuda", dtype)
        vesta.use_deterministic_algorithms(True)  # wins
        assert bits(run("cuda", dtype)) == bits(default)
        vesta.use_deterministic_algorithms(False)
    assert bits(run("cuda", dtype)) == bits(default)
    if dtype == vesta.bfloat16:
        assert bits(free) == bits(default)  # it would round after each addition: the way is one
    else:
        limit = 200 * vesta.finfo(dtype).eps * default.abs().max().item()
        assert (free - default).abs().max().item() <= limit
        assert free.shape == default.shape and free.stride() == default.stride()


ORDERS = """
import sys
sys.path.insert(0, "tests/python")
import vesta
import test_cuda_nondeterministic as cases
with vesta.backends.cuda.flags(allow_nondeterministic=sys.argv[1] == "free"):
    for name, run in cases.CASES.items():
        print(name, cases.bits(run("cuda", vesta.float32)).hex())
"""


def test_the_order_of_threads_shows_only_where_it_is_allowed() -> None:
    def run(order: str, way: str) -> dict[str, str]:
        environment = {**os.environ, "VESTA_EMULATION_ORDER": order}
        done = subprocess.run([sys.executable, "-c", ORDERS, way], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())

    if not os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so"):
        pytest.skip("the order of threads is the emulated device's")
    default = run("ascending", "default")
    assert run("descending", "default") == default
    free = run("descending", "free")
    assert {name for name in free if free[name] != default[name]} == set(CASES) - {"index_put_of_a_number"}


def test_indices_out_of_range_are_reported_either_way() -> None:
    with flags(allow_nondeterministic=True):
        x = vesta.zeros(3, device="cuda")
        with pytest.raises(IndexError):
            x.index_put((vesta.tensor([0, 7], device="cuda"),), vesta.ones(2, device="cuda"), accumulate=True).tolist()
        with pytest.raises(vesta.Error, match="index 5 is out of bounds"):
            x.scatter_add(0, vesta.full((64,), 5, device="cuda"), vesta.ones(64, device="cuda")).tolist()
        assert x.tolist() == [0, 0, 0]


def test_the_switch_is_an_attribute_with_a_context() -> None:
    assert vesta.backends.cuda.allow_nondeterministic is False
    with flags(allow_nondeterministic=True):
        assert vesta.backends.cuda.allow_nondeterministic is True
        assert vesta.backends.cudnn.deterministic is False
        vesta.use_deterministic_algorithms(True, warn_only=True)
        assert vesta.backends.cudnn.deterministic is True
    assert vesta.backends.cuda.allow_nondeterministic is False
    with pytest.raises(TypeError, match="expected a bool"):
        vesta.backends.cuda.allow_nondeterministic = 1
    with pytest.raises(ZeroDivisionError), flags(allow_nondeterministic=True):
        _ = 1 / 0
    assert vesta.backends.cuda.allow_nondeterministic is False and vesta.backends.cudnn.deterministic is True
