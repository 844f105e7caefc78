"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real

from .cauchy import Cauchy
from .half_normal import Half
from .transforms import AbsTransform

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """The distribution of |X| for a Cauchy X of median 0; its mean is infinite.

    Args:
        scale: the scale of X; positive, a tensor or number.
        validate_args: whether arguments and values are checked.

    Formulas: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, chapter 16.

    Example::

        >>> import vesta
        >>> from vesta.distributions import HalfCauchy
        >>> HalfCauchy(1.0).cdf(vesta.tensor(1.0))
        tensor(0.5000)
    """

    _parameters: dict[str, int | None] = {}

    def __init__(self, scale: Real, validate_args: bool | None = None) -> None:
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return vesta.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
