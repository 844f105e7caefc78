"""Types of functions and of what a transformation makes of them, for type checkers.

A transformation of a function of one to three tensors is a function of as many; a lambda's arguments are then known to
be tensors, and those of a function without annotations are anything. What is made is a class with an attribute, not a
``Callable``: mypy would call the result for a lambda untyped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from vesta import Tensor

    A = TypeVar("A", bound=Tensor, default=Tensor)
    B = TypeVar("B", bound=Tensor, default=Tensor)
    C = TypeVar("C", bound=Tensor, default=Tensor)
    A_contra = TypeVar("A_contra", contravariant=True)
    B_contra = TypeVar("B_contra", contravariant=True)
    C_contra = TypeVar("C_contra", contravariant=True)
    R_co = TypeVar("R_co", covariant=True)
    P = ParamSpec("P")

    class OfOne(Protocol[A_contra, R_co]):
        """A function of a tensor."""

        __wrapped__: Any

        def __call__(self, a: A_contra, /) -> R_co: ...

    class OfTwo(Protocol[A_contra, B_contra, R_co]):
        """A function of two tensors."""

        __wrapped__: Any

        def __call__(self, a: A_contra, b: B_contra, /) -> R_co: ...

    class OfThree(Protocol[A_contra, B_contra, C_contra, R_co]):
        """A function of three tensors."""

        __wrapped__: Any

        def __call__(self, a: A_contra, b: B_contra, c: C_contra, /) -> R_co: ...

    class OfAny(Protocol):
        """A function of any arguments."""

        __wrapped__: Any

        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    class OfSame(Protocol[P, R_co]):
        """A function of the same arguments as another one."""

        __wrapped__: Any

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
