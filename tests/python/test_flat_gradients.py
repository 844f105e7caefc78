"""Gradients of gradients of piecewise linear functions: zero, but there."""

from __future__ import annotations

import pytest
import vesta
import vesta.nn.functional as F

PIECEWISE = {
    "relu": vesta.relu,
    "relu_": lambda x: (x * 1).relu_(),
    "relu6": F.relu6,
    "leaky_relu": F.leaky_relu,
    "hardtanh": F.hardtanh,
    "threshold": lambda x: F.threshold(x, 0.125, 0.2),
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "prelu": lambda x: F.prelu(x, vesta.tensor([0.25], dtype=x.dtype)),
    "linear": lambda x: F.linear(x, vesta.eye(3, dtype=x.dtype)).relu(),
}


@pytest.mark.parametrize("name", PIECEWISE)
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.bfloat16])
def test_gradients_of_piecewise_linear_functions_have_a_gradient_of_zero(name: str, dtype: vesta.dtype) -> None:
    """A bias that only moves what decides between the pieces gets zeros, as in PyTorch, and not None."""
    x = vesta.tensor([-0.75, 0.25, 2.0], dtype=dtype).requires_grad_()
    bias = vesta.zeros(3, dtype=dtype).requires_grad_()
    weight = vesta.ones(3, dtype=dtype).requires_grad_()
    y = PIECEWISE[name](x * weight + bias)
    (slope,) = vesta.autograd.grad(y.sum(), x, create_graph=True)
    slope.pow(2).sum().backward()
    assert bias.grad.tolist() == [0, 0, 0] and bias.grad.dtype == dtype and x.grad.tolist() == [0, 0, 0]
    vesta.testing.assert_close(weight.grad, (2 * slope * slope).detach())  # weights are 1: slope = piece * weight
    z = x.detach().requires_grad_()
    first = vesta.autograd.grad(PIECEWISE[name](z).sum(), z, create_graph=True)[0]
    second = vesta.autograd.grad(first.sum(), z, create_graph=True)[0]
    assert second.tolist() == [0, 0, 0]
