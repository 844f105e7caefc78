"""Cross-entropy of large logits: only what lies between the logits of a row counts."""

from __future__ import annotations

import numpy as np
import pytest
import vesta
import vesta.nn.functional as F
from op_db_check import DEVICES


def exact(x, target, weight, smoothing):
    """The mean loss and its gradient, in float64."""
    rows, classes = x.shape
    x = x.astype(np.float64)
    x = x - x.max(1, keepdims=True)
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    goal = np.full(x.shape, smoothing / classes)
    goal[np.arange(rows), target] += 1 - smoothing
    goal *= weight
    total = weight[target].sum()
    return -(goal * logs).sum() / total, (np.exp(logs) * goal.sum(1, keepdims=True) - goal) / total


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0, 0.1])
@pytest.mark.parametrize("center", [0, 1e4, -1e9, 1e30, -3e38])
def test_large_logits_cost_no_digits(center, smoothing, weighted, device):
    rng = np.random.default_rng(7)
    x = (3 * rng.standard_normal((40, 50)) + center).astype(np.float32)
    target, weight = rng.integers(0, 50, 40), rng.random(50).astype(np.float32) + 0.5 if weighted else np.ones(50)
    loss, grad = exact(x, target, weight, smoothing)
    logits = vesta.tensor(x).to(device).requires_grad_()
    given = vesta.tensor(weight).to(device) if weighted else None
    got = F.cross_entropy(logits, vesta.tensor(target).to(device), given, label_smoothing=smoothing)
    got.backward()
    assert got.item() == pytest.approx(loss, rel=1e-6)
    assert np.abs(logits.grad.cpu().numpy() - grad).max() < 1e-6 * np.abs(grad).max()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16, vesta.float64], ids=str)
def test_other_dtypes(dtype, device):
    center = 1e17 if dtype == vesta.float64 else 1e4
    x = (3 * vesta.randn(6, 9) + center).to(dtype)
    loss, grad = exact(x.double().numpy(), np.arange(6), np.ones(9), 0.1)
    logits = x.to(device).requires_grad_()
    got = F.cross_entropy(logits, vesta.arange(6).to(device), label_smoothing=0.1)
    got.backward()
    eps = vesta.finfo(dtype).eps
    assert got.item() == pytest.approx(loss, rel=4 * eps)
    assert np.abs(logits.grad.cpu().double().numpy() - grad).max() < 4 * eps * np.abs(grad).max()


@pytest.mark.parametrize("device", DEVICES)
def test_infinities(device):
    inf = float("inf")
    rows = [[-inf, -inf], [inf, 0.0], [-inf, 1.0], [1.0, -inf]]
    x = vesta.tensor(rows).to(device).requires_grad_()
    loss = F.cross_entropy(x, vesta.zeros(4, dtype=vesta.int64).to(device), reduction="none")
    loss.sum().backward()
    assert loss[:2].isnan().all() and loss[2:].tolist() == [inf, 0]
    assert x.grad[:2].isnan().all() and x.grad[2:].tolist() == [[-1, 1], [0, 0]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(2, 3, 9, 11), (3, 21, 40), (1, 70, 3, 8), (2, 2, 5, 1), (2, 40, 33)], ids=str)
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.2}], ids=str)
def test_layouts_of_images_have_the_same_bits(shape, options, dtype, device):
    """Columns that lie side by side, pixels, and rows one by one: the same losses and gradients."""
    rng = np.random.default_rng(3)
    x = vesta.tensor(4 * rng.standard_normal(shape)).to(dtype).to(device)
    t = vesta.tensor(rng.integers(0, shape[1], (shape[0], *shape[2:]))).to(device)
    t.view(-1)[::5] = -100
    x[:, :, :1] = float("-inf")
    for weight in (None, (vesta.arange(shape[1]) % 3 + 1).to(dtype).to(device)):
        results = []
        for given in (x, x.movedim(1, -1).contiguous().movedim(-1, 1), x.repeat_interleave(2, -1)[..., ::2]):
            leaf = given.detach().requires_grad_()
            loss = F.cross_entropy(leaf, t, weight, reduction="none", **options)
            (g,) = vesta.autograd.grad(
                loss[t != -100].nan_to_num(0, 0, 0).sum() + (loss * 2).nan_to_num(0, 0, 0).sum(), leaf
            )
            assert loss.shape == t.shape and g.shape == leaf.shape
            results.append((loss, g))
        for other in results[1:]:
            for a, b in zip(results[0], other):
                assert vesta.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))
        assert not results[0][1].movedim(1, -1)[t == -100].any()


@pytest.mark.parametrize("classes", [1, 2, 3, 8, 10, 31, 32, 33, 64, 65])
def test_columns_have_the_bits_of_rows(classes):
    x = vesta.tensor(3 * np.random.default_rng(classes).standard_normal((40, classes)))
    t = vesta.arange(40) % classes
    for dtype in (vesta.float32, vesta.float64, vesta.float16):
        rows = x.to(dtype)
        columns = rows.t().contiguous().unsqueeze(0)
        for f in (vesta.softmax, vesta.log_softmax):
            assert vesta.equal(f(columns, 1)[0].t(), f(rows, 1))
        assert vesta.equal(vesta.logsumexp(columns, 1)[0], vesta.logsumexp(rows, 1))
        got = F.cross_entropy(columns, t.unsqueeze(0), reduction="none", label_smoothing=0.1)
        assert vesta.equal(got[0], F.cross_entropy(rows, t, reduction="none", label_smoothing=0.1))


def test_attention_of_large_scores():
    q, k, v = vesta.full((1, 1, 2, 1), 1e4), vesta.tensor([[[[1.0], [1.0], [1.0]]]]), vesta.eye(3)[None, None]
    y = F.scaled_dot_product_attention(q, k, v)
    assert vesta.allclose(y, vesta.full((1, 1, 2, 3), 1 / 3), rtol=1e-6, atol=0)


PARTS = [{}, {"batch_chunk_size": 4}, {"batch_chunk_size": 99}, {"chunking_method": "aspect_ratio:2"}]


@pytest.mark.parametrize("options", PARTS)
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_classifier_in_parts_of_the_batch(options, probabilities, reduction, weighted):
    vesta.manual_seed(0)
    x, w, b = (vesta.randn(*s, requires_grad=True) for s in ((13, 3), (7, 3), (7,)))
    target = vesta.softmax(vesta.randn(13, 7), 1) if probabilities else vesta.randint(0, 7, (13,))
    named = {"reduction": reduction, "label_smoothing": 0.1, "weight": vesta.rand(7) if weighted else None}
    if not probabilities:
        named["ignore_index"] = 3
    results = []
    for given in (None, vesta.nn.LinearCrossEntropyOptions(**options)):
        loss = F.linear_cross_entropy(x, w, target, linear_bias=b, options=given, **named)
        results.append([loss, *vesta.autograd.grad(loss.sum(), [x, w, b])])
    for whole, parts in zip(*results, strict=True):
        assert whole.shape == parts.shape and vesta.allclose(whole, parts, rtol=1e-5, atol=1e-6)


def test_parts_of_the_batch_are_all_the_logits_in_memory():
    """What backward needs of the parts is computed again: no saved tensor has as many elements as all logits."""
    x, w = vesta.randn(64, 4, requires_grad=True), vesta.randn(1000, 4, requires_grad=True)
    target, sizes = vesta.randint(0, 1000, (64,)), []
    with vesta.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
        F.linear_cross_entropy(x, w, target, options=vesta.nn.LinearCrossEntropyOptions(batch_chunk_size=8))
    assert max(sizes) < 64 * 1000


def test_what_options_of_a_classifier_refuses():
    options = vesta.nn.LinearCrossEntropyOptions
    x, w, target = vesta.ones(8, 3), vesta.ones(4, 3), vesta.zeros(8).long()
    with pytest.raises(TypeError, match="linear_cross_entropy: expected LinearCrossEntropyOptions, got dict .options"):
        F.linear_cross_entropy(x, w, target, options={})
    with pytest.raises(ValueError, match="pass only one of them"):
        F.linear_cross_entropy(x, w, target, options=options(batch_chunk_size=3, chunking_method="aspect_ratio"))
    for method in ("aspect_ratio:0", "aspect_ratio:", "half"):
        with pytest.raises(ValueError, match="chunking_method"):
            options(chunking_method=method)
    for count in (vesta.zeros(3).long(), vesta.full((8,), 9)):
        with pytest.raises((ValueError, RuntimeError, IndexError), match="cross_entropy"):
            F.linear_cross_entropy(x, w, count, options=options())


def test_probabilities_have_no_class_to_ignore() -> None:
    x, target = vesta.randn(3, 4), vesta.randn(3, 4).softmax(1)
    assert F.cross_entropy(x, target, ignore_index=-1) == F.cross_entropy(x, target)
    for index in (0, 1, 7):
        with pytest.raises(RuntimeError, match="ignore_index is not supported for floating point target"):
            F.cross_entropy(x, target, ignore_index=index)
