"""NCCL, which moves tensors between GPUs; ``vesta.distributed`` uses it as backend ``nccl``."""

from __future__ import annotations

from collections.abc import Sequence

from vesta import Tensor

from . import native as port

__all__ = ["is_available", "version"]


def version() -> tuple[int, int, int]:
    """Returns NCCL's version, ``(2, 28, 9)``. Raises ``RuntimeError`` with the reason if there is none."""
    number = port.native().nccl_version()
    if not number:
        raise RuntimeError(f"vesta.cuda.nccl: {port.native().nccl_problem()}")
    return number // 10000, number // 100 % 100, number % 100


def is_available(tensors: Sequence[Tensor]) -> bool:
    """Returns whether NCCL can work on these tensors: contiguous ones, each on a different CUDA device."""
    devices = {t.get_device() for t in tensors}
    fit = all(t.is_cuda and t.is_contiguous() for t in tensors)
    return fit and len(devices) == len(tensors) and port.native().nccl_version() != 0
