"""Cross-entropy under autocast: 16-bit logits are read as they are, with the values of a float32 copy of them: on the
CPU with its bits; on CUDA rows of 16-bit floats are summed in packs of their own."""

from __future__ import annotations

import pytest
import vesta
import vesta.nn.functional as F
from op_db_check import DEVICES
from vesta.profiler import profile

f32 = vesta.float32
DTYPES = (vesta.bfloat16, vesta.float16)
ROWS, CLASSES = 6, 37
OPTIONS = [
    {},
    {"weight": True},
    {"label_smoothing": 0.1},
    {"weight": True, "label_smoothing": 0.3, "ignore_index": 3},
    {"ignore_index": 2, "reduction": "sum"},
    {"weight": True, "reduction": "none"},
]
#: Shapes of logits; the last rows are longer than what a GPU's block keeps.
SHAPES = {"rows": (ROWS, CLASSES), "one": (CLASSES,), "image": (2, CLASSES, 3, 2), "long": (3, 13001)}


def same(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape
    assert vesta.equal(a.isnan(), b.isnan()) and vesta.equal(a.nan_to_num(), b.nan_to_num())


def agree(got, want, device):
    """Checks bits on the CPU; on CUDA four units of float32's last place, and one of 16 bits."""
    if device == "cpu":
        return same(got, want)
    assert got.dtype == want.dtype and got.shape == want.shape
    unit = {f32: 2.0**-21, vesta.bfloat16: 2.0**-7, vesta.float16: 2.0**-10}[want.dtype]
    terms = want.float().abs().nan_to_num(0, 0, 0).max().item()  # of differences, which float32 rounds
    smallest = 2.0**-24 if want.dtype == vesta.float16 else 0.0
    least = max(2.0**-20 * terms, smallest)
    vesta.testing.assert_close(got, want, rtol=unit, atol=least, equal_nan=True)


def operands(shape, dtype, device, options, soft=False):
    vesta.manual_seed(3)
    classes = shape[0] if len(shape) == 1 else shape[1]
    x = (3 * vesta.randn(shape)).to(dtype).to(device).requires_grad_()
    if soft:
        target = vesta.rand(shape).to(dtype).to(device)
    else:
        target = (vesta.arange(x.numel() // classes) * 7 % min(classes, 11)).view(
            shape[:1] * (len(shape) > 1) + shape[2:]
        )
    given = dict(options)
    if given.get("weight"):
        given["weight"] = (vesta.arange(classes) % 5 + 1).to(dtype).to(device)
    return x, target.to(device), given


def widened(given):
    return {k: v.to(f32) if isinstance(v, vesta.Tensor) else v for k, v in given.items()}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("soft", [False, True], ids=["classes", "probabilities"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_values_are_those_of_a_float32_copy(options, shape, soft, dtype, device):
    x, target, given = operands(SHAPES[shape], dtype, device, options, soft)
    if soft:
        given.pop("ignore_index", None)  # of classes only
    want = F.cross_entropy(x.to(f32), target.to(f32) if soft else target, **widened(given))
    factor = vesta.rand(want.shape).to(device) + 0.5
    (gradient,) = vesta.autograd.grad((want * factor).sum(), x)
    with vesta.autocast(device, dtype=dtype):
        got = F.cross_entropy(x, target, **given)
    assert got.dtype == f32
    (got * factor).sum().backward()
    agree(got.detach(), want.detach(), device)
    agree(x.grad, gradient, device)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_second_gradient(options, dtype, device):
    """It has those bits too, unless it reaches the logits by two paths, whose parts are then added in their dtype."""
    for power in (1, 2):
        grads = []
        for autocast in (False, True):
            x, target, given = operands(SHAPES["rows"], dtype, device, options)
            with vesta.autocast(device, dtype=dtype, enabled=autocast):
                if autocast:
                    loss = F.cross_entropy(x, target, **given)
                else:
                    loss = F.cross_entropy(x.to(f32), target, **widened(given))
            (g,) = vesta.autograd.grad((loss**power).sum(), x, create_graph=True)
            assert g.dtype == dtype and g.requires_grad
            (second,) = vesta.autograd.grad((g.to(f32) ** 2).sum(), x)
            assert second.abs().sum() > 0
            grads.append((g.detach(), second))
        (g_copy, copy), (g, direct) = grads
        same(g, g_copy)
        if power == 1:
            same(direct, copy)
        else:
            assert (direct - copy).abs().max() <= 4 * vesta.finfo(dtype).eps * copy.abs().max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_infinities_have_those_bits_too(dtype, device):
    inf = float("inf")
    rows = [[-inf, -inf], [inf, 0.0], [-inf, 1.0], [1.0, -inf], [float("nan"), 0.0], [6e4, -6e4]]
    target = vesta.zeros(6, dtype=vesta.int64, device=device)
    results = []
    for autocast in (False, True):
        x = vesta.tensor(rows).to(dtype).to(device).requires_grad_()
        with vesta.autocast(device, dtype=dtype, enabled=autocast):
            loss = F.cross_entropy(x if autocast else x.to(f32), target, reduction="none")
        loss.sum().backward()
        results.append((loss.detach(), x.grad))
    for copy, direct in zip(*results):
        same(direct, copy)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(ROWS, CLASSES), (2, CLASSES, 3, 2)], ids=str)
def test_no_copy_of_the_logits_is_made(shape, device):
    x, target, _ = operands(shape, vesta.bfloat16, device, {})
    with profile(record_shapes=True) as prof, vesta.autocast(device, dtype=vesta.bfloat16):
        F.cross_entropy(x, target).backward()
    of_logits = [e.name for e in prof.events() if any(vesta.Size(s).numel() == x.numel() for s in e.input_shapes if s)]
    assert any("cross_entropy" in name for name in of_logits)
    assert not [name for name in of_logits if "to_copy" in name or name.endswith("::to")]


@pytest.mark.parametrize("device", DEVICES)
def test_saved_tensor_hooks_get_the_logits_as_they_are(device):
    x, target, _ = operands((ROWS, CLASSES), vesta.bfloat16, device, {})
    saved = []
    keep = vesta.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or len(saved) - 1, lambda i: saved[i])
    with keep, vesta.autocast(device, dtype=vesta.bfloat16):
        loss = F.cross_entropy(x, target)
    assert [t.dtype for t in saved if t.shape == x.shape] == [vesta.bfloat16]
    (g,) = vesta.autograd.grad(loss, x)
    same(g, vesta.autograd.grad(F.cross_entropy(x.to(f32), target), x)[0])


@pytest.mark.skipif("cuda" not in DEVICES, reason="needs a GPU or the build tree's emulated device")
def test_the_peak_of_memory_is_that_of_the_gradient():
    x, target, _ = operands((64, 4096), vesta.bfloat16, "cuda", {})
    vesta.cuda.synchronize()
    vesta.cuda.reset_peak_memory_stats()
    before = vesta.cuda.memory_allocated()
    with vesta.autocast("cuda", dtype=vesta.bfloat16):
        F.cross_entropy(x, target).backward()
    peak = vesta.cuda.max_memory_allocated() - before
    assert peak < 1.5 * x.numel() * 2  # a float32 copy and its gradient took 4 times x


@pytest.mark.parametrize("device", DEVICES)
def test_what_autocast_does_not_change(device):
    x, target, _ = operands((ROWS, CLASSES), vesta.bfloat16, device, {})
    assert F.cross_entropy(x, target).dtype == vesta.bfloat16
    for dtype in (f32, vesta.float64):
        with vesta.autocast(device, dtype=vesta.bfloat16):
            assert F.cross_entropy(x.to(dtype), target).dtype == dtype
    with vesta.autocast(device, dtype=vesta.bfloat16):
        with pytest.raises(TypeError, match="expected weight of dtype float32, got float64"):
            F.cross_entropy(x, target, vesta.ones(CLASSES, dtype=vesta.float64, device=device))
        with pytest.raises(IndexError, match=r"cross_entropy: Target 99 is out of bounds"):
            F.cross_entropy(x, target.where(target != 0, 99), reduction="none").cpu()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_gradient_is_rounded_once(dtype, device):
    x, target, given = operands((ROWS, CLASSES), dtype, device, {"weight": True, "label_smoothing": 0.1})
    x32 = x.detach().to(f32).requires_grad_()
    F.cross_entropy(x, target, reduction="sum", **given).backward()
    F.cross_entropy(x32, target, reduction="sum", **widened(given)).backward()
    same(x.grad, x32.grad.to(dtype))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_mean_counts_beyond_what_sixteen_bits_hold(dtype, device):
    """The number of rows, 1501, is no number of bfloat16; neither are sums of losses."""
    x = vesta.zeros(1501, 4, dtype=dtype, device=device)
    target = vesta.zeros(1501, dtype=vesta.int64, device=device)
    for loss in (F.cross_entropy(x, target), F.nll_loss(x.log_softmax(1), target)):
        assert loss.dtype == dtype and loss.item() == vesta.tensor(4.0).log().to(dtype).item()
