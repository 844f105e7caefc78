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


LINEAR = {
    "avg_pool1d": (1, lambda x: F.avg_pool1d(x, 2)),
    "avg_pool2d": (2, lambda x: F.avg_pool2d(x, 2)),
    "avg_pool3d": (3, lambda x: F.avg_pool3d(x, 2)),
    "max_pool1d": (1, lambda x: F.max_pool1d(x, 2)),
    "max_pool2d": (2, lambda x: F.max_pool2d(x, 2)),
    "max_pool2d of a sum": (2, lambda x: F.max_pool2d(x + 1, 2, return_indices=True)[0]),
    "max_pool3d": (3, lambda x: F.max_pool3d(x, 2)),
    "adaptive_avg_pool1d": (1, lambda x: F.adaptive_avg_pool1d(x, 3)),
    "adaptive_avg_pool2d": (2, lambda x: F.adaptive_avg_pool2d(x, 3)),
    "adaptive_avg_pool3d": (3, lambda x: F.adaptive_avg_pool3d(x, 3)),
    "adaptive_max_pool1d": (1, lambda x: F.adaptive_max_pool1d(x, 3)),
    "adaptive_max_pool2d": (2, lambda x: F.adaptive_max_pool2d(x, 2)),
    "adaptive_max_pool3d": (3, lambda x: F.adaptive_max_pool3d(x, 3)),
    "reflect": (1, lambda x: F.pad(x, (1, 2), mode="reflect")),
    "reflect twice": (2, lambda x: F.pad(x, (1, 2, 0, 1), mode="reflect")),
    "replicate": (3, lambda x: F.pad(x, (1,) * 6, mode="replicate")),
    "nll_loss": (1, lambda x: F.nll_loss(x, vesta.tensor([[0, 1, 1, 0]] * 2))),
    "area": (2, lambda x: F.interpolate(x, size=3, mode="area")),
}


@pytest.mark.parametrize("name", LINEAR)
def test_gradients_of_windows_have_a_gradient_of_zero(name: str) -> None:
    """As in PyTorch, whose steps backward take the input: a penalty of gradients is differentiable, and zero."""
    dims, function = LINEAR[name]
    for dtype in (vesta.float32, vesta.float64):
        x = (vesta.arange(float(2 * 2 * 4**dims)) % 7).reshape(2, 2, *(4,) * dims).to(dtype).requires_grad_()
        (slope,) = vesta.autograd.grad(function(x).sum(), x, create_graph=True)
        (plain,) = vesta.autograd.grad(function(x).sum(), x)
        assert vesta.equal(slope, plain) and not plain.requires_grad
        second, third = (slope**2).sum(), (slope * x).sum()
        (found,) = vesta.autograd.grad(second, x, create_graph=True)
        assert found.dtype == dtype and not found.any()
        assert vesta.equal(vesta.autograd.grad(third, x)[0], plain)
    examples = x.detach().unsqueeze(0).expand(3, *x.shape)
    hessians = vesta.func.vmap(vesta.func.grad(lambda x: (vesta.func.grad(lambda y: function(y).sum())(x) ** 2).sum()))
    assert not hessians(examples).any()


def test_interpolations_have_no_second_gradient() -> None:
    x = vesta.ones(1, 1, 4, 4, requires_grad=True)
    (slope,) = vesta.autograd.grad(F.interpolate(x, scale_factor=2).sum(), x, create_graph=True)
    assert not slope.requires_grad
