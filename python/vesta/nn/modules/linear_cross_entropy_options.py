"""Options of the loss that contains its linear layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["LinearCrossEntropyOptions"]


@dataclass
class LinearCrossEntropyOptions:
    """How PyTorch splits ``linear_cross_entropy`` into parts of the batch; accepted here, and without effect.

    Args:
        allow_retain_graph, batch_chunk_size, chunking_method, acc_policy, acc_dtype: as in PyTorch.

    Example::

        >>> import vesta
        >>> vesta.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in ("accurate", "compact", "auto"):
            raise ValueError(
                f"LinearCrossEntropyOptions: expected 'accurate', 'compact' or 'auto', got {self.acc_policy!r}."
            )
        size = self.batch_chunk_size
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(
                f"LinearCrossEntropyOptions: expected an integer >= 1 or None, got {size!r} (batch_chunk_size)."
            )
