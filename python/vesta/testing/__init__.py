"""Comparisons and random tensors for tests: ``torch.testing``'s names."""

from __future__ import annotations

from vesta._names import listing

from .comparison import assert_allclose, assert_close
from .creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

__dir__ = listing(globals(), hidden="comparison creation")
