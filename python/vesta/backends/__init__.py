"""Settings of products on devices that can trade digits for speed, with ``torch.backends``' names.

Settings can be made before any device is used, and on a machine without one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from vesta._names import listing

from . import cpu, cuda, cudnn, mha, mkl, mkldnn, mps, openmp, opt_einsum

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


def disable_global_flags() -> None:
    """Does nothing: settings are attributes, and stay so."""


def flags_frozen() -> bool:
    """Returns False: settings can be set."""
    return False


@contextlib.contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """A context in which settings can be set, as they can outside of it."""
    yield


__dir__ = listing(globals(), hidden="setting switch")
