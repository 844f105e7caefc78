"""In-place ops never leave a false history: the gradient is that of the op, a leaf that requires grad is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import vesta

FILLS: dict[str, tuple[Any, ...]] = {
    "bernoulli_": (0.5,),
    "cauchy_": (),
    "copy_": (vesta.ones(2, dtype=vesta.float64),),
    "exponential_": (),
    "fill_": (3.0,),
    "geometric_": (0.5,),
    "log_normal_": (),
    "normal_": (),
    "random_": (),
    "uniform_": (),
    "zero_": (),
}


def gradient(x: vesta.Tensor, call: Callable[[vesta.Tensor], vesta.Tensor]) -> vesta.Tensor:
    """Returns the gradient at x of the sum of what a call makes of a copy of it; zeros where nothing is recorded."""
    leaf = x.detach().clone().requires_grad_()
    result = call(leaf * 1)
    if not result.requires_grad:
        return vesta.zeros_like(x)
    return vesta.autograd.grad(result.abs().sum(), leaf, allow_unused=True, materialize_grads=True)[0]


@pytest.mark.parametrize("name", FILLS)
def test_what_is_overwritten_has_a_gradient_of_zero(name: str) -> None:
    def call(t: vesta.Tensor) -> vesta.Tensor:
        return getattr(t, name)(*FILLS[name])

    x = vesta.ones(3, 2, dtype=vesta.float64)
    assert not gradient(x, call).any()
    leaf = x.clone().requires_grad_()
    for target in (leaf, leaf[0]):
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            call(target)
    assert vesta.equal(leaf.detach(), x)


def test_every_random_fill_is_tried() -> None:
    fills = {row["name"] for row in vesta._C._registry() if row["space"] == "" and row["name"].endswith("_")}
    random = {name for name in fills if any(p["name"] == "generator" for p in _parameters(name))}
    assert random <= {*FILLS, "_random_", "rrelu_"}


def _parameters(name: str) -> list[dict[str, Any]]:
    return [p for row in vesta._C._registry() if row["name"] == name for p in row["parameters"]]


def test_a_tensor_fills_with_its_gradient() -> None:
    x, value = vesta.ones(2, 3, requires_grad=True), vesta.tensor(3.0, requires_grad=True)
    filled = (x * 1).fill_(value)
    filled.sum().backward()
    assert filled.tolist() == [[3.0] * 3] * 2 and not x.grad.any() and value.grad.item() == 6


def test_results_without_a_derivative_raise_in_backward() -> None:
    x = vesta.tensor([2.0, 1.0, 2.0], requires_grad=True)
    for call in (
        vesta.unique,
        vesta.unique_consecutive,
        lambda t: vesta.unique(t, return_counts=True)[0],
        lambda t: vesta.unique(t.view(3, 1), dim=0),
        lambda t: vesta.unique_consecutive(t, dim=0),
        lambda t: vesta.histogram(t, bins=2).hist,
    ):
        with pytest.raises(NotImplementedError, match="the derivative is not implemented"):
            call(x).sum().backward()
        assert not call(x.detach()).requires_grad
    weights = vesta.ones(3, requires_grad=True)
    vesta.bincount(vesta.tensor([0, 2, 2]), weights=weights)[2].backward()
    assert weights.grad.tolist() == [0, 1, 1]


def test_draws_have_a_gradient_of_zero() -> None:
    p = vesta.full((3, 1), 0.5, requires_grad=True)
    q = vesta.ones(2, requires_grad=True)
    for made, shape in (
        (vesta.normal(p, q), (3, 2)),
        (vesta.normal(p, 2.0), (3, 1)),
        (vesta.normal(1.0, q), (2,)),
        (vesta.poisson(q), (2,)),
        (vesta.bernoulli(p), (3, 1)),
        (vesta.binomial(vesta.ones(2), p), (3, 2)),
    ):
        assert made.requires_grad and tuple(made.shape) == shape
        for grad in vesta.autograd.grad(made.sum(), (p, q), allow_unused=True, materialize_grads=True):
            assert not grad.any()


def test_tensors_of_inference_mode_are_not_written_where_a_tape_records() -> None:
    with vesta.inference_mode():
        x = vesta.ones(2, 2)
        x.add_(1)
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode"):
        x.add_(1)
    assert x.tolist() == [[2.0, 2.0]] * 2
    with pytest.raises(RuntimeError, match="do not track version counter"):
        x._version  # noqa: B018
    assert x.clone().add_(1).shape == (2, 2)


def test_weights_made_in_inference_mode_can_be_initialised() -> None:
    with vesta.inference_mode():
        layer = vesta.nn.Linear(2, 2)
    layer.weight.data.fill_(3)
    vesta.nn.init.zeros_(layer.bias.data)
    with vesta.no_grad():
        layer.weight.detach().add_(1)
    assert layer.weight.tolist() == [[4.0, 4.0]] * 2 and layer.bias.tolist() == [0.0, 0.0]
