"""CUDA as a user sees it: devices, streams, copies, memory, errors. Runs on a GPU or on the emulated device."""

from __future__ import annotations

import copy
import ctypes
import os
import pickle
import subprocess
import sys
import threading

import pytest
import vesta
import vesta.nn.functional as F

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

EMULATED = vesta.cuda.is_available() and "Emulated" in vesta.cuda.get_device_name()


def run(program: str, **environment: str) -> str:
    """Runs a program in a separate process and returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- devices ----------------------------------------------------------------------------------------------------


def test_a_tensor_goes_there_and_back() -> None:
    x = vesta.arange(6.0).view(2, 3)
    c = x.cuda()
    assert c.is_cuda and c.device == vesta.device("cuda", 0) and c.get_device() == 0
    assert c.cuda() is c and c.to("cuda") is c and c.to(vesta.device("cuda:0")) is c
    assert vesta.equal(c.cpu(), x) and vesta.equal(c.t().cpu(), x.t()) and c.t().cpu().stride() == (1, 3)
    assert c[1, 2].item() == 5.0 and c.tolist() == x.tolist()
    assert repr(c[0]) == "tensor([0., 1., 2.], device='cuda:0')"


def test_devices_by_name_number_and_context() -> None:
    assert vesta.device("cuda").index is None and str(vesta.device("cuda")) == "cuda"
    assert vesta.zeros(2, device="cuda").device.index == 0 == vesta.cuda.current_device()
    if vesta.cuda.device_count() > 1:
        with vesta.cuda.device(1):
            assert vesta.cuda.current_device() == 1 and vesta.zeros(2, device="cuda").device.index == 1
            assert vesta.ones(2).cuda().device.index == 1
        assert vesta.cuda.current_device() == 0
        a, b = vesta.ones(3, device="cuda:0"), vesta.ones(3, device="cuda:1")
        with pytest.raises(RuntimeError, match=r"add: expected all tensors on one device, got cuda:0 \(input\)"):
            a + b
        assert vesta.equal((a.to("cuda:1") + b).cpu(), vesta.full((3,), 2.0))
        b.copy_(a * 3)
        assert b.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.skipif(vesta.cuda.device_count() < 2, reason="needs two devices")
def test_work_on_another_device_does_not_make_it_current() -> None:
    """Also not in a thread that has not chosen a device yet."""
    found = []

    def work() -> None:
        x = vesta.ones(2, device="cuda:1")
        found.append(vesta.cuda.current_device())
        y = x + 1
        found.append((vesta.cuda.current_device(), y.device.index, vesta.ones(1, device="cuda").device.index))
        found.append(((x * 2).device.index, vesta.cuda.current_device()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [0, (0, 1, 0), (1, 0)]


@pytest.mark.skipif(not EMULATED, reason="the emulated device plays the other library")
def test_a_device_that_another_library_has_set() -> None:
    """The runtime's current device decides: ops run on their tensors' device, and the current one is restored."""
    other = ctypes.CDLL(os.environ["VESTA_CUDA_LIBRARY"]).vesta_emulation_set_device
    a = vesta.arange(4.0, device="cuda:0")
    b = vesta.arange(4.0, device="cuda:1")
    try:
        assert other(1) == 0 and vesta.cuda.current_device() == 1
        assert (a * 2).tolist() == [0.0, 2.0, 4.0, 6.0] and vesta.cuda.current_device() == 1
        assert (a * 2).device.index == 0 and (b + 1).device.index == 1
        assert vesta.zeros(1, device="cuda").device.index == 1
        with vesta.cuda.device(0):
            assert other(1) == 0 and vesta.zeros(2, device="cuda").device.index == 1
            assert (a.sum() + a.to("cuda:0").max()).item() == 9.0
        vesta.cuda.set_device(1)  # remembered from before, but wrong now
        assert other(0) == 0
        vesta.cuda.set_device(1)
        assert vesta.cuda.current_device() == 1 and (b * b).sum().item() == 14.0
    finally:
        vesta.cuda.set_device(0)
    assert vesta.zeros(1, device="cuda").device.index == 0


def test_a_tensor_elsewhere_is_an_error_of_the_op_that_was_called() -> None:
    """The error does not name an op that the called op is composed of."""
    x, m, t = vesta.ones(4, 4).cuda(), vesta.ones(4, 4) > 0, vesta.arange(4)
    y = x.cpu()
    calls = {
        "masked_fill": lambda: x.masked_fill(m, 1.0), "masked_fill_?": lambda: x.masked_fill_(m, 1.0),
        "isclose": lambda: vesta.isclose(x, y), "allclose": lambda: vesta.allclose(x, y),
        "equal": lambda: vesta.equal(x, y),
        "mm": lambda: x.mm(y), "bmm": lambda: x[None].bmm(y[None]), "addmm": lambda: vesta.addmm(y, x, x),
        "stack": lambda: vesta.stack([x, y]), "clamp": lambda: x.clamp(y), "where": lambda: vesta.where(m, x, x),
        "mse_loss": lambda: F.mse_loss(x, y), "nll_loss": lambda: F.nll_loss(x, t), "cat": lambda: vesta.cat([x, y]),
        "layer_norm": lambda: F.layer_norm(x, (4,), y[0]),
        "binary_cross_entropy_with_logits": lambda: F.binary_cross_entropy_with_logits(x, y),
        "linear": lambda: F.linear(x, y), "cross_entropy": lambda: F.cross_entropy(x, t), "matmul": lambda: x @ y,
    }  # fmt: skip
    for op, wrong in calls.items():
        with pytest.raises(vesta.DeviceError, match=f"^{op}: expected all tensors on one device, got "):
            wrong()
    assert vesta.isclose(x, vesta.tensor(1.0)).all().item() and x.masked_fill(m.cuda(), vesta.tensor(2.0)).sum() == 32


def test_numbers_and_numbers_in_tensors_join_a_device() -> None:
    x = vesta.arange(4.0).cuda()
    assert (x * 2 + vesta.tensor(1.0)).tolist() == [1.0, 3.0, 5.0, 7.0]
    with pytest.raises(RuntimeError, match=r"mul: expected all tensors on one device, got cuda:0 .* and cpu"):
        x * vesta.ones(4)


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(RuntimeError, match="device number"):
        vesta.zeros(2, device="cuda:99")
    with pytest.raises(RuntimeError, match="device number"):
        vesta.cuda.set_device(99)
    assert vesta.zeros(1, device="cuda").item() == 0.0


def test_without_the_library_everything_says_so() -> None:
    out = run(
        "import vesta\n"
        "print(vesta.cuda.is_available(), vesta.cuda.device_count())\n"
        "for f in (lambda: vesta.zeros(1, device='cuda'), lambda: vesta.ones(1).cuda(), vesta.cuda.synchronize,\n"
        "          vesta.cuda.current_device, vesta.cuda.mem_get_info, lambda: vesta.ones(1).pin_memory()):\n"
        "  try: f()\n"
        "  except vesta.DeviceError as e: print('vesta-cuda' in str(e))\n",
        VESTA_CUDA_LIBRARY="/nowhere/libvesta_cuda.so",
    )
    assert out.split() == ["False", "0"] + ["True"] * 6


# ---- streams ----------------------------------------------------------------------------------------------------


def test_streams_are_values_and_contexts() -> None:
    a, b = vesta.cuda.Stream(), vesta.cuda.Stream()
    assert a != b and a == a and len({a, b}) == 2 and vesta.cuda.default_stream() == vesta.cuda.current_stream()
    with vesta.cuda.stream(a):
        assert vesta.cuda.current_stream() == a
        with vesta.cuda.stream(b), vesta.cuda.stream(None):
            assert vesta.cuda.current_stream() == b
        assert vesta.cuda.current_stream() == a
    assert vesta.cuda.current_stream() == vesta.cuda.default_stream()
    assert a.query() and a.synchronize() is None and vesta.cuda.Stream(priority=-1).priority == -1


def test_events_order_streams_and_tell_time() -> None:
    s, begin, end = vesta.cuda.Stream(), vesta.cuda.Event(enable_timing=True), vesta.cuda.Event(enable_timing=True)
    x = vesta.ones(1000, device="cuda")
    with vesta.cuda.stream(s):
        s.wait_stream(vesta.cuda.default_stream())
        begin.record()
        y = x * 3
        end.record()
    vesta.cuda.current_stream().wait_event(end)
    y.record_stream(vesta.cuda.current_stream())
    assert (y + 1)[0].item() == 4.0
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    with pytest.raises(RuntimeError, match="enable_timing"):
        vesta.cuda.Event().elapsed_time(end)


GRAPHS = """
import random, vesta
random.seed(3)
out = []
for graph in range({graphs}):
    streams = [vesta.cuda.current_stream(), *(vesta.cuda.Stream() for _ in range(3))]
    leaf = vesta.arange(1.0, 33.0).cuda().requires_grad_()
    side = vesta.arange(32.0).cuda().requires_grad_()
    values, homes = [leaf, side], [streams[0], streams[0]]
    for step in range(8):
        s, i, j = random.choice(streams), *random.sample(range(len(values)), 2)
        for home in (homes[i], homes[j]):
            s.wait_stream(home)
        with vesta.cuda.stream(s):
            a, b = values[i], values[j]
            for t in (a, b):
                t.record_stream(s)
            kind = random.randrange(4)
            r = (lambda: a * b * 0.01, lambda: a + b, lambda: (a - b).tanh(), lambda: vesta.maximum(a, b))[kind]()
        values.append(r), homes.append(s)
    for home in homes:
        streams[0].wait_stream(home)
    values[-1].backward(vesta.ones(32).cuda())
    del values
    for t in (leaf, side):
        out.append(None if t.grad is None else t.grad.tolist())
print(out)
"""


@pytest.mark.skipif(not EMULATED, reason="needs the emulated device's schedules; a GPU has one of its own")
def test_backward_over_streams_gives_the_bits_of_one_stream() -> None:
    """Gradients are the same in whatever order the device runs, as long as the user's ordering holds."""
    program = GRAPHS.format(graphs=25)
    want = run(program.replace("vesta.cuda.Stream()", "vesta.cuda.current_stream()"))
    assert "None" in want or len(want) > 1000
    for schedule, order, seed in (("eager", "descending", 1), ("lazy", "shuffled", 2), ("random", "ascending", 3)):
        settings = {"SCHEDULE": schedule, "ORDER": order, "SEED": str(seed)}
        assert run(program, **{f"VESTA_EMULATION_{k}": v for k, v in settings.items()}) == want, schedule


SHARED_GRADIENT = """
import vesta
c, weight = vesta.full((64,), 2.0).cuda(), vesta.full((63,), 3.0).cuda()
streams = [vesta.cuda.Stream() for _ in range(2)]
for turn in range(40):
    slices, (first, second) = turn % 2 == 0, streams[:: 1 if turn % 4 < 2 else -1]
    x, y = (vesta.ones(64).cuda().requires_grad_() for _ in range(2))
    vesta.cuda.synchronize()
    with vesta.cuda.stream(second):
        b = y * 3
        rest = (b[:63] * weight).sum() if slices else (b * 5).sum()
    first.wait_stream(second)
    with vesta.cuda.stream(first):
        a = x * 7
    second.wait_stream(first)
    with vesta.cuda.stream(second):
        total = ((a + b) * c).sum() + rest
    vesta.cuda.current_stream().wait_stream(second)
    total.backward()
    assert x.grad.tolist() == [14.0] * 64, x.grad
    assert y.grad.tolist() == ([15.0] * 63 + [6.0] if slices else [21.0] * 64), y.grad
"""


@pytest.mark.skipif(not EMULATED, reason="needs the emulated device's random schedule")
def test_a_gradient_that_another_stream_reads_is_not_added_to_in_place() -> None:
    run(SHARED_GRADIENT, VESTA_EMULATION_SCHEDULE="random")


@pytest.mark.skipif(not EMULATED, reason="needs the emulated device's lazy schedule")
def test_a_copy_overlaps_compute() -> None:
    """A copy on a side stream completes before work on the default stream begins, and vice versa."""
    out = run(
        "import vesta\n"
        "x, host = vesta.ones(1000, device='cuda'), vesta.arange(1000.).pin_memory()\n"
        "vesta.cuda.synchronize()\n"
        "copying = vesta.cuda.Stream()\n"
        "y = x * 2\n"
        "with vesta.cuda.stream(copying): c = host.to('cuda', non_blocking=True)\n"
        "print(vesta.cuda.default_stream().query(), copying.query())\n"
        "copying.synchronize()\n"
        "print(vesta.cuda.default_stream().query(), copying.query())\n"
        "vesta.cuda.synchronize(); print(y[0].item(), c[5].item())\n",
        VESTA_EMULATION_SCHEDULE="lazy",
    )
    assert out.split() == ["False", "False", "False", "True", "2.0", "5.0"]


# ---- copies -----------------------------------------------------------------------------------------------------


def test_page_locked_memory() -> None:
    x = vesta.arange(7, dtype=vesta.int16)
    p = x.pin_memory()
    assert p.is_pinned() and not x.is_pinned() and vesta.equal(p, x) and p.pin_memory() is not x
    c = p.to("cuda", non_blocking=True)
    p2 = vesta.empty(7, dtype=vesta.int16).pin_memory()
    p2.copy_(c, non_blocking=True)
    vesta.cuda.synchronize()
    assert vesta.equal(p2, x)
    with pytest.raises(RuntimeError, match="expected a CPU tensor"):
        c.pin_memory()
    for made in (
        vesta.zeros(3, pin_memory=True),
        vesta.tensor([1.0, 2.0], pin_memory=True, requires_grad=True),
        vesta.arange(3, pin_memory=True),
        vesta.randn(2, 2, pin_memory=True),
    ):
        assert made.is_pinned() and made.is_leaf
    with pytest.raises(RuntimeError, match="expected a CPU tensor"):
        vesta.zeros(3, device="cuda", pin_memory=True)


def test_other_libraries_read_the_memory() -> None:
    x = vesta.arange(6, dtype=vesta.int16, device="cuda").view(2, 3)
    told = x.t().__cuda_array_interface__
    assert told == {
        "typestr": "<i2",
        "shape": (3, 2),
        "strides": (2, 6),
        "data": (x.data_ptr(), False),
        "version": 2,
    }
    assert x.__cuda_array_interface__["strides"] is None
    assert x.bool().__cuda_array_interface__["typestr"] == "|b1"
    assert not hasattr(x.cpu(), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="requires grad"):
        _ = x.float().requires_grad_().__cuda_array_interface__
    with pytest.raises(TypeError, match="bfloat16"):
        _ = x.bfloat16().__cuda_array_interface__


@pytest.mark.parametrize("source", ["contiguous", "transposed", "sliced", "expanded"])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float16, vesta.int64, vesta.bool, vesta.complex64])
def test_copies_between_host_and_device(source: str, dtype: vesta.dtype) -> None:
    base = (vesta.arange(60.0).view(6, 10) % 7).to(dtype)
    x = {"contiguous": base, "transposed": base.t(), "sliced": base[1::2, 2:9:3], "expanded": base[:1].expand(4, 10)}[
        source
    ]
    there = x.to("cuda")
    assert there.dtype == dtype and vesta.equal(there.cpu(), x)
    for target in (vesta.zeros(x.shape, device="cuda"), vesta.zeros(tuple(reversed(x.shape)), device="cuda").t()):
        if dtype is not vesta.complex64:
            assert vesta.equal(target.copy_(x).cpu(), x.float())
    back = vesta.zeros(x.shape, dtype=vesta.complex128)
    assert vesta.equal(back.copy_(there), x.to(vesta.complex128))


def test_gradients_cross_devices() -> None:
    w = vesta.arange(3.0).requires_grad_()
    (w.cuda() * 2).cpu().backward(vesta.ones(3))
    assert w.grad.device.type == "cpu" and w.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.skipif(not EMULATED, reason="needs the emulated device's lazy schedule and second device")
@pytest.mark.parametrize("device", [0, 1])
def test_page_locked_memory_waits_for_its_copy_on_any_device(device: int) -> None:
    """A block that is freed during a copy is not reused before the copy is done."""
    out = run(
        "import vesta\n"
        "s = vesta.full((1 << 20,), 3.).pin_memory()\n"
        f"d = s.to('cuda:{device}', non_blocking=True)\n"
        "del s\n"
        "vesta.cuda.synchronize(0 if d.get_device() else 1)\n"
        "q = vesta.full((1 << 20,), -1.).pin_memory()\n"
        "print(d[0].item(), d[-1].item(), q[0].item())\n",
        VESTA_EMULATION_SCHEDULE="lazy",
    )
    assert out.split() == ["3.0", "3.0", "-1.0"]


def test_dlpack_says_where_the_memory_is() -> None:
    x = vesta.arange(6.0).view(2, 3).cuda()
    assert x.__dlpack_device__() == (2, 0)
    y = vesta.from_dlpack(x.t())
    assert y.device == x.device and y.data_ptr() == x.data_ptr() and y.tolist() == x.t().tolist()
    y.mul_(2)
    assert x[1, 2].item() == 10.0


class Exporter:
    """Another library's array: it notes on which stream it was told that it will be used."""

    def __init__(self, tensor: vesta.Tensor) -> None:
        self.tensor, self.streams = tensor, []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options: int) -> object:
        self.streams.append(options.get("stream"))
        return self.tensor.__dlpack__(**options)


def test_dlpack_names_the_stream_of_the_consumer() -> None:
    array, side = Exporter(vesta.arange(3.0).cuda()), vesta.cuda.Stream()
    vesta.from_dlpack(array)
    with vesta.cuda.stream(side):
        vesta.from_dlpack(array)
    assert array.streams == [1, side.cuda_stream]
    host = Exporter(vesta.arange(3.0))
    vesta.from_dlpack(host)
    assert host.streams == [None]
    with pytest.raises(TypeError):
        array.tensor.__dlpack__(stream="1")


@pytest.mark.skipif(not EMULATED, reason="only the emulated device runs streams in any order")
@pytest.mark.parametrize("schedule", ["lazy", "random"])
def test_dlpack_orders_streams_without_waiting(schedule: str) -> None:
    out = run(
        "import vesta\n"
        "from vesta import _C_cuda\n"
        "count = lambda: dict(_C_cuda.counters())['synchronizations']\n"
        "vesta.cuda.current_stream(), vesta.zeros(1, device='cuda').item()\n"
        "for turn in range(20):\n"
        "  a, b = vesta.cuda.Stream(), vesta.cuda.Stream()\n"
        "  with vesta.cuda.stream(a):\n"
        "    x = vesta.zeros(4000, device='cuda')\n"
        "    for _ in range(5): x += 1\n"
        "    before = count()\n"
        "    capsules = x.__dlpack__(stream=b.cuda_stream), x.__dlpack__(stream=b.cuda_stream, copy=True)\n"
        "  with vesta.cuda.stream(b):\n"
        "    ys = [vesta.from_dlpack(c) * 2 for c in capsules]\n"
        "  assert count() == before\n"
        "  b.synchronize()\n"
        "  print(*{v for y in ys for v in y.tolist()})\n",
        VESTA_EMULATION_SCHEDULE=schedule,
    )
    assert set(out.split()) == {"10.0"}


@pytest.mark.skipif(not EMULATED, reason="a GPU reads pageable memory, or it does not")
@pytest.mark.parametrize("pageable", ["0", "1"])
def test_pageable_memory_may_change_after_a_copy_to_the_device(pageable: str) -> None:
    out = run(
        "import vesta\n"
        "x = vesta.ones(1000)\n"
        "y, z = x.cuda(), vesta.zeros(1000, device='cuda')\n"
        "z.copy_(x, non_blocking=True)\n"
        "x.zero_()\n"
        "print(y.sum().item(), z.sum().item())\n",
        VESTA_EMULATION_SCHEDULE="lazy",
        VESTA_EMULATION_PAGEABLE=pageable,
    )
    assert out.split() == ["1000.0", "1000.0"]


@pytest.mark.skipif(not EMULATED, reason="only the emulated device counts copies by way of the host")
@pytest.mark.parametrize("expandable", ["True", "False"])
@pytest.mark.parametrize("peers", ["1", "0"])
def test_devices_copy_from_each_other_directly(expandable: str, peers: str) -> None:
    """Or by way of the host, where the driver refuses."""
    out = run(
        "import vesta\n"
        "from vesta import _C_cuda\n"
        "count = lambda: dict(_C_cuda.counters())['staged_copies']\n"
        "x = vesta.arange(1000.0, device='cuda:0')\n"
        "big = [x.to('cuda:1'), vesta.ones(3 << 20, device='cuda:0').to('cuda:1')]  # memory of before and after\n"
        "big += [t.to('cuda:0') for t in big]\n"
        "print(count(), *(t.sum().item() for t in big))\n",
        VESTA_CUDA_ALLOC_CONF=f"expandable_segments:{expandable}",
        VESTA_EMULATION_PEERS=peers,
    )
    assert out.split() == ["0" if peers == "1" else "4", *["499500.0", "3145728.0"] * 2]


def test_pickles_and_copies_keep_the_device() -> None:
    last = vesta.cuda.device_count() - 1
    x = vesta.nn.Parameter(vesta.ones(2, device=f"cuda:{last}"))
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.device == x.device and y.requires_grad and type(y) is type(x) and y.tolist() == [1.0, 1.0]


def test_a_hook_may_not_move_a_gradient() -> None:
    w = vesta.ones(2, device="cuda").requires_grad_()
    w.register_hook(lambda g: g.cpu())
    with pytest.raises(RuntimeError, match="hook has changed the type of value"):
        (w * 2).sum().backward()


def test_streams_of_nowhere() -> None:
    x = vesta.ones(2, device="cuda")
    for wrong in (99, 10**8):
        with pytest.raises(RuntimeError, match="device number"):
            vesta.cuda.current_stream(wrong)
    with pytest.raises((ValueError, RuntimeError), match="stream number"):
        x._record_stream(77777)
    with pytest.raises(TypeError, match="vesta.cuda.Stream, not int"):
        x.record_stream(5)
    if vesta.cuda.device_count() > 1:
        with pytest.raises(RuntimeError, match="expected a stream of cuda:0"):
            x.record_stream(vesta.cuda.Stream(1))


@pytest.mark.parametrize("columns, dtype", [(12288, vesta.float32), (12000, vesta.float16), (6144, vesta.float64)])
def test_the_longest_rows_in_shared_memory(columns: int, dtype: vesta.dtype) -> None:
    x = vesta.arange(columns * 2.0).view(2, columns).remainder(97).to(dtype)
    got = x.cuda().softmax(1).cpu()
    assert vesta.allclose(got, x.softmax(1), rtol=1e-2 if dtype == vesta.float16 else 1e-5, atol=1e-6)


@pytest.mark.skipif(not EMULATED, reason="on a GPU a forked child of a test run would poison it")
@pytest.mark.parametrize("use", ["vesta.ones(2, device='cuda')", "vesta.cuda.is_available()"])
def test_a_forked_child_is_told(use: str) -> None:
    """Whether the device was used before the fork, or only asked for; the parent goes on."""
    out = run(
        "import os, vesta\n"
        f"{use}\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "  try: vesta.ones(2, device='cuda')\n"
        "  except RuntimeError as e: os.write(1, str(e).encode())\n"
        "  os._exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "print(vesta.ones(2, device='cuda').tolist())\n"
    )
    assert "forked subprocess" in out and "spawn" in out and "[1.0, 1.0]" in out


# ---- memory -----------------------------------------------------------------------------------------------------


def test_memory_is_counted_and_reused() -> None:
    vesta.cuda.synchronize()
    before = vesta.cuda.memory_allocated()
    x = vesta.empty(1 << 20, device="cuda")
    assert vesta.cuda.memory_allocated() - before == 4 << 20
    address = x.data_ptr()
    del x
    assert vesta.cuda.memory_allocated() == before and vesta.cuda.memory_reserved() >= 4 << 20
    y = vesta.empty(1 << 20, device="cuda")
    assert y.data_ptr() == address
    vesta.cuda.reset_peak_memory_stats()
    assert vesta.cuda.max_memory_allocated() == vesta.cuda.memory_allocated()
    stats = vesta.cuda.memory_stats()
    assert stats["num_ooms"] >= 0 and stats["allocation.all.current"] >= 1
    assert "Allocated memory" in vesta.cuda.memory_summary()
    segments = vesta.cuda.memory_snapshot()
    assert sum(s["allocated_size"] for s in segments) == vesta.cuda.memory_allocated()
    free, total = vesta.cuda.mem_get_info()
    assert 0 < free <= total
    del y
    vesta.cuda.empty_cache()


def test_out_of_memory_says_what_there_is_and_the_process_goes_on() -> None:
    total = vesta.cuda.get_device_properties().total_memory
    with pytest.raises(vesta.cuda.OutOfMemoryError, match="out of memory.*reserved.*allocated") as caught:
        vesta.empty(total * 2, dtype=vesta.uint8, device="cuda")
    assert isinstance(caught.value, (RuntimeError, MemoryError))
    assert (vesta.ones(4, device="cuda") + 1).tolist() == [2.0] * 4


def test_the_host_does_not_wait_for_ops() -> None:
    """Pointwise ops, views and copies within the device need no synchronization."""
    x = vesta.ones(64, 64, device="cuda").requires_grad_()
    labels = vesta.arange(64, device="cuda")
    counters = lambda: dict(vesta._C_cuda.counters())
    before = counters()
    y = ((x * 2).tanh() + x.t()).contiguous()
    y.backward(y.detach())
    vesta.nn.functional.cross_entropy(y.detach(), labels)
    labels // (labels + 1) % 3
    labels[labels > 5] = 0
    labels.view(8, 8)[:, labels[:8] > 5] = vesta.tensor([7], device="cuda")
    after = counters()
    assert after["synchronizations"] == before["synchronizations"] and after["launches"] > before["launches"]


def test_a_zero_among_integer_divisors_raises_when_the_host_waits() -> None:
    x = vesta.arange(4, device="cuda")
    quotient = x // x
    with pytest.raises(RuntimeError, match="divisor without zeros.*ZeroDivisionError.*cuda:0"):
        quotient.tolist()
    assert (x // 2).tolist() == [0, 0, 1, 1]  # the device goes on
    with pytest.raises(RuntimeError, match="divisor without zeros"):
        x % 0  # the value of a number is known at once


@pytest.mark.skipif(not EMULATED, reason="chooses the emulated device's schedule")
def test_other_threads_of_python_run_while_one_waits() -> None:
    """The emulated device runs pending work while the host waits: the GIL must be released then."""
    program = """
import threading, time, vesta
x = vesta.ones(128, 256, device="cuda")
ticks, done = 0, False
def tick():
    global ticks
    while not done:
        ticks += 1
        time.sleep(0)
y = x
for _ in range(60):
    y = (y * 1.01).tanh()
thread = threading.Thread(target=tick)
thread.start()
time.sleep(0.05)
before = ticks
y.sum().tolist()  # waits
during = ticks - before
done = True
thread.join()
print(during)
"""
    assert int(run(program, VESTA_EMULATION_SCHEDULE="lazy")) > 20


def test_hidden_waits_can_be_found() -> None:
    x = vesta.arange(4, device="cuda")
    try:
        vesta.cuda.set_sync_debug_mode("error")
        assert vesta.cuda.get_sync_debug_mode() == 2
        y = (x + 1).float().relu().sum()
        vesta.cuda.synchronize()  # says what it does
        for waits in (y.item, x.nonzero, x.tolist, lambda: x.cpu(), lambda: x[x > 1]):
            with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
                waits()
        vesta.cuda.set_sync_debug_mode(1)
        with pytest.warns(UserWarning, match="synchronizing"):
            assert y.item() == 10
        with pytest.raises(RuntimeError, match="set_sync_debug_mode: expected"):
            vesta.cuda.set_sync_debug_mode("loud")
    finally:
        vesta.cuda.set_sync_debug_mode(0)
    assert y.item() == 10


def test_classes_of_tensors_on_a_device() -> None:
    x = vesta.cuda.FloatTensor([1, 2])
    assert x.is_cuda and isinstance(x, vesta.cuda.FloatTensor) and not isinstance(x, vesta.FloatTensor)
    assert x.type() == "vesta.cuda.FloatTensor"
    y = x.type("torch.LongTensor")
    assert isinstance(y, vesta.LongTensor) and y.type(vesta.cuda.HalfTensor).is_cuda
    assert len(vesta.cuda.default_generators) == vesta.cuda.device_count()


def test_complex_views_of_memory_that_is_not_aligned_are_refused() -> None:
    """A kernel reads complex numbers whole: at another address it would end the context."""
    x = vesta.arange(9, dtype=vesta.float64, device="cuda")
    imported = vesta.from_dlpack(x[1:]).reshape(4, 2)
    with pytest.raises(RuntimeError, match=r"multiples of 16 bytes.* clone\(\)"):
        vesta.view_as_complex(imported)
    assert vesta.view_as_complex(imported.clone()).sum().item() == 16 + 20j
