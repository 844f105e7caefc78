"""Settings of ``vesta.save`` and ``vesta.load`` (``config``)."""

from __future__ import annotations

from vesta._names import listing

from . import config

__all__ = ["config"]
__dir__ = listing(globals())
