"""Layers that change shapes only."""

from __future__ import annotations

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """The layer that merges the dimensions ``start_dim`` to ``end_dim`` into one; by default all but the batch.

    Example::

        >>> import vesta
        >>> vesta.nn.Flatten()(vesta.zeros(32, 1, 5, 5)).shape
        vesta.Size([32, 25])
    """

    @checked
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` with the dimensions merged."""
        return vesta.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """The layer that splits dimension ``dim`` into ``unflattened_size``, one entry of which may be -1.

    Example::

        >>> import vesta
        >>> vesta.nn.Unflatten(1, (2, 5))(vesta.zeros(3, 10)).shape
        vesta.Size([3, 2, 5])
    """

    @checked
    def __init__(self, dim: int, unflattened_size: tuple[int, ...] | list[int]) -> None:
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"invalid argument type for dim parameter: found type {type(dim).__name__}")
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "unflattened_size must be a tuple of ints, but found type " + type(unflattened_size).__name__
            )
        for place, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} "
                    f"at pos {place}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` with the dimension split."""
        expect("Unflatten", "input", input, Tensor, "Tensor")
        dims = input.dim()
        if not -dims <= self.dim < dims:
            raise IndexError(f"Unflatten: expected dim in [{-dims}, {dims - 1}], got {self.dim} (dim).")
        dim = self.dim % dims
        shape = tuple(input.shape)
        return input.reshape((*shape[:dim], *self.unflattened_size, *shape[dim + 1 :]))

    def extra_repr(self) -> str:
        """Returns the constructor's arguments."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
