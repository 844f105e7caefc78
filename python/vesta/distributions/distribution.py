"""``Distribution``, what every distribution has: shapes, checks of arguments and values, ``expand``, ``sample``."""

from __future__ import annotations

import warnings
from typing import Any

import vesta
from vesta import Size, Tensor
from vesta._types import Shape

from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


def _shape_of(given: Any) -> Any:
    """Returns a shape; what a program's own distribution gives instead (a shape for each of several parts) as it is."""
    return given if any(isinstance(size, (tuple, list)) for size in given) else Size(given)


class Distribution:
    """The base of all distributions.

    A sample has the shape ``sample_shape + batch_shape + event_shape``: independent draws, distributions with
    parameters of their own, and the dimensions of one draw.

    Args:
        batch_shape: the shape of the parameters' batch.
        event_shape: the shape of one draw.
        validate_args: whether arguments and values are checked; None takes the default, which is True unless Python
            runs with ``-O``.

    A subclass states in ``_parameters`` which attributes ``expand`` has to expand: a name with the number of trailing
    dimensions that belong to one event, or with None for what does not depend on the batch. Attributes may be tensors
    or distributions.

    Raises:
        ValueError: a parameter lies outside its constraint.
        NotImplementedError: a distribution lacks what was asked for, such as the mean.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Normal
        >>> normal = Normal(vesta.zeros(3), 1.0)
        >>> normal.batch_shape, normal.sample((2,)).shape
        (vesta.Size([3]), vesta.Size([2, 3]))
    """

    has_rsample: bool = False
    has_enumerate_support: bool = False
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check their arguments when ``validate_args`` is not given.

        Raises:
            ValueError: ``value`` is neither True nor False.
        """
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected True or False, got {value!r}.")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        self._batch_shape = _shape_of(batch_shape)
        self._event_shape = _shape_of(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_arguments()
        super().__init__()

    def _check_arguments(self) -> None:
        """Raises a ValueError for the first parameter that lies outside its constraint."""
        try:
            checks = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize "
                "the distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in checks.items():
            derived = name not in vars(self) and isinstance(getattr(type(self), name, None), lazy_property)
            if derived or constraints.is_dependent(constraint):
                continue
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n"
                    f"{value}"
                )

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """Returns the distribution with parameters expanded to ``batch_shape``, as views: no memory is allocated.

        Args:
            batch_shape: the new batch shape, to which the old one broadcasts.
            _instance: an instance to fill instead of a new one, for the ``expand`` of a subclass.

        Example::

            >>> from vesta.distributions import Normal
            >>> Normal(0.0, 1.0).expand((2, 3)).batch_shape
            vesta.Size([2, 3])
        """
        owner = next((cls for cls in type(self).__mro__ if "_parameters" in vars(cls)), None)
        if owner is None:
            raise NotImplementedError(f"{type(self).__name__} does not implement expand.")
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        for name, own in owner._parameters.items():
            value = vars(self).get(name)
            if own is None:
                setattr(new, name, value)
            elif isinstance(value, Distribution):
                setattr(new, name, value.expand(batch_shape + _last(value.batch_shape, own)))
            elif value is not None:
                setattr(new, name, value.expand(batch_shape + _last(value.shape, own)))
        self._expand_parts(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        """Gives an expanded distribution what its ``_parameters`` do not list, before its ``__init__`` runs."""

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one draw; empty for a distribution of numbers."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter, by its name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that every value of the distribution satisfies."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean, of shape ``batch_shape + event_shape``."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value, of shape ``batch_shape + event_shape``."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each element, of shape ``batch_shape + event_shape``."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws a sample of shape ``sample_shape + batch_shape + event_shape``, without a gradient.

        Example::

            >>> import vesta
            >>> from vesta.distributions import Uniform
            >>> Uniform(vesta.zeros(4), 1.0).sample((2, 3)).shape
            vesta.Size([2, 3, 4])
        """
        with vesta.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draws a sample that is differentiable in the parameters, of the shape that ``sample`` has."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draws n samples; deprecated: use ``sample((n,))``."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the logarithm of the density or of the probability at ``value``.

        Args:
            value: values whose shape broadcasts with ``batch_shape + event_shape`` and ends with the event shape.

        Returns: a tensor without the event dimensions.

        Raises:
            ValueError: the shape does not fit, or a value lies outside the support (checked with ``validate_args``).
        """
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Returns the probability of a draw of at most ``value``."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the quantile of a probability, the inverse of ``cdf``."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Returns all values of a discrete distribution along a new first dimension.

        The result has the shape ``[n] + batch_shape + event_shape``; with ``expand=False`` the batch dimensions are 1.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """Returns the entropy in nats, of shape ``batch_shape``."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Returns the exponential of the entropy, of shape ``batch_shape``."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        """Returns the shape of a sample."""
        return Size(sample_shape) + self._batch_shape + self._event_shape

    def _validate_sample(self, value: Any) -> None:
        """Raises a ValueError unless ``value`` is a tensor of a fitting shape within the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if _last(value.shape, len(self._event_shape)) != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        for got, wanted in zip(reversed(value.shape), reversed(expected)):
            if got != wanted and 1 not in (got, wanted):
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Returns the instance that ``expand`` fills; refuses a subclass whose constructor it does not know."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def __repr__(self) -> str:
        shown = [(name, vars(self)[name]) for name in self.arg_constraints if name in vars(self)]
        listed = ", ".join(f"{name}: {value if value.numel() == 1 else value.shape}" for name, value in shown)
        return f"{type(self).__name__}({listed})"


def _last(shape: Any, dims: int) -> Any:
    """Returns the last ``dims`` sizes of a shape."""
    return shape[len(shape) - dims :]
