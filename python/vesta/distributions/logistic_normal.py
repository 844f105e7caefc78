"""The logistic-normal distribution."""

from __future__ import annotations

from vesta import Tensor
from vesta._types import Real

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """The distribution on the simplex of ``StickBreakingTransform`` of n independent normal variables.

    Args:
        loc: means of the normal variables, [..., n]; a tensor or number. The two broadcast.
        scale: their standard deviations; positive.
        validate_args: whether arguments and values are checked.

    Source: Aitchison and Shen, Logistic-normal distributions: some properties and uses, Biometrika 67, 1980.

    Example::

        >>> import vesta
        >>> from vesta.distributions import LogisticNormal
        >>> LogisticNormal(vesta.zeros(2), vesta.ones(2)).sample().shape
        vesta.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]
    _parameters: dict[str, int | None] = {}

    def __init__(self, loc: Real, scale: Real, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal variables."""
        return self.base_dist.base_dist.scale
