"""Distributions of transformed variables."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Size, Tensor
from vesta._arguments import expect
from vesta._types import Shape

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of y = f(x) for x of a base distribution: log p(y) = log p(x) - log |det dy/dx|.

    Args:
        base_distribution: the distribution of x; it is expanded to what the transforms' parameters need.
        transforms: one transform, or a list of them that are applied in order.
        validate_args: whether arguments and values are checked.

    Raises:
        ValueError: ``transforms`` is no transform or list of them, or the base has too few dimensions.

    Example::

        >>> import vesta
        >>> from vesta.distributions import AffineTransform, SigmoidTransform, TransformedDistribution, Uniform
        >>> logistic = TransformedDistribution(Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(1.0, 2.0)])
        >>> logistic.cdf(vesta.tensor(1.0))
        tensor(0.5000)
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    _parameters: dict[str, int | None] = {}

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:
        expect("TransformedDistribution", "base_distribution", base_distribution, Distribution, "Distribution")
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        if not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        whole = ComposeTransform(self.transforms)
        domain_dim, codomain_dim = whole.domain.event_dim, whole.codomain.event_dim
        base_dim = len(base_distribution.event_shape)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        if len(base_shape) < domain_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain_dim}, but got {base_shape}."
            )
        shape = whole.forward_shape(base_shape)
        needed = whole.inverse_shape(shape)
        if needed != base_shape:
            base_distribution = base_distribution.expand(needed[: len(needed) - base_dim])
        if domain_dim > base_dim:
            base_distribution = Independent(base_distribution, domain_dim - base_dim)
        self.base_dist = base_distribution
        cut = len(shape) - max(codomain_dim, base_dim + codomain_dim - domain_dim)
        if cut < 0:
            raise AssertionError(f"forward_shape length {len(shape)} must be >= event_dim {len(shape) - cut}")
        super().__init__(Size(shape[:cut]), Size(shape[cut:]), validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> constraints.Constraint:
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def _forward(self, x: Tensor) -> Tensor:
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        with vesta.no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        return self._forward(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        dims, result, y = len(self.event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            domain_dim = transform.domain.event_dim
            dims += domain_dim - transform.codomain.event_dim
            result = result - _sum_rightmost(transform.log_abs_det_jacobian(x, y), dims - domain_dim)
            y = x
        return result + _sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _monotone(self, value: Tensor) -> Tensor:
        """Returns 1 - value where the transforms decrease."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotone(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._forward(self.base_dist.icdf(self._monotone(value)))
