"""Convolutions with a kernel of one pixel as products of cuBLASLt, with stand-ins that compute on the emulated device:
the CPU's values, no conversion of layouts, and cuDNN or the plain kernels wherever products do not pay."""

from __future__ import annotations

import os
from pathlib import Path

import cuda_fakes
import pytest
import vesta

FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
pytestmark = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcublasLt.so.13").exists() or not vesta.cuda.is_available(),
    reason="needs the emulated device and the fakes",
)

PRELUDE = """
import ctypes, os, warnings
import numpy as np, vesta
import vesta.cuda, vesta.nn.functional as F
warnings.simplefilter("always")
assert vesta.cuda.is_available()
folder = os.environ["VESTA_CUDA_LIB_DIR"].split(":")[0]
lt, dnn = (ctypes.CDLL(folder + name) for name in ("/libcublasLt.so.13", "/cudnn/libcudnn.so.9"))
TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 2e-2, "float16": 2e-3}
CONVOLUTION = F.conv1d, F.conv2d, F.conv3d
TRANSPOSED = F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d
def made(*shape, dtype="float32"):
    return vesta.tensor(np.random.default_rng(shape).standard_normal(shape)).to(getattr(vesta, dtype))
def same(got, want, rtol):
    assert got.dtype == want.dtype and got.shape == want.shape and got.is_contiguous() == want.is_contiguous()
    got, want = (t.detach().cpu().double().numpy() for t in (got, want))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * max(1, np.abs(want).max(initial=0)))
class Count:
    '''Counts products, convolutions of cuDNN, layouts made and launches of our own.'''
    def now(self):
        c = dict(vesta._C_cuda.counters())
        calls, others = lt.fake_calls(), dnn.fake_convolutions() + dnn.fake_joined()
        return calls, others, c["layouts_made"], c["launches"] - calls - others
    def __enter__(self):
        self.before = self.now()
        return self
    def __exit__(self, *_):
        self.products, self.cudnn, self.layouts, self.own = (b - a for a, b in zip(self.before, self.now()))
        self.used = self.products, self.cudnn, self.layouts
def step(function, x, w, b, **how):
    '''Compares a step with the CPU's; returns what forward and backward have used.'''
    sides, counts = [], []
    for device in ("cpu", "cuda"):
        leaves = [t.to(device).detach().requires_grad_() for t in (x, w, b) if t is not None]
        with Count() as forward: y = function(*leaves, **how)
        g = made(*y.shape, dtype=str(y.dtype)[6:]).to(device)
        with Count() as backward: grads = vesta.autograd.grad(y, leaves, g)
        sides.append([y, *grads])
    for want, got in zip(*sides): same(got, want, TOLERANCE[str(x.dtype)[6:]])
    return forward.used, backward.used
"""


def check(body: str, **environment: str) -> str:
    both = {"VESTA_CUDA_LIB_DIR": f"{FAKES}:{FAKES}/cudnn", **environment}
    return cuda_fakes.check(PRELUDE + body, FAKES, **both)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("schedule", ["eager", "random"])
def test_values_and_gradients_are_the_cpus_without_conversions(dtype: str, schedule: str) -> None:
    check(
        f"dtype = {dtype!r}"
        """
for planes in ((30,), (8, 7), (6, 5), (3, 2, 5), (3, 3, 5), (7, 5)):
    for batch in (1, 5):
        for channels, outputs in ((6, 3), (1, 4), (5, 1)):
            x = made(batch, channels, *planes, dtype=dtype)
            for b in (None, made(outputs, dtype=dtype)):
                for functions, w in ((CONVOLUTION, made(outputs, channels, dtype=dtype)),
                                     (TRANSPOSED, made(channels, outputs, dtype=dtype))):
                    used = step(functions[len(planes) - 1], x, w[(...,) + (None,) * len(planes)], b)
                    # 16-bit rows of an odd length are cuDNN's
                    odd = "16" in dtype and planes in ((7, 5), (3, 3, 5))
                    assert odd == (used[0][1] > 0), (planes, batch, channels, outputs, used)
                    if not odd: assert used == ((1, 0, 0), (2, 0, 0)), (planes, batch, channels, outputs, used)
for shape in ((0, 3, 4, 4), (2, 0, 4, 4)):
    x, w = made(*shape, dtype=dtype), made(2, shape[1], 1, 1, dtype=dtype)
    assert step(F.conv2d, x, w, made(2, dtype=dtype)) == ((0, 0, 0), (0, 0, 0))
x, w = made(3, 4, 5, dtype=dtype), made(2, 3, 1, 1, dtype=dtype)
assert step(F.conv2d, x, w, None)[0] == (1, 0, 0)                      # no batch
assert step(F.conv2d, x[None], w, None, dilation=3)[0] == (1, 0, 0)    # the distance of one tap's next
""",
        VESTA_EMULATION_SCHEDULE=schedule,
    )


def test_what_does_not_pay_is_cudnns() -> None:
    check("""
x, w = made(3, 4, 6, 6), made(6, 4, 1, 1)
for how in ({"stride": 2}, {"padding": 1}):
    assert step(F.conv2d, x, w, None, **how)[0][:2] == (0, 1), how
assert step(F.conv2d, x, made(6, 2, 1, 1), None, groups=2)[0][:2] == (0, 1)
assert step(F.conv2d, x, made(6, 4, 3, 3), None, padding=1)[0][:2] == (0, 1)
assert step(F.conv2d, made(3, 4, 1, 1), w, None)[0][:2] == (0, 1)      # one pixel: channels last as it is
assert step(F.conv_transpose2d, x, made(4, 6, 1, 1), None, dilation=2, output_padding=1)[0][:2] == (0, 1)
# a weight that each image would read again, more than the conversions move; one image reads it once
assert step(F.conv2d, made(3, 64, 2, 2), made(64, 64, 1, 1), None)[0][:2] == (0, 1)
assert step(F.conv2d, made(1, 64, 2, 2), made(64, 64, 1, 1), None) == ((1, 0, 0), (2, 0, 0))
# forward and the input's gradient pay; parts of the weight's gradient would be more than both operands
forward, backward = step(F.conv2d, made(3, 64, 5, 4), made(64, 64, 1, 1), None)
assert forward == (1, 0, 0) and backward[:2] == (1, 1), (forward, backward)
for dtype, products in (("float32", 2), ("bfloat16", 1)):              # the parts are float32
    forward, backward = step(F.conv2d, made(2, 64, 8, 5, dtype=dtype), made(64, 64, 1, 1, dtype=dtype), None)
    assert forward == (1, 0, 0) and backward[0] == products, (dtype, backward)
# channels last is read in place
for t in (x.contiguous(memory_format=vesta.channels_last), x):
    k = w if t is not x else w.to(memory_format=vesta.channels_last)
    with Count() as c: y = F.conv2d(t.cuda(), k.cuda())
    assert y.is_contiguous(memory_format=vesta.channels_last) and (c.products, c.cudnn) == (0, 1)
""")


def test_views_are_read_where_products_can() -> None:
    check("""
x, w, b = made(4, 9, 6, 5), made(3, 4, 1, 1), made(3)
on = x.cuda(), w.cuda(), b.cuda()
for view, copies in ((lambda t: t[:, 2:6], 0), (lambda t: t[::2, 1:9:2], 0),
                     (lambda t: t[:1, :4].expand(4, 4, 6, 5), 0),
                     (lambda t: t[:, :4, :, ::2], 1), (lambda t: t[:, :4].transpose(2, 3), 1),
                     (lambda t: t[:, :1].expand(4, 4, 6, 5), 1)):
    with Count() as c: y = F.conv2d(view(on[0]), on[1])
    assert (c.products, c.cudnn, c.layouts, c.own) == (1, 0, 0, copies), (c.used, c.own)
    same(y, F.conv2d(view(x), w), 2e-5)
with Count() as c: y = F.conv2d(on[0][:, 2:6], on[1], on[2])
assert c.used == (1, 0, 0) and c.own == 1                              # a plane of the bias
same(y, F.conv2d(x[:, 2:6], w, b), 2e-5)
with Count() as c: y = F.conv2d(on[0][:, 2:6], on[1].expand(3, 4, 1, 1).transpose(0, 1).contiguous().transpose(0, 1))
same(y, F.conv2d(x[:, 2:6], w), 2e-5)
# a gradient of one number for all, and one with channels last
sides = []
for device in ("cpu", "cuda"):
    leaves = [t.to(device).detach().requires_grad_() for t in (x[:, :4], w)]
    y = F.conv2d(*leaves)
    g = made(*y.shape).to(device)
    sides.append([*vesta.autograd.grad(y.sum(), leaves, retain_graph=True),
                  *vesta.autograd.grad(y, leaves, g.contiguous(memory_format=vesta.channels_last))])
for want, got in zip(*sides): same(got, want, 2e-5)
""")


def test_higher_orders() -> None:
    check("""
sides = []
for device in ("cpu", "cuda"):
    x, w, b = (made(*s, dtype="float64").to(device).requires_grad_() for s in ((2, 3, 4, 5), (4, 3, 1, 1), (4,)))
    first = vesta.autograd.grad((F.conv2d(x, w, b) ** 3).sum(), (x, w, b), create_graph=True)
    sides.append(vesta.autograd.grad(sum((t ** 2).sum() for t in first), (x, w, b)))
for want, got in zip(*sides): same(got, want, 1e-11)
assert dnn.fake_convolutions() == 0
""")


def test_16_bit_results_are_rounded_once() -> None:
    """Of numbers whose products and sums are exact in float32."""
    check("""
rng = np.random.default_rng(1)
def exact(*shape): return vesta.tensor(rng.integers(-15, 16, shape) / 8.0)
for dtype in (vesta.bfloat16, vesta.float16):
    x, w, b, g = exact(5, 16, 6, 6), exact(7, 16, 1, 1), exact(7), exact(5, 7, 6, 6)
    on = [t.to(dtype).cuda().requires_grad_() for t in (x, w, b)]
    y = F.conv2d(*on)
    assert (y.cpu() == F.conv2d(x, w, b).to(dtype)).all()
    of_x, of_w = vesta.autograd.grad(y, on[:2], g.to(dtype).cuda())
    assert (of_x.cpu() == F.conv_transpose2d(g, w).to(dtype)).all()
    want = vesta.einsum("nohw,nchw->oc", g, x)[..., None, None].to(dtype)
    assert (of_w.cpu() == want).all()
assert dnn.fake_convolutions() == 0 and lt.fake_calls() == 6
""")


def test_tf32_follows_the_setting_of_convolutions() -> None:
    check("""
x, w = made(2, 4, 6, 6).cuda().requires_grad_(), made(4, 4, 1, 1).cuda().requires_grad_()
def fast():
    before = lt.fake_calls(), lt.fake_tf32_calls()
    y = F.conv2d(x, w)
    vesta.autograd.grad(y, (x, w), y.detach())
    assert lt.fake_calls() == before[0] + 3
    return lt.fake_tf32_calls() - before[1]
assert vesta.backends.cudnn.allow_tf32 and not vesta.backends.cuda.matmul.allow_tf32
assert fast() == 3
a = made(8, 8).cuda()
a @ a
assert lt.fake_tf32_calls() == 3                                       # products keep their own
vesta.backends.cudnn.allow_tf32 = False
vesta.backends.cuda.matmul.allow_tf32 = True
assert fast() == 0
a @ a
assert lt.fake_tf32_calls() == 4
vesta.backends.cudnn.allow_tf32 = True
d = made(2, 4, 6, 6, dtype="bfloat16").cuda()
F.conv2d(d, w.detach().to(vesta.bfloat16))
assert lt.fake_tf32_calls() == 4
""")


REFUSED = """
for dtype in ("float32", "float64", "bfloat16"):
    x, w, b = (made(*s, dtype=dtype) for s in ((3, 4, 6, 6), (6, 4, 1, 1), (6,)))
    for bias in (None, b):
        (_, forward, _), (products, backward, _) = step(F.conv2d, x, w, bias)
        EXPECTED
"""


def test_a_refusal_goes_to_cudnn_without_a_warning() -> None:
    everything = "assert (forward, products, backward) == (1, 0, 2), (forward, products, backward)"
    for environment in ({"FAKE_CUBLAS_LT": "refuse"}, {"FAKE_CUBLAS_LT": "old"}, {"VESTA_CUDA_LIBRARIES": "cudnn"}):
        assert "plain kernels" not in check(REFUSED.replace("EXPECTED", everything), **environment)
    # no float32 results of 16-bit floats: cuDNN has the weight's gradient of those alone
    parts = "assert (forward, products, backward) == ((0, 1, 1) if '16' in dtype else (0, 2, 0))"
    assert "plain kernels" not in check(REFUSED.replace("EXPECTED", parts), FAKE_CUBLAS_LT="narrow")
    neither = "assert (forward, products, backward) == (0, 0, 0)"
    check(REFUSED.replace("EXPECTED", neither), VESTA_CUDA_LIBRARIES="off")
    without_cudnn = "assert (forward, products, backward) == (0, 2, 0)"
    check(REFUSED.replace("EXPECTED", without_cudnn), VESTA_CUDA_LIBRARIES="cublas")
