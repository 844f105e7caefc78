"""Analysis of signals: ``torch.signal``, whose only part is ``windows``."""

from __future__ import annotations

from . import windows

__all__ = ["windows"]
