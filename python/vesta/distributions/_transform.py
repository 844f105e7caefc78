"""``Transform``, the base of all transforms, and its inverse; public names in ``transforms``."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._types import Shape

from . import constraints


class Transform:
    """The base of all transforms. A subclass gives ``_call``, ``_inverse`` and, if ``bijective``, the Jacobian.

    Args:
        cache_size: 1 keeps the last pair of x and y, so that inverting a y just computed returns its x; 0 keeps none.

    Attributes: ``domain`` and ``codomain``, constraints; ``bijective``; ``sign``, +1 or -1, whether an elementwise
    transform increases.

    Raises:
        ValueError: ``cache_size`` is neither 0 nor 1.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Transform, constraints
        >>> class Double(Transform):
        ...     domain = codomain = constraints.real
        ...     bijective, sign = True, +1
        ...     def _call(self, x):
        ...         return 2 * x
        ...     def _inverse(self, y):
        ...         return y / 2
        ...     def log_abs_det_jacobian(self, x, y):
        ...         return vesta.full_like(x, 2.0).log()
        >>> Double().inv(vesta.tensor(4.0))
        tensor(2.)
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    #: The constructor's arguments, by which ``with_cache`` makes a copy and ``==`` compares.
    _arguments: tuple[str, ...] = ()
    #: Whether two objects of the class with equal arguments are equal; else only an object equals itself.
    _comparable = False

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached_x_y: tuple[Any, Any] = (None, None)
        super().__init__()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_inv": None}

    @property
    def event_dim(self) -> int:
        """The dimensions of one event, where domain and codomain agree on them."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse transform; ``t.inv.inv is t``."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """+1 if the transform increases, -1 if it decreases."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Returns the transform with another cache size."""
        if self._cache_size == cache_size:
            return self
        if self._arguments or type(self).__init__ is Transform.__init__:
            return type(self)(*(getattr(self, name) for name in self._arguments), cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: Any) -> bool:
        if self is other or not self._comparable:
            return self is other
        return isinstance(other, type(self)) and all(
            _same(getattr(self, name), getattr(other, name)) for name in self._arguments
        )

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Tensor) -> Tensor:
        """Returns y for x."""
        old_x, old_y = self._cached_x_y
        if self._cache_size and x is old_x:
            return old_y
        return self._remembered(x, self._call(x))[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        """Returns x for y."""
        old_x, old_y = self._cached_x_y
        if self._cache_size and y is old_y:
            return old_x
        return self._remembered(self._inverse(y), y)[0]

    def _remembered(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._cached_x_y = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns log |det dy/dx| for a pair of x and y."""
        raise NotImplementedError

    def forward_shape(self, shape: Shape) -> Shape:
        """Returns the shape of y for that of x."""
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        """Returns the shape of x for that of y."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(a: Any, b: Any) -> bool:
    """Returns whether two numbers, tensors or other arguments are equal."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool((a == b).all())
    return a == b


class _InverseTransform(Transform):
    """The inverse of a transform, which shares its cache."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self) -> dict[str, Any]:
        return vars(self).copy()

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self.inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self.inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.inv.bijective

    @property
    def sign(self) -> Any:
        return self.inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _InverseTransform) and self.inv == other.inv

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Tensor) -> Tensor:
        return self.inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self.inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.inv.inverse_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"_InverseTransform({self.inv!r})"


def _unit_clamp(y: Tensor) -> Tensor:
    """Clamps to (0, 1), so that logarithms of y and 1 - y are finite."""
    limits = vesta.finfo(y.dtype)
    return y.clamp(min=limits.tiny, max=1 - limits.eps)


def _expect_dims(shape: Any, dims: int) -> None:
    """Raises a ValueError if a shape has fewer dimensions."""
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")
