"""The chi-squared distribution."""

from __future__ import annotations

import numbers

from vesta import Tensor
from vesta._arguments import expect
from vesta._types import Real

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution: the gamma distribution with concentration df / 2 and rate 1 / 2.

    Args:
        df: the degrees of freedom; positive, a tensor or number.
        validate_args: whether arguments and values are checked.

    Example::

        >>> import vesta
        >>> from vesta.distributions import Chi2
        >>> Chi2(vesta.tensor([1.0, 4.0])).variance
        tensor([2., 8.])
    """

    arg_constraints = {"df": constraints.positive}
    _parameters = Gamma._parameters

    def __init__(self, df: Real, validate_args: bool | None = None) -> None:
        expect("Chi2", "df", df, (numbers.Real, Tensor), "a number or a Tensor")
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
