"""Connectionist temporal classification, on the CPU and a CUDA device: the same losses and gradients of any order as
the sum over alignments by other ops, in one launch forward and two backward."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import vesta
from vesta import Tensor
from vesta.nn import functional as F

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or an emulated")),
]
LIMITS = {vesta.float32: 2e-5, vesta.float64: 1e-12}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return vesta.from_numpy(np.random.RandomState(seed).standard_normal(shape) * 2).log_softmax(-1)


def labels(classes: int, *shape: int, seed: int = 0) -> Tensor:
    return vesta.from_numpy(np.random.RandomState(seed).randint(1, classes, shape))


def by_steps(log_probs: Tensor, target: list[int], blank: int) -> Tensor:
    """Returns the loss of one sequence [T, C], one sum of two or three numbers at a time."""
    states = [blank, *(k for label in target for k in (label, blank))]
    alpha = [vesta.zeros((), dtype=log_probs.dtype)] + [vesta.tensor(-1e4, dtype=log_probs.dtype)] * len(states)
    alpha = alpha[: len(states)]
    for t in range(len(log_probs)):
        now = []
        for s, label in enumerate(states):
            ways = [alpha[s]]
            if s > 0 and (t > 0 or s == 1):
                ways.append(alpha[s - 1])
            if t > 0 and s > 1 and s % 2 and label != states[s - 2]:
                ways.append(alpha[s - 2])
            now.append(vesta.stack(ways).logsumexp(0) + log_probs[t, label])
        alpha = now
    return -vesta.stack(alpha[-2:] if target else alpha[-1:]).logsumexp(0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64])
@pytest.mark.parametrize(
    "steps, classes, inputs, lengths, blank",
    [
        (12, 5, [12, 9, 5], [4, 4, 0], 0),  # fewer steps than the kernel takes at once, and more
        (21, 4, [21, 17, 1], [8, 3, 1], 0),  # labels repeat
        (6, 7, [0, 6, 6], [0, 2, 3], 6),
    ],
)
@pytest.mark.parametrize("joined", [False, True])
def test_losses_and_gradients(
    device: str, dtype: Any, steps: int, classes: int, inputs: list[int], lengths: list[int], blank: int, joined: bool
) -> None:
    x, t = drawn(steps, 3, classes), labels(classes, 3, max(lengths)) - (1 if blank else 0)
    leaf = x.clone().requires_grad_()
    want = vesta.stack(
        [by_steps(leaf[:n, i], t[i, :m].tolist(), blank) for i, (n, m) in enumerate(zip(inputs, lengths))]
    )
    share = vesta.tensor([1.0, -0.5, 2.0], dtype=vesta.float64)
    gradient = vesta.autograd.grad(want, leaf, share)[0]
    for i, n in enumerate(inputs):  # PyTorch's: that of scores whose sum is 1
        gradient[:n, i] += share[i] * x[:n, i].exp()
    given = vesta.cat([t[i, :m] for i, m in enumerate(lengths)]) if joined else t
    z = x.to(dtype).to(device).requires_grad_()
    got = F.ctc_loss(z, given.to(device), inputs, lengths, blank, "none")
    assert got.dtype == dtype and got.device.type == device
    vesta.testing.assert_close(got.cpu().double(), want, atol=1e-5, rtol=LIMITS[dtype])
    got.backward(share.to(dtype).to(device))
    vesta.testing.assert_close(z.grad.cpu().double(), gradient, atol=LIMITS[dtype], rtol=LIMITS[dtype])


@pytest.mark.parametrize("device", DEVICES)
def test_many_states_and_classes(device: str) -> None:
    """More states than threads, than a thread holds, and than shared memory; scores that are no rows."""
    for steps, classes, length in ((330, 6, 140), (30, 1100, 9), (40, 3, 1550)):
        x, t = drawn(2, classes, steps).permute(2, 0, 1), labels(classes, 2, length)
        lengths = [length, min(length, steps // 3)]
        got, want = x.to(device).requires_grad_(), x.detach().clone().requires_grad_()
        for z, given in ((got, t.to(device)), (want, t)):
            loss = F.ctc_loss(z, given, [steps, steps - 3], lengths, reduction="none")
            assert math.isinf(loss[0].item()) == (length > steps)
            loss.backward(vesta.tensor([0.5, 2.0], dtype=loss.dtype, device=z.device))
            if length < 200:
                mass = (z.detach().exp().sum(-1) - 1) * vesta.tensor([0.5, 2.0], dtype=z.dtype, device=z.device)
                mass[steps - 3 :, 1] = 0
                vesta.testing.assert_close(z.grad.sum(-1), mass, atol=1e-10, rtol=0)
        vesta.testing.assert_close(got.grad.cpu(), want.grad, atol=1e-12, rtol=1e-11, equal_nan=True)


@pytest.mark.parametrize("device", DEVICES)
def test_targets_without_an_alignment(device: str) -> None:
    x, t = drawn(4, 2, 3).to(device), vesta.tensor([[1, 1, 2], [2, 2, 2]], device=device)
    y = x.clone().requires_grad_()
    loss = F.ctc_loss(y, t, [4, 4], [3, 3], reduction="none")
    assert math.isfinite(loss[0].item()) and loss[1].item() == math.inf
    y = x.clone().requires_grad_()
    loss = F.ctc_loss(y, t, [4, 4], [3, 3], reduction="sum", zero_infinity=True)
    loss.backward()
    assert math.isfinite(loss.item()) and not y.grad[:, 1].any() and y.grad[:, 0].any()
    y = x.clone().requires_grad_()
    F.ctc_loss(y, t, [4, 3], [3, 3], reduction="sum").backward()  # as PyTorch's: an infinite loss has no gradient
    assert y.grad[:, 0].isfinite().all() and y.grad[:3, 1].isnan().all() and not y.grad[3, 1].any()
    blocked = x.clone()
    blocked[1, 0] = -math.inf
    assert F.ctc_loss(blocked, t, [4, 4], [3, 3], reduction="none")[0].item() == math.inf
    blocked[1, 0] = math.nan
    assert math.isnan(F.ctc_loss(blocked, t, [4, 4], [3, 3], reduction="none")[0].item())


@pytest.mark.parametrize("device", DEVICES)
def test_an_input_of_no_steps_fits_an_empty_target_alone(device: str) -> None:
    x = drawn(3, 3, 4).to(device).requires_grad_()
    loss = F.ctc_loss(x, vesta.tensor([[1], [1], [1]], device=device), [0, 0, 3], [0, 1, 0], reduction="none")
    assert loss[:2].tolist() == [0, math.inf]
    vesta.testing.assert_close(loss[2], -x[:, 2, 0].sum())
    loss[0].backward()
    assert not x.grad.any()


@pytest.mark.parametrize("device", DEVICES)
def test_second_derivatives(device: str) -> None:
    x = drawn(4, 2, 3).to(device).requires_grad_()
    t = vesta.tensor([[1, 2], [2, 2]], device=device)

    def loss(z: Tensor) -> Tensor:
        return F.ctc_loss(z.log_softmax(-1), t, [4, 3], [2, 1])

    assert vesta.autograd.gradcheck(loss, (x,)) and vesta.autograd.gradgradcheck(loss, (x,))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16])
def test_sixteen_bits_are_computed_in_float32(device: str, dtype: Any) -> None:
    x, t = drawn(30, 2, 5).to(dtype).to(device).requires_grad_(), labels(5, 2, 8).to(device)
    got = F.ctc_loss(x, t, [30, 25], [8, 6])
    (gradient,) = vesta.autograd.grad(got, x)
    wide = x.detach().float().requires_grad_()
    want = F.ctc_loss(wide, t, [30, 25], [8, 6])
    assert vesta.equal(got, want.to(dtype)) and vesta.equal(gradient, vesta.autograd.grad(want, wide)[0].to(dtype))


def test_a_sequence_does_not_depend_on_the_batch() -> None:
    for device in ("cpu", *(["cuda"] if vesta.cuda.is_available() else [])):
        x, t = drawn(25, 3, 6).float().to(device), labels(6, 3, 7).to(device)
        alone = F.ctc_loss(x[:, 1], t[1], [20], [5], reduction="none")
        assert vesta.equal(F.ctc_loss(x, t, [25, 20, 3], [7, 5, 1], reduction="none")[1], alone)


def test_labels_out_of_range_are_refused() -> None:
    x = drawn(4, 1, 3)
    for label in (-1, 3):
        with pytest.raises(vesta.Error, match=f"expected targets from 0 to 2, got {label}"):
            F.ctc_loss(x, vesta.tensor([[label]]), [4], [1])
        if vesta.cuda.is_available():
            with pytest.raises(IndexError, match=f"ctc_loss: Target {label} is out of bounds"):
                F.ctc_loss(x.cuda(), vesta.tensor([[label]]).cuda(), [4], [1]).item()
    with pytest.raises(vesta.Error, match="at most 4, but got value 5"):
        F.ctc_loss(x, vesta.tensor([[1]]), [5], [1])
    with pytest.raises(vesta.Error, match="size at least 2"):
        F.ctc_loss(x, vesta.tensor([[1]]), [4], [2])


@pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")
def test_launches_do_not_grow_with_the_steps() -> None:
    counts = []
    for steps in (10, 60):
        x, t = drawn(steps, 4, 9).cuda().requires_grad_(), labels(9, 4, 5).cuda()
        for _ in range(2):  # the first call brings the lengths to the device
            x.grad = None
            before = dict(vesta._C_cuda.counters())["launches"]
            F.ctc_loss(x, t, [steps] * 4, [5] * 4, reduction="sum").backward()
            counts.append(dict(vesta._C_cuda.counters())["launches"] - before)
    assert counts[1] == counts[3] <= 5
