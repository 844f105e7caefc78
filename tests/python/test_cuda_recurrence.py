"""Recurrent layers on CUDA run all steps in one call, two launches a step: the CPU's numbers, in every layout."""

from __future__ import annotations

import copy
import os
from pathlib import Path

import cuda_fakes
import pytest
import vesta
from vesta.nn.utils.rnn import pack_padded_sequence

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

FAKES = Path(os.environ.get("VESTA_BUILD", "build")).resolve() / "fakes"
EMULATED = os.environ.get("VESTA_CUDA_LIBRARY", "").endswith("libvesta_cuda_emulation.so")
fakes = pytest.mark.skipif(
    not EMULATED or not (FAKES / "libcublasLt.so.13").exists(), reason="needs the emulated device and the fakes"
)

KINDS = ("LSTM", "GRU", "RNN_TANH", "RNN_RELU")
EPS = {vesta.float64: 2.0**-53, vesta.float32: 2.0**-24, vesta.float16: 2.0**-11, vesta.bfloat16: 2.0**-8}


def make(kind, *sizes, **options):
    vesta.manual_seed(5)
    if kind.startswith("RNN"):
        return vesta.nn.RNN(*sizes, nonlinearity=kind[4:].lower(), **options)
    return getattr(vesta.nn, kind)(*sizes, **options)


def call(layer, kind, x, state):
    y, last = layer(x, None if state is None else state if kind == "LSTM" else state[0])
    return y, list(last) if kind == "LSTM" else [last]


def draw(kind, layer, steps, batch, layers=1, dtype=vesta.float64):
    """Returns an input and the states before."""
    vesta.manual_seed(9)
    rows = layers * (2 if layer.bidirectional else 1)
    widths = [layer.proj_size or layer.hidden_size, layer.hidden_size]
    shape = (batch, steps, layer.input_size) if layer.batch_first else (steps, batch, layer.input_size)
    state = [vesta.randn(rows, batch, width) for width in widths[: 2 if kind == "LSTM" else 1]]
    return vesta.randn(*shape).to(dtype), [s.to(dtype) for s in state]


def weights_of(t):
    """Returns numbers that make the gradient of each element of t another one."""
    return vesta.arange(1, t.numel() + 1, dtype=vesta.float64).reshape(t.shape).sin().to(t)


def results(layer, kind, x, state, device, dtype, which="yh", lengths=None, change=lambda t: t):
    """Returns the outputs, the last states and all gradients, computed on a device in a dtype."""
    layer = copy.deepcopy(layer).to(device, dtype)
    x = x.to(device, dtype).requires_grad_()
    state = None if state is None else [s.to(device, dtype).requires_grad_() for s in state]
    given = change(x)
    if lengths:
        given = pack_padded_sequence(given, vesta.tensor(lengths), layer.batch_first, enforce_sorted=False)
    y, last = call(layer, kind, given, state if state is None else tuple(map(change, state)))
    y = y.data if lengths else y
    parts = [y] * ("y" in which) + last * ("h" in which)
    loss = sum((t * weights_of(t)).sum() * (i + 1) for i, t in enumerate(parts))
    leaves = [x, *(state or []), *layer.parameters()]
    return [y, *last, *vesta.autograd.grad(loss, leaves, allow_unused=True)]


def check(layer, kind, x, state, dtype, units=64, **options):
    """Compares with the CPU in float64; `units` of the dtype's rounding, relative to a result's largest element."""
    got = results(layer, kind, x, state, "cuda", dtype, **options)
    exact = results(layer, kind, x, state, "cpu", vesta.float64, **options)
    for i, (a, b) in enumerate(zip(got, exact, strict=True)):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.is_cuda and a.dtype == dtype and a.shape == b.shape
            worst = (a.detach().cpu().double() - b).abs().max().item() / (EPS[dtype] * (1 + b.abs().max().item()))
            assert worst <= units, (i, worst)


def off_the_kink(layer):
    """Keeps the units of a layer far above 0 or far below, where rounding does not turn relu's gradient on or off."""
    with vesta.no_grad():
        for name, w in layer.named_parameters():
            if "weight_hh" in name:
                w.mul_(0.25)
            if "bias_ih" in name:
                w[::2], w[1::2] = 4, -4


@pytest.mark.parametrize("dtype", EPS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "batch, steps, inputs, width, both, bias, lengths, which",
    [
        (3, 4, 5, 7, False, True, None, "yh"),
        (1, 6, 3, 33, True, True, None, "y"),
        (5, 1, 3, 8, True, True, None, "yh"),
        (5, 3, 2, 16, True, False, [3, 1, 2, 1, 3], "yh"),
        (4, 5, 3, 20, False, True, [5, 4, 4, 2], "h"),
        (2, 2, 4, 132, True, True, [2, 1], "yh"),
    ],
    ids=str,
)
def test_values_and_gradients(kind, dtype, batch, steps, inputs, width, both, bias, lengths, which):
    kink = kind == "RNN_RELU" and dtype in (vesta.float16, vesta.bfloat16)
    layer = make(kind, inputs, width, bidirectional=both, bias=bias or kink)
    if kink:
        off_the_kink(layer)
    layer = layer.to(dtype)
    x, state = draw(kind, layer, steps, batch, dtype=dtype)
    check(layer, kind, x, state, dtype, which=which, lengths=lengths)
    check(layer, kind, x, None, dtype, which=which, lengths=lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_directions_and_layouts(kind):
    for batch_first in (False, True):
        layer = make(kind, 5, 6, 3, bidirectional=True, batch_first=batch_first)
        x, state = draw(kind, layer, 4, 3, layers=3)
        check(layer, kind, x, state, vesta.float64)
        check(layer, kind, x, state, vesta.float64, lengths=[2, 4, 1])
        for change in (
            lambda t: t.transpose(0, 2).contiguous().transpose(0, 2),
            lambda t: t.repeat_interleave(2, -1)[..., ::2],
            lambda t: vesta.nn.functional.pad(t, (1, 0))[..., 1:],
        ):
            check(layer, kind, x, state, vesta.float64, change=change)
    layer = make(kind, 5, 8)
    with vesta.no_grad():
        for w in layer.parameters():
            w.data = w.t().contiguous().t() if w.dim() == 2 else vesta.stack([w, w], 1)[:, 0]
    check(layer, kind, *draw(kind, layer, 4, 3), vesta.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_broadcast_or_missing(kind):
    layer = make(kind, 3, 8).cuda()
    x = vesta.randn(4, 2, 3).cuda().requires_grad_()
    y, last = call(layer, kind, x, None)
    leaves = [x, *layer.parameters()]
    ours = vesta.autograd.grad(y.sum(), leaves, retain_graph=True)
    dense = vesta.autograd.grad(y, leaves, vesta.ones_like(y), retain_graph=True)
    assert all(vesta.equal(a, b) for a, b in zip(ours, dense, strict=True))
    for t in last:
        assert all(g.isfinite().all() for g in vesta.autograd.grad(t.sum(), leaves, retain_graph=True))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_from_run_to_run_and_without_gradients(kind):
    layer = make(kind, 6, 97, bidirectional=True)
    x, state = draw(kind, layer, 3, 20, dtype=vesta.float32)
    lengths = [3] * 7 + [2] * 10 + [1] * 3
    one, two = (results(layer, kind, x, state, "cuda", vesta.float32, lengths=lengths) for _ in range(2))
    assert all(vesta.equal(a, b) for a, b in zip(one, two, strict=True))
    layer = layer.cuda()
    given = pack_padded_sequence(x.cuda(), vesta.tensor(lengths), enforce_sorted=False)
    with vesta.no_grad():
        y, last = call(layer, kind, given, [s.cuda() for s in state])
    assert all(vesta.equal(a, b) for a, b in zip([y.data, *last], one, strict=False))


def test_a_value_that_is_not_a_number_stays_with_its_sequence():
    for kind in KINDS:
        layer = make(kind, 3, 8).cuda()
        x = vesta.randn(3, 4, 3).cuda()
        clean = layer(x)[0]
        x[1, 2, 0] = vesta.nan
        y = layer(x)[0]
        assert y[1:, 2].isnan().all() and not y[0].isnan().any()
        assert vesta.equal(y[:, [0, 1, 3]], clean[:, [0, 1, 3]])


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_that_are_recorded(kind):
    layer = make(kind, 2, 3, bidirectional=True)
    x, state = draw(kind, layer, 3, 3)
    sides = []
    for device in ("cpu", "cuda"):
        net = copy.deepcopy(layer).to(device, vesta.float64)
        leaves = [t.to(device).requires_grad_() for t in (x, *state)]
        given = pack_padded_sequence(leaves[0], vesta.tensor([3, 2, 2]))
        y, last = call(net, kind, given, tuple(leaves[1:]))
        leaves += net.parameters()
        loss = sum((t.square() * weights_of(t)).sum() for t in (y.data, *last))
        first = vesta.autograd.grad(loss, leaves, create_graph=True)
        second = vesta.autograd.grad(sum((g * weights_of(g)).sum() for g in first), leaves)
        plain = vesta.autograd.grad(call(net, kind, given, tuple(leaves[1 : 1 + len(state)]))[0].data.sum(), leaves[0])
        sides.append([*first, *second, *plain])
    for a, b in zip(*sides, strict=True):
        vesta.testing.assert_close(b.cpu(), a, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [vesta.bfloat16, vesta.float16], ids=str)
def test_autocast_computes_in_its_dtype(kind, dtype):
    layer = make(kind, 5, 8, 2).cuda()
    x = vesta.randn(4, 3, 5).cuda().requires_grad_()
    with vesta.autocast("cuda", dtype=dtype):
        y = layer(x)[0]
    lower = copy.deepcopy(layer).to(dtype)
    want = lower(x.to(dtype))[0]
    assert y.dtype == dtype and vesta.equal(y, want)
    of_x, *_, of_bias = vesta.autograd.grad(y.float().square().sum(), [x, *layer.parameters()])
    expected = vesta.autograd.grad(want.float().square().sum(), [x, *lower.parameters()])
    assert of_x.dtype == vesta.float32 and vesta.equal(of_x, expected[0])
    assert of_bias.dtype == vesta.float32 and vesta.equal(of_bias, expected[-1].float())


def test_projections_and_dropout_between_layers():
    layer = make("LSTM", 5, 8, 2, bidirectional=True, proj_size=3)
    check(layer, "LSTM", *draw("LSTM", layer, 4, 3, layers=2), vesta.float64, lengths=[4, 2, 1])
    for kind in KINDS:
        layer = make(kind, 5, 8, 2, dropout=1.0, bias=False)  # the second layer sees zeros, whatever the random numbers
        check(layer, kind, *draw(kind, layer, 4, 3, layers=2), vesta.float64)


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_may_be_written_in_place_and_operands_may_not(kind):
    layer = make(kind, 3, 4).cuda()
    x = vesta.randn(5, 2, 3).cuda().requires_grad_()
    leaves = [x, *layer.parameters()]
    ours = vesta.autograd.grad(layer(x)[0].mul_(2).sum(), leaves)
    want = vesta.autograd.grad((layer(x)[0] * 2).sum(), leaves)
    assert all(vesta.equal(a, b) for a, b in zip(ours, want, strict=True))
    h = vesta.zeros(1, 2, 4).cuda()
    call(layer, kind, x, [h, h.clone()])
    assert not h.any()  # states are updated in place: not the caller's
    y = layer(x)[0]
    with vesta.no_grad():
        layer.weight_hh_l0.add_(1)
    with pytest.raises(RuntimeError, match=f"operation: {kind.lower()} saved its input"):
        y.sum().backward()


@pytest.mark.parametrize("kind", KINDS)
def test_no_sequences_and_no_steps(kind):
    layer = make(kind, 3, 4).cuda()
    y = layer(vesta.zeros(2, 0, 3).cuda())[0]
    y.sum().backward()
    assert y.shape == (2, 0, 4) and not layer.weight_hh_l0.grad.any()
    with pytest.raises(RuntimeError, match="Expected sequence length to be larger than 0"):
        layer(vesta.zeros(0, 2, 3).cuda())
    with pytest.raises(RuntimeError, match="device"):
        layer(vesta.zeros(2, 2, 3))
    with pytest.raises(RuntimeError, match="device"):
        call(layer, kind, vesta.zeros(2, 2, 3).cuda(), [vesta.zeros(1, 2, 4), vesta.zeros(1, 2, 4)])


LAUNCHES = """
import vesta
assert vesta.cuda.is_available()
def launches():
    return dict(vesta._C_cuda.counters())["launches"]
def of_a_step(kind, dtype, packed):
    counts = []
    for steps in (3, 11):
        layer = getattr(vesta.nn, kind)(4, 8, bidirectional=True, dtype=dtype).cuda()
        x = vesta.randn(steps, 3, 4, dtype=dtype).cuda()
        given = vesta.nn.utils.rnn.pack_padded_sequence(x, vesta.tensor([steps, steps, 1])) if packed else x
        before = launches()
        y = layer(given)[0]
        y = y.data if packed else y
        between = launches()
        y.backward(vesta.ones_like(y))
        counts.append((between - before, launches() - between))
    return [(b - a) / 8 / 2 for a, b in zip(*counts)]  # a step in one direction
for kind in ("LSTM", "GRU", "RNN"):
    for dtype in (vesta.float32, vesta.bfloat16):
        for packed in (False, True):
            forward, backward = of_a_step(kind, dtype, packed)
            assert forward <= 2 and backward <= 2, (kind, dtype, packed, forward, backward)
"""


def test_two_launches_a_step():
    cuda_fakes.check(LAUNCHES, FAKES, VESTA_CUDA_LIBRARIES="off")


PRELUDE = """
import copy, ctypes, os, warnings
import vesta
warnings.simplefilter("error")
assert vesta.cuda.is_available()
fake = ctypes.CDLL(os.environ["VESTA_CUDA_LIB_DIR"] + "/libcublasLt.so.13")
def sides(kind, dtype, steps=4, width=8):
    vesta.manual_seed(0)
    layer = getattr(vesta.nn, kind)(5, width, 2, bidirectional=True, dtype=dtype)
    x, found = vesta.randn(steps, 3, 5, dtype=dtype), []
    for device in ("cpu", "cuda"):
        net, leaf = copy.deepcopy(layer).to(device), x.to(device).requires_grad_()
        y = net(leaf)[0]
        found.append([y, *vesta.autograd.grad(y.float().square().sum(), [leaf, *net.parameters()])])
    return zip(*found)
def same(tolerance, **options):
    for kind in ("LSTM", "GRU", "RNN"):
        for a, b in sides(kind, **options):
            vesta.testing.assert_close(b.cpu(), a, rtol=tolerance, atol=tolerance)
"""

BY_LIBRARY = """
same(1e-5, dtype=vesta.float32)
same(1e-12, dtype=vesta.float64)
same(5e-2, dtype=vesta.bfloat16)
same(5e-3, dtype=vesta.float16)
same(1e-5, dtype=vesta.float32, width=7)
same(1e-5, dtype=vesta.float32, steps=1)
"""


@fakes
def test_products_are_the_librarys():
    cuda_fakes.check(PRELUDE + BY_LIBRARY, FAKES)
    cuda_fakes.check(PRELUDE + BY_LIBRARY, FAKES, VESTA_EMULATION_SCHEDULE="random")
    cuda_fakes.check(LAUNCHES, FAKES)
    cuda_fakes.check(
        PRELUDE
        + """
for kind in ("LSTM", "GRU", "RNN"):
    for steps in (6, 20):
        layer = getattr(vesta.nn, kind)(5, 8).cuda()
        x = vesta.randn(steps, 3, 5).cuda().requires_grad_()
        before = fake.fake_calls()
        y = layer(x)[0]
        assert fake.fake_calls() - before == steps + 1  # all inputs in one
        y.backward(vesta.ones_like(y))
        assert fake.fake_calls() - before == 2 * steps + 4  # of inputs, and of both weights
""",
        FAKES,
    )


@pytest.mark.differs
@fakes
def test_tf32_is_asked_for_only_when_allowed():
    cuda_fakes.check(
        PRELUDE
        + """
layer, x = vesta.nn.LSTM(5, 8).cuda(), vesta.randn(4, 3, 5).cuda()
layer(x)[0].sum().backward()
assert fake.fake_calls() > 8 and fake.fake_tf32_calls() == 0
assert vesta.backends.cudnn.allow_tf32  # of convolutions
vesta.backends.cuda.matmul.allow_tf32 = True
before = fake.fake_calls()
layer(x)[0].sum().backward()
assert fake.fake_tf32_calls() == fake.fake_calls() - before > 8
""",
        FAKES,
    )


@fakes
def test_what_the_library_refuses_is_computed_by_plain_kernels():
    out = cuda_fakes.check(
        PRELUDE.replace('warnings.simplefilter("error")', "") + BY_LIBRARY + "assert fake.fake_calls() == 0",
        FAKES,
        FAKE_CUBLAS_LT="refuse",
    )
    assert "plain kernels are used" in out
