"""``torch.distributed.tensor``: placements are values that can be made and compared; distributed tensors refuse."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor would lie over the ranks of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Returns whether each rank has a part of it, along ``dim`` if given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Returns whether each rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Returns whether each rank has a summand of it."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each rank has a part along a dimension."""

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each rank has all of it."""


@dataclass(frozen=True)
class Partial(Placement):
    """Each rank has a summand, or another operand of a reduction."""

    reduce_op: str = "sum"
