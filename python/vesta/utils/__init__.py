"""What is neither a layer nor an optimizer: data loading (``vesta.utils.data``) and hook handles."""

from __future__ import annotations

from . import hooks

__all__ = ["hooks"]
