"""Questions about Triton, which compiles kernels for PyTorch: it is not used here."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package() -> bool:
    """Returns False."""
    return False


def has_triton() -> bool:
    """Returns False."""
    return False
