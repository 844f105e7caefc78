"""vesta.distributions: errors, checks, expansion, pickling, caches, registries, and the examples of its docstrings."""

from __future__ import annotations

import copy
import doctest
import importlib
import pickle
import pkgutil
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import vesta
from distributions import distribution_cases as cases
from vesta import distributions as d
from vesta.distributions import constraints

T = vesta.tensor


@pytest.mark.parametrize("module", [m.name for m in pkgutil.iter_modules(d.__path__)] + ["__init__"])
@pytest.mark.no_leak_check  # the examples' tensors live on in their modules
def test_examples_run(module):
    name = d.__name__ if module == "__init__" else f"{d.__name__}.{module}"
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_every_public_class_has_an_example():
    classes = [n for n in d.__all__ if isinstance(getattr(d, n), type)]
    assert not [n for n in classes if ">>>" not in (vars(getattr(d, n)).get("__doc__") or "")]


def test_import_is_lazy():
    code = "import sys, vesta; assert 'vesta.distributions' not in sys.modules; vesta.distributions.Normal(0.0, 1.0)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_modules_have_pytorchs_names():
    from vesta.distributions.constraint_registry import biject_to
    from vesta.distributions.multivariate_normal import MultivariateNormal
    from vesta.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

    assert biject_to is d.biject_to and MultivariateNormal is d.MultivariateNormal
    assert all(map(callable, (broadcast_all, lazy_property, logits_to_probs, probs_to_logits)))
    for module in ("half_normal", "studentT", "fishersnedecor", "lkj_cholesky", "exp_family", "kl", "normal"):
        importlib.import_module(f"vesta.distributions.{module}")


#: A call, the class of its error, and a part of the message.
ERRORS = {
    "scale": (lambda: d.Normal(0.0, -1.0), ValueError, r"parameter scale .* Normal\(.*\) to satisfy .* GreaterThan"),
    "nan": (lambda: d.Normal(float("nan"), 1.0), ValueError, "parameter loc"),
    "kind": (lambda: d.Normal("a", 1.0), ValueError, "Number, vesta.Tensor"),
    "shapes": (lambda: d.Normal(vesta.zeros(3), vesta.ones(2)), RuntimeError, "broadcast"),
    "value": (lambda: d.Normal(0.0, 1.0).log_prob(1.0), ValueError, "must be a Tensor"),
    "value nan": (lambda: d.Normal(0.0, 1.0).log_prob(T(float("nan"))), ValueError, r"within the support \(Real\(\)\)"),
    "value shape": (lambda: d.Normal(vesta.zeros(3), 1.0).log_prob(vesta.zeros(2)), ValueError, "not broadcastable"),
    "event shape": (lambda: d.Dirichlet(vesta.ones(2)).log_prob(vesta.ones(3) / 3), ValueError, "right-most size"),
    "both": (lambda: d.Bernoulli(0.5, 0.5), ValueError, "but not both"),
    "none": (lambda: d.Categorical(), ValueError, "but not both"),
    "number": (lambda: d.Categorical(T(0.5)), ValueError, "`probs` parameter must be at least one-dimensional"),
    "negative": (lambda: d.Categorical(T([-0.5, 1.5])), ValueError, "Simplex"),
    "outside": (lambda: d.Categorical(T([0.5, 0.5])).log_prob(T(2)), ValueError, "IntegerInterval"),
    "interval": (lambda: d.Uniform(2.0, 1.0), ValueError, "parameter low"),
    "count": (lambda: d.Multinomial(T(3), T([0.5, 0.5])), NotImplementedError, "inhomogeneous"),
    "counts": (lambda: d.Binomial(T([1, 2]), T([0.5, 0.5])).entropy(), NotImplementedError, "Inhomogeneous"),
    "zero": (lambda: d.Geometric(0.0), ValueError, "to be positive"),
    "no matrix": (lambda: d.MultivariateNormal(vesta.zeros(2)), ValueError, "Exactly one"),
    "indefinite": (lambda: d.MultivariateNormal(vesta.zeros(2), -vesta.eye(2)), ValueError, "PositiveDefinite"),
    "unchecked": (
        lambda: d.MultivariateNormal(vesta.zeros(2), -vesta.eye(2), validate_args=False),
        RuntimeError,
        "positive-definite",
    ),
    "low rank": (
        lambda: d.LowRankMultivariateNormal(vesta.zeros(2), vesta.ones(3, 1), vesta.ones(2)),
        ValueError,
        "cov_factor",
    ),
    "wishart": (lambda: d.Wishart(T(3.0)), AssertionError, "Exactly one"),
    "wishart df": (lambda: d.Wishart(T(0.5), vesta.eye(2)), ValueError, "ndim - 1"),
    "lkj": (lambda: d.LKJCholesky(1), ValueError, "dim=1"),
    "independent": (lambda: d.Independent(d.Normal(0.0, 1.0), 1), ValueError, "actual 1 vs 0"),
    "mixture": (lambda: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0)), ValueError, "Categorical"),
    "components": (
        lambda: d.MixtureSameFamily(d.Categorical(vesta.ones(2)), d.Normal(vesta.zeros(3), 1.0)),
        ValueError,
        r"\(2\) does not equal .* \(3\)",
    ),
    "no transform": (lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), 1), ValueError, "transforms must be"),
    "dimensions": (
        lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), d.StickBreakingTransform()),
        ValueError,
        "size at least 1",
    ),
    "mean": (lambda: d.TransformedDistribution(d.Normal(0.0, 1.0), d.ExpTransform()).mean, NotImplementedError, "^$"),
    "mode": (lambda: d.MixtureSameFamily(d.Categorical(vesta.ones(1)), d.Normal(vesta.zeros(1), 1.0)).mode,
        NotImplementedError, "mode"),
    "pair": (lambda: d.kl_divergence(d.Normal(0.0, 1.0), d.Cauchy(0.0, 1.0)),
        NotImplementedError, "p type Normal and q type Cauchy"),
    "pair of classes": (lambda: d.register_kl(1, d.Normal), TypeError, "type_p"),
    "events": (
        lambda: d.kl_divergence(
            d.MultivariateNormal(vesta.zeros(2), vesta.eye(2)), d.MultivariateNormal(vesta.zeros(3), vesta.eye(3))
        ),
        ValueError,
        "event shapes",
    ),
    "cache": (lambda: d.ExpTransform(cache_size=2), ValueError, "0 or 1"),
    "reshape": (lambda: d.ReshapeTransform((2,), (3,)), ValueError, "numbers of elements"),
    "cat": (lambda: d.CatTransform([1]), AssertionError, "Transform instances"),
    "lengths": (lambda: d.CatTransform([d.ExpTransform()], lengths=[2])(vesta.zeros(3)), AssertionError, "equal 2"),
    "triangle": (lambda: d.CorrCholeskyTransform()(vesta.zeros(2)), ValueError, "lower triangular part"),
    "registry": (lambda: d.biject_to(constraints.lower_cholesky), NotImplementedError, "_LowerCholesky"),
    "registered": (lambda: d.biject_to.register(int, print), TypeError, "Constraint subclass"),
    "default": (lambda: d.Distribution.set_default_validate_args(3), ValueError, "True or False"),
}  # fmt: skip


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.differs
def test_probabilities_outside_are_refused_by_the_continuous_bernoulli():
    with pytest.raises(ValueError, match="invalid values"):
        d.ContinuousBernoulli(1.5)


@pytest.mark.differs
def test_a_number_scales_every_element_of_an_event():
    transform, x = d.AffineTransform(0.0, T(2.0), event_dim=1), vesta.zeros(4, 3)
    assert vesta.allclose(transform.log_abs_det_jacobian(x, x), vesta.full((4,), 8.0).log())


def test_checks_can_be_turned_off():
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    d.Distribution.set_default_validate_args(False)
    try:
        assert d.Uniform(0.0, 1.0).log_prob(T(2.0)).item() == -float("inf")
        with pytest.raises(ValueError, match="scale"):
            d.Normal(0.0, -1.0, validate_args=True)
    finally:
        d.Distribution.set_default_validate_args(True)


def test_missing_constraints_and_supports_warn():
    class Bare(d.Distribution):
        def log_prob(self, value: Any) -> Any:
            self._validate_sample(value)
            return value

    with pytest.warns(UserWarning, match="arg_constraints"):
        bare = Bare()
    with pytest.warns(UserWarning, match="support"):
        bare.log_prob(T(1.0))
    with pytest.warns(FutureWarning, match=r"sample\(\(n,\)\)"):
        assert tuple(d.Normal(0.0, 1.0).sample_n(3).shape) == (3,)


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.label)
def test_pickle_and_copy(case):
    dist, _ = case.build(vesta)
    value = T(case.values, dtype=vesta.int64 if case.name == "Categorical" else getattr(vesta, case.dtype))
    text, others = repr(dist), (pickle.loads(pickle.dumps(dist)), copy.deepcopy(dist))
    for other in others:
        assert type(other) is type(dist) and repr(other) == text
        assert other.log_prob(value).equal(dist.log_prob(value))


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.label)
def test_expansion_is_a_view(case):
    dist, _ = case.build(vesta)
    wider = dist.expand((4, *dist.batch_shape))
    assert type(wider) is type(dist) and wider.event_shape == dist.event_shape
    for name, value in vars(wider).items():
        if isinstance(value, vesta.Tensor) and name in vars(dist) and value.shape != vars(dist)[name].shape:
            assert value.data_ptr() == vars(dist)[name].data_ptr(), name
    for name in ("mean", "variance"):
        got, want = cases.attempt(lambda n=name: getattr(wider, n)), cases.attempt(lambda n=name: getattr(dist, n))
        assert str(got) == (want if isinstance(want, str) else str([want] * 4))


def test_expansion_keeps_whether_values_are_checked():
    assert d.Normal(0.0, -1.0, validate_args=False).expand((2,))._validate_args is False


def test_a_subclass_with_a_constructor_needs_an_expansion_of_its_own():
    class Shifted(d.Normal):
        def __init__(self, shift: float) -> None:
            super().__init__(shift, 1.0)

    class Plain(d.Normal):
        pass

    class Expanding(Shifted):
        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Expanding, _instance)
            return super().expand(batch_shape, new)

    with pytest.raises(NotImplementedError, match=r"Subclass Shifted of Normal .* \.expand\(\)"):
        Shifted(1.0).expand((2,))
    assert type(Plain(0.0, 1.0).expand((2,))) is Plain
    assert tuple(Expanding(1.0).expand((2,)).sample().shape) == (2,)


def test_a_subclass_may_keep_validation_in_its_parts() -> None:
    class Kept(d.Independent):
        @property
        def _validate_args(self) -> Any:
            return self.base_dist._validate_args

        @_validate_args.setter
        def _validate_args(self, value: bool) -> None:
            self.base_dist._validate_args = value

    wider = Kept(d.Normal(vesta.zeros(3), 1.0), 1).expand((2,))
    assert wider.batch_shape == (2,) and wider.base_dist.batch_shape == (2, 3)


def test_a_subclass_of_gamma_draws_by_an_rsample_without_a_generator() -> None:
    class Ones(d.Gamma):
        def rsample(self, sample_shape: Any = ()) -> Any:
            return vesta.ones(sample_shape)

    assert Ones(2.0, 1.0).sample((3,)).tolist() == [1.0, 1.0, 1.0]


def test_a_distribution_of_a_user():
    class Triangle(d.Distribution):
        arg_constraints = {"width": constraints.positive}
        has_rsample = True
        _parameters = {"width": 0}

        def __init__(self, width: Any, validate_args: bool | None = None) -> None:
            (self.width,) = d.utils.broadcast_all(width)
            super().__init__(self.width.shape, validate_args=validate_args)

        @constraints.dependent_property(is_discrete=False, event_dim=0)
        def support(self) -> Any:
            return constraints.interval(-self.width, self.width)

        def rsample(self, sample_shape: Any = ()) -> Any:
            shape = self._extended_shape(sample_shape)
            return self.width * (vesta.rand(shape) - vesta.rand(shape))

        def log_prob(self, value: Any) -> Any:
            if self._validate_args:
                self._validate_sample(value)
            return (1 - value.abs() / self.width).log() - self.width.log()

    triangle = Triangle(T([1.0, 2.0]))
    assert tuple(triangle.expand((3, 2)).sample((5,)).shape) == (5, 3, 2)
    assert tuple(d.Independent(triangle, 1).log_prob(triangle.sample((4,))).shape) == (4,)
    with pytest.raises(ValueError, match="support"):
        triangle.log_prob(T([0.0, 3.0]))
    with pytest.raises(NotImplementedError, match="Triangle"):
        d.kl_divergence(triangle, triangle)


def test_lazy_parameters_are_kept_and_differentiable():
    probs = T([0.2, 0.8], requires_grad=True)
    dist = d.Bernoulli(probs)
    with vesta.no_grad():
        logits = dist.logits
    assert dist.logits is logits and logits.requires_grad


# ---- transforms ------------------------------------------------------------------------------------------------------


def test_a_cache_returns_the_same_objects():
    transform, x = d.ExpTransform(cache_size=1), vesta.zeros(2)
    y = transform(x)
    assert transform(x) is y and transform.inv(y) is x and transform.inv.inv is transform
    plain = transform.with_cache(0)
    assert plain is not transform and plain(x) is not plain(x)
    with pytest.raises(NotImplementedError, match="with_cache"):

        class Own(d.Transform):
            def __init__(self, a: int) -> None:
                super().__init__()

        Own(1).with_cache(1)


@pytest.mark.parametrize("name", cases.TRANSFORMS)
def test_transforms_pickle_and_cache(name):
    make, x = cases.TRANSFORMS[name]
    transform, x = make(vesta, d), cases.tensor(vesta, x)
    again, cached = pickle.loads(pickle.dumps(transform)), transform.with_cache(1)
    assert again(x).equal(transform(x)) and cached(x).equal(transform(x))
    assert repr(again) == repr(transform)


#: No bijections, or of another number of elements than those of one row of the grid.
WITHOUT_SQUARE_JACOBIAN = {
    *("AbsTransform", "SoftmaxTransform", "PositiveDefiniteTransform", "LowerCholeskyTransform"),
    *("StackTransform", "ReshapeTransform"),
}


@pytest.mark.parametrize("name", sorted(set(cases.TRANSFORMS) - WITHOUT_SQUARE_JACOBIAN))
def test_jacobians_are_those_of_autograd(name):
    make, x = cases.TRANSFORMS[name]
    transform = make(vesta, d)
    x = cases.tensor(vesta, x)[0].requires_grad_()
    y = transform(x)
    flat = y.reshape(-1)
    if name == "CorrCholeskyTransform":  # the elements below the diagonal are as many as the inputs
        flat = d.utils.tril_matrix_to_vec(y, -1)
    if name in ("StickBreakingTransform", "ComposeTransform"):
        flat = flat[:-1]
    rows = [vesta.autograd.grad(value, x, retain_graph=True)[0] for value in flat]
    want = np.log(abs(np.linalg.det(vesta.stack(rows).numpy())))
    assert transform.log_abs_det_jacobian(x, y).sum().item() == pytest.approx(want, rel=1e-8)


def test_comparison_of_transforms():
    assert d.ExpTransform() == d.ExpTransform() and d.ExpTransform() != d.TanhTransform()
    assert d.ExpTransform().inv == d.ExpTransform().inv and d.ExpTransform().inv != d.ExpTransform()
    assert d.AffineTransform(1.0, T([2.0, 2.0])) == d.AffineTransform(1.0, 2.0) != d.AffineTransform(1.0, 3.0)
    assert d.PowerTransform(2.0) == d.PowerTransform(2.0) != d.PowerTransform(3.0)
    chain = lambda: d.ComposeTransform([d.ExpTransform(), d.AffineTransform(0.0, 2.0)])
    assert chain() == chain()
    with pytest.raises(TypeError, match="unhashable"):
        hash(d.ExpTransform())


def test_registries_take_constraints_of_a_user():
    class Even(constraints.Constraint):
        pass

    registry = d.constraint_registry.ConstraintRegistry()
    registry.register(Even(), lambda c: d.ExpTransform())
    assert registry(Even()) == d.ExpTransform()


def test_parameters_from_unconstrained_numbers():
    for case in cases.CASES:
        dist, _ = case.build(vesta)
        for name, constraint in dist.arg_constraints.items():
            if constraints.is_dependent(constraint) or not isinstance(vars(dist).get(name), vesta.Tensor):
                continue
            try:
                transform = d.transform_to(constraint)
            except NotImplementedError:
                assert constraint.is_discrete
                continue
            value = vars(dist)[name]
            inside = transform(vesta.randn(value.shape, dtype=value.dtype) / 2)
            assert bool(constraint.check(inside).all()), (case.label, name)


# ---- divergences -----------------------------------------------------------------------------------------------------


def test_divergence_of_a_class_of_another_library() -> None:
    class Base: ...

    class Mine(Base): ...

    try:
        d.register_kl(d.Normal, Base)(lambda p, q: "other")
        assert d.kl_divergence(d.Normal(0.0, 1.0), Mine()) == "other"
    finally:
        d.kl._KL_REGISTRY.pop((d.Normal, Base), None)
        d.kl._KL_MEMOIZE.clear()


def test_the_most_derived_pair_is_taken():
    class A(d.Normal):
        pass

    class B(A):
        pass

    kept = dict(d.kl._KL_REGISTRY)
    try:
        d.register_kl(A, d.Normal)(lambda p, q: "left")
        assert d.kl_divergence(B(0.0, 1.0), d.Normal(0.0, 1.0)) == "left"
        assert d.kl_divergence(d.Normal(0.0, 1.0), B(0.0, 1.0)).item() == 0
        d.register_kl(d.Normal, A)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(B, B\).*register_kl\(A, A\)"):
            assert d.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)) == "left"
    finally:
        d.kl._KL_REGISTRY.clear()
        d.kl._KL_REGISTRY.update(kept)
        d.kl._KL_MEMOIZE.clear()


def test_divergences_are_means_over_samples():
    """Pairs of two families against the mean of log p - log q over samples of p."""
    vesta.manual_seed(5)
    f64 = lambda x: T(x, dtype=vesta.float64)
    unit, line = d.Uniform(f64(0.1), f64(0.7)), d.Normal(f64(0.2), f64(0.8))
    pairs = [
        (d.Beta(f64(2.0), f64(3.0)), d.Gamma(f64(1.5), f64(2.0))),
        (d.Exponential(f64(1.5)), d.Gumbel(f64(0.5), f64(1.2))),
        (d.Gumbel(f64(0.5), f64(0.7)), line),
        (line, d.Laplace(f64(0.5), f64(1.2))),
        (line, d.Gumbel(f64(0.5), f64(1.2))),
        (d.Laplace(f64(0.5), f64(0.6)), line),
        (d.Pareto(f64(0.7), f64(5.0)), d.Exponential(f64(0.8))),
        (unit, d.Beta(f64(2.0), f64(3.0))),
        (unit, d.Pareto(f64(0.05), f64(1.5))),
        (unit, d.ContinuousBernoulli(f64(0.3))),
        (d.ContinuousBernoulli(f64(0.3)), line),
        (d.Gamma(f64(2.0), f64(2.0)), d.Gumbel(f64(0.5), f64(1.2))),
        (d.Wishart(f64(6.0), f64(cases.COV)), d.Wishart(f64(5.0), scale_tril=f64(cases.TRIL))),
    ]
    for p, q in pairs:
        x = p.sample((20000,))
        terms = p.log_prob(x) - q.log_prob(x)
        error = 4 * terms.std().item() / 20000**0.5
        assert d.kl_divergence(p, q).item() == pytest.approx(terms.mean().item(), abs=error), (p, q)


def test_wishart_warns_of_singular_samples():
    with pytest.warns(UserWarning, match="Low df"):
        dist = d.Wishart(T(1.05), vesta.eye(2))
    vesta.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample = dist.sample((200,))
    assert tuple(sample.shape) == (200, 2, 2)


def test_half_precision_and_dtypes():
    for dtype in (vesta.float16, vesta.bfloat16, vesta.float32, vesta.float64):
        dist = d.Normal(vesta.zeros(2, dtype=dtype), 1.0)
        assert dist.sample().dtype == dist.log_prob(dist.sample()).dtype == dist.entropy().dtype == dtype
    gamma = d.Gamma(vesta.ones(2, dtype=vesta.float64), 1.0)
    assert gamma.sample().dtype == gamma.entropy().dtype == vesta.float64


def test_events_of_several_parts_keep_their_shapes() -> None:
    class Parts(d.Distribution):
        arg_constraints: dict[str, Any] = {}

        def __init__(self) -> None:
            super().__init__((), ((2,), (3, 4)))

    assert Parts().event_shape == ((2,), (3, 4)) and Parts().batch_shape == ()
    assert type(d.Distribution([2], (3,), validate_args=False).batch_shape) is vesta.Size
