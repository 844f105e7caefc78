"""``vesta.backends.cuda.matmul.allow_tf32``: whether float32 matrix products may round their factors to 10 bits."""

from __future__ import annotations

from .switch import Switch


class _Matmul:
    """Settings of matrix products."""

    __slots__ = ()
    allow_tf32 = Switch(0, "Whether float32 products may use TF32: faster, 10 bits of factors kept. False at first.")


matmul = _Matmul()


def is_built() -> bool:
    """Returns whether there is a CUDA library to load; ``vesta.cuda.is_available()`` tells whether it has a device."""
    import vesta

    return vesta.cuda.is_available()
