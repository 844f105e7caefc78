"""Attention with several heads, with all options of ``MultiheadAttention``."""

from __future__ import annotations

import math
import warnings
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect

from .ops import ops

__all__ = ["multi_head_attention_forward"]


def _canonical_mask(
    mask: Tensor | None,
    mask_name: str,
    other_type: Any,
    other_name: str,
    target_type: Any,
    check_other: bool = True,
) -> Tensor | None:
    """Returns a mask as numbers to add: minus infinity where a boolean one is True."""
    if mask is None:
        return None
    expect("multi_head_attention_forward", mask_name, mask, Tensor, "Tensor or None")
    if mask.dtype != vesta.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if mask.is_floating_point():
        return mask
    return vesta.zeros_like(mask, dtype=target_type).masked_fill_(mask, -math.inf)


def _none_or_dtype(input: Tensor | None) -> Any:
    if input is not None and not isinstance(input, Tensor):
        raise TypeError(f"multi_head_attention_forward: expected masks as Tensor or None, got {type(input).__name__}.")
    return None if input is None else input.dtype


def _check_shapes(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None,
    attn_mask: Tensor | None,
    num_heads: int,
) -> bool:
    """Checks the numbers of dimensions; returns whether there is a batch."""
    op = "multi_head_attention_forward"
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        expect(op, name, tensor, Tensor, "Tensor")
    dims = query.dim()
    if dims not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {dims}-D query tensor")
    kind = "batched" if dims == 3 else "unbatched"
    if key.dim() != dims or value.dim() != dims:
        raise AssertionError(
            f"For {kind} ({dims}-D) `query`, expected `key` and `value` to be {dims}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None:
        expect(op, "key_padding_mask", key_padding_mask, Tensor, "Tensor or None")
        if key_padding_mask.dim() != dims - 1:
            raise AssertionError(
                f"For {kind} ({dims}-D) `query`, expected `key_padding_mask` to be `None` or {dims - 1}-D but found "
                f"{key_padding_mask.dim()}-D tensor instead"
            )
    if attn_mask is not None:
        expect(op, "attn_mask", attn_mask, Tensor, "Tensor or None")
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} ({dims}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if dims == 2 and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return dims == 3


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, ...]:
    """Projects the three by one matrix [3 * E, E], in as few products as they are different tensors."""
    size = query.size(-1)
    if query is key and key is value:
        return ops.linear(query, weight, bias).chunk(3, -1)
    parts = weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    q = ops.linear(query, parts[0], biases[0])
    if key is value:
        both = ops.linear(key, weight[size:], None if bias is None else bias[size:])
        return (q, *both.chunk(2, -1))
    return q, ops.linear(key, parts[1], biases[1]), ops.linear(value, parts[2], biases[2])


def _heads(x: Tensor, count: int, size: int) -> Tensor:
    """Turns [length, batch, count / batch * size] into [count, length, size]."""
    return x.contiguous().view(x.shape[0], count, size).transpose(0, 1)


def _longer(mask: Tensor | None) -> Tensor | None:
    """Adds a key that nothing masks."""
    return None if mask is None else vesta.cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _checked_mask(mask: Tensor, batch: int, num_heads: int, tgt_len: int, src_len: int) -> Tensor:
    """Returns an attention mask as [1 or batch * heads, target, source]."""
    expected = (tgt_len, src_len) if mask.dim() == 2 else (batch * num_heads, tgt_len, src_len)
    if tuple(mask.shape) != expected:
        raise RuntimeError(f"The shape of the {mask.dim()}D attn_mask is {mask.shape}, but should be {expected}.")
    return mask.unsqueeze(0) if mask.dim() == 2 else mask


def _static(name: str, given: Tensor, heads: int, size: int) -> Tensor:
    """Checks a key or value that is given already projected."""
    for place, wanted in ((0, heads), (2, size)):
        if given.size(place) != wanted:
            raise AssertionError(f"expecting {name}.size({place}) of {wanted}, but got {given.size(place)}")
    return given


@checked
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attends with ``num_heads`` heads: concat(softmax(q k' / sqrt(d)) v) projected back to E.

    Vaswani et al., "Attention is all you need", 2017.

    Args:
        query, key, value: [L, N, E], [S, N, E_k], [S, N, E_v], or without N.
        embed_dim_to_check: E.
        in_proj_weight, in_proj_bias: [3 * E, E], [3 * E]: projections of query, key, value.
        bias_k, bias_v: [1, 1, E], one more key and value.
        add_zero_attn: add a key and a value of zeros.
        dropout_p: the part of the weights that is dropped if ``training``.
        key_padding_mask: [N, S]; True (or a number to add) for keys to ignore.
        need_weights: also return the weights; else faster.
        attn_mask: [L, S] or [N * num_heads, L, S]; True (or a number to add) for pairs to ignore.
        use_separate_proj_weight: use ``q_proj_weight``, ``k_proj_weight``, ``v_proj_weight`` ([E, E_k], ...).
        static_k, static_v: [N * num_heads, S, E / num_heads], used in place of the projected key and value.
        average_attn_weights: average the weights over heads.
        is_causal: a hint that ``attn_mask`` is the causal mask.

    Returns:
        the output [L, N, E], and the weights [N, L, S] or [N, num_heads, L, S] or None.

    Example::

        >>> import vesta
        >>> x, weight = vesta.ones(2, 1, 4), vesta.zeros(12, 4)
        >>> out, weights = vesta.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 4, 2, weight, None, None, None, False, 0.0, vesta.eye(4), None)
        >>> weights
        tensor([[[0.5000, 0.5000],
                 [0.5000, 0.5000]]])
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:  # identity matters: self-attention is one product
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    tgt_len, batch, embed_dim = query.shape
    src_len = key.shape[0]
    key_padding_mask = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None  # the function below knows the causal mask
    else:
        attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
        is_causal = is_causal and key_padding_mask is None

    if embed_dim != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}")
    if num_heads <= 0:
        raise ValueError(f"multi_head_attention_forward: expected num_heads >= 1, got {num_heads} (num_heads).")
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        for name, weight in zip("qkv", weights):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (ops.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
    else:
        if key.shape != value.shape:
            raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        attn_mask = _checked_mask(attn_mask, batch, num_heads, tgt_len, src_len)
    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = vesta.cat([k, bias_k.repeat(1, batch, 1)])
        v = vesta.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _longer(attn_mask), _longer(key_padding_mask)
    elif bias_k is not None or bias_v is not None:
        raise AssertionError("expected bias_k and bias_v together, got one of them.")

    count = batch * num_heads
    q = _heads(q, count, head_dim)
    k = _heads(k, count, head_dim) if static_k is None else _static("static_k", static_k, count, head_dim)
    v = _heads(v, count, head_dim) if static_v is None else _static("static_v", static_v, count, head_dim)
    if add_zero_attn:
        zeros = k.new_zeros((count, 1, head_dim))
        k, v = vesta.cat([k, zeros], 1), vesta.cat([v, zeros], 1)
        attn_mask, key_padding_mask = _longer(attn_mask), _longer(key_padding_mask)
    src_len = k.size(1)

    if key_padding_mask is not None:
        if tuple(key_padding_mask.shape) != (batch, src_len):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, src_len)}, but got {key_padding_mask.shape}"
            )
        padding = key_padding_mask.view(batch, 1, 1, src_len).expand(-1, num_heads, -1, -1)
        padding = padding.reshape(count, 1, src_len)
        attn_mask = padding if attn_mask is None else attn_mask + padding

    dropped = dropout_p if training else 0.0
    if not need_weights:
        if attn_mask is not None:
            whole = attn_mask.size(0) == 1 and attn_mask.dim() == 3
            attn_mask = attn_mask.unsqueeze(0) if whole else attn_mask.view(batch, num_heads, -1, src_len)
        q, k, v = (x.reshape(batch, num_heads, -1, head_dim) for x in (q, k, v))
        output = ops.scaled_dot_product_attention(q, k, v, attn_mask, dropped, is_causal)
        output = output.permute(2, 0, 1, 3).reshape(tgt_len, batch, embed_dim)
        output = ops.linear(output, out_proj_weight, out_proj_bias)
        return (output if batched else output.squeeze(1)), None
    scores = (q * math.sqrt(1.0 / head_dim)) @ k.transpose(-2, -1)
    if attn_mask is not None:
        scores = scores + attn_mask
    attention = scores.softmax(-1)
    if dropped > 0.0:
        attention = ops._dropout(attention, dropped, True)
    output = (attention @ v).transpose(0, 1).reshape(tgt_len, batch, embed_dim)
    output = ops.linear(output, out_proj_weight, out_proj_bias)
    attention = attention.view(batch, num_heads, tgt_len, src_len)
    if average_attn_weights:
        attention = attention.mean(1)
    return (output, attention) if batched else (output.squeeze(1), attention.squeeze(0))
