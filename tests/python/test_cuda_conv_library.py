"""Convolutions through cuDNN, with a stand-in that computes on the emulated device: the CPU's values, and one
conversion to channels last of each operand that a step reads twice."""

from __future__ import annotations

import os
from pathlib import Path

import cuda_fakes
import pytest
import vesta

FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes" / "cudnn"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
pytestmark = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcudnn.so.9").exists() or not vesta.cuda.is_available(),
    reason="needs the emulated device and the fakes",
)

PRELUDE = """
import ctypes, os
import numpy as np, vesta
import vesta.cuda, vesta.nn as nn, vesta.nn.functional as F
assert vesta.cuda.is_available()
fake = ctypes.CDLL(os.environ["VESTA_CUDA_LIB_DIR"] + "/libcudnn.so.9")
def made(*shape, dtype=vesta.float32, device="cuda"):
    return vesta.tensor(np.random.default_rng(shape).standard_normal(shape)).to(dtype).to(device)
def leaf(*shape, **kwargs):
    return made(*shape, **kwargs).requires_grad_()
def same(got, want, tolerance=1e-4):
    got, want = got.detach().cpu().double().numpy(), want.detach().cpu().double().numpy()
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
def layouts():
    c = dict(vesta._C_cuda.counters())
    return c["layouts_made"], c["layouts_taken"]
def kept():
    return dict(vesta._C_cuda.counters())["layout_bytes"]
class Count:
    def __enter__(self):
        self.before = layouts()
        return self
    def __exit__(self, *_):
        self.made, self.taken = (b - a for a, b in zip(self.before, layouts()))
"""


def check(body: str, **environment: str) -> str:
    return cuda_fakes.check(PRELUDE + body, FAKES, **environment)


@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_values_and_gradients_are_the_cpus(schedule: str) -> None:
    check(
        """
for dtype, tolerance in ((vesta.float32, 1e-4), (vesta.float64, 1e-10), (vesta.float16, 2e-2), (vesta.bfloat16, 1e-1)):
    for x, w, stride, padding, dilation, groups in (
        ((2, 4, 9, 8), (6, 4, 3, 3), 1, 1, 1, 1), ((1, 4, 7, 9), (4, 2, 3, 2), 2, 1, 1, 2),
        ((2, 3, 8, 8), (5, 3, 1, 1), 1, 0, 1, 1), ((1, 2, 9, 9), (2, 1, 3, 3), (2, 1), (0, 2), (1, 2), 2),
    ):
        sides = []
        for device in ("cpu", "cuda"):
            leaves = [leaf(*s, dtype=dtype, device=device) for s in (x, w, (w[0],))]
            y = F.conv2d(*leaves, stride, padding, dilation, groups)
            y.backward(made(*y.shape, dtype=dtype, device=device))
            sides.append([y, *(t.grad for t in leaves)])
        for want, got in zip(*sides): same(got, want, tolerance)
# with their bias in one graph: three dtypes, but for depthwise ones
assert (fake.fake_convolutions(), fake.fake_joined()) == (4 * 4 * 3 - 9, 9)
""",
        VESTA_EMULATION_SCHEDULE=schedule,
    )


def test_lines_volumes_and_transposed_ones() -> None:
    """Every convolution reaches the library, with its bias in one graph where a forward one has it."""
    check("""
def both(f, x, w, bias, made_by_library, joined):
    for dtype, tolerance in ((vesta.float32, 1e-4), (vesta.float16, 2e-2)):
        for last in (False, True) if len(x) == 5 else (False,):
            sides = []
            for device in ("cpu", "cuda"):
                leaves = [leaf(*s, dtype=dtype, device=device) for s in (x, w, (bias,))]
                if last: leaves[0].data = leaves[0].data.contiguous(memory_format=vesta.channels_last_3d)
                before = fake.fake_convolutions(), fake.fake_joined()
                y = f(*leaves)
                grads = vesta.autograd.grad(y, leaves, made(*y.shape, dtype=dtype, device=device))
                sides.append([y, *grads])
            assert fake.fake_convolutions() - before[0] == made_by_library
            assert fake.fake_joined() - before[1] == joined
            for want, got in zip(*sides):
                same(got, want, tolerance)
                if last and got.dim() == 5: assert got.stride() == want.stride(), (got.stride(), want.stride())
both(lambda x, w, b: F.conv3d(x, w, b, 1, 1), (2, 4, 5, 6, 4), (6, 4, 3, 3, 3), 6, 2, 1)
both(lambda x, w, b: F.conv3d(x, w, b, (2, 1, 3), (1, 0, 2), (1, 2, 1)), (1, 3, 7, 8, 9), (4, 3, 3, 2, 3), 4, 2, 1)
both(lambda x, w, b: F.conv3d(x, w, b, groups=2), (2, 4, 4, 5, 3), (4, 2, 2, 3, 1), 4, 2, 1)
both(lambda x, w, b: F.conv3d(x, w, b, groups=4), (2, 4, 4, 5, 3), (4, 1, 2, 3, 1), 4, 3, 0)
both(lambda x, w, b: F.conv_transpose3d(x, w, b, 2, 1, 1), (2, 4, 3, 4, 2), (4, 5, 3, 3, 3), 5, 3, 0)
both(lambda x, w, b: F.conv1d(x, w, b, 2, 1), (3, 4, 20), (6, 4, 5), 6, 2, 1)
both(lambda x, w, b: F.conv1d(x, w, b, groups=4), (3, 4, 20), (8, 1, 5), 8, 3, 0)
both(lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1), (3, 4, 9), (4, 6, 4), 6, 3, 0)
both(lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1), (3, 4, 5, 6), (4, 6, 4, 4), 6, 3, 0)
""")


def test_a_step_lays_out_each_operand_once() -> None:
    """A step of a convolution uses six operands but converts three: the input, the weight and the output's gradient."""
    check("""
x, w = leaf(2, 3, 8, 8), leaf(4, 3, 3, 3)
with Count() as c:
    y = F.conv2d(x, w, padding=1)
    y.backward(made(2, 4, 8, 8))
assert (c.made, c.taken) == (3, 3) and kept() == 0, (c.made, c.taken, kept())
# a small network: the first layer's input needs no gradient
net = nn.Sequential(
    nn.Conv2d(1, 4, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(200, 10)
).cuda()
image = made(2, 1, 18, 18)
for step in range(2):
    with Count() as c:
        net(image).sum().backward()
    # one channel, or one image row, lies with channels last as it is: 1-channel operands need no copy
    assert c.taken == 3 and kept() == 0, (c.made, c.taken, kept())
# a block with a shortcut: its input is read by two convolutions
a, b, s = leaf(4, 4, 3, 3), leaf(4, 4, 3, 3), leaf(4, 4, 1, 1)
h = leaf(2, 4, 6, 6)
with Count() as c:
    (F.conv2d(F.conv2d(h, a, padding=1).relu(), b, padding=1) + F.conv2d(h, s)).relu().sum().backward()
assert (c.made, c.taken) == (8, 8) and kept() == 0, (c.made, c.taken, kept())  # the 1x1 weight lies so as it is
del net, h
assert kept() == 0
""")


def test_a_network_with_channels_last_converts_nothing() -> None:
    """Images, weights, activations and gradients of a residual network keep the layout that cuDNN reads and writes."""
    check("""
class Block(nn.Module):
    def __init__(self, planes, out, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(planes, 4, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
            nn.Conv2d(4, 4, 3, stride, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
            nn.Conv2d(4, out, 1, bias=False), nn.BatchNorm2d(out))
        self.shortcut = nn.Sequential(nn.Conv2d(planes, out, 1, stride, bias=False), nn.BatchNorm2d(out))
    def forward(self, x):
        return (self.body(x) + self.shortcut(x)).relu()
def network():
    vesta.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        Block(4, 8, 1), Block(8, 8, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))
image = made(2, 3, 24, 20)
for dtype in (vesta.float32, vesta.bfloat16):
    net = network().cuda().to(dtype).to(memory_format=vesta.channels_last)
    x = image.to(dtype).contiguous(memory_format=vesta.channels_last)
    for step in range(2):
        net.zero_grad()
        with Count() as c: net(x).square().sum().backward()
        assert (c.made, c.taken) == (0, 0) and kept() == 0, (c.made, c.taken)
    for p in net.parameters(): assert p.grad.stride() == p.stride(), (p.shape, p.grad.stride())
    if dtype == vesta.float32:
        rows = network().cuda()
        rows(image).square().sum().backward()
        for p, q in zip(net.parameters(), rows.parameters()): same(p.grad, q.grad, 1e-3)
# an input with channels last is enough, and a weight too
y = F.conv2d(image.contiguous(memory_format=vesta.channels_last), made(4, 3, 3, 3))
assert y.is_contiguous(memory_format=vesta.channels_last)
y = F.conv2d(image, made(4, 3, 3, 3).contiguous(memory_format=vesta.channels_last))
assert y.is_contiguous(memory_format=vesta.channels_last)
assert F.conv2d(image, made(4, 3, 3, 3)).is_contiguous()
""")


def test_what_is_kept_goes_with_its_memory_and_changes_with_it() -> None:
    check("""
x, w = leaf(2, 3, 8, 8), leaf(4, 3, 3, 3)
y = F.conv2d(x, w, padding=1)
assert kept() > 0
with vesta.no_grad():
    before = kept()
    F.conv2d(x, w, padding=1)                    # nothing is kept that no gradient will read
    assert kept() <= before
del y, x, w
assert kept() == 0                               # gone with the memory

# a write in between: forward's copy is not the value that the next one must see
x, w = made(2, 3, 8, 8), leaf(4, 3, 3, 3)
F.conv2d(x, w, padding=1)
with vesta.no_grad(): x.mul_(2)
y = F.conv2d(x, w, padding=1)
same(y, F.conv2d(made(2, 3, 8, 8).cpu() * 2, made(4, 3, 3, 3).cpu(), padding=1))
y.sum().backward()
want = leaf(4, 3, 3, 3, device="cpu")
F.conv2d(made(2, 3, 8, 8).cpu() * 2, want, padding=1).sum().backward()
same(w.grad, want.grad)

# views of one memory are told apart
base = made(4, 3, 8, 8)
w.grad = want.grad = None
(F.conv2d(base[:2], w, padding=1) - 3 * F.conv2d(base[2:], w, padding=1)).sum().backward()
host = base.cpu()
(F.conv2d(host[:2], want, padding=1) - 3 * F.conv2d(host[2:], want, padding=1)).sum().backward()
same(w.grad, want.grad)
""")


def test_kept_copies_make_room_when_memory_is_short() -> None:
    check(
        """
layers = [made(1, 3, 1024, 1024) for _ in range(3)]            # 12 MiB each, and as much kept
w = leaf(1, 3, 1, 1)
outs = [F.conv2d(x, w) for x in layers]
assert kept() == 24 * 2**20, kept()                            # an eighth of the device: two of the three
big = vesta.empty(int(vesta.cuda.mem_get_info()[0] + 16 * 2**20) // 4, device="cuda")  # fits only without them
assert kept() == 0
del big
outs[0].sum().backward()                                       # the copy is made again
same(w.grad.flatten(), layers[0].sum([0, 2, 3]), 1e-2)
""",
        VESTA_EMULATION_MEMORY="256",
    )
