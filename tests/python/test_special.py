"""Special functions: names, exact values, and parts of their range that samples do not reach."""

from __future__ import annotations

import math

import numpy as np
import pytest
import vesta
from scipy import special

F64 = vesta.float64


def numbers(*values: float) -> vesta.Tensor:
    return vesta.tensor(values, dtype=F64)


def close(got: vesta.Tensor, want: np.ndarray, rtol: float = 1e-13) -> None:
    np.testing.assert_allclose(got.numpy(), want, rtol=rtol, atol=0)


def test_names() -> None:
    """vesta.special has PyTorch's names; those of vesta itself are the same functions."""
    assert vesta.special.expit is vesta.sigmoid and vesta.special.psi is vesta.digamma
    assert vesta.special.gammaln is vesta.lgamma and vesta.special.multigammaln is vesta.mvlgamma
    assert not hasattr(vesta, "ndtr") and not hasattr(vesta.Tensor, "ndtr")


def test_tails_of_the_normal_distribution() -> None:
    x = np.array([-1e6, -200.0, -38.0, -20.0, -12.5, -11.5, -5.0, -1.0, 0.0, 1.0, 5.0, 9.0])
    close(vesta.special.log_ndtr(vesta.from_numpy(x)), special.log_ndtr(x), 1e-13)
    p = np.array([1e-300, 1e-100, 1e-17, 1e-5, 0.1, 0.5, 0.9, 1 - 1e-9])
    np.testing.assert_allclose(
        vesta.special.ndtri(vesta.from_numpy(p)).numpy(), special.ndtri(p), rtol=1e-13, atol=1e-15
    )
    edges = vesta.special.ndtri(numbers(0, 1, -0.1, 1.1)).tolist()
    assert edges[:2] == [-math.inf, math.inf] and all(math.isnan(e) for e in edges[2:])


def test_slope_of_log_ndtr_far_out() -> None:
    """The slope is -x (1 + ...) where ndtr has underflowed long ago."""
    x = numbers(-1e5, -50.0, -13.0, -11.0).requires_grad_()
    vesta.special.log_ndtr(x).sum().backward()
    at = x.detach().numpy()
    want = math.sqrt(2 / math.pi) / special.erfcx(-at / math.sqrt(2))
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-12)


def test_erfinv_near_its_ends() -> None:
    x = np.array([1 - 1e-15, -1 + 1e-12, 1e-300, 0.0, -0.5])
    close(vesta.erfinv(vesta.from_numpy(x)), special.erfinv(x), 1e-12)
    assert vesta.erfinv(numbers(1, -1)).tolist() == [math.inf, -math.inf]


def test_polygamma_of_negative_numbers() -> None:
    """Reflection: far from 0 the sum over all integers takes one step, not a million."""
    x = numbers(-0.5, -3.25, -1e6 - 0.25)
    trigamma = [np.pi**2 / np.sin(np.pi * v) ** 2 - special.polygamma(1, 1 - v) for v in x.tolist()]
    close(vesta.polygamma(1, x), np.array(trigamma), 1e-9)
    assert vesta.polygamma(1, numbers(0.0, -2.0)).tolist() == [math.inf, math.inf]
    close(vesta.polygamma(20, numbers(0.5, 3.0)), special.polygamma(20, np.array([0.5, 3.0])), 1e-12)
    with pytest.raises(RuntimeError, match="polygamma"):
        vesta.polygamma(-1, x)


def test_digamma_at_poles() -> None:
    values = vesta.digamma(numbers(0.0, -0.0, -1.0, math.inf)).tolist()
    assert values[0] == -math.inf and values[1] == math.inf and math.isnan(values[2]) and values[3] == math.inf


def test_bessel_functions_do_not_overflow_early() -> None:
    x = np.array([700.0, 712.0, -712.0])
    close(vesta.i0(vesta.from_numpy(x)) / 1e300, special.i0e(x) * np.exp(np.abs(x) - 300 * math.log(10)), 1e-11)
    close(vesta.special.i1e(vesta.from_numpy(x)), special.i1e(x), 1e-14)


def test_derivatives_at_zero() -> None:
    x = vesta.zeros(1, dtype=F64, requires_grad=True)
    for f in (vesta.special.i1, vesta.special.i1e):
        (slope,) = vesta.autograd.grad(f(x), x, create_graph=True)
        assert slope.item() == 0.5
    (slope,) = vesta.autograd.grad(vesta.sinc(x), x)
    assert slope.item() == 0
    (slope,) = vesta.autograd.grad(vesta.xlogy(x, vesta.zeros(1, dtype=F64)), x)
    assert slope.item() == 0
