"""Discrete Fourier transforms, as PyTorch's ``torch.fft``.

Example::

    >>> import vesta
    >>> vesta.fft.rfft2(vesta.ones(2, 4)).shape
    vesta.Size([2, 3])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vesta._names import listing

from ._C import _fft

if TYPE_CHECKING:  # names that only the op list says
    from ._C._names_of_fft import *  # noqa: F403

__all__ = [name for name in vars(_fft) if not name.startswith("_")]
globals().update({name: getattr(_fft, name) for name in __all__})

__dir__ = listing(globals())
