"""Settings of ``vesta.save`` and ``vesta.load`` (``config``)."""

from __future__ import annotations

from . import config

__all__ = ["config"]
