"""Constraints: the sets in which parameters and values of distributions lie.

A constraint has ``check(value)``, a tensor of bools without the last ``event_dim`` dimensions; ``event_dim``, how many
dimensions belong to one element of the set; and ``is_discrete``. Some are objects (``positive``), others classes
(``interval(lower, upper)``, where a bound is a number or a tensor).

Example::

    >>> import vesta
    >>> from vesta.distributions import constraints
    >>> constraints.positive.check(vesta.tensor([-1.0, 2.0]))
    tensor([False,  True])
    >>> constraints.interval(0, 1)
    Interval(lower_bound=0, upper_bound=1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import vesta
from vesta import Tensor
from vesta._names import listing

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A set of values: ``check`` tells which lie in it.

    Example::

        >>> import vesta
        >>> class Even(vesta.distributions.constraints.Constraint):
        ...     is_discrete = True
        ...     def check(self, value):
        ...         return value % 2 == 0
        >>> Even().check(vesta.tensor([1, 2]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    #: Attributes that ``repr`` shows.
    _shown: tuple[str, ...] = ()

    def check(self, value: Tensor) -> Tensor:
        """Returns which elements satisfy the constraint, a tensor of bools without the event's dimensions."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.lstrip('_')}({', '.join(f'{n}={getattr(self, n)}' for n in self._shown)})"


def _expect(what: str, ok: bool) -> None:
    """Raises what PyTorch raises for wrong arguments of constraints and transforms, an AssertionError."""
    if not ok:
        raise AssertionError(what)


def _all_of(result: Tensor, dims: int) -> Tensor:
    """Returns whether all elements of the last ``dims`` dimensions are true."""
    return result if dims == 0 else result.reshape(*result.shape[: result.dim() - dims], -1).all(-1)


class _Dependent(Constraint):
    """A set that depends on other parameters, so that it cannot be checked on its own."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Returns a copy with other properties."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Returns whether a constraint depends on other parameters."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property whose value is a constraint; read from the class it is a dependent constraint itself.

    Example::

        >>> from vesta.distributions import Uniform
        >>> Uniform.support.event_dim, Uniform(0.0, 2.0).support
        (0, Interval(lower_bound=0.0, upper_bound=2.0))
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """Decorates a method."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """A constraint whose last ``reinterpreted_batch_ndims`` batch dimensions belong to the event too."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        _expect(
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
            isinstance(base_constraint, Constraint),
        )
        _expect(
            f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}",
            isinstance(reinterpreted_batch_ndims, int),
        )
        _expect(
            f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}", reinterpreted_batch_ndims >= 0
        )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return _all_of(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: values that lie in the support of every component."""

    def __init__(self, base_constraint: Constraint) -> None:
        _expect(
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
            isinstance(base_constraint, Constraint),
        )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        batch_dims = value.dim() - self.event_dim
        if batch_dims < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of(result, result.dim() - batch_dims)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Boolean(Constraint):
    """The values 0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of zeros with a single 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Real(Constraint):
    """Numbers, infinities included; NaN is none."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _Above(Constraint):
    """The base of sets with a lower bound."""

    _shown = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(Constraint):
    """The base of sets with an upper bound."""

    _shown = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(Constraint):
    """The base of sets with two bounds."""

    _shown = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    """Numbers above a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class _GreaterThanEq(_Above):
    """Numbers of at least a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _LessThan(_Below):
    """Numbers below a bound."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Numbers between two bounds, which belong to the set."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Numbers between two bounds, of which the lower belongs to the set."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Integers of at least a bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _IntegerLessThan(_Below):
    """Integers of at most a bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerInterval(_Between):
    """Integers between two bounds, which belong to the set."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers with the sum 1, to within 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative numbers whose sum is at most a bound, as PyTorch checks it."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Lower triangular matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _all_of(value.tril() == value, 2)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: the rows have length 1, to within 10 n eps."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = vesta.finfo(value.dtype).eps * value.shape[-1] * 10
        length = value.detach().square().sum(-1).sqrt()
        return lower_cholesky.check(value) & ((length - 1).abs() <= tolerance).all(-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return vesta.full(value.shape[:-2], is_square, dtype=vesta.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, to within 1e-6."""

    def check(self, value: Tensor) -> Tensor:
        is_square = super().check(value)
        return _all_of(vesta.isclose(value, value.mT, atol=1e-6), 2) if bool(is_square.all()) else is_square


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value: Tensor) -> Tensor:
        from ._linalg import eigvalsh

        is_symmetric = super().check(value)
        return (eigvalsh(value) >= 0).all(-1) if bool(is_symmetric.all()) else is_symmetric


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        from ._linalg import has_cholesky

        is_symmetric = super().check(value)
        return has_cholesky(value) if bool(is_symmetric.all()) else is_symmetric


def _expect_dim(value: Tensor, dim: int) -> None:
    _expect(f"dim {dim} out of range for value with {value.dim()} dimensions", -value.dim() <= dim < value.dim())


class _Cat(Constraint):
    """One constraint for each piece of the values along ``dim``; the pieces have the given ``lengths``."""

    def __init__(self, cseq: Any, dim: int = 0, lengths: Any = None) -> None:
        _expect(f"cseq must be a list of Constraints, got {type(cseq).__name__}", isinstance(cseq, Iterable))
        _expect("All elements of cseq must be Constraint instances", all(isinstance(c, Constraint) for c in cseq))
        self.cseq, self.dim = list(cseq), dim
        _expect(f"lengths must be a list, got {type(lengths).__name__}", isinstance(lengths, (Iterable, type(None))))
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        _expect(
            f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})", len(self.lengths) == len(self.cseq)
        )

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        _expect_dim(value, self.dim)
        pieces = value.split(self.lengths, self.dim)
        return vesta.cat([c.check(piece) for c, piece in zip(self.cseq, pieces)], self.dim)


class _Stack(Constraint):
    """One constraint for each slice of the values along ``dim``."""

    def __init__(self, cseq: Any, dim: int = 0) -> None:
        _expect(f"cseq must be a list of Constraints, got {type(cseq).__name__}", isinstance(cseq, Iterable))
        _expect("All elements of cseq must be Constraint instances", all(isinstance(c, Constraint) for c in cseq))
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dims = max(c.event_dim for c in self.cseq)
        return dims + 1 if self.dim + dims < 0 else dims

    def check(self, value: Tensor) -> Tensor:
        _expect_dim(value, self.dim)
        return vesta.stack([c.check(part) for c, part in zip(self.cseq, value.unbind(self.dim))], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack


__dir__ = listing(globals())
