"""Layers that look rows up in a table."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    """A table of vectors, looked up by number.

    Args:
        num_embeddings: rows of the table, V.
        embedding_dim: size of a row, E.
        padding_idx: a row that starts at zero and gets no gradient; negative counts from the end.
        max_norm, norm_type, scale_grad_by_freq, sparse: as in PyTorch; not available yet, a call with them raises.

    Shapes: input [...] of integers, output [..., E], ``weight`` [V, E], drawn from N(0, 1).

    Example::

        >>> import vesta
        >>> vesta.nn.Embedding(10, 3)(vesta.tensor([[1, 2, 4]])).shape
        vesta.Size([1, 3, 3])
    """

    @checked
    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if _weight is None:
            shape = (num_embeddings, embedding_dim)
            self.weight = Parameter(vesta.empty(shape, device=device, dtype=dtype), requires_grad=not _freeze)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
            self.weight = Parameter(_weight, requires_grad=not _freeze)

    def reset_parameters(self) -> None:
        """Redraws the table."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with vesta.no_grad():
                self.weight[self.padding_idx].fill_(0)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the rows at ``input``."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        """Returns the constructor's arguments, without those at their defaults."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse else "")

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **more: Any
    ) -> Embedding:
        """Returns a layer over a given table [V, E]; ``freeze`` keeps it from being trained.

        Example::

            >>> import vesta
            >>> vesta.nn.Embedding.from_pretrained(vesta.ones(2, 3))
            Embedding(2, 3)
        """
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(rows, columns, padding_idx=padding_idx, _weight=embeddings, _freeze=freeze, **more)
