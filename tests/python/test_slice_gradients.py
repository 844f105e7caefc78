"""Gradients of several slices of one tensor are joined: each is written once, and none is added to zeros."""

from __future__ import annotations

import pytest
import vesta
from op_db_check import DEVICES
from vesta.profiler import ProfilerActivity, profile


def gradients(device: str, parts: int) -> tuple[vesta.Tensor, vesta.Tensor, list[str]]:
    """Returns the gradient of a tensor that was split, the one expected, and the names of the ops of the backward."""
    x = vesta.randn(8, 6 * parts).to(device).requires_grad_()
    weights = [vesta.randn(8, 6).to(device) for _ in range(parts)]
    y = sum((part * w).sum() for part, w in zip(vesta.tanh(x).split(6, 1), weights))
    with profile(activities=[ProfilerActivity.CPU]) as p:
        y.backward()
    want = vesta.cat(weights, 1) * (1 - vesta.tanh(x.detach()) ** 2)
    return x.grad, want, [event.name for event in p.events()]


@pytest.mark.parametrize("device", DEVICES)
def test_one_buffer(device: str) -> None:
    got, want, names = gradients(device, 4)
    assert vesta.allclose(got, want)
    assert names.count("aten::cat") == 1 and "aten::zeros" not in names and "aten::add_" not in names


@pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")
def test_slices_of_other_streams() -> None:
    """The buffer belongs to the stream of the node that takes it: slices that another stream made go the long way."""
    x = vesta.randn(64, 96).cuda().requires_grad_()
    weights = [vesta.randn(64, 24).cuda() for _ in range(4)]
    base = vesta.tanh(x)
    side = vesta.cuda.Stream()
    total = []
    for i, (part, w) in enumerate(zip(base.split(24, 1), weights)):
        if i % 2:
            side.wait_stream(vesta.cuda.current_stream())
            with vesta.cuda.stream(side):
                total.append((part.clone() * w).sum())
            vesta.cuda.current_stream().wait_stream(side)
        else:
            total.append((part * w).sum())
    sum(total).backward()
    want = vesta.cat(weights, 1) * (1 - vesta.tanh(x.detach()) ** 2)
    assert vesta.allclose(x.grad, want)
