"""``biject_to`` and ``transform_to``: for a constraint, a transform from unconstrained numbers to it.

``biject_to(constraint)`` is a bijection with a Jacobian, for samplers that move in the unconstrained space.
``transform_to(constraint)`` may be none, but be simpler and cheaper, for optimization of constrained parameters.

Example::

    >>> import vesta
    >>> from vesta.distributions import Normal, transform_to
    >>> transform_to(Normal.arg_constraints["scale"])(vesta.zeros(2))
    tensor([1., 1.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .utils import _NUMBERS

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """A table from classes of constraints to functions that make a transform for a constraint.

    Example::

        >>> from vesta.distributions import ExpTransform, constraints
        >>> from vesta.distributions.constraint_registry import ConstraintRegistry
        >>> registry = ConstraintRegistry()
        >>> @registry.register(constraints.positive)
        ... def _(constraint):
        ...     return ExpTransform()
        >>> registry(constraints.positive)
        ExpTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Registers a function for a class of constraints, or for that of an object; a decorator without a function.

        Raises:
            TypeError: ``constraint`` is neither a constraint nor a class of them.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Returns the transform to a constraint; raises NotImplementedError if none is registered."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _shifted_exp(bound: Any, direction: int) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(bound, direction)])


def _between(lower: Any, upper: Any) -> Any:
    if isinstance(lower, _NUMBERS) and isinstance(upper, _NUMBERS) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    scaled = transforms.AffineTransform(lower, upper - lower)
    return transforms.ComposeTransform([transforms.SigmoidTransform(), scaled])


#: Constraints whose transform depends on the constraint only: in both registries.
_IN_BOTH: list[tuple[Any, Callable[[Any], Any]]] = [
    (constraints.real, lambda c: transforms.identity_transform),
    (constraints.positive, lambda c: transforms.ExpTransform()),
    (constraints.nonnegative, lambda c: transforms.ExpTransform()),
    (constraints.greater_than, lambda c: _shifted_exp(c.lower_bound, 1)),
    (constraints.greater_than_eq, lambda c: _shifted_exp(c.lower_bound, 1)),
    (constraints.less_than, lambda c: _shifted_exp(c.upper_bound, -1)),
    (constraints.interval, lambda c: _between(c.lower_bound, c.upper_bound)),
    (constraints.half_open_interval, lambda c: _between(c.lower_bound, c.upper_bound)),
    (constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform()),
]
#: Constraints made of others: the transform is made of those of the same registry.
_COMPOUND: list[tuple[Any, Callable[[Any, Any], Any]]] = [
    (
        constraints.independent,
        lambda to, c: transforms.IndependentTransform(to(c.base_constraint), c.reinterpreted_batch_ndims),
    ),
    (constraints.cat, lambda to, c: transforms.CatTransform([to(part) for part in c.cseq], c.dim, c.lengths)),
    (constraints.stack, lambda to, c: transforms.StackTransform([to(part) for part in c.cseq], c.dim)),
]


def _fill() -> None:
    for registry in (biject_to, transform_to):
        for constraint, factory in _IN_BOTH:
            registry.register(constraint, factory)
        for constraint, compound in _COMPOUND:
            registry.register(constraint, lambda c, to=registry, make=compound: make(to, c))
    biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
    transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
    transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
    for constraint in (constraints.positive_definite, constraints.positive_semidefinite):
        transform_to.register(constraint, lambda c: transforms.PositiveDefiniteTransform())


_fill()
