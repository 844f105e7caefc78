"""Transforms: invertible functions with the logarithm of their Jacobian determinant.

A transform ``t`` maps ``t.domain`` to ``t.codomain``; ``t(x)`` is its value, ``t.inv(y)`` the inverse and
``t.log_abs_det_jacobian(x, y)`` is log |det dy/dx|, without the dimensions of one event. ``_matrix_transforms`` holds
those of vectors and matrices, ``_compound_transforms`` those made of others.

Example::

    >>> import vesta
    >>> from vesta.distributions.transforms import ExpTransform
    >>> ExpTransform().inv(vesta.tensor(1.0))
    tensor(0.)
"""

from __future__ import annotations

import math
from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Size, Tensor
from vesta._names import listing
from vesta._types import Real, Shape
from vesta.nn.functional import softplus

from . import constraints
from ._compound_transforms import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
)
from ._matrix_transforms import (
    CorrCholeskyTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    SoftmaxTransform,
    StickBreakingTransform,
)
from ._special import atanh, expm1
from ._transform import (
    Transform,
    _expect_dims,
    _InverseTransform,  # noqa: F401 (programs know it here)
    _same,
    _unit_clamp,
)
from .utils import _NUMBERS, _sum_rightmost, broadcast_all, lazy_property

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "CatTransform",
    "ComposeTransform",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "ExpTransform",
    "IndependentTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]


class _Elementwise(Transform):
    """The base of transforms of each real number; an increasing bijection unless stated otherwise."""

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1  # type: ignore[assignment]
    _comparable = True


class ExpTransform(_Elementwise):
    """y = exp(x).

    Example::

        >>> import vesta
        >>> from vesta.distributions import ExpTransform
        >>> ExpTransform()(vesta.tensor(0.0))
        tensor(1.)
    """

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(_Elementwise):
    """y = 1 / (1 + exp(-x)), clamped to lie inside (0, 1).

    Example::

        >>> import vesta
        >>> from vesta.distributions import SigmoidTransform
        >>> SigmoidTransform()(vesta.tensor([0.0, 99.0])) < 1
        tensor([True, True])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _unit_clamp(vesta.sigmoid(x))

    def _inverse(self, y: Tensor) -> Tensor:
        y = _unit_clamp(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_Elementwise):
    """y = log(1 + exp(x)).

    Example::

        >>> import vesta
        >>> from vesta.distributions import SoftplusTransform
        >>> SoftplusTransform()(vesta.tensor(0.0))
        tensor(0.6931)
    """

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-expm1(-y)).log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_Elementwise):
    """y = tanh(x).

    Example::

        >>> import vesta
        >>> from vesta.distributions import TanhTransform
        >>> TanhTransform()(vesta.tensor(1.0))
        tensor(0.7616)
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2.0) - x - softplus(-2 * x))  # log(1 - tanh(x)**2) without cancellation


class AbsTransform(_Elementwise):
    """y = |x|, which is no bijection: the inverse is the nonnegative one of the two.

    Example::

        >>> import vesta
        >>> from vesta.distributions import AbsTransform
        >>> AbsTransform()(vesta.tensor(-1.0))
        tensor(1.)
    """

    bijective = False
    sign = Transform.sign  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class PowerTransform(Transform):
    """y = x**exponent for positive x; the exponent is a number or a tensor that broadcasts with x.

    Example::

        >>> import vesta
        >>> from vesta.distributions import PowerTransform
        >>> PowerTransform(2.0).inv(vesta.tensor(9.0))
        tensor(3.)
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _arguments = ("exponent",)
    _comparable = True

    def __init__(self, exponent: Real, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        """The sign of the exponent."""
        return self.exponent.sign()

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Shape) -> Shape:
        return vesta.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


class AffineTransform(Transform):
    """y = loc + scale x.

    Args:
        loc: a tensor or number.
        scale: a tensor or number.
        event_dim: how many dimensions belong to one event.
        cache_size: see ``Transform``.

    Example::

        >>> import vesta
        >>> from vesta.distributions import AffineTransform
        >>> AffineTransform(1.0, 2.0)(vesta.tensor(3.0))
        tensor(7.)
    """

    bijective = True
    _arguments = ("loc", "scale", "event_dim")

    def __init__(self, loc: Real, scale: Real, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self.event_dim) if self.event_dim else constraints.real

    codomain = domain

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, AffineTransform) and _same(self.loc, other.loc) and _same(self.scale, other.scale)

    __hash__ = None  # type: ignore[assignment]

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, _NUMBERS):
            return (self.scale > 0) - (self.scale < 0)
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, _NUMBERS):
            result = vesta.full_like(x, math.log(abs(self.scale)))
        else:
            result = self.scale.abs().log()
            if self.event_dim:  # a scale may have fewer dimensions than an event
                result = result.expand(vesta.broadcast_shapes(result.shape, x.shape[x.dim() - self.event_dim :]))
        return _sum_rightmost(result, self.event_dim).expand(x.shape[: x.dim() - self.event_dim])

    def forward_shape(self, shape: Shape) -> Shape:
        return vesta.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """y = cdf(x) of a distribution.

    Example::

        >>> import vesta
        >>> from vesta.distributions import CumulativeDistributionTransform, Normal
        >>> CumulativeDistributionTransform(Normal(0.0, 1.0))(vesta.tensor(0.0))
        tensor(0.5000)
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1  # type: ignore[assignment]
    _arguments = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


class ReshapeTransform(Transform):
    """Reshapes events of ``in_shape`` to ``out_shape``.

    Raises:
        ValueError: the shapes have different numbers of elements, or an input another shape.

    Example::

        >>> import vesta
        >>> from vesta.distributions import ReshapeTransform
        >>> ReshapeTransform((4,), (2, 2))(vesta.zeros(3, 4)).shape
        vesta.Size([3, 2, 2])
    """

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _replaced(shape: Any, old: Any, new: Any) -> Any:
        _expect_dims(shape, len(old))
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {old} but got {shape[cut:]}")
        return shape[:cut] + new

    def forward_shape(self, shape: Shape) -> Shape:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self._replaced(shape, self.out_shape, self.in_shape)


identity_transform = ComposeTransform([])


__dir__ = listing(globals())
