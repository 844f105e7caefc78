"""Settings of products on devices that can trade digits for speed, with ``torch.backends``' names.

Settings can be made before any device is used, and on a machine without one.
"""

from __future__ import annotations

from . import cuda, cudnn, mps

__all__ = ["cuda", "cudnn", "mps"]
