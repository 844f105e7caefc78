"""vesta.distributions beside PyTorch's recorded values, and formulas that need neither."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
import vesta
from distributions import distribution_cases as cases
from vesta import distributions as d

RECORD = json.loads((Path(cases.__file__).with_name("torch_values.json")).read_text(encoding="utf-8"))
F64 = vesta.float64


def f64(value: Any) -> vesta.Tensor:
    return vesta.tensor(value, dtype=F64)


def differences(got: Any, want: Any, digits: float, where: str = "") -> list[str]:
    """Returns where two results differ: numbers by more than the digits given, anything else at all."""
    if isinstance(want, dict):
        keys = [f"{where}: keys {sorted(got)}, not {sorted(want)}"] if set(got) != set(want) else []
        return keys + [x for k in want if k in got for x in differences(got[k], want[k], digits, f"{where}.{k}")]
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return [f"{where}: {got}, not {want}"]
        return [x for n, (a, b) in enumerate(zip(got, want)) for x in differences(a, b, digits, f"{where}[{n}]")]
    if isinstance(want, (int, float)) and not isinstance(want, bool):
        ok = isinstance(got, (int, float)) and abs(got - want) <= 10**-digits * max(1, abs(want))
        return [] if ok else [f"{where}: {got}, not {want}"]
    if isinstance(got, float) and got - got != 0:
        got = str(got)
    return [] if got == want else [f"{where}: {got!r}, not {want!r}"]


#: Results in which Vesta differs on purpose; tests below say how.
OTHERWISE = {"Kumaraswamy": ("mode",), "Wishart-tril": ("grad_log_prob",), "GeneralizedPareto": ("grad_log_prob",)}


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.label)
def test_a_distribution_is_pytorchs(case):
    got, want = cases.measure(vesta, case), RECORD["distributions"][case.label]
    for name in OTHERWISE.get(case.label, ()):
        got.pop(name), want.pop(name)
    gradients = {k: want.pop(k) for k in list(want) if k.startswith("grad")}
    wrong = differences({k: got.get(k) for k in want}, want, case.digits)
    # PyTorch's trigamma has 9 digits.
    wrong += differences({k: got.get(k) for k in gradients}, gradients, min(case.digits, 8))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("pair", RECORD["divergences"])
def test_a_divergence_is_pytorchs(pair):
    got, want = cases.divergence(vesta, *pair.split()), RECORD["divergences"][pair]
    if pair == "Wishart Wishart":  # PyTorch's gradient of a triangular factor has entries above the diagonal
        want["q"]["scale_tril"] = f64(want["q"]["scale_tril"]).tril().tolist()
        del got["p"], want["p"]  # PyTorch has none: a test below
    wrong = differences(got, want, 8)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", RECORD["transforms"])
def test_a_transform_is_pytorchs(name):
    wrong = differences(cases.measure_transform(vesta, name), RECORD["transforms"][name], 10)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", RECORD["constraints"])
def test_a_constraint_is_pytorchs(name):
    wrong = differences(cases.measure_constraint(vesta, name), RECORD["constraints"][name], 10)
    assert not wrong, "\n".join(wrong)


def test_every_name_and_pair_is_here():
    assert sorted(d.__all__) == RECORD["names"]
    assert [list(pair) for pair in cases.pairs(vesta)] == RECORD["pairs"]


def test_signatures_are_pytorchs():
    assert {name: cases.signature(vesta, name) for name in RECORD["signatures"]} == RECORD["signatures"]


def test_every_table_row_is_recorded():
    assert {case.label for case in cases.CASES} == set(RECORD["distributions"])
    tested = {case.name for case in cases.CASES}
    assert {n for n in d.__all__ if isinstance(getattr(d, n), type) and issubclass(getattr(d, n), d.Distribution)} <= {
        *tested,
        "Distribution",
        "ExponentialFamily",
    }


# ---- what PyTorch has otherwise --------------------------------------------------------------------------------------


@pytest.mark.differs
def test_the_mode_of_kumaraswamy():
    a, b = 1.5, 3.0
    mode = d.Kumaraswamy(f64(a), f64(b)).mode.item()
    density = lambda x: d.Kumaraswamy(f64(a), f64(b)).log_prob(f64(x)).item()
    assert mode == pytest.approx(((a - 1) / (a * b - 1)) ** (1 / a))
    assert density(mode) > density(mode + 1e-3) and density(mode) > density(mode - 1e-3)


def test_the_gradient_of_a_fair_coin() -> None:
    """At a logit of 0 no part of the logarithm has a kink."""
    p = f64([0.5, 0.5]).requires_grad_()
    d.ContinuousBernoulli(p).log_prob(f64([0.2, 0.7])).sum().backward()
    assert p.grad.tolist() == pytest.approx([-1.2, 0.8])


@pytest.mark.differs
def test_divergences_of_intervals_that_share_an_end():
    unit, cb = d.Uniform(f64(0.0), f64(1.0)), d.ContinuousBernoulli(f64(0.3))
    x = (vesta.arange(4000, dtype=F64) + 0.5) / 4000
    there = cb.log_prob(x).exp() * cb.log_prob(x)
    assert d.kl_divergence(cb, unit).item() == pytest.approx(there.mean().item(), rel=1e-6)
    assert d.kl_divergence(unit, cb).item() == pytest.approx(-cb.log_prob(x).mean().item(), rel=1e-6)
    assert d.kl_divergence(cb, d.Uniform(f64(0.1), f64(1.0))).item() == math.inf
    assert d.kl_divergence(d.Uniform(f64(-0.1), f64(1.0)), cb).item() == math.inf


@pytest.mark.differs
def test_a_triangular_factor_has_no_gradient_above_its_diagonal():
    tril = f64(cases.TRIL).requires_grad_()
    d.Wishart(f64(4.0), scale_tril=tril).log_prob(f64(cases.COV)).backward()
    assert bool((tril.grad.triu(1) == 0).all()) and bool((tril.grad.tril().abs().sum() > 1).all())


@pytest.mark.differs
def test_entropy_and_divergence_by_the_normalizer_are_differentiable():
    from vesta.distributions.kl import _kl_expfamily_expfamily

    a, rate = f64(1.5).requires_grad_(), f64(2.0).requires_grad_()
    p, q = d.Gamma(a, rate), d.Gamma(f64(2.5), f64(1.0))
    pairs = [
        (d.ExponentialFamily.entropy(p), p.entropy()),
        (_kl_expfamily_expfamily(p, q), d.kl_divergence(p, q)),
    ]
    for general, closed in pairs:
        want = vesta.autograd.grad(closed, (a, rate))
        for one, other in zip(vesta.autograd.grad(general, (a, rate)), want):
            assert vesta.allclose(one, other, rtol=1e-10)
    df = f64(4.5).requires_grad_()
    first, second = d.Wishart(df, f64(cases.COV)), d.Wishart(f64(6.0), scale_tril=f64(cases.TRIL))
    (slope,) = vesta.autograd.grad(d.kl_divergence(first, second), df)
    ends = [d.kl_divergence(d.Wishart(f64(4.5 + h), f64(cases.COV)), second).item() for h in (1e-5, -1e-5)]
    assert slope.item() == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)
    assert not d.ExponentialFamily.entropy(q).requires_grad


def test_generalized_pareto_is_scipys():
    loc, scale, k = 0.5, 2.0, [[0.3], [-0.4], [0.0]]
    ours, x = d.GeneralizedPareto(f64(loc), f64(scale), f64(k)), np.array([0.6, 1.0, 4.0])
    theirs = scipy.stats.genpareto(np.array(k), loc, scale)
    np.testing.assert_allclose(ours.log_prob(f64(x)).numpy(), theirs.logpdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.cdf(f64(x)).numpy(), theirs.cdf(x), rtol=1e-12)
    np.testing.assert_allclose(ours.icdf(ours.cdf(f64(x))).numpy(), np.broadcast_to(x, (3, 3)), rtol=1e-12)
    np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy(), rtol=1e-12)


def test_von_mises_is_scipys():
    kappa = np.array([1e-3, 0.5, 3.0, 59.0, 61.0, 500.0])
    ours = d.VonMises(f64(0.3), f64(kappa))
    np.testing.assert_allclose(
        ours.log_prob(f64(0.9)).numpy(), scipy.stats.vonmises.logpdf(0.9, kappa, 0.3), rtol=1e-12
    )
    ratio = scipy.special.i1e(kappa) / scipy.special.i0e(kappa)
    np.testing.assert_allclose(ours.variance.numpy(), 1 - ratio, rtol=1e-9)


# ---- formulas --------------------------------------------------------------------------------------------------------

CONTINUOUS = [
    d.Normal(f64(0.3), f64(1.7)),
    d.Uniform(f64(-1.0), f64(2.0)),
    d.Exponential(f64(0.7)),
    d.Laplace(f64(0.3), f64(1.7)),
    d.Cauchy(f64(0.3), f64(1.7)),
    d.HalfNormal(f64(1.7)),
    d.HalfCauchy(f64(1.7)),
    d.LogNormal(f64(0.3), f64(0.6)),
    d.Kumaraswamy(f64(1.5), f64(2.5)),
    d.Weibull(f64(1.5), f64(2.5)),
    d.Gumbel(f64(1.5), f64(2.5)),
    d.Pareto(f64(1.5), f64(2.5)),
    d.GeneralizedPareto(f64(1.5), f64(2.5), f64(0.2)),
    d.ContinuousBernoulli(f64(0.2)),
]


@pytest.mark.no_leak_check  # the table above lives on
@pytest.mark.parametrize("dist", CONTINUOUS, ids=lambda dist: type(dist).__name__)
def test_quantile_distribution_function_and_density_agree(dist):
    p = f64([0.01, 0.2, 0.47, 0.9, 0.99])
    x = dist.icdf(p).detach().requires_grad_()
    back = dist.cdf(x)
    assert vesta.allclose(back, p, rtol=1e-10)
    back.sum().backward()
    assert vesta.allclose(x.grad.log(), dist.log_prob(x), rtol=1e-8, atol=1e-10)


def test_the_distribution_function_of_gamma():
    a, rate = np.array([[0.1], [2.0], [50.0], [3000.0]]), 2.0
    x = np.array([0.2, 0.9, 1.0, 1.1, 3.0]) * a / rate
    ours = d.Gamma(f64(a), f64(rate))
    np.testing.assert_allclose(ours.cdf(f64(x)).numpy(), scipy.special.gammainc(a, rate * x), rtol=1e-12)
    value = f64(x).requires_grad_()
    ours.cdf(value).sum().backward()
    np.testing.assert_allclose(value.grad.numpy(), ours.log_prob(f64(x)).exp().numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    "dist",
    [
        d.Bernoulli(0.3),
        d.Binomial(7, 0.3),
        d.Categorical(vesta.tensor([1.0, 2.0, 4.0])),
        d.OneHotCategorical(vesta.tensor([1.0, 2.0, 4.0])),
    ],
    ids=lambda dist: type(dist).__name__,
)
@pytest.mark.no_leak_check  # parameters of the test live on
def test_probabilities_of_the_support_sum_to_one(dist):
    log_prob = dist.log_prob(dist.enumerate_support())
    assert log_prob.exp().sum(0).item() == pytest.approx(1, rel=1e-6)
    assert -(log_prob.exp() * log_prob).sum(0).item() == pytest.approx(dist.entropy().item(), rel=1e-5)


def test_the_entropy_of_an_exponential_family_follows_from_its_normalizer():
    for dist in (
        d.Normal(f64(1.0), f64([2.0, 3.0])),
        d.Gamma(f64([1.5, 3.0]), f64(2.0)),
        d.Beta(f64([1.5, 3.0]), f64(2.0)),
        d.Dirichlet(f64([[1.5, 3.0], [0.5, 2.0]])),
        d.Exponential(f64([1.5, 3.0])),
        d.Bernoulli(f64([0.2, 0.7])),
        d.ContinuousBernoulli(f64([0.2, 0.7])),
    ):
        if isinstance(dist, (d.Beta, d.Dirichlet)):
            type(dist)._mean_carrier_measure, kept = 0, type(dist).__dict__.get("_mean_carrier_measure")
            # k(x) = -sum log x_i, whose mean follows from the entropy itself.
            general = d.ExponentialFamily.entropy(dist)
            a = dist.concentration if isinstance(dist, d.Dirichlet) else dist._dirichlet.concentration
            logs = vesta.tensor(scipy.special.psi(a.numpy())) - vesta.tensor(scipy.special.psi(a.sum(-1, True).numpy()))
            del type(dist)._mean_carrier_measure
            assert kept is None and vesta.allclose(general + logs.sum(-1), dist.entropy(), rtol=1e-10)
        else:
            assert vesta.allclose(d.ExponentialFamily.entropy(dist), dist.entropy(), rtol=1e-9), dist


def test_bregman_divergence_is_the_closed_form():
    from vesta.distributions.kl import _kl_expfamily_expfamily

    for p, q in (
        (d.Normal(f64(1.0), f64(2.0)), d.Normal(f64(0.5), f64(1.0))),
        (d.Gamma(f64(1.5), f64(2.0)), d.Gamma(f64(2.5), f64(1.0))),
        (d.Dirichlet(f64([1.5, 3.0])), d.Dirichlet(f64([0.5, 2.0]))),
        (d.Poisson(f64(1.5)), d.Poisson(f64(0.5))),
    ):
        assert vesta.allclose(_kl_expfamily_expfamily(p, q), d.kl_divergence(p, q), rtol=1e-10)
    with pytest.raises(NotImplementedError, match="different exponential families"):
        d.kl_divergence(d.Poisson(1.0), d.Exponential(1.0))


# ---- special functions without an op ---------------------------------------------------------------------------------


def test_special_functions_are_scipys():
    from vesta.distributions import _special

    rng = np.random.default_rng(0)
    x = np.concatenate([10 ** rng.uniform(-8, 6, 300), rng.uniform(0.5, 3, 300), [1.0, 2.0]])
    near = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(_special._lgamma_value(f64(x)).numpy(), scipy.special.gammaln(x), **near)
    np.testing.assert_allclose(_special._digamma_value(f64(x)).numpy(), scipy.special.psi(x), **near)
    np.testing.assert_allclose(
        _special._lgamma_value(f64(0.3 - x[300:])).numpy(), scipy.special.gammaln(0.3 - x[300:]), **near
    )
    for n in (1, 2, 4):
        np.testing.assert_allclose(_special._polygamma_value(n, f64(x)).numpy(), scipy.special.polygamma(n, x), **near)
    p = np.concatenate([rng.uniform(-1, 1, 300), 1 - 10 ** rng.uniform(-15, -1, 100), [1e-18, 0.0]])
    np.testing.assert_allclose(_special._erfinv_value(f64(p)).numpy(), scipy.special.erfinv(p), rtol=1e-13)
    e = np.concatenate([rng.uniform(-3, 3, 300), 10 ** rng.uniform(-20, 0, 100), [-800.0]])
    np.testing.assert_allclose(_special._expm1_value(f64(e)).numpy(), np.expm1(e), rtol=1e-14)
    kappa = 10 ** rng.uniform(-4, 4, 300)
    for order, theirs in ((0, scipy.special.i0e), (1, scipy.special.i1e)):
        np.testing.assert_allclose(
            _special.log_bessel(f64(kappa), order).numpy(), np.log(theirs(kappa)) + kappa, rtol=1e-13, atol=1e-14
        )
    a = 10 ** rng.uniform(-3, 5, 300)
    g = np.maximum(scipy.special.gammaincinv(a, rng.uniform(0.001, 0.999, 300)), 1e-290)
    np.testing.assert_allclose(vesta.igamma(f64(a), f64(g)).numpy(), scipy.special.gammainc(a, g), rtol=1e-12)


def test_special_functions_at_their_ends():
    from vesta.distributions import _special

    ends = f64([0.0, -1.0, math.inf, math.nan])
    assert cases.plain(_special._lgamma_value(ends))[:3] == [math.inf] * 3
    assert math.isnan(_special._lgamma_value(ends)[3].item())
    assert _special._digamma_value(ends)[0].item() == -math.inf
    assert _special._erfinv_value(f64([-1.0, 1.0])).tolist() == [-math.inf, math.inf]
    assert vesta.igamma(f64([2.0, 2.0, 0.5]), f64([0.0, math.inf, 0.0])).tolist() == [0.0, 1.0, 0.0]
    assert _special._xlogy(f64([0.0, 0.0, 2.0]), f64([0.0, math.inf, 1.0])).tolist() == [0.0, 0.0, 0.0]


def test_gradients_of_special_functions():
    from vesta.autograd.gradcheck import gradcheck, gradgradcheck
    from vesta.distributions import _linalg, _special

    x = f64([0.3, 1.2, 4.5, 20.0]).requires_grad_()
    for function in (
        _special._Lgamma.apply,
        lambda x: _special._Polygamma.apply(x, 0),
        lambda x: _special._Polygamma.apply(x, 2),
        lambda x: _special._Expm1.apply(x / 10),
        lambda x: _special._Erfinv.apply(x / 30),
        lambda x: _special._xlogy(x, x + 1),
        lambda x: _special._cumprod(x.reshape(2, 2), -1),
        lambda x: _special.log_bessel(x, 0),
        lambda x: _special.log_bessel(x, 1),
        lambda x: _special.mvlgamma(x + 2, 3),
    ):
        assert gradcheck(function, (x,)) and gradgradcheck(function, (x,))
    factor = f64([cases.TRIL, np.diag([1.0, 2.0, 3.0]).tolist()]).requires_grad_()
    assert gradcheck(lambda a: _linalg._Cholesky.apply(a @ a.mT), (factor,))
    assert gradgradcheck(lambda a: _linalg._Cholesky.apply(a @ a.mT), (factor,))


def test_factors_and_eigenvalues():
    from vesta.distributions import _linalg

    rng = np.random.default_rng(0)
    root = rng.standard_normal((3, 5, 5))
    matrix = root @ root.transpose(0, 2, 1)
    np.testing.assert_allclose(_linalg._factor(f64(matrix)).numpy(), np.linalg.cholesky(matrix), atol=1e-12)
    mixed = root + root.transpose(0, 2, 1)
    values = np.sort(_linalg.eigvalsh(f64(mixed)).numpy(), -1)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(mixed), atol=1e-10)
    assert _linalg.has_cholesky(f64([[[1.0, 2.0], [2.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]])).tolist() == [False, True]
    with pytest.raises(RuntimeError, match="positive-definite"):
        _linalg.cholesky(f64([[1.0, 2.0], [2.0, 1.0]]))
