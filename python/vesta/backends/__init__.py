"""How products are computed on devices that can trade digits for speed: ``torch.backends``'s names.

Settings hold before any device is touched, and on a machine without one.
"""

from __future__ import annotations

from . import cuda, cudnn, mps

__all__ = ["cuda", "cudnn", "mps"]
