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


def test_trigamma() -> None:
    """Its series in its own precision, both halves of the line, poles and extremes."""
    rng = np.random.default_rng(0)
    x, negative = 10 ** rng.uniform(-15, 15, 3000), -rng.uniform(0, 20, 1000)
    close(vesta.polygamma(1, vesta.from_numpy(x)), special.polygamma(1, x), 4e-15)
    sine = np.sin(np.pi * (negative - np.round(negative)))
    reflected = (np.pi / sine) ** 2 - special.polygamma(1, 1 - negative)
    close(vesta.polygamma(1, vesta.from_numpy(negative)), reflected, 4e-14)
    single = x.astype(np.float32)
    wide = special.polygamma(1, single.astype(np.float64))
    close(vesta.polygamma(1, vesta.from_numpy(single)), wide.astype(np.float32), 5e-7)
    extremes = [0.0, -0.0, -3.0, math.inf, 1e-30, -math.inf, math.nan]
    values = vesta.polygamma(1, vesta.tensor(extremes)).tolist()
    assert values[:5] == [math.inf, math.inf, math.inf, 0.0, math.inf] and all(math.isnan(v) for v in values[5:])


def test_polygamma_of_order_0_is_digamma() -> None:
    x = numbers(0.5, -1.5, 30.0).requires_grad_()
    assert vesta.polygamma(0, x).tolist() == vesta.digamma(x).tolist()
    vesta.polygamma(0, x).sum().backward()
    assert x.grad.tolist() == vesta.polygamma(1, x.detach()).tolist()
    y = x.detach().clone()
    assert y.polygamma_(2) is y and y.tolist() == x.polygamma(2).tolist()
    assert vesta.polygamma(1, vesta.tensor([1, 2])).dtype == vesta.float32
    with pytest.raises(RuntimeError, match="2\\^30"):
        vesta.polygamma(2**40, x)


@pytest.mark.parametrize("record", [False, True])
def test_logit_outside_of_its_domain(record: bool) -> None:
    """Values and slopes are PyTorch's: NaN outside of [0, 1] without eps, or with a negative one; else the ends."""
    inf, nan = math.inf, math.nan
    at = (-0.5, 0.0, 0.5, 1.0, 1.5, nan)
    free, free_slope = [nan, -inf, 0, inf, nan, nan], [nan, inf, 4, inf, nan, nan]
    end = math.log(9)
    for eps, value, slope in (
        (None, free, free_slope),
        (-0.1, free, free_slope),
        (0.0, [-inf, -inf, 0, inf, inf, nan], [0, inf, 4, inf, 0, nan]),
        (0.1, [-end, -end, 0, end, end, nan], [0, 0, 4, 0, 0, nan]),
        (0.7, [*[math.log(7 / 3)] * 3, *[-math.log(7 / 3)] * 2, nan], [0, 0, 0, 0, 0, nan]),
    ):
        x = numbers(*at).requires_grad_()
        y = vesta.logit(x, eps)
        np.testing.assert_allclose(y.detach().numpy(), value, rtol=1e-14)
        (got,) = vesta.autograd.grad(y.sum(), x, create_graph=record)
        np.testing.assert_allclose(got.detach().numpy(), slope, rtol=1e-14)
        assert x.detach().clone().logit_(eps).tolist()[2] == y.tolist()[2]


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


def test_bessel_functions_of_large_numbers() -> None:
    x = np.array([8.0, 8.0001, 25.5, 1e3])
    for name, f in (("bessel_j0", special.j0), ("bessel_j1", special.j1)):
        got = getattr(vesta.special, name)(vesta.from_numpy(np.concatenate([x, -x]))).numpy()
        np.testing.assert_allclose(got, f(np.concatenate([x, -x])), rtol=0, atol=1e-14)
    for name, f in (("bessel_y0", special.y0), ("bessel_y1", special.y1)):
        np.testing.assert_allclose(getattr(vesta.special, name)(vesta.from_numpy(x)).numpy(), f(x), rtol=0, atol=1e-14)
        assert math.isnan(getattr(vesta.special, name)(numbers(-1)).item())
        assert getattr(vesta.special, name)(numbers(0)).item() == -math.inf


@pytest.mark.differs
def test_bessel_functions_between_4_and_9() -> None:
    x = np.linspace(4, 9.2, 200)
    for name, f in (("j0", special.j0), ("j1", special.j1), ("y0", special.y0), ("y1", special.y1)):
        got = getattr(vesta.special, f"bessel_{name}")(vesta.from_numpy(x)).numpy()
        np.testing.assert_allclose(got, f(x), rtol=0, atol=1e-14)


def test_airy_function_where_its_series_meet() -> None:
    x = np.array([-1e3, -30.0, -4.0 - 1e-9, -4.0, 2.0, 2.0 + 1e-9, 9.0, 60.0])
    np.testing.assert_allclose(
        vesta.special.airy_ai(vesta.from_numpy(x)).numpy()[:6], special.airy(x)[0][:6], atol=1e-13
    )
    close(vesta.special.airy_ai(vesta.from_numpy(x[6:])), special.airy(x[6:])[0], 1e-13)


def test_erfcx_does_not_overflow() -> None:
    x = np.array([-26.0, -1.0, 0.0, 1e-300, 3.75, 50.0, 1e10, 1e300])
    close(vesta.special.erfcx(vesta.from_numpy(x)), special.erfcx(x), 1e-13)
    assert vesta.special.erfcx(numbers(-30, math.inf)).tolist() == [math.inf, 0]


def test_degrees_of_polynomials() -> None:
    """A degree counts without its fraction; below 0 the polynomial is 0; high degrees have a closed form or are NaN."""
    x = numbers(-1.5, -1.0, -0.3, 0.0, 1.0, 2.0)
    for name in ("chebyshev_polynomial_t", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"):
        f = getattr(vesta.special, name)
        assert vesta.equal(f(x, 3.9), f(x, 3)) and f(x, -1).tolist() == [0] * 6
        assert vesta.equal(f(x, vesta.full([6], 4.0, dtype=F64)), f(x, 4))
        assert vesta.equal(f(0.5, vesta.arange(5)), vesta.stack([f(vesta.tensor(0.5), k) for k in range(5)]))
    for kind in "tuvw":
        f = getattr(vesta.special, f"chebyshev_polynomial_{kind}")
        near = numbers(-1.0001, -1.0, -0.3, 0.7, 1.0, 1.0001)
        a, b, c = (f(near, n) for n in (599, 600, 601))  # the recurrence holds for the closed form
        np.testing.assert_allclose(c.numpy(), (2 * near * b - a).numpy(), rtol=1e-9)
        assert f(numbers(0.5), 1e15).isfinite().item()
    assert vesta.special.legendre_polynomial_p(numbers(0.5), 1e15).isnan().item()


def test_gradients_of_polynomials_and_of_second_operands() -> None:
    check, again = vesta.autograd.gradcheck, vesta.autograd.gradgradcheck
    x = vesta.linspace(-0.9, 0.9, 8, dtype=F64).requires_grad_()
    degrees = vesta.arange(8)
    for name in (name for name in vesta.special.__all__ if "polynomial" in name):
        f = getattr(vesta.special, name)
        assert check(lambda x, f=f: f(x, degrees), (x,)) and again(lambda x, f=f: f(x, degrees), (x,)), name


def test_gradients_of_zeta_and_of_the_incomplete_gamma_functions() -> None:
    """By both operands; again by the second one, or by one after the other."""
    check, again = vesta.autograd.gradcheck, vesta.autograd.gradgradcheck
    a = numbers(0.3, 2.5, 40.0, 40.0, 40.0, 120.0, 120.0, 7.0).requires_grad_()
    q = numbers(0.4, 2.0, 30.0, 55.0, 41.0, 118.0, 140.0, 15.0).requires_grad_()
    for f in (vesta.igamma, vesta.igammac):
        assert check(f, (a, q), atol=1e-7) and again(lambda q, f=f: f(a.detach(), q), (q,))
        assert check(lambda q, f=f: vesta.autograd.grad(f(a, q).sum(), a, create_graph=True)[0], (q,))
    s, q = numbers(1.1, 2.0, 3.5, 9.0).requires_grad_(), numbers(0.3, 1.0, 2.5, 20.0).requires_grad_()
    assert check(vesta.special.zeta, (s, q)) and again(lambda q: vesta.special.zeta(s.detach(), q), (q,))
    assert check(lambda q: vesta.autograd.grad(vesta.special.zeta(s, q).sum(), s, create_graph=True)[0], (q,))


@pytest.mark.parametrize("device", ["cpu", "cuda"] if vesta.cuda.is_available() else ["cpu"])
@pytest.mark.parametrize("dtype", [vesta.float32, vesta.float64, vesta.bfloat16], ids=str)
def test_recorded_gradients_of_the_incomplete_gamma_functions_are_the_bits_of_the_others(
    dtype: vesta.dtype, device: str
) -> None:
    """Both ask one kernel for the density, whose terms are large where they cancel."""
    vesta.manual_seed(0)
    a, x = ((vesta.rand(100, dtype=vesta.float64) * 60 + 0.1).to(dtype).to(device).requires_grad_() for _ in range(2))
    for f in (vesta.igamma, vesta.igammac):
        plain = vesta.autograd.grad(f(a, x).sum(), (a, x))
        recorded = vesta.autograd.grad(f(a, x).sum(), (a, x), create_graph=True)
        assert all(vesta.equal(p, r) for p, r in zip(plain, recorded))
    a, x = a.detach().double().cpu(), x.detach().double().cpu()
    want = np.exp((a.numpy() - 1) * np.log(x.numpy()) - x.numpy() - special.gammaln(a.numpy()))
    got = vesta._C._private._gamma_density(a.to(device), x.to(device)).cpu().numpy()
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.differs
def test_the_density_of_the_gamma_distribution_at_zero() -> None:
    """The slope of igamma there: PyTorch has NaN for a = 1, which is 1."""
    a, x = numbers(0.5, 1.0, 2.0), numbers(0.0, 0.0, 0.0).requires_grad_()
    (of_x,) = vesta.autograd.grad(vesta.igamma(a, x).sum(), x)
    assert of_x.tolist() == [math.inf, 1, 0]


@pytest.mark.parametrize("recorded", [False, True])
def test_the_density_of_the_gamma_distribution_near_zero(recorded: bool) -> None:
    """x^(a - 1) e^-x / gamma(a), where x^a or a / x is beyond the range."""
    a = vesta.tensor([1.0, 2.0, 2.0, 1.5, 0.5, 60.0, 3.0], dtype=vesta.float64)
    x = vesta.tensor([1e-309, 1e-310, 1e-200, 1e-160, 1e-300, 1e-310, 1e-40], dtype=vesta.float64)
    want = [1.0, 1e-310, 1e-200, 1e-80 / math.gamma(1.5), 1e150 / math.gamma(0.5), 0.0, 0.5e-80]
    x.requires_grad_()
    (got,) = vesta.autograd.grad(vesta.igamma(a, x).sum(), x, create_graph=recorded)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12)


def test_incomplete_gamma_functions_everywhere() -> None:
    """Series, continued fraction and quadrature agree with SciPy, also where they meet and for large numbers."""
    a = np.array([1e-8, 0.3, 1.0, 30.0, 99.0, 101.0, 500.0, 1e4, 1e6])
    for factor in (0.05, 0.5, 0.95, 1.0, 1.05, 1.5, 2.5):
        x = a * factor
        lower, upper = (f(vesta.from_numpy(a), vesta.from_numpy(x)).numpy() for f in (vesta.igamma, vesta.igammac))
        np.testing.assert_allclose(lower, special.gammainc(a, x), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(upper, special.gammaincc(a, x), rtol=1e-10, atol=1e-14)
    edges = vesta.igamma(numbers(0, 0, 1, -1, 1, math.inf, 1), numbers(0, 1, 0, 1, -1, 1, math.inf)).tolist()
    assert edges[1:3] == [1, 0] and edges[5:] == [0, 1] and all(math.isnan(edges[k]) for k in (0, 3, 4))
    x = vesta.tensor([1.0, 2.0])
    assert x.igamma_(vesta.tensor([1.0, 1.0])) is x and vesta.special.gammainc is vesta.igamma


def test_zeta_at_poles_and_between_them() -> None:
    s, q = numbers(1, 0.5, 2, 2, 2.5, 3), numbers(2, 2, 0, -1, -1.5, -1.5)
    got = vesta.special.zeta(s, q).tolist()
    assert got[0] == got[2] == got[3] == math.inf and math.isnan(got[1]) and math.isnan(got[4])
    assert got[5] == pytest.approx(0.11810202582086413, rel=1e-12)  # PyTorch 2.15
    assert vesta.special.zeta(2, numbers(1.0)).item() == pytest.approx(math.pi**2 / 6, rel=1e-15)
    assert vesta.special.zeta(numbers(1e300), numbers(0.5)).item() == math.inf


def test_values_that_a_quantized_tensor_can_hold() -> None:
    x = vesta.tensor([0.26, -3.0, 30.0, math.inf, -math.inf, math.nan], requires_grad=True)
    y = vesta.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)
    exact = np.float32(0.1) * np.array([3.0, -3.0, 252.0, 252.0, -3.0, -3.0], np.float32)
    np.testing.assert_allclose(y.detach().numpy(), exact, rtol=1e-6)
    (y * vesta.arange(1.0, 7.0)).nansum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    with vesta.no_grad():
        assert vesta.equal(vesta.fake_quantize_per_tensor_affine(x, vesta.tensor(0.1), vesta.tensor(3), 0, 255), y)
    for wrong in ((0.1, 300, 0, 255), (0.1, 0, 5, 4)):
        with pytest.raises(RuntimeError, match="quant_min"):
            vesta.fake_quantize_per_tensor_affine(x, *wrong)
    with pytest.raises(RuntimeError, match="expected a floating-point dtype"):
        vesta.fake_quantize_per_tensor_affine(vesta.ones(2, dtype=vesta.int64), 0.1, 0, 0, 255)
    step, zero = vesta.tensor(0.1), vesta.tensor(0)
    with pytest.raises(RuntimeError, match="quant_min"):
        vesta.fake_quantize_per_tensor_affine(x, step, zero, 7, -8)
    with pytest.raises(RuntimeError, match=r"one element, got \[2\] \(scale\)"):
        vesta.fake_quantize_per_tensor_affine(x, vesta.ones(2), zero, -8, 7)
    with pytest.raises(RuntimeError, match="derivative for 'scale'"):
        vesta.fake_quantize_per_tensor_affine(x, step.requires_grad_(), zero, -8, 7)
    one = vesta.fake_quantize_per_tensor_affine(vesta.tensor(0.32), vesta.tensor([0.1]), vesta.tensor([0]), -8, 7)
    assert one.shape == () and one.item() == pytest.approx(0.3)


@pytest.mark.parametrize("dtype", [vesta.float16, vesta.bfloat16], ids=str)
def test_16_bit_floats_are_quantized_in_float32(dtype) -> None:
    """In 16 bits 1 / 1e-5 would be infinite, and a number of steps rounded."""
    x = vesta.tensor([0.0, 1e-5, 0.5, 3.3], dtype=dtype, requires_grad=True)
    for scale, low, high in ((1e-5, -128, 127), (0.02, 0, 255), (1.0, -(2**31), 2**31 - 1)):
        y = vesta.fake_quantize_per_tensor_affine(x, scale, 0, low, high)
        wide = vesta.fake_quantize_per_tensor_affine(x.detach().float(), scale, 0, low, high)
        assert y.dtype == dtype and vesta.equal(y.detach(), wide.to(dtype))
        (grad,) = vesta.autograd.grad(y.sum(), x)
        assert grad.tolist() == [float(low <= round(v / scale) <= high) for v in x.tolist()]
        per_channel = (vesta.full((4,), scale), vesta.zeros(4, dtype=vesta.int64), 0, low, high)
        assert vesta.equal(vesta.fake_quantize_per_channel_affine(x.detach(), *per_channel), y.detach())


def test_each_channel_has_its_step() -> None:
    x, scale, zero = vesta.linspace(-2, 2, 24).reshape(2, 3, 4), vesta.tensor([0.1, 0.25, 1.0]), vesta.tensor([0, 4, 7])
    y = vesta.fake_quantize_per_channel_affine(x, scale, zero, 1, -8, 7)
    for c in range(3):
        one = vesta.fake_quantize_per_tensor_affine(x[:, c], scale[c], int(zero[c]), -8, 7)
        assert vesta.equal(y[:, c], one)
    assert vesta.equal(vesta.fake_quantize_per_channel_affine(x, scale, zero, -2, -8, 7), y)
    with pytest.raises(IndexError):
        vesta.fake_quantize_per_channel_affine(x, scale, zero, 3, -8, 7)
    with pytest.raises(RuntimeError, match="3 channels"):
        vesta.fake_quantize_per_channel_affine(x, scale[:2], zero, 1, -8, 7)
    with pytest.raises(RuntimeError, match="zero_point"):
        vesta.fake_quantize_per_channel_affine(x, scale, zero + 1, 1, -8, 7)
