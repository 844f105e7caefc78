"""The order of the products of ``einsum``: Vesta takes them from left to right."""

from __future__ import annotations

from types import ModuleType

from . import switch
from .setting import Setting

__all__ = ["is_available"]


class _OptEinsum(ModuleType):
    enabled = Setting(False, "Whether the package opt_einsum may choose the order. It is not asked.")
    strategy = Setting("auto", "How the package would choose.")


def is_available() -> bool:
    """Returns False: the package opt_einsum is not used."""
    return False


switch.install(__name__, _OptEinsum)
