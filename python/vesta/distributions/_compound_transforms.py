"""Transforms made of others: in a chain, over more dimensions, or side by side; public names in ``transforms``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta._types import Shape

from . import constraints
from ._transform import Transform, _expect_dims
from .constraints import _expect
from .utils import _sum_rightmost, lazy_property


class ComposeTransform(Transform):
    """Applies transforms one after the other; without any it is the identity.

    Args:
        parts: the transforms, the first one first.
        cache_size: the cache size of every part.

    Example::

        >>> import vesta
        >>> from vesta.distributions import AffineTransform, ComposeTransform, ExpTransform
        >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()]).inv(vesta.tensor(1.0))
        tensor(0.)
    """

    @checked
    def __init__(self, parts: Any, cache_size: int = 0) -> None:
        _expect(f"parts must be a list of Transforms, got {type(parts).__name__}", isinstance(parts, Iterable))
        parts = list(parts)
        _expect("All parts must be Transform instances", all(isinstance(part, Transform) for part in parts))
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None  # type: ignore[assignment]

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):  # the dimensions of the last event, seen from before each part
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_dims(self.parts[0].domain, dims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_dims(self.parts[-1].codomain, dims)

    @lazy_property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:  # type: ignore[override]
        """The product of the parts' signs."""
        sign: Any = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Any:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return vesta.zeros_like(x)
        dims, total = self.domain.event_dim, None
        for number, part in enumerate(self.parts, 1):
            after = y if number == len(self.parts) else part(x)
            term = _sum_rightmost(part.log_abs_det_jacobian(x, after), dims - part.domain.event_dim)
            total = term if total is None else total + term
            dims += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape: Shape) -> Shape:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Shape) -> Shape:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        listed = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {listed}\n)"


def _with_dims(constraint: Any, dims: int) -> Any:
    """Returns a constraint over events of ``dims`` dimensions."""
    more = dims - constraint.event_dim
    return constraints.independent(constraint, more) if more else constraint


class IndependentTransform(Transform):
    """Takes the last ``reinterpreted_batch_ndims`` dimensions as the event's: the log determinant sums over them.

    Example::

        >>> import vesta
        >>> from vesta.distributions import ExpTransform, IndependentTransform
        >>> x = vesta.ones(2, 3)
        >>> IndependentTransform(ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
        tensor([3., 3.])
    """

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    @checked
    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        _expect_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _expect_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Shape) -> Shape:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Shape) -> Shape:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _SideBySide(Transform):
    """The base of transforms that apply one part to each piece of their argument along ``dim``."""

    transforms: list[Transform]

    def __init__(self, tseq: Any, dim: int, cache_size: int) -> None:
        _expect(f"tseq must be a list of Transforms, got {type(tseq).__name__}", isinstance(tseq, Iterable))
        _expect("All elements of tseq must be Transform instances", all(isinstance(t, Transform) for t in tseq))
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _size(self) -> int:
        raise NotImplementedError

    def _pieces(self, x: Tensor) -> Any:
        raise NotImplementedError

    def _joined(self, pieces: list[Tensor]) -> Tensor:
        raise NotImplementedError

    def _checked(self, x: Tensor) -> Any:
        in_range = -x.dim() <= self.dim < x.dim()
        _expect(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions", in_range)
        size = x.shape[self.dim]
        _expect(f"x.size({self.dim}) = {size} must equal {self._size()}", size == self._size())
        return self._pieces(x)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)

    def _call(self, x: Tensor) -> Tensor:
        return self._joined([t(piece) for t, piece in zip(self.transforms, self._checked(x))])

    def _inverse(self, y: Tensor) -> Tensor:
        return self._joined([t.inv(piece) for t, piece in zip(self.transforms, self._checked(y))])


class CatTransform(_SideBySide):
    """Applies transforms to pieces of given lengths along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: the length of each piece; 1 by default.
        cache_size: see ``Transform``.

    Example::

        >>> import vesta
        >>> from vesta.distributions import CatTransform, ExpTransform, identity_transform
        >>> CatTransform([ExpTransform(), identity_transform], 0, [1, 2])(vesta.zeros(3))
        tensor([1., 0., 0.])
    """

    def __init__(self, tseq: Any, dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
        _expect(f"lengths must be a list, got {type(lengths).__name__}", isinstance(lengths, (Iterable, type(None))))
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        _expect(
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})",
            len(self.lengths) == len(self.transforms),
        )

    @lazy_property
    def event_dim(self) -> int:  # type: ignore[override]
        """The most dimensions of an event of the parts."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The length of all pieces together."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _size(self) -> int:
        return self.length

    def _pieces(self, x: Tensor) -> Any:
        return x.split(self.lengths, self.dim)

    def _joined(self, pieces: list[Tensor]) -> Tensor:
        return vesta.cat(pieces, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = [
            _sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in zip(self.transforms, self._checked(x), self._checked(y))
        ]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return vesta.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_SideBySide):
    """Applies one transform to each slice along a dimension.

    Args:
        tseq: the transforms, as many as the dimension is long.
        dim: the dimension.
        cache_size: see ``Transform``.

    Example::

        >>> import vesta
        >>> from vesta.distributions import ExpTransform, StackTransform, identity_transform
        >>> StackTransform([ExpTransform(), identity_transform])(vesta.zeros(2))
        tensor([1., 0.])
    """

    def __init__(self, tseq: Any, dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _size(self) -> int:
        return len(self.transforms)

    def _pieces(self, x: Tensor) -> Any:
        return x.unbind(self.dim)

    def _joined(self, pieces: list[Tensor]) -> Tensor:
        return vesta.stack(pieces, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._checked(x), self._checked(y))
        return vesta.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
