"""Analysis of signals: ``torch.signal``, whose only part is ``windows``."""

from __future__ import annotations

from vesta._names import listing

from . import windows

__all__ = ["windows"]

__dir__ = listing(globals())
