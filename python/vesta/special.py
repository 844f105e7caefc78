"""Special functions, as PyTorch's ``torch.special``.

Functions that ``vesta`` has too are the same here, some under another name.

Example::

    >>> import vesta
    >>> vesta.special.expit(vesta.tensor([0.0]))
    tensor([0.5000])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesta._names import listing
from vesta._overridable import overridable
from vesta._types import DType

from ._C import Tensor, _ops, _special

if TYPE_CHECKING:  # names that only the op list says
    from ._C._names_of_special import *  # noqa: F403

#: Names here of functions that ``vesta`` has under another name.
_OTHER_NAMES = {"expit": "sigmoid", "gammaln": "lgamma", "multigammaln": "mvlgamma", "psi": "digamma"}
_OTHER_NAMES |= {"gammainc": "igamma", "gammaincc": "igammac"}
_SAME_NAMES = ("digamma", "erf", "erfc", "erfinv", "exp2", "expm1", "i0", "log1p", "logit", "logsumexp")
_SAME_NAMES += ("polygamma", "round", "sinc", "xlogy")

globals().update({name: getattr(_special, name) for name in vars(_special) if not name.startswith("_")})
globals().update({name: getattr(_ops, other) for name, other in _OTHER_NAMES.items()})
globals().update({name: getattr(_ops, name) for name in _SAME_NAMES})
__all__ = [*(name for name in vars(_special) if not name.startswith("_")), *_OTHER_NAMES, *_SAME_NAMES]
__all__ += ["log_softmax", "softmax"]


def log_softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
    """Returns ``vesta.log_softmax``.

    Example::

        >>> import vesta
        >>> vesta.special.log_softmax(vesta.zeros(2), 0)
        tensor([-0.6931, -0.6931])
    """
    return _ops.log_softmax(input, dim, dtype)


def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
    """Returns ``vesta.softmax``.

    Example::

        >>> import vesta
        >>> vesta.special.softmax(vesta.zeros(2), 0)
        tensor([0.5000, 0.5000])
    """
    return _ops.softmax(input, dim, dtype)


overridable(log_softmax, softmax)

__dir__ = listing(globals())
