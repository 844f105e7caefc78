"""Options of the loss that contains its linear layer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

__all__ = ["LinearCrossEntropyOptions"]

_METHOD = re.compile(r"aspect_ratio(:0*[1-9][0-9]*)?")


@dataclass
class LinearCrossEntropyOptions:
    """How ``linear_cross_entropy`` splits the batch into parts, so that not all logits are in memory at once.

    Args:
        batch_chunk_size: the examples of a part; None: ``chunking_method`` says how many, or all of them.
        chunking_method: ``"aspect_ratio"``, so many that the logits of a part are as large as the input;
            ``"aspect_ratio:2"``, half of them; ``"auto"``, the former, or fewer where the input is larger; None.
        allow_retain_graph, acc_policy, acc_dtype: accepted as in PyTorch. Here a graph may always run twice, and sums
            are in float32 at least.

    Raises:
        ValueError: an argument of another form.

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
        method = self.chunking_method
        if method is not None and method != "auto" and _METHOD.fullmatch(method) is None:
            raise ValueError(
                f"LinearCrossEntropyOptions: expected 'auto', 'aspect_ratio', 'aspect_ratio:N' or None, got {method!r} "
                "(chunking_method)."
            )

    def part_of(self, batch: int, features: int, classes: int, probabilities: bool) -> int:
        """Returns how many of ``batch`` examples a part has; for targets that are ``probabilities``, or class numbers.

        Raises:
            ValueError: a size and a method that give different numbers.
        """
        size, method = self.batch_chunk_size, self.chunking_method
        if method is None or (method == "auto" and size is not None):
            return min(size or batch, batch)
        share = -(-batch // max(1, -(-classes // max(features, 1))))
        factor = int(method.partition(":")[2] or 1)
        part = min((1 << (share - 1).bit_length()) // factor, batch)
        if method == "auto":
            most = batch // 2 if probabilities else batch * classes // (4 * max(features, 1))
            part = min(part, 1 << max(most.bit_length() - 1, 0))
        part = max(1, part)
        if size is not None and size != part:
            raise ValueError(
                f"LinearCrossEntropyOptions: batch_chunk_size={size} and chunking_method={method!r}, which gives "
                f"{part}: pass only one of them."
            )
        return part
