"""Collectives that gradients pass through: ``vesta.distributed.nn.functional``."""

# ruff: noqa: F403

from . import functional as functional
from .functional import *
