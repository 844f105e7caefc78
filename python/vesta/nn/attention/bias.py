"""Causal masks for queries and keys of different lengths."""

from __future__ import annotations

import enum

import vesta
from vesta import Tensor
from vesta._arguments import expect

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Where the diagonal of a causal mask begins: at the first query and key, or so that it ends at the last ones.

    Example::

        >>> import vesta
        >>> vesta.nn.attention.bias.CausalVariant.LOWER_RIGHT.value
        2
    """

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask [Q, K] of bools: a tensor that knows its variant.

    Args:
        variant: a ``CausalVariant``.
        seq_len_q, seq_len_kv: Q and K.

    Raises:
        TypeError, ValueError: the variant is none, or a length is negative.

    Example::

        >>> import vesta
        >>> from vesta.nn.attention.bias import CausalBias, CausalVariant
        >>> bool(CausalBias(CausalVariant.UPPER_LEFT, 2, 2)[0, 1])
        False
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        expect("CausalBias", "variant", variant, CausalVariant, "CausalVariant")
        for name, length in (("seq_len_q", seq_len_q), ("seq_len_kv", seq_len_kv)):
            expect("CausalBias", name, length, int, "int")
            if length < 0:
                raise ValueError(f"CausalBias: expected a length of at least 0, got {length} ({name}).")
        shift = seq_len_kv - seq_len_q if variant is CausalVariant.LOWER_RIGHT else 0
        mask = vesta.ones(seq_len_q, seq_len_kv, dtype=vesta.bool).tril(shift).as_subclass(cls)
        mask.variant, mask.seq_len_q, mask.seq_len_kv = variant, seq_len_q, seq_len_kv
        return mask

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        pass  # all is done in __new__

    __torch_function__ = vesta._C._disabled_torch_function_impl  # results of operations are plain tensors


def _lengths(op: str, size: tuple[int, ...]) -> tuple[int, int]:
    for length in size:
        expect(op, "size", length, int, "two integers")
    if len(size) != 2:
        raise ValueError(f"{op}: expected two lengths, got {len(size)} (size).")
    return size[0], size[1]


def causal_upper_left(*size: int) -> CausalBias:
    """Returns the mask [Q, K] in which query i sees the keys 0 to i.

    Example::

        >>> import vesta
        >>> vesta.nn.attention.bias.causal_upper_left(2, 3).tolist()
        [[True, False, False], [True, True, False]]
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_lengths("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """Returns the mask [Q, K] in which the last query sees all keys, the one before it all but one.

    Example::

        >>> import vesta
        >>> vesta.nn.attention.bias.causal_lower_right(2, 3).tolist()
        [[True, True, False], [True, True, True]]
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_lengths("causal_lower_right", size))
