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


def test_attention_of_large_scores():
    q, k, v = vesta.full((1, 1, 2, 1), 1e4), vesta.tensor([[[[1.0], [1.0], [1.0]]]]), vesta.eye(3)[None, None]
    y = F.scaled_dot_product_attention(q, k, v)
    assert vesta.allclose(y, vesta.full((1, 1, 2, 3), 1 / 3), rtol=1e-6, atol=0)
