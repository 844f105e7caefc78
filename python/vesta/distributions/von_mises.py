"""The von Mises distribution of angles."""

from __future__ import annotations

import math

import vesta
from vesta import Tensor
from vesta._types import Real, Shape

from . import constraints
from ._sampling import _uniform, _until_accepted
from ._special import acos, log_bessel
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The von Mises distribution of angles with density exp(concentration cos(x - loc)) / (2 pi I_0(concentration)).

    Args:
        loc: the mean angle, in radians; a tensor or number. The two broadcast.
        concentration: the concentration, positive.
        validate_args: whether arguments and values are checked.

    Sources: Mardia and Jupp, Directional Statistics, 3.5.4; samples in [-pi, pi) by D. J. Best and N. I. Fisher,
    Efficient simulation of the von Mises distribution, 1979.

    Example::

        >>> import vesta
        >>> from vesta.distributions import VonMises
        >>> VonMises(0.0, 1.0).log_prob(vesta.tensor(0.0))
        tensor(-1.0738)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _parameters = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Real, concentration: Real, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance, 1 - I_1 / I_0 of the concentration."""
        return 1 - (log_bessel(self.concentration, 1) - log_bessel(self.concentration, 0)).exp()

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with vesta.no_grad():
            kappa = self.concentration.to(vesta.float64)
            tau = 1 + (1 + 4 * kappa.square()).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = vesta.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho.square()) / (2 * rho))

            def propose(kappa: Tensor, r: Tensor) -> tuple[Tensor, Tensor]:
                z = (math.pi * _uniform(r.shape, r.device)).cos()
                u, side = _uniform(r.shape, r.device), vesta.rand(r.shape, dtype=r.dtype, device=r.device) - 0.5
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                ok = (c * (2 - c) > u) | ((c / u).log() + 1 - c >= 0) | kappa.isnan()
                return vesta.where(side < 0, -1.0, 1.0) * acos(f.clamp(-1, 1)), ok

            flat = (t.expand(shape).reshape(-1) for t in (kappa, r))
            angle = _until_accepted(propose, *flat).reshape(shape) + self.loc.to(vesta.float64)
            return ((angle + math.pi) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = self.concentration * (value - self.loc).cos()
        return inside - math.log(2 * math.pi) - log_bessel(self.concentration, 0)
