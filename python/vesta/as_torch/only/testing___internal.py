"""``torch.testing._internal``: of PyTorch's tests of itself, what tests of packages use."""

from __future__ import annotations

__all__: list[str] = []
__path__: list[str] = []
