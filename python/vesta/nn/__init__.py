"""Layers, losses, initial values: PyTorch's ``torch.nn`` over Vesta's functions."""

from __future__ import annotations

from . import functional, init, modules, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _layers
from .parameter import Buffer, Parameter

__all__ = ["Buffer", "Parameter", "functional", "init", "modules", "utils", *_layers]
