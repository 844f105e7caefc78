"""Attention with several heads."""

from __future__ import annotations

from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.linear import NonDynamicallyQuantizableLinear
from vesta.nn.modules.module import Module
from vesta.nn.parameter import Parameter

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention of a query to keys and values, in ``num_heads`` parts of E: concat(softmax(q k' / sqrt(d)) v) W + b.

    Vaswani et al., "Attention is all you need", 2017.

    Args:
        embed_dim: E, divisible by ``num_heads``.
        num_heads: the number of parts.
        dropout: the part of the attention weights that is dropped in training.
        bias: whether projections have a bias.
        add_bias_kv: add a trained key and value.
        add_zero_attn: add a key and value of zeros.
        kdim, vdim: sizes of keys and values; default: E.
        batch_first: inputs and outputs are [N, L, E] instead of [L, N, E].

    Shapes: query [L, N, E] or [L, E], key [S, N, kdim], value [S, N, vdim]; output [L, N, E] and weights [N, L, S].
    Parameters: ``in_proj_weight`` [3 * E, E] (or ``q_proj_weight`` [E, E], ``k_proj_weight`` [E, kdim],
    ``v_proj_weight`` [E, vdim] if sizes differ), ``in_proj_bias`` [3 * E], ``out_proj``, ``bias_k``, ``bias_v``.

    Example::

        >>> import vesta
        >>> attention = vesta.nn.MultiheadAttention(8, 2)
        >>> query, memory = vesta.zeros(5, 1, 8), vesta.zeros(7, 1, 8)
        >>> output, weights = attention(query, memory, memory)
        >>> output.shape, weights.shape
        (vesta.Size([5, 1, 8]), vesta.Size([1, 5, 7]))
    """

    # None where other ones hold the same:
    in_proj_weight: Parameter | Any
    q_proj_weight: Parameter | Any
    k_proj_weight: Parameter | Any
    v_proj_weight: Parameter | Any
    in_proj_bias: Parameter | Any

    @checked
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        where = {"device": device, "dtype": dtype}
        self.embed_dim = embed_dim
        self.kdim = kdim if kdim is not None else embed_dim
        self.vdim = vdim if vdim is not None else embed_dim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        shapes: dict[str, tuple[int, ...] | None] = {
            "q_proj_weight": (embed_dim, embed_dim),
            "k_proj_weight": (embed_dim, self.kdim),
            "v_proj_weight": (embed_dim, self.vdim),
            "in_proj_weight": None,
        }
        if self._qkv_same_embed_dim:
            shapes = {"in_proj_weight": (3 * embed_dim, embed_dim), **dict.fromkeys(list(shapes)[:3])}
        shapes["in_proj_bias"] = (3 * embed_dim,) if bias else None
        for name, shape in shapes.items():
            self.register_parameter(name, None if shape is None else Parameter(vesta.empty(shape, **where)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **where)
        if add_bias_kv:
            self.bias_k = Parameter(vesta.empty((1, 1, embed_dim), **where))
            self.bias_v = Parameter(vesta.empty((1, 1, embed_dim), **where))
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        weights = (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        for weight in weights:
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("_qkv_same_embed_dim", True)  # older pickles do not have it
        super().__setstate__(state)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Returns the output and, if ``need_weights``, the weights; arguments as for
        ``multi_head_attention_forward``."""
        expect("MultiheadAttention", "query", query, Tensor, "Tensor")
        swap = self.batch_first and query.dim() == 3
        if swap:  # identity is kept: self-attention is one product
            same_key, same_value = key is query, value is key
            for name, tensor in (("key", key), ("value", value)):
                expect("MultiheadAttention", name, tensor, Tensor, "Tensor")
            query = query.transpose(0, 1)
            key = query if same_key else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(1, 0) if swap else output), weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """Returns the sum of both masks [N, num_heads, L, S] and what it is: 0 for ``attn_mask`` alone, 1 for
        ``key_padding_mask`` alone [N, S], 2 for both; (None, None) without one."""
        if attn_mask is None:
            return (None, None) if key_padding_mask is None else (key_padding_mask, 1)
        batch, length = query.shape[:2]
        heads = -1 if attn_mask.dim() == 3 else 1
        mask = attn_mask.view(-1 if attn_mask.dim() == 2 else batch, heads, length, length)
        mask = mask.expand(batch, self.num_heads, -1, -1)
        if key_padding_mask is not None:
            mask = mask + key_padding_mask.view(batch, 1, 1, length)
        return mask, 2
