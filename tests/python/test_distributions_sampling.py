"""Samples of vesta.distributions: distribution functions, moments, gradients, with fixed seeds."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
import vesta
from distributions import distribution_cases as cases
from vesta import distributions as d

F64 = vesta.float64
N = 20000


def f64(value: Any) -> vesta.Tensor:
    return vesta.tensor(value, dtype=F64)


def drawn(dist: Any, count: int = N, seed: int = 7) -> np.ndarray:
    vesta.manual_seed(seed)
    return dist.sample((count,)).numpy()


def distance(sample: np.ndarray, cdf: Any) -> float:
    """Returns the statistic of Kolmogorov and Smirnov times sqrt(n); above 1.95 in 1 of 1000 draws."""
    values = np.sort(cdf(np.sort(sample.ravel())))
    n = len(values)
    steps = np.arange(n + 1) / n
    return max(np.abs(values - steps[:-1]).max(), np.abs(values - steps[1:]).max()) * math.sqrt(n)


#: A distribution and SciPy's frozen distribution with its distribution function.
S = scipy.stats
CONTINUOUS = {
    "Normal": (lambda: d.Normal(0.5, 2.0), S.norm(0.5, 2)),
    "Uniform": (lambda: d.Uniform(-1.0, 3.0), S.uniform(-1, 4)),
    "Exponential": (lambda: d.Exponential(2.0), S.expon(scale=0.5)),
    "Laplace": (lambda: d.Laplace(0.5, 2.0), S.laplace(0.5, 2)),
    "Cauchy": (lambda: d.Cauchy(0.5, 2.0), S.cauchy(0.5, 2)),
    "HalfNormal": (lambda: d.HalfNormal(2.0), S.halfnorm(scale=2)),
    "HalfCauchy": (lambda: d.HalfCauchy(2.0), S.halfcauchy(scale=2)),
    "LogNormal": (lambda: d.LogNormal(0.5, 0.7), S.lognorm(0.7, scale=math.exp(0.5))),
    "Gamma": (lambda: d.Gamma(3.0, 2.0), S.gamma(3, scale=0.5)),
    "Gamma-small": (lambda: d.Gamma(f64(0.05), f64(1.0)), S.gamma(0.05)),
    "Gamma-large": (lambda: d.Gamma(f64(2000.0), f64(1.0)), S.gamma(2000)),
    "InverseGamma": (lambda: d.InverseGamma(3.0, 2.0), S.invgamma(3, scale=2)),
    "Chi2": (lambda: d.Chi2(3.0), S.chi2(3)),
    "Beta": (lambda: d.Beta(0.6, 2.5), S.beta(0.6, 2.5)),
    "Kumaraswamy": (lambda: d.Kumaraswamy(2.0, 1.0), S.beta(2, 1)),
    "StudentT": (lambda: d.StudentT(3.0, 0.5, 2.0), S.t(3, 0.5, 2)),
    "FisherSnedecor": (lambda: d.FisherSnedecor(3.0, 7.0), S.f(3, 7)),
    "Weibull": (lambda: d.Weibull(2.0, 1.5), S.weibull_min(1.5, scale=2)),
    "Gumbel": (lambda: d.Gumbel(0.5, 2.0), S.gumbel_r(0.5, 2)),
    "Pareto": (lambda: d.Pareto(2.0, 3.0), S.pareto(3, scale=2)),
    "GeneralizedPareto": (lambda: d.GeneralizedPareto(0.5, 2.0, 0.3), S.genpareto(0.3, 0.5, 2)),
    "VonMises": (lambda: d.VonMises(f64(0.0), f64(1.5)), S.vonmises(1.5)),
    "VonMises-flat": (lambda: d.VonMises(f64(0.0), f64(1e-7)), S.uniform(-math.pi, 2 * math.pi)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_samples_follow_the_distribution_function(name):
    make, theirs = CONTINUOUS[name]
    assert distance(drawn(make()), theirs.cdf) < 1.95


def test_samples_of_the_continuous_bernoulli():
    for p in (0.2, 0.5, 0.9):
        dist = d.ContinuousBernoulli(f64(p))
        assert distance(drawn(dist), lambda x, dist=dist: dist.cdf(f64(x)).numpy()) < 1.95


DRAWN = S.rv_discrete(values=([0, 2, 3], [0.2, 0.5, 0.3]))
#: Discrete distributions, SciPy's, and the values that are counted one by one.
DISCRETE = {
    "Bernoulli": (lambda: d.Bernoulli(0.3), S.bernoulli(0.3), 2),
    "Binomial-inversion": (lambda: d.Binomial(20, f64(0.3)), S.binom(20, 0.3), 16),
    "Binomial-flipped": (lambda: d.Binomial(20, f64(0.8)), S.binom(20, 0.8), 21),
    "Binomial-rejection": (lambda: d.Binomial(200, f64(0.3)), S.binom(200, 0.3), 100),
    "Binomial-rejection-flipped": (lambda: d.Binomial(200, f64(0.6)), S.binom(200, 0.6), 160),
    "Poisson-inversion": (lambda: d.Poisson(f64(3.0)), S.poisson(3), 14),
    "Poisson-rejection": (lambda: d.Poisson(f64(40.0)), S.poisson(40), 80),
    "Geometric": (lambda: d.Geometric(f64(0.3)), S.geom(0.3, -1), 20),
    "NegativeBinomial": (lambda: d.NegativeBinomial(f64(3.5), f64(0.4)), S.nbinom(3.5, 0.6), 14),
    "Categorical": (lambda: d.Categorical(f64([2.0, 0.0, 5.0, 3.0])), DRAWN, 4),
}  # fmt: skip


@pytest.mark.parametrize("name", DISCRETE)
def test_counts_follow_the_probabilities(name):
    make, theirs, top = DISCRETE[name]
    sample = drawn(make()).astype(int)
    assert sample.min() >= 0
    expected = np.append(theirs.pmf(np.arange(top)), theirs.sf(top - 1)) * N
    counts = np.bincount(np.minimum(sample, top), minlength=top + 1)
    assert (counts[expected == 0] == 0).all()
    rare = expected < 5  # the statistic wants at least five of each
    expected = np.append(expected[~rare], expected[rare].sum())
    counts = np.append(counts[~rare], counts[rare].sum())
    used = expected > 0
    statistic = ((counts - expected)[used] ** 2 / np.maximum(expected[used], 1)).sum()
    assert statistic < scipy.stats.chi2(max(1, used.sum() - 1)).isf(1e-3)


#: Distributions of vectors and matrices, compared by mean and variance.
VECTORS = {
    "Dirichlet": lambda: d.Dirichlet(f64([0.05, 1.0, 3.0])),
    "OneHotCategorical": lambda: d.OneHotCategorical(f64([0.2, 0.3, 0.5])),
    "Multinomial": lambda: d.Multinomial(7, f64([0.2, 0.3, 0.5])),
    "MultivariateNormal": lambda: d.MultivariateNormal(f64([1.0, 0.0, -1.0]), f64(cases.COV)),
    "LowRankMultivariateNormal": lambda: d.LowRankMultivariateNormal(
        f64([1.0, 0.0, -1.0]), f64([[1.0, 2.0], [0.5, -1.0], [0.0, 0.3]]), f64([0.3, 1.0, 2.0])
    ),
    "Wishart": lambda: d.Wishart(f64(6.0), f64(cases.COV)),
    "MixtureSameFamily": lambda: d.MixtureSameFamily(
        d.Categorical(f64([0.2, 0.8])), d.Independent(d.Normal(f64([[0.0, 1.0], [3.0, -1.0]]), f64(0.5)), 1)
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_moments_of_vectors(name):
    dist = VECTORS[name]()
    sample = drawn(dist)
    mean, variance = dist.mean.numpy(), dist.variance.numpy()
    assert (np.abs(sample.mean(0) - mean) < 4 * np.sqrt(variance / N)).all()
    spread = ((sample - mean) ** 2).std(0)
    assert (np.abs(((sample - mean) ** 2).mean(0) - variance) <= 4 * spread / math.sqrt(N) + 1e-12).all()


def test_covariances_of_normal_vectors():
    for name in ("MultivariateNormal", "LowRankMultivariateNormal"):
        dist = VECTORS[name]()
        np.testing.assert_allclose(np.cov(drawn(dist).T), dist.covariance_matrix.numpy(), atol=0.12)


@pytest.mark.differs
@pytest.mark.parametrize("eta", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_correlations_of_lkj(n, eta):
    """Every correlation r has (r + 1) / 2 ~ Beta(a, a) with a = eta - 1 + n / 2 (Lewandowski and others, 2009)."""
    factor = drawn(d.LKJCholesky(n, f64(eta)), 6000)
    matrix = factor @ factor.transpose(0, 2, 1)
    a = eta - 1 + n / 2
    for i in range(n):
        for j in range(i):
            assert distance((matrix[:, i, j] + 1) / 2, scipy.stats.beta(a, a).cdf) < 1.95


def test_relaxed_samples_lie_inside_and_choose_as_their_weights():
    weights = f64([0.2, 0.3, 0.5])
    sample = drawn(d.RelaxedOneHotCategorical(f64(0.5), weights))
    assert np.allclose(sample.sum(-1), 1) and (sample >= 0).all()
    chosen = np.bincount(sample.argmax(-1), minlength=3) / N
    np.testing.assert_allclose(chosen, weights.numpy(), atol=0.015)
    sample = drawn(d.RelaxedBernoulli(f64(0.5), f64(0.3)))
    assert ((sample > 0) & (sample < 1)).all() and (sample > 0.5).mean() == pytest.approx(0.3, abs=0.015)


def test_the_density_of_relaxed_distributions_integrates_to_one():
    logit = vesta.linspace(-60, 60, 24001, dtype=F64)  # steps of 0.005; the densities have poles at 0 and 1
    x = vesta.sigmoid(logit)
    bernoulli = d.RelaxedBernoulli(f64(0.7), f64(0.3), validate_args=False).log_prob(x)
    pair = d.RelaxedOneHotCategorical(f64(0.7), f64([0.2, 0.8]), validate_args=False)
    categorical = pair.log_prob(vesta.stack([x, vesta.sigmoid(-logit)], -1))
    for log_prob in (bernoulli, categorical):
        inside = (logit.abs() < 30) * (log_prob.exp() * x * vesta.sigmoid(-logit))
        assert inside.sum().item() * 0.005 == pytest.approx(1, abs=1e-6)


def test_transformed_samples():
    logistic = d.TransformedDistribution(
        d.Uniform(f64(0.0), f64(1.0)), [d.SigmoidTransform().inv, d.AffineTransform(f64(1.0), f64(-2.0))]
    )
    assert distance(drawn(logistic), scipy.stats.logistic(1, 2).cdf) < 1.95


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.label)
def test_shapes_types_and_support_of_samples(case):
    dist, _ = case.build(vesta)
    vesta.manual_seed(0)
    for shape in ((), (3,), (2, 1), (0,)):
        if shape == (0,) and case.name == "Wishart":
            continue  # no matrix, no factor
        sample = dist.sample(shape)
        assert tuple(sample.shape) == (*shape, *dist.batch_shape, *dist.event_shape)
        assert not sample.requires_grad
        integral = case.name == "Categorical"
        number = not case.parameters or not any(isinstance(v, list) for v in case.parameters.values())
        dtype = vesta.int64 if integral else vesta.float32 if number else getattr(vesta, case.dtype)
        assert sample.dtype == dtype
        if shape == (3,):
            assert bool(dist.support.check(sample).all())
            assert bool(dist.log_prob(sample).isfinite().all())
    wider = dist.expand((2, *dist.batch_shape))
    assert tuple(wider.sample((3,)).shape) == (3, *wider.batch_shape, *wider.event_shape)


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.label)
def test_rsample_is_differentiable_in_every_parameter(case):
    dist, leaves = case.build(vesta, leaves=True)
    if not dist.has_rsample:
        with pytest.raises(NotImplementedError):
            dist.rsample()
        return
    if not leaves:
        return
    vesta.manual_seed(1)
    sample = dist.rsample((50,))
    assert sample.requires_grad and not dist.sample().requires_grad
    sample.square().sum().backward()
    for name, leaf in leaves.items():
        assert leaf.grad is not None and bool(leaf.grad.isfinite().all()), name
        assert bool((leaf.grad != 0).any()), name


def test_the_same_seed_gives_the_same_sample():
    for make in (*VECTORS.values(), *(pair[0] for pair in CONTINUOUS.values()), *(row[0] for row in DISCRETE.values())):
        dist = make()
        first, second, other = drawn(dist, 20), drawn(dist, 20), drawn(dist, 20, seed=8)
        assert (first == second).all() and (first != other).any()


def test_gamma_takes_a_generator():
    def draw() -> Any:
        return d.Gamma(vesta.ones(5), 1.0).sample(generator=vesta.Generator().manual_seed(3))

    first = draw()
    vesta.manual_seed(99)
    assert first.equal(draw())


# ---- implicit gradients ----------------------------------------------------------------------------------------------

RECORD = json.loads((Path(cases.__file__).with_name("torch_values.json")).read_text(encoding="utf-8"))["implicit"]


@pytest.mark.parametrize(("dtype", "digits"), [(F64, 1e-11), (vesta.float32, 1e-5)])
def test_derivatives_of_gamma_and_beta_samples(dtype, digits):
    from vesta.distributions._tails import beta_sample_grad, gamma_sample_grad

    a, x, want = np.array(RECORD["gamma"]).T
    got = gamma_sample_grad(f64(a).to(dtype), f64(x).to(dtype)).numpy()
    np.testing.assert_allclose(got, want, rtol=digits)
    a, b, x, want = np.array(RECORD["beta"]).T
    got = beta_sample_grad(f64(x).to(dtype), f64(a).to(dtype), f64(b).to(dtype)).numpy()
    np.testing.assert_allclose(got, want, rtol=digits)


@pytest.mark.parametrize("a", [0.05, 0.7, 3.0, 100.0])
def test_gradients_of_gamma_samples_are_unbiased(a):
    """d/da E x = 1 and d/da E log x = psi'(a)."""
    vesta.manual_seed(2)
    leaf = f64(a).requires_grad_()
    sample = d.Gamma(leaf, f64(1.0)).rsample((4000,))
    (slope,) = vesta.autograd.grad(sample.mean(), leaf, retain_graph=True)
    assert slope.item() == pytest.approx(1, abs=0.25 if a < 0.1 else 0.1)
    if a >= 0.5:  # below, logarithms of tiny samples spread
        (slope,) = vesta.autograd.grad(sample.log().mean(), leaf)
        assert slope.item() == pytest.approx(scipy.special.polygamma(1, a), rel=0.1)


def test_gradients_of_dirichlet_samples_are_unbiased():
    """d/da_j E x_i = (d_ij - m_i) / total for the mean m."""
    vesta.manual_seed(2)
    a = f64([0.4, 1.0, 3.0]).requires_grad_()
    sample = d.Dirichlet(a).rsample((20000,))
    mean = (a / a.sum()).detach().numpy()
    for i in range(3):
        (slope,) = vesta.autograd.grad(sample[:, i].mean(), a, retain_graph=True)
        want = (np.eye(3)[i] - mean[i]) / a.detach().sum().item()
        np.testing.assert_allclose(slope.numpy(), want, atol=0.01)


def test_gradients_of_student_samples_are_unbiased():
    """d/ddf E|x| by the formula of the mean of |x|."""
    vesta.manual_seed(2)
    df = f64(5.0).requires_grad_()
    d.StudentT(df).rsample((40000,)).abs().mean().backward()

    def mean(v: float) -> float:
        lgamma = scipy.special.gammaln
        return 2 * math.sqrt(v) / (v - 1) * math.exp(lgamma((v + 1) / 2) - lgamma(v / 2)) / math.sqrt(math.pi)

    assert df.grad.item() == pytest.approx((mean(5.001) - mean(4.999)) / 0.002, rel=0.15)


def test_dirichlet_samples_do_not_underflow():
    """With tiny concentrations gamma variables are 0 in floats; their logarithms are not."""
    vesta.manual_seed(0)
    a = vesta.full((500, 3), 1e-4).requires_grad_()
    sample = d.Dirichlet(a).rsample()
    assert bool(sample.isfinite().all()) and vesta.allclose(sample.sum(-1), vesta.ones(500))
    sample[:, 0].sum().backward()
    assert bool(a.grad.isfinite().all())


def test_derivatives_of_samples_are_taken_once():
    a = f64(2.0).requires_grad_()
    (slope,) = vesta.autograd.grad(d.Gamma(a, f64(1.0)).rsample(), a, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        slope.backward()
    b = f64([1.0, 2.0]).requires_grad_()
    (slope,) = vesta.autograd.grad(d.Dirichlet(b).rsample()[0], b, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivative"):
        slope.sum().backward()


def test_parameters_of_nan_give_nan():
    nan = f64(math.nan)
    for dist in (d.Gamma(nan, f64(1.0), validate_args=False), d.Poisson(nan, validate_args=False)):
        assert math.isnan(dist.sample().item())
    assert math.isnan(d.Binomial(100, nan, validate_args=False).sample().item())
    assert math.isnan(d.VonMises(f64(0.0), nan, validate_args=False).sample().item())


def test_extreme_counts():
    vesta.manual_seed(0)
    assert d.Poisson(f64([0.0, 1e12])).sample((5,))[:, 0].tolist() == [0.0] * 5
    large = d.Poisson(f64(1e12)).sample((2000,))
    assert large.mean().item() == pytest.approx(1e12, rel=1e-6) and large.std().item() == pytest.approx(1e6, rel=0.1)
    assert d.Binomial(f64([0.0, 5.0, 1000.0]), f64([0.5, 0.0, 1.0])).sample().tolist() == [0.0, 0.0, 1000.0]
