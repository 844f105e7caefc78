"""Mixed precision: ``autocast`` runs products in 16 bits, ``GradScaler`` keeps small gradients from vanishing."""

from __future__ import annotations

from vesta._names import listing

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

__dir__ = listing(globals())
