"""oneDNN, whose products Vesta does not use: its own give equal bits for any number of threads."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING

from . import switch
from .setting import Setting, changed

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "flags", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2

if TYPE_CHECKING:  # of _Mkldnn
    enabled: bool
    deterministic: bool
    allow_tf32: bool
    fp32_precision: str


class _Mkldnn(ModuleType):
    enabled = Setting(True, "Whether oneDNN may be used. It is not.")
    deterministic = Setting(True, "Whether only deterministic kernels may be used. There are no others.")
    allow_tf32 = Setting(False, "Whether float32 products may be rounded. They are not.")
    fp32_precision = Setting("none", "How float32 products may be rounded. They are not.")


def is_available() -> bool:
    """Returns False: oneDNN is not used."""
    return False


def is_acl_available() -> bool:
    """Returns False: the Arm Compute Library is not used."""
    return False


class verbose:
    """A context in which oneDNN would print what it does; nothing is printed."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose:
        return self

    def __exit__(self, *error: object) -> None:
        return None


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> AbstractContextManager[None]:
    """Returns a context in which the settings have these values.

    Example::

        >>> import vesta
        >>> with vesta.backends.mkldnn.flags(enabled=False):
        ...     vesta.backends.mkldnn.enabled
        False
    """
    module = sys.modules[__name__]
    return changed(
        module, enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32, fp32_precision=fp32_precision
    )


switch.install(__name__, _Mkldnn)
