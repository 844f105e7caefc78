"""Packed weights that products and convolutions keep under no_grad: every way of writing a weight is seen.

When they are kept, for how long and how many: tests/cpp/kept_weights_test.cpp.
"""

from __future__ import annotations

import copy
import ctypes
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import vesta
from vesta import Tensor

F = vesta.nn.functional
Op = Callable[[Tensor], Tensor]


def linear(dtype: vesta.dtype = vesta.float32) -> tuple[Op, Tensor]:
    x = vesta.randn(40, 300, dtype=dtype)
    return lambda w: F.linear(x, w), vesta.randn(200, 300, dtype=dtype)


def conv(kernel: int, stride: int, dtype: vesta.dtype = vesta.float32) -> tuple[Op, Tensor]:
    x = vesta.randn(1, 64, 15, 15, dtype=dtype)
    return lambda w: F.conv2d(x, w, stride=stride), vesta.randn(96, 64, kernel, kernel, dtype=dtype)


def mm(dtype: vesta.dtype = vesta.float32) -> tuple[Op, Tensor]:
    x, bias = vesta.randn(40, 300, dtype=dtype), vesta.randn(200, dtype=dtype)
    return lambda w: vesta.addmm(bias, x, w), vesta.randn(300, 200, dtype=dtype)


OPS = {
    "linear": linear,
    "linear bfloat16": lambda: linear(vesta.bfloat16),
    "linear float16": lambda: linear(vesta.float16),
    "linear float64": lambda: linear(vesta.float64),
    "addmm": mm,
    "addmm bfloat16": lambda: mm(vesta.bfloat16),
    "conv 1x1": lambda: conv(1, 1),
    "conv 3x3": lambda: conv(3, 1),
    "conv 3x3 by 2": lambda: conv(3, 2),
    "conv 5x5 bfloat16": lambda: conv(5, 1, vesta.bfloat16),
    "conv 3x3 float16": lambda: conv(3, 2, vesta.float16),
}


def same(op: Op, w: Tensor, why: str = "") -> None:
    """Checks the op against one of a weight that was never seen."""
    with vesta.no_grad():
        fresh = op(w.detach().clone())
        for _ in range(3):
            assert vesta.equal(op(w), fresh), why


@pytest.mark.differs
@pytest.mark.parametrize("name", OPS)
def test_bits_and_writes(name: str) -> None:
    op, w = OPS[name]()
    expected = op(w)  # gradients are on: nothing is kept
    with vesta.no_grad():
        for _ in range(4):
            assert vesta.equal(op(w), expected)
        w.mul_(0.5)
    same(op, w, "mul_")
    with vesta.inference_mode():
        for _ in range(3):
            op(w)
        w.add_(1)
    same(op, w, "inference")


HANDED_OUT: dict[str, Callable[[Tensor], Callable[[float], None]]] = {}


def handing(name: str) -> Callable[[Callable[[Tensor], Callable[[float], None]]], None]:
    def enter(make: Callable[[Tensor], Callable[[float], None]]) -> None:
        HANDED_OUT[name] = make

    return enter


@handing("numpy")
def _(w: Tensor) -> Callable[[float], None]:
    a = w.numpy()
    return lambda v: a.__setitem__((0, 0), v)


@handing("numpy of a view")
def _(w: Tensor) -> Callable[[float], None]:
    a = w.t()[3:9].numpy()
    return lambda v: a.__setitem__((1, 1), v)


@handing("asarray")
def _(w: Tensor) -> Callable[[float], None]:
    a = np.asarray(w)
    return lambda v: a.__setitem__((0, 0), v)


@handing("memoryview")
def _(w: Tensor) -> Callable[[float], None]:
    m = memoryview(w)
    return lambda v: m.__setitem__((0, 0), v)


@handing("dlpack")
def _(w: Tensor) -> Callable[[float], None]:
    a = np.from_dlpack(w)
    a.flags.writeable or pytest.skip("this NumPy takes DLPack read-only")
    return lambda v: a.__setitem__((0, 0), v)


@handing("dlpack, vesta's own")
def _(w: Tensor) -> Callable[[float], None]:
    other = vesta.from_dlpack(w)
    return lambda v: other.__setitem__((0, 0), v)


@handing("data_ptr")
def _(w: Tensor) -> Callable[[float], None]:
    numbers = (ctypes.c_float * w.numel()).from_address(w.data_ptr())
    return lambda v: numbers.__setitem__(0, v)


@handing("untyped_storage")
def _(w: Tensor) -> Callable[[float], None]:
    numbers = (ctypes.c_float * w.numel()).from_address(w.untyped_storage().data_ptr())
    return lambda v: numbers.__setitem__(0, v)


@handing("share_memory_")
def _(w: Tensor) -> Callable[[float], None]:
    w.share_memory_()
    view = w.view(-1).numpy()  # another process would write as this view does
    return lambda v: view.__setitem__(0, v)


@pytest.mark.parametrize("name", HANDED_OUT)
@pytest.mark.parametrize("kind", ["linear", "conv 3x3 by 2"])
def test_memory_that_was_handed_out(name: str, kind: str) -> None:
    op, w = OPS[kind]()
    w = w if kind == "linear" else w.flatten(1)
    shape = (200, 300) if kind == "linear" else (96, 64, 3, 3)
    run: Op = lambda t: op(t.view(shape))
    same(run, w)
    write = HANDED_OUT[name](w)
    for value in (3.0, -7.0, 11.0):
        write(value)
        same(run, w, name)
        with vesta.no_grad():
            run(w)


@pytest.mark.parametrize("way", ["from_numpy", "frombuffer", "from_dlpack", "from_file"])
def test_memory_that_was_taken_over(way: str, tmp_path: Path) -> None:
    op, values = linear()
    array = np.array(values.numpy())
    if way == "from_numpy":
        w = vesta.from_numpy(array)
    elif way == "frombuffer":
        w = vesta.frombuffer(array, dtype=vesta.float32).view(200, 300)
    elif way == "from_dlpack":
        w = vesta.from_dlpack(array)
    else:
        array.tofile(tmp_path / "w")
        w = vesta.from_file(str(tmp_path / "w"), shared=True, size=array.size, dtype=vesta.float32).view(200, 300)
        array = np.memmap(tmp_path / "w", np.float32, "r+", shape=(200, 300))
    for value in (3.0, -7.0, 11.0):
        array[0, 0] = value
        same(op, w, way)
        with vesta.no_grad():
            op(w)


WRITERS: dict[str, Callable[[Tensor, Tensor], object]] = {
    "setitem": lambda w, o: w.__setitem__((slice(2, 5), 3), 1.5),
    "copy_": lambda w, o: w.copy_(o),
    "data": lambda w, o: w.data.mul_(3),
    "data, a slice": lambda w, o: w.data[4:9].fill_(2),
    "detach": lambda w, o: w.detach().add_(1),
    "a view": lambda w, o: w.view(-1)[7:30].neg_(),
    "its transpose": lambda w, o: w.t().mul_(o.t()),
    "as_strided": lambda w, o: w.as_strided((3, 3), (1, 7)).zero_(),
    "out=": lambda w, o: vesta.mul(o, 2, out=w),
    "out= of a product": lambda w, o: vesta.mm(o, vesta.eye(300), out=w),
    "out= of a sum": lambda w, o: vesta.sum(o.expand(2, 200, 300), 0, out=w),
    "out= of a view": lambda w, o: vesta.mul(o[0], 2, out=w[0]),
    "clamp_": lambda w, o: w.clamp_(0, 1),
    "uniform_": lambda w, o: w.uniform_(),
    "normal_": lambda w, o: w.normal_(),
    "bernoulli_": lambda w, o: w.bernoulli_(0.5),
    "random_": lambda w, o: w.random_(0, 7),
    "dropout": lambda w, o: F.dropout(w, 0.5, inplace=True),
    "relu": lambda w, o: F.relu(w, inplace=True),
    "xavier": lambda w, o: vesta.nn.init.xavier_uniform_(w),
    "orthogonal": lambda w, o: vesta.nn.init.orthogonal_(w),
    "index_copy_": lambda w, o: w.index_copy_(0, vesta.tensor([1, 3]), o[:2]),
    "index_fill_": lambda w, o: w.index_fill_(0, vesta.tensor([1, 3]), 2.0),
    "scatter_": lambda w, o: w.scatter_(1, vesta.zeros(200, 1, dtype=vesta.int64), o),
    "scatter_add_": lambda w, o: w.scatter_add_(1, vesta.zeros(200, 1, dtype=vesta.int64), o),
    "scatter_reduce_": lambda w, o: w.scatter_reduce_(1, vesta.zeros(200, 1, dtype=vesta.int64), o, "amax"),
    "masked_scatter_": lambda w, o: w.masked_scatter_(o > 0, o),
    "put_": lambda w, o: w.put_(vesta.tensor([5]), vesta.tensor([9.0])),
    "renorm_": lambda w, o: w.renorm_(2, 0, 0.1),
    "addmm_": lambda w, o: w.addmm_(o, vesta.eye(300)),
    "cumsum_": lambda w, o: w.cumsum_(1),
    "tril_": lambda w, o: w.tril_(),
    "fill_diagonal_": lambda w, o: w.fill_diagonal_(4.0),
    "foreach": lambda w, o: vesta._foreach_mul_([w], 2.0),
    "clip": lambda w, o: vesta.nn.utils.vector_to_parameters(o.reshape(-1), [w]),
    "set_": lambda w, o: w.set_(o.clone()),
    "data =": lambda w, o: setattr(w, "data", o.clone()),
    "other dtype": lambda w, o: w.view(vesta.int32).bitwise_xor_(1 << 20),
    "apply_": lambda w, o: w[:2].apply_(lambda v: v + 1),
    "resize_": lambda w, o: w.resize_(300, 300).resize_(200, 300).add_(1),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_write_is_seen(name: str) -> None:
    op, w = linear()
    other = vesta.randn(200, 300)
    same(op, w)
    before = w.clone()
    with vesta.no_grad():
        WRITERS[name](w, other)
    assert not vesta.equal(w, before)
    same(op, w, name)


OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam", "Adamax", "Rprop", "ASGD"]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_optimizers(name: str) -> None:
    layer = vesta.nn.Linear(300, 200)
    x = vesta.randn(40, 300)
    optimizer = getattr(vesta.optim, name)(layer.parameters(), lr=0.1)
    op: Op = lambda w: F.linear(x, w)
    for _ in range(3):
        same(op, layer.weight, name)
        layer(x).square().sum().backward()
        before = layer.weight.detach().clone()
        optimizer.step()
        assert not vesta.equal(before, layer.weight)
        optimizer.zero_grad()


@pytest.mark.parametrize("assign", [False, True])
def test_loading(assign: bool) -> None:
    model, other = vesta.nn.Linear(300, 200), vesta.nn.Linear(300, 200)
    x = vesta.randn(40, 300)
    op: Op = lambda w: F.linear(x, w)
    same(op, model.weight)
    file = io.BytesIO()
    vesta.save(other.state_dict(), file)
    file.seek(0)
    model.load_state_dict(vesta.load(file), assign=assign)
    assert vesta.equal(model.weight, other.weight)
    same(op, model.weight)
    with vesta.no_grad():
        model.weight.mul_(2)
    same(op, model.weight)


def test_copies_and_pickles_are_their_own() -> None:
    op, w = linear()
    same(op, w)
    for twin in (copy.deepcopy(w), pickle.loads(pickle.dumps(w)), w.clone(), copy.copy(w)):
        same(op, twin)
        twin.mul_(2)
        same(op, twin)
        same(op, w)


def test_slices_of_one_weight() -> None:
    x, w = vesta.randn(20, 256), vesta.randn(768, 256)
    parts = [w[:256], w[256:512], w[512:], w[:256].t(), w[::3], w[:, :128]]
    op: Op = lambda t: F.linear(x[:, : t.shape[1]], t)
    for _ in range(2):
        for part in parts:
            same(op, part)
        w.mul_(-0.5)
    square = vesta.randn(256, 256)
    for t in (square, square.t(), square.view(vesta.float32)):
        same(op, t)


def test_dtypes_over_the_same_memory() -> None:
    bits = vesta.randint(0x3000, 0x3D00, (300, 600), dtype=vesta.int16)
    x = vesta.randn(40, 64, 3, 3)
    for _ in range(2):
        for dtype in (vesta.float16, vesta.bfloat16):
            w = bits.view(dtype)[:64, :576]
            same(lambda t, d=dtype: F.linear(x.flatten(1).to(d), t), w)


def test_threads() -> None:
    model = vesta.nn.Sequential(vesta.nn.Linear(256, 256), vesta.nn.ReLU(), vesta.nn.Linear(256, 128)).eval()
    x = vesta.randn(30, 256)
    expected = model(x).detach()
    wrong = []

    def serve() -> None:
        with vesta.inference_mode():
            for _ in range(100):
                if not vesta.equal(model(x), expected):
                    wrong.append(1)

    threads = [threading.Thread(target=serve) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def _child(queue: multiprocessing.Queue, op: Op, w: Tensor) -> None:  # type: ignore[type-arg]
    same(op, w)
    w.mul_(2)
    same(op, w)
    queue.put("done")


def test_a_forked_process() -> None:
    op, w = linear()
    same(op, w)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_child, args=(queue, op, w))
    process.start()
    assert queue.get(timeout=60) == "done"
    process.join()
    assert process.exitcode == 0 and os.getpid() != process.pid
    same(op, w)


def test_saving_does_not_hand_out(tmp_path: Path) -> None:
    """Checkpoints, copies and pickles read a weight: its packed form stays."""
    from vesta import _C

    w = vesta.randn(200, 300)
    for act in (
        lambda: vesta.save({"w": w}, tmp_path / "w"),
        lambda: vesta.save({"w": w}, tmp_path / "w", _use_new_zipfile_serialization=False),
        lambda: copy.deepcopy(w),
        lambda: pickle.dumps(w),
        lambda: w.tolist(),
        lambda: repr(w),
        lambda: w.sum().item(),
    ):
        act()
        assert _C._counts_all_writes(w)
    assert _C._counts_all_writes(vesta.load(tmp_path / "w")["w"])
    w.numpy()
    assert not _C._counts_all_writes(w)


READERS: dict[str, Callable[[Tensor], object]] = {
    "sort": lambda w: w.sort(),
    "topk": lambda w: w.topk(3),
    "kthvalue": lambda w: w.kthvalue(2),
    "median": lambda w: w.median(),
    "quantile": lambda w: w[0].quantile(0.5),
    "unique": lambda w: w.unique(),
    "cumsum": lambda w: w.cumsum(0),
    "flip": lambda w: w.flip(0),
    "fft": lambda w: vesta.fft.rfft(w),
    "svd": lambda w: vesta.linalg.svd(w),
    "max_pool2d": lambda w: F.max_pool2d(w[None, None], 2),
    "interpolate": lambda w: F.interpolate(w[None, None], scale_factor=0.5),
    "cross_entropy": lambda w: F.cross_entropy(w, vesta.zeros(200, dtype=vesta.int64)),
    "grid_sample": lambda w: F.grid_sample(w[None, None], vesta.zeros(1, 2, 2, 2), align_corners=True),
    "searchsorted": lambda w: vesta.searchsorted(w, w),
    "sparse": lambda w: vesta.eye(200).to_sparse_csr() @ w,
    "multinomial": lambda w: w.abs().multinomial(2),
}


@pytest.mark.parametrize("name", READERS)
def test_ops_that_read_a_weight_do_not_hand_it_out(name: str) -> None:
    """A weight that was once sorted or summed up is packed and kept as before."""
    from vesta import _C

    w = vesta.randn(200, 300)
    READERS[name](w)
    assert _C._counts_all_writes(w)


def test_packed_forms_make_room_where_memory_is_short() -> None:
    program = """if True:
        import resource, vesta
        x, w = vesta.randn(40, 2048), vesta.randn(8192, 2048)
        with vesta.no_grad():
            for _ in range(3): vesta.nn.functional.linear(x, w)  # 64 MiB are kept
        pages = int(open("/proc/self/statm").read().split()[0])
        free = pages * resource.getpagesize() + (40 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (free, free))
        vesta.empty(80 << 20, dtype=vesta.uint8).fill_(1)
    """
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_a_weight_made_of_numbers_is_the_librarys_own() -> None:
    from vesta import _C

    for made in (vesta.tensor([[0.5] * 300] * 200), vesta.tensor(np.zeros((200, 300))), vesta.arange(60000.0)):
        assert _C._counts_all_writes(made)
