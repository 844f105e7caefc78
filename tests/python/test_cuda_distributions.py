"""Distributions on a CUDA device: the CPU's values and moments, samples and gradients on the device."""

from __future__ import annotations

from typing import Any

import pytest
import vesta
from distributions import distribution_cases as cases

pytestmark = pytest.mark.skipif(not vesta.cuda.is_available(), reason="needs a GPU or the build tree's emulated device")

#: Distributions of tensors; those of numbers live on the CPU.
CASES = [c for c in cases.CASES if any(isinstance(v, list) for v in c.parameters.values())]


def built(case: cases.Case, device: str, requires_grad: bool = False) -> tuple[Any, list[vesta.Tensor]]:
    dtype = getattr(vesta, case.dtype)
    given = {
        k: vesta.tensor(v, dtype=dtype, device=device, requires_grad=requires_grad) if isinstance(v, list) else v
        for k, v in case.parameters.items()
    }
    leaves = [v for v in given.values() if isinstance(v, vesta.Tensor)]
    return case.make(vesta, vesta.distributions, **given), leaves


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "TransformedDistribution"], ids=lambda case: case.label)
def test_values_are_the_cpus(case):
    dtype = vesta.int64 if case.name == "Categorical" else getattr(vesta, case.dtype)
    rtol = 1e-9 if case.dtype == "float64" else 1e-4
    results = []
    for device in ("cpu", "cuda"):
        dist, _ = built(case, device)
        log_prob = dist.log_prob(vesta.tensor(case.values, dtype=dtype, device=device))
        assert log_prob.device.type == device
        mean = cases.attempt(lambda dist=dist: dist.mean.cpu())
        results.append((log_prob.cpu(), mean))
    (one, mean), (other, other_mean) = results
    assert vesta.allclose(other, one, rtol=rtol, equal_nan=True)
    assert str(mean) == str(other_mean) or cases.tensor(vesta, mean).allclose(cases.tensor(vesta, other_mean), rtol)


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "TransformedDistribution"], ids=lambda case: case.label)
def test_samples_and_their_gradients_are_on_the_device(case):
    vesta.manual_seed(3)
    dist, leaves = built(case, "cuda", requires_grad=True)
    sample = dist.sample((3,))
    assert sample.device.type == "cuda" and bool(dist.support.check(sample).all())
    if dist.has_rsample:
        dist.rsample((3,)).square().sum().backward()
        assert all(leaf.grad.device.type == "cuda" and bool(leaf.grad.isfinite().all()) for leaf in leaves)


def test_the_same_seed_draws_what_the_cpu_draws():
    samples = []
    for device in ("cpu", "cuda"):
        vesta.manual_seed(4)
        loc = vesta.zeros(50, dtype=vesta.float64, device=device)
        samples.append(vesta.distributions.Laplace(loc, 1.0).sample().cpu())
    assert vesta.allclose(*samples, rtol=1e-12)


def test_systems_without_a_kernel_are_solved_row_by_row():
    from vesta.distributions import _linalg

    factor = vesta.tensor([cases.TRIL, [[2.0, 0.0, 0.0], [1.0, 3.0, 0.0], [4.0, 5.0, 6.0]]], dtype=vesta.float64)
    right = vesta.arange(6, dtype=vesta.float64).reshape(3, 2)
    results = []
    for device in ("cpu", "cuda"):
        a, b = (t.detach().to(device).requires_grad_() for t in (factor, right))
        x = _linalg.cholesky_solve(b, a)
        x.square().sum().backward()
        results.append([t.detach().cpu() for t in (x, a.grad, b.grad)])
    for one, other in zip(*results):
        assert vesta.allclose(other, one, rtol=1e-10)
