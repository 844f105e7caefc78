"""The table of distributions, transforms and pairs that are compared with PyTorch, and what is computed of each.

The functions take the library as an argument, ``vesta`` or ``torch``: the same code records PyTorch's values and
computes Vesta's.
"""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

INF, NAN = math.inf, math.nan


class Case:
    """A distribution: how it is made of parameters (nested lists become tensors), and values of its support."""

    def __init__(
        self,
        name: str,
        values: Any,
        make: Any = None,
        label: str = "",
        dtype: str = "float64",
        digits: int = 10,
        **parameters: Any,
    ) -> None:
        """``digits`` is the precision of PyTorch's values where it is less than that of the dtype."""
        self.label = f"{name}{'-' * bool(label)}{label}"
        self.dtype, self.digits = dtype, digits
        self.name, self.values, self.parameters = name, values, parameters
        self.make = make or (lambda t, d, **p: getattr(d, name)(**p))

    def build(self, t: Any, leaves: bool = False) -> tuple[Any, dict[str, Any]]:
        """Returns the distribution and those parameters that are leaves with a gradient."""
        dtype = getattr(t, self.dtype)
        given = {k: t.tensor(v, dtype=dtype) if isinstance(v, list) else v for k, v in self.parameters.items()}
        if leaves:
            given = {k: v.requires_grad_() if hasattr(v, "requires_grad_") else v for k, v in given.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.make(t, t.distributions, **given), {k: v for k, v in given.items() if hasattr(v, "grad")}


def tensor(t: Any, value: Any) -> Any:
    return t.tensor(value, dtype=t.float64)


def _spd(*rows: list[float]) -> list[list[float]]:
    return [list(row) for row in rows]


COV = _spd([2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 0.7])
TRIL = [[1.2, 0.0, 0.0], [0.4, 0.9, 0.0], [-0.3, 0.2, 0.6]]
SIMPLEX = [[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]]
REALS = [-7.0, -1.2, 0.0, 0.3, 2.5, 9.0]
POSITIVE = [1e-6, 0.03, 0.5, 1.0, 3.7, 40.0]
UNIT = [1e-6, 0.03, 0.25, 0.5, 0.8, 0.999]
COUNTS = [0.0, 1.0, 2.0, 5.0, 17.0]
SHAPE2 = [[0.3], [1.0], [2.5]]  # broadcasts with six values
MARKS = [0.001, 0.1, 0.5, 0.77, 0.999]

CASES = [
    Case("Normal", REALS, loc=[[-1.0], [0.0], [4.0]], scale=[[0.1], [1.0], [7.0]]),
    Case("Normal", REALS, label="numbers", digits=6, loc=1.0, scale=2.0),
    Case("Normal", [[1.0], [2.0]], label="broadcast", loc=[0.0, 1.0, 2.0], scale=[[1.0], [3.0]]),
    Case("Uniform", [0.0, 0.5, 1.0, 1.9], low=[[-1.0], [0.0]], high=[[2.0], [5.0]]),
    Case("Exponential", POSITIVE, rate=SHAPE2),
    Case("Laplace", REALS, loc=[[-1.0], [0.0], [4.0]], scale=SHAPE2),
    Case("Cauchy", REALS, loc=[[-1.0], [0.0], [4.0]], scale=SHAPE2),
    Case("HalfNormal", POSITIVE, scale=SHAPE2),
    Case("HalfCauchy", POSITIVE, scale=SHAPE2),
    Case("LogNormal", POSITIVE, loc=[[-1.0], [0.0], [2.0]], scale=SHAPE2),
    Case("Gamma", POSITIVE, concentration=[[0.05], [1.0], [30.0]], rate=[[0.5], [2.0], [4.0]]),
    Case("InverseGamma", POSITIVE, concentration=[[0.7], [1.5], [30.0]], rate=[[0.5], [2.0], [4.0]]),
    Case("Chi2", POSITIVE, df=[[0.5], [2.0], [31.0]]),
    Case("Beta", UNIT, concentration1=[[0.2], [1.0], [12.0]], concentration0=[[0.6], [3.0], [5.0]]),
    Case("Beta", UNIT, label="numbers", digits=6, concentration1=2.0, concentration0=3.0),
    Case("Kumaraswamy", UNIT, concentration1=[[0.5], [1.5], [4.0]], concentration0=[[0.6], [3.0], [2.0]]),
    Case("StudentT", REALS, df=[[0.7], [1.5], [30.0]], loc=[[-1.0], [0.0], [4.0]], scale=SHAPE2),
    Case("FisherSnedecor", POSITIVE, df1=[[0.7], [3.0], [30.0]], df2=[[1.0], [3.5], [9.0]]),
    Case("Weibull", POSITIVE, scale=[[0.7], [3.0], [30.0]], concentration=[[1.0], [3.5], [1.5]]),
    Case("Gumbel", REALS, loc=[[-1.0], [0.0], [4.0]], scale=SHAPE2),
    Case("Pareto", [3.0, 4.0, 50.0], scale=[[0.3], [1.0], [2.5]], alpha=[[0.7], [1.5], [5.0]]),
    Case(
        "GeneralizedPareto",
        [1.0, 1.3, 1.9],
        dtype="float32",
        digits=5,
        loc=[[0.0], [0.5], [1.0], [1.0]],
        scale=[[1.0], [2.0], [0.7], [3.0]],
        concentration=[[0.0], [0.3], [0.9], [-0.5]],
    ),
    Case("VonMises", [-3.0, 0.0, 1.0], digits=4, loc=[[0.1], [2.0], [-1.0]], concentration=[[0.01], [2.0], [50.0]]),
    Case("Bernoulli", [0.0, 1.0], probs=[[0.1], [0.5], [0.99]]),
    Case("Bernoulli", [0.0, 1.0], label="logits", logits=[[-3.0], [0.0], [20.0]]),
    Case("ContinuousBernoulli", UNIT, probs=[[0.1], [0.4999], [0.5002], [0.99]]),
    Case("ContinuousBernoulli", UNIT, label="logits", logits=[[-3.0], [0.001], [2.0]]),
    Case("Geometric", COUNTS, probs=[[0.1], [0.5], [0.99]]),
    Case("Geometric", COUNTS, label="logits", logits=[[-2.0], [0.5], [3.0]]),
    Case("Binomial", COUNTS, total_count=20, probs=[[0.1], [0.5], [0.99]]),
    Case("Binomial", COUNTS, label="logits", total_count=17, logits=[[-2.0], [0.5], [3.0]]),
    Case("NegativeBinomial", COUNTS, total_count=[[0.5], [3.0], [40.0]], probs=[[0.1], [0.5], [0.9]]),
    Case("NegativeBinomial", COUNTS, label="logits", total_count=[[0.5], [3.0], [40.0]], logits=[[-2.0], [0.5], [3.0]]),
    Case("Poisson", COUNTS, rate=[[0.1], [4.0], [77.0]]),
    Case("Categorical", [0, 2], probs=[[2.0, 3.0, 5.0], [1.0, 0.0, 3.0]]),
    Case("Categorical", [[0], [2], [1]], label="logits", logits=[[2.0, 3.0, -5.0], [1.0, 0.0, 3.0]]),
    Case("OneHotCategorical", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], probs=SIMPLEX),
    Case("OneHotCategoricalStraightThrough", [0.0, 1.0, 0.0], logits=[0.5, -1.0, 2.0]),
    Case("Multinomial", [[1.0, 2.0, 3.0], [6.0, 0.0, 0.0]], total_count=6, probs=SIMPLEX),
    Case("Multinomial", [1.0, 2.0, 3.0], label="logits", total_count=6, logits=[0.5, -1.0, 2.0]),
    Case("Dirichlet", [[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]], concentration=[[0.2, 1.0, 7.0], [0.5, 0.6, 0.7]]),
    Case(
        "LogisticNormal",
        [[0.2, 0.3, 0.5], [0.9, 0.05, 0.05]],
        loc=[[0.2, 1.0], [0.5, 0.6]],
        scale=[[1.0, 2.0], [0.5, 3.0]],
    ),
    Case("RelaxedBernoulli", UNIT, temperature=[0.7], probs=[[0.1], [0.5], [0.99]]),
    Case("RelaxedOneHotCategorical", [0.2, 0.3, 0.5], temperature=[0.7], probs=SIMPLEX),
    Case("MultivariateNormal", [[0.0, 1.0, 2.0], [-1.0, 0.0, 0.5]], loc=[1.0, 0.0, -1.0], covariance_matrix=COV),
    Case("MultivariateNormal", [[0.0, 1.0, 2.0]], label="precision", loc=[1.0, 0.0, -1.0], precision_matrix=COV),
    Case(
        "MultivariateNormal",
        [[[0.0, 1.0, 2.0]], [[3.0, 1.0, 2.0]]],
        label="tril",
        loc=[[1.0, 0.0, -1.0], [0.0, 0.0, 0.0]],
        scale_tril=TRIL,
    ),
    Case(
        "MultivariateNormal",
        [0.0, 1.0, 2.0],
        label="batch",
        loc=[1.0, 0.0, -1.0],
        covariance_matrix=[COV, [[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]]],
    ),
    Case(
        "LowRankMultivariateNormal",
        [[0.0, 1.0, 2.0], [-1.0, 0.0, 0.5]],
        loc=[1.0, 0.0, -1.0],
        cov_factor=[[1.0, 2.0], [0.5, -1.0], [0.0, 0.3]],
        cov_diag=[[0.3, 1.0, 2.0], [1.0, 1.0, 1.0]],
    ),
    Case("Wishart", COV, df=[4.5, 7.0], covariance_matrix=COV),
    Case("Wishart", COV, label="tril", df=[4.0, 6.0], scale_tril=[TRIL, TRIL]),
    Case("Wishart", COV, label="precision", df=[4.0], precision_matrix=COV),
    Case("LKJCholesky", [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, -0.6, 0.8]], dim=3, concentration=[0.5, 1.0, 4.0]),
    Case(
        "Independent",
        [[0.0, 1.0], [2.0, 3.0]],
        lambda t, d, loc, scale: d.Independent(d.Normal(loc, scale), 1),
        loc=[[0.0, 1.0], [2.0, -1.0]],
        scale=[1.0, 3.0],
    ),
    Case(
        "MixtureSameFamily",
        REALS,
        lambda t, d, probs, loc, scale: d.MixtureSameFamily(d.Categorical(probs), d.Normal(loc, scale)),
        probs=[0.2, 0.3, 0.5],
        loc=[-3.0, 0.0, 2.0],
        scale=[1.0, 0.2, 3.0],
    ),
    Case(
        "MixtureSameFamily",
        [[0.0, 1.0], [2.0, 3.0]],
        lambda t, d, probs, loc, scale: d.MixtureSameFamily(
            d.Categorical(probs), d.Independent(d.Normal(loc, scale), 1)
        ),
        label="vectors",
        probs=[0.4, 0.6],
        loc=[[[0.0, 1.0], [2.0, -1.0]], [[5.0, 1.0], [2.0, -2.0]]],
        scale=[1.0, 3.0],
    ),
    Case(
        "TransformedDistribution",
        REALS,
        lambda t, d, loc, scale: d.TransformedDistribution(
            d.Uniform(tensor(t, 0.0), tensor(t, 1.0)), [d.SigmoidTransform().inv, d.AffineTransform(loc, scale)]
        ),
        loc=[[0.0], [1.0]],
        scale=[[2.0], [-0.5]],
    ),
]

PROPERTIES = ("mean", "mode", "variance", "stddev", "batch_shape", "event_shape", "has_rsample")


def plain(value: Any) -> Any:
    """Returns a result as numbers and lists: what JSON and a comparison take."""
    if hasattr(value, "tolist") and not isinstance(value, (tuple, list)):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def attempt(compute: Any) -> Any:
    """Returns a result, or ``"NotImplementedError"`` or ``"error"`` if it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(compute())
    except NotImplementedError:
        return "NotImplementedError"
    except (ValueError, AttributeError, RuntimeError):
        return "error"


def measure(t: Any, case: Case) -> dict[str, Any]:
    """Returns everything that is compared of a distribution."""
    dist, _ = case.build(t)
    values = t.tensor(case.values, dtype=t.int64 if case.name == "Categorical" else getattr(t, case.dtype))
    result = {name: attempt(lambda name=name: getattr(dist, name)) for name in PROPERTIES}
    result["log_prob"] = attempt(lambda: dist.log_prob(values))
    result["cdf"] = attempt(lambda: dist.cdf(values))
    marks = t.tensor(MARKS, dtype=getattr(t, case.dtype))
    result["icdf"] = attempt(lambda: dist.icdf(marks.reshape(-1, *(1 for _ in dist.batch_shape))))
    result["entropy"] = attempt(dist.entropy)
    result["perplexity"] = attempt(dist.perplexity)
    if dist.has_enumerate_support:
        result["support"] = attempt(dist.enumerate_support)
        result["support_unexpanded"] = attempt(lambda: dist.enumerate_support(expand=False))
    wider = dist.expand((2, *dist.batch_shape))
    result["expanded"] = attempt(lambda: wider.log_prob(values))
    result["expanded_shapes"] = [plain(wider.batch_shape), plain(wider.event_shape)]
    result["repr"] = shown(dist)
    result.update(gradients(t, case, values))
    return result


def gradients(t: Any, case: Case, values: Any) -> dict[str, Any]:
    """Returns gradients of log-probabilities and of the entropy in all parameters."""
    result = {}
    for name, of in (("log_prob", lambda d: d.log_prob(values)), ("entropy", lambda d: d.entropy())):
        dist, leaves = case.build(t, leaves=True)
        raised = attempt(lambda of=of, dist=dist: of(dist).sum().backward())
        grads = {k: None if v.grad is None else v.grad.tolist() for k, v in leaves.items()}
        result[f"grad_{name}"] = grads if raised is None else raised
    return result


def signature(t: Any, name: str) -> list[str]:
    """Returns the parameters of a public function or class, with their defaults."""
    found = inspect.signature(getattr(t.distributions, name)).parameters.values()
    return [p.name if p.default is p.empty else f"{p.name}={shown(p.default)}".replace("Size([])", "()") for p in found]


# ---- divergences -----------------------------------------------------------------------------------------------------

_P = {
    "Bernoulli": [{"probs": [[0.2, 0.0], [1.0, 0.5]]}, {"probs": [[0.7, 0.3], [1.0, 0.0]]}],
    "Beta": [
        {"concentration1": [0.5, 2.0], "concentration0": [1.5, 3.0]},
        {"concentration1": [2.5, 1.0], "concentration0": [0.5, 3.5]},
    ],
    "Binomial": [{"total_count": 10, "probs": [0.2, 0.4]}, {"total_count": 10, "probs": [0.7, 0.3]}],
    "Categorical": [{"probs": [[0.2, 0.8, 0.0], [0.3, 0.3, 0.4]]}, {"probs": [[0.1, 0.4, 0.5], [0.5, 0.5, 0.0]]}],
    "Cauchy": [{"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": [1.0, 3.0], "scale": [0.5, 2.0]}],
    "ContinuousBernoulli": [{"probs": [0.2, 0.5]}, {"probs": [0.9, 0.4]}],
    "Dirichlet": [{"concentration": [0.5, 1.0, 3.0]}, {"concentration": [[2.0, 2.0, 1.0], [0.3, 4.0, 1.0]]}],
    "Exponential": [{"rate": [0.5, 3.0]}, {"rate": [1.0, 0.2]}],
    "Gamma": [{"concentration": [0.5, 3.0], "rate": [1.0, 2.0]}, {"concentration": [2.0, 1.0], "rate": [0.3, 2.5]}],
    "Geometric": [{"probs": [0.2, 0.7]}, {"probs": [0.5, 0.4]}],
    "Gumbel": [{"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": [1.0, 3.0], "scale": [0.5, 2.5]}],
    "HalfNormal": [{"scale": [1.0, 2.0]}, {"scale": [0.5, 3.0]}],
    "Laplace": [{"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": [1.0, 3.0], "scale": [0.5, 2.5]}],
    "LowRankMultivariateNormal": [
        {"loc": [1.0, 0.0, -1.0], "cov_factor": [[1.0], [0.5], [0.0]], "cov_diag": [0.3, 1.0, 2.0]},
        {"loc": [0.0, 0.5, 1.0], "cov_factor": [[1.0, 2.0], [0.5, -1.0], [0.0, 0.3]], "cov_diag": [0.7, 2.0, 1.0]},
    ],
    "MultivariateNormal": [
        {"loc": [1.0, 0.0, -1.0], "covariance_matrix": COV},
        {"loc": [[0.0, 0.0, 1.0], [1.0, 1.0, 1.0]], "scale_tril": TRIL},
    ],
    "Normal": [{"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": [1.0, 3.0], "scale": [0.5, 2.5]}],
    "OneHotCategorical": [{"probs": [0.2, 0.8]}, {"probs": [0.5, 0.5]}],
    "Pareto": [{"scale": [1.0, 2.0], "alpha": [0.8, 3.0]}, {"scale": [0.5, 3.0], "alpha": [1.0, 2.5]}],
    "Poisson": [{"rate": [[0.5, 3.0], [1.0, 7.0]]}, {"rate": [[1.0, 0.2], [0.2, 5.0]]}],
    "Uniform": [{"low": [0.1, 0.2], "high": [0.6, 0.9]}, {"low": [-1.0, 0.3], "high": [2.0, 0.8]}],
    "LogNormal": [{"loc": [0.0, 1.0], "scale": [1.0, 2.0]}, {"loc": [1.0, 3.0], "scale": [0.5, 2.5]}],
    "Chi2": [{"df": [1.0, 4.0]}, {"df": [2.0, 3.0]}],
    "Wishart": [{"df": [4.5], "covariance_matrix": COV}, {"df": [6.0], "scale_tril": TRIL}],
}

#: Pairs where PyTorch's formula is wrong: it gives inf where the intervals lie within each other (docs/differences.md).
PYTORCH_IS_WRONG = {("ContinuousBernoulli", "Uniform"), ("Uniform", "ContinuousBernoulli")}


def pairs(t: Any) -> list[tuple[str, str]]:
    """Returns the registered pairs of classes, by name."""
    table = t.distributions.kl._KL_REGISTRY
    return sorted((p.__name__, q.__name__) for p, q in table if p.__module__.startswith(t.__name__ + "."))


def divergence(t: Any, p_name: str, q_name: str) -> dict[str, Any]:
    """Returns the divergence of a pair and its gradients."""
    p = Case(p_name, None, **_P[p_name][0])
    q = Case(q_name, None, **_P[q_name][1])
    (left, a), (right, b) = p.build(t, leaves=True), q.build(t, leaves=True)
    value = t.distributions.kl_divergence(left, right)
    finite = value[t.isfinite(value)].sum()
    result = {"value": value.tolist()}
    if finite.requires_grad:
        finite.backward()
        for side, leaves in (("p", a), ("q", b)):
            result[side] = {k: None if v.grad is None else v.grad.tolist() for k, v in leaves.items()}
    return result


def divergence_names() -> list[str]:
    return list(_P)


# ---- transforms ------------------------------------------------------------------------------------------------------

GRID = [[-2.0, 0.3, 1.5], [0.0, -0.7, 4.0]]
TRANSFORMS = {
    "ExpTransform": (lambda t, d: d.ExpTransform(), GRID),
    "PowerTransform": (lambda t, d: d.PowerTransform(tensor(t, [2.0, 0.5, -1.5])), [[0.1, 1.0, 3.0]]),
    "SigmoidTransform": (lambda t, d: d.SigmoidTransform(), GRID),
    "SoftplusTransform": (lambda t, d: d.SoftplusTransform(), GRID),
    "TanhTransform": (lambda t, d: d.TanhTransform(), GRID),
    "AffineTransform": (lambda t, d: d.AffineTransform(tensor(t, [1.0, 2.0, 3.0]), -2.0), GRID),
    "AffineTransform-event": (lambda t, d: d.AffineTransform(0.5, tensor(t, [1.0, 2.0, 3.0]), event_dim=1), GRID),
    "SoftmaxTransform": (lambda t, d: d.SoftmaxTransform(), GRID),
    "AbsTransform": (lambda t, d: d.AbsTransform(), GRID),
    "StickBreakingTransform": (lambda t, d: d.StickBreakingTransform(), GRID),
    "LowerCholeskyTransform": (lambda t, d: d.LowerCholeskyTransform(), COV),
    "PositiveDefiniteTransform": (lambda t, d: d.PositiveDefiniteTransform(), COV),
    "CorrCholeskyTransform": (lambda t, d: d.CorrCholeskyTransform(), GRID),
    "ReshapeTransform": (lambda t, d: d.ReshapeTransform((3,), (3, 1)), GRID),
    "IndependentTransform": (lambda t, d: d.IndependentTransform(d.ExpTransform(), 1), GRID),
    "ComposeTransform": (
        lambda t, d: d.ComposeTransform([d.AffineTransform(1.0, 2.0), d.StickBreakingTransform()]),
        GRID,
    ),
    "CatTransform": (
        lambda t, d: d.CatTransform([d.ExpTransform(), d.AffineTransform(1.0, 3.0)], dim=-1, lengths=[1, 2]),
        GRID,
    ),
    "StackTransform": (lambda t, d: d.StackTransform([d.ExpTransform(), d.TanhTransform()], dim=0), GRID),
    "CumulativeDistributionTransform": (
        lambda t, d: d.CumulativeDistributionTransform(d.Normal(tensor(t, 0.5), tensor(t, 2.0))),
        GRID,
    ),
    "inverse": (
        lambda t, d: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)]).inv,
        [[0.1, 1.0, 3.0]],
    ),
    "identity": (lambda t, d: d.identity_transform, GRID),
}

CONSTRAINTS = {
    "real": lambda t, c: c.real,
    "positive": lambda t, c: c.positive,
    "nonnegative": lambda t, c: c.nonnegative,
    "greater_than": lambda t, c: c.greater_than(2.0),
    "greater_than_eq": lambda t, c: c.greater_than_eq(-1.0),
    "less_than": lambda t, c: c.less_than(tensor(t, [1.0, 2.0, 3.0])),
    "interval": lambda t, c: c.interval(-1.0, 3.0),
    "unit_interval": lambda t, c: c.unit_interval,
    "half_open_interval": lambda t, c: c.half_open_interval(0.0, 2.0),
    "simplex": lambda t, c: c.simplex,
    "corr_cholesky": lambda t, c: c.corr_cholesky,
    "independent": lambda t, c: c.independent(c.positive, 1),
    "real_vector": lambda t, c: c.real_vector,
    "cat": lambda t, c: c.cat([c.positive, c.unit_interval], dim=-1, lengths=[1, 2]),
    "stack": lambda t, c: c.stack([c.positive, c.real], dim=0),
    "boolean": lambda t, c: c.boolean,
    "one_hot": lambda t, c: c.one_hot,
    "lower_cholesky": lambda t, c: c.lower_cholesky,
    "lower_triangular": lambda t, c: c.lower_triangular,
    "positive_definite": lambda t, c: c.positive_definite,
    "positive_semidefinite": lambda t, c: c.positive_semidefinite,
    "symmetric": lambda t, c: c.symmetric,
    "square": lambda t, c: c.square,
    "nonnegative_integer": lambda t, c: c.nonnegative_integer,
    "positive_integer": lambda t, c: c.positive_integer,
    "integer_interval": lambda t, c: c.integer_interval(0, 4),
    "multinomial": lambda t, c: c.multinomial(5),
    "dependent": lambda t, c: c.dependent,
}
#: What every constraint is asked about; the last two are square.
CHECKED = [
    [[-2.0, 0.3, 1.5], [0.0, -0.7, 4.0]],
    [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]],
    [[0.0, 1.0, 4.0], [NAN, INF, -INF]],
    COV,
    TRIL,
    [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, -0.6, 0.8]],
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
]


def shown(value: Any) -> str:
    return repr(value).replace("torch.", "").replace("vesta.", "")


def measure_transform(t: Any, name: str) -> dict[str, Any]:
    make, x = TRANSFORMS[name]
    transform, x = make(t, t.distributions), tensor(t, x).requires_grad_()
    y = transform(x)
    result = {
        "y": y.tolist(),
        "x": attempt(lambda: transform.inv(y)),
        "bijective": transform.bijective,
        "sign": attempt(lambda: transform.sign),
        "repr": shown(transform),
        "inverse_repr": shown(transform.inv),
        "forward_shape": attempt(lambda: tuple(transform.forward_shape(x.shape))),
        "inverse_shape": attempt(lambda: tuple(transform.inverse_shape(y.shape))),
        "event_dims": [attempt(lambda: transform.domain.event_dim), attempt(lambda: transform.codomain.event_dim)],
        "jacobian": attempt(lambda: transform.log_abs_det_jacobian(x, y)),
    }
    (y * y).sum().backward()
    return {**result, "grad": None if x.grad is None else x.grad.tolist()}


def measure_constraint(t: Any, name: str) -> dict[str, Any]:
    c = CONSTRAINTS[name](t, t.distributions.constraints)
    d = t.distributions
    result: dict[str, Any] = {
        "repr": shown(c),
        "is_discrete": attempt(lambda: c.is_discrete),
        "event_dim": attempt(lambda: c.event_dim),
        "checks": [attempt(lambda v=v: c.check(tensor(t, v))) for v in CHECKED],
    }
    for registry in ("biject_to", "transform_to"):
        result[registry] = attempt(lambda registry=registry: shown(getattr(d, registry)(c)))
        result[f"{registry}_value"] = attempt(lambda registry=registry: getattr(d, registry)(c)(tensor(t, GRID)))
    return result
