"""Transformers: encoder, decoder, their layers and the whole (Vaswani et al., "Attention is all you need", 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect, python_number
from vesta._types import Device, DType
from vesta.nn import functional as F
from vesta.nn import init
from vesta.nn.modules.activation import GELU, ReLU
from vesta.nn.modules.attention import MultiheadAttention
from vesta.nn.modules.container import ModuleList
from vesta.nn.modules.dropout import Dropout
from vesta.nn.modules.linear import Linear
from vesta.nn.modules.module import Module
from vesta.nn.modules.normalization import LayerNorm
from vesta.nn.modules.utils import count

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _generate_square_subsequent_mask(sz: int, device: Device | None = None, dtype: DType | None = None) -> Tensor:
    """Returns [sz, sz], minus infinity above the diagonal, 0 elsewhere."""
    return vesta.triu(vesta.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    """Returns the length of a sequence, with or without a batch."""
    return src.size(0) if src.dim() == 2 else src.size(1 if batch_first else 0)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Returns whether a mask is the causal one of ``size``; ``is_causal`` wins if it is given."""
    expect("Transformer", "mask", mask, (Tensor, type(None)), "Tensor or None")
    if is_causal is not None or mask is None:
        return is_causal is True
    if mask.is_meta:  # it has no values to compare: it may be any
        return False
    sz = size if size is not None else mask.size(-2)
    if mask.dtype == vesta.bool:
        causal = vesta.triu(vesta.ones(sz, sz, dtype=vesta.bool, device=mask.device), diagonal=1)
    else:
        causal = _generate_square_subsequent_mask(sz, mask.device, mask.dtype)
    return tuple(mask.shape) == tuple(causal.shape) and bool((mask == causal).all())


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    """Returns the function of a name."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)


def _get_clones(module: Module, number: int) -> ModuleList:
    """Returns copies of a layer, each with parameters of its own (of the same values)."""
    return ModuleList([copy.deepcopy(module) for _ in range(count("Transformer", "num_layers", number))])


class _TransformerLayer(Module):
    """The common part of both layers: the feed-forward block, and the activation by name."""

    linear1: Linear
    linear2: Linear
    dropout: Dropout
    activation: Callable[[Tensor], Tensor]

    def _set_activation(self, activation: Any) -> None:
        expect(type(self).__name__, "activation", activation, (str, Callable), "a name or a function")
        self.activation = _get_activation_fn(activation) if isinstance(activation, str) else activation
        known = [(F.relu, ReLU), (F.gelu, GELU)]
        kinds = [self.activation is f or isinstance(self.activation, layer) for f, layer in known]
        self.activation_relu_or_gelu = kinds.index(True) + 1 if True in kinds else 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "activation" not in self.__dict__ and "activation" not in self._modules:
            self.activation = F.relu  # older pickles do not have it

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """One layer of an encoder: self-attention and a feed-forward network, each with a residual and a normalisation.

    Args:
        d_model: the size of an element, E.
        nhead: the number of heads.
        dim_feedforward: the size inside of the feed-forward network.
        dropout: the part that is dropped in training.
        activation: of the feed-forward network: ``"relu"``, ``"gelu"`` or a function.
        layer_norm_eps: of the normalisations.
        batch_first: input and output are [N, L, E] instead of [L, N, E].
        norm_first: normalise before each block instead of after its residual.
        bias: whether linear maps and normalisations have a bias.

    Shapes: input and output [L, N, E] or [L, E]; ``src_mask`` [L, L], ``src_key_padding_mask`` [N, L].

    Example::

        >>> import vesta
        >>> vesta.nn.TransformerEncoderLayer(8, 2, 16)(vesta.zeros(5, 3, 8)).shape
        vesta.Size([5, 3, 8])
    """

    @checked
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        where = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **where)
        self.linear1 = Linear(d_model, dim_feedforward, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **where)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, **where)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, **where)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self._set_activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Returns the encoded sequence; ``is_causal`` says that ``src_mask`` is the causal mask."""
        expect("TransformerEncoderLayer", "src", src, Tensor, "Tensor")
        padding, mask = _masks("src_key_padding_mask", src_key_padding_mask, "src_mask", src_mask, src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), mask, padding, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, mask, padding, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))

    # The blocks have the names of PyTorch's: subclasses replace them.
    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout1(_attended(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._feed_forward(x))


def _attended(
    attention: Module, x: Tensor, keys: Tensor, mask: Tensor | None, padding: Tensor | None, is_causal: bool
) -> Tensor:
    """Returns what ``x`` finds among the keys, without the weights."""
    return attention(x, keys, keys, attn_mask=mask, key_padding_mask=padding, is_causal=is_causal, need_weights=False)[
        0
    ]


def _masks(
    padding_name: str, padding: Tensor | None, name: str, mask: Tensor | None, dtype: Any
) -> tuple[Tensor | None, Tensor | None]:
    """Returns both masks as numbers to add."""
    from vesta.nn.functional.attention import _canonical_mask, _none_or_dtype

    padding = _canonical_mask(padding, padding_name, _none_or_dtype(mask), name, dtype)
    return padding, _canonical_mask(mask, name, None, "", dtype, False)


class TransformerDecoderLayer(_TransformerLayer):
    """One layer of a decoder: self-attention, attention to the memory and a feed-forward network.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            ``TransformerEncoderLayer``.

    Shapes: ``tgt`` and output [T, N, E] or [T, E], ``memory`` [S, N, E] or [S, E]; ``tgt_mask`` [T, T], ``memory_mask``
    [T, S], ``tgt_key_padding_mask`` [N, T], ``memory_key_padding_mask`` [N, S].

    Example::

        >>> import vesta
        >>> vesta.nn.TransformerDecoderLayer(8, 2, 16)(vesta.zeros(4, 3, 8), vesta.zeros(5, 3, 8)).shape
        vesta.Size([4, 3, 8])
    """

    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm
    dropout1: Dropout
    dropout2: Dropout
    dropout3: Dropout

    @checked
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        where = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **where)
        self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **where)
        self.linear1 = Linear(d_model, dim_feedforward, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **where)
        self.norm_first = norm_first
        for name in ("norm1", "norm2", "norm3"):
            setattr(self, name, LayerNorm(d_model, eps=layer_norm_eps, **where))
        for name in ("dropout1", "dropout2", "dropout3"):
            setattr(self, name, Dropout(dropout))
        self._set_activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the decoded sequence; the last two say that the masks are causal ones."""
        for name, value in (("tgt", tgt), ("memory", memory)):
            expect("TransformerDecoderLayer", name, value, Tensor, "Tensor")
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None, is_causal: bool = False
    ) -> Tensor:
        return self.dropout1(_attended(self.self_attn, x, x, attn_mask, key_padding_mask, is_causal))

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        return self.dropout2(_attended(self.multihead_attn, x, mem, attn_mask, key_padding_mask, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout3(self._feed_forward(x))


class TransformerEncoder(Module):
    """``num_layers`` copies of a layer, one after another.

    Args:
        encoder_layer: the layer to copy; all copies start with its values.
        num_layers: how many.
        norm: a normalisation of the result, or None.
        enable_nested_tensor: padded places are 0 before norm where nothing is trained (in eval mode, without gradients,
            autocast or a ``mask``), for the layers of which PyTorch leaves them out: batch_first, not norm_first, with
            biases, relu or gelu, and an even number of heads.
        mask_check: that holds for padding at the ends alone; without the check, for any.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.TransformerEncoderLayer(8, 2, 16)
        >>> vesta.nn.TransformerEncoder(layer, 2)(vesta.zeros(5, 3, 8)).shape
        vesta.Size([5, 3, 8])
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        expect("TransformerEncoder", "encoder_layer", encoder_layer, Module, "Module")
        num_layers = python_number(num_layers)
        expect("TransformerEncoder", "num_layers", num_layers, int, "int")
        expect("TransformerEncoder", "norm", norm, (Module, type(None)), "Module or None")
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _packs(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Returns the encoded sequence; whether ``mask`` is causal is found out if ``is_causal`` is None."""
        expect("TransformerEncoder", "src", src, Tensor, "Tensor")
        src_key_padding_mask, mask = _masks("src_key_padding_mask", src_key_padding_mask, "mask", mask, src.dtype)
        first = self.layers[0].self_attn if len(self.layers) else None
        length = _get_seq_len(src, first is not None and first.batch_first)
        is_causal = _detect_is_causal_mask(mask, is_causal, length)
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=is_causal, src_key_padding_mask=src_key_padding_mask)
        if mask is None and src_key_padding_mask is not None and self._skips_padding(src):
            hidden = src_key_padding_mask != 0  # a mask of floats holds 0 and -inf
            if not self.mask_check or bool((hidden.cummax(1).values == hidden).all()):
                output = output.masked_fill(hidden.unsqueeze(-1), 0)
        return output if self.norm is None else self.norm(output)

    def _skips_padding(self, src: Tensor) -> bool:
        """Returns whether PyTorch would compute only what is not padded, and give 0 for the rest."""
        if not self.use_nested_tensor or src.dim() != 3 or not len(self.layers) or self.layers[0].training:
            return False
        if src.is_meta:  # no values, whose mask could be looked at
            return False
        if not vesta.backends.mha.get_fastpath_enabled() or vesta.is_autocast_enabled(src.device.type):
            return False
        recorded = (src, *self.layers[0].parameters())
        return not (vesta.is_grad_enabled() and any(tensor.requires_grad for tensor in recorded))


def _packs(layer: Module) -> bool:
    """Returns whether PyTorch has a form of this layer that leaves padding out."""
    return (
        isinstance(layer, TransformerEncoderLayer)
        and not layer.norm_first
        and layer.self_attn.batch_first
        and layer.self_attn.in_proj_weight is not None
        and layer.self_attn.in_proj_bias is not None
        and layer.activation_relu_or_gelu != 0
        and layer.norm1.eps == layer.norm2.eps
        and layer.self_attn.num_heads % 2 == 0
    )


class TransformerDecoder(Module):
    """``num_layers`` copies of a layer, one after another.

    Args:
        decoder_layer: the layer to copy; all copies start with its values.
        num_layers: how many.
        norm: a normalisation of the result, or None.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.TransformerDecoderLayer(8, 2, 16)
        >>> vesta.nn.TransformerDecoder(layer, 2)(vesta.zeros(4, 3, 8), vesta.zeros(5, 3, 8)).shape
        vesta.Size([4, 3, 8])
    """

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        expect("TransformerDecoder", "decoder_layer", decoder_layer, Module, "Module")
        num_layers = python_number(num_layers)
        expect("TransformerDecoder", "num_layers", num_layers, int, "int")
        expect("TransformerDecoder", "norm", norm, (Module, type(None)), "Module or None")
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the decoded sequence; whether ``tgt_mask`` is causal is found out if ``tgt_is_causal`` is None."""
        expect("TransformerDecoder", "tgt", tgt, Tensor, "Tensor")
        first = self.layers[0].self_attn if len(self.layers) else None
        length = _get_seq_len(tgt, first is not None and first.batch_first)
        tgt_is_causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, length)
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder that attends to its result.

    Args:
        d_model: the size of an element, E.
        nhead: the number of heads.
        num_encoder_layers, num_decoder_layers: how many layers.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            ``TransformerEncoderLayer``.
        custom_encoder, custom_decoder: modules to use instead.

    Shapes: ``src`` [S, N, E], ``tgt`` and output [T, N, E], or without N, or with N first if ``batch_first``; all
    matrices
    start by ``xavier_uniform_``.

    Example::

        >>> import vesta
        >>> model = vesta.nn.Transformer(8, 2, 1, 1, 16)
        >>> model(vesta.zeros(5, 3, 8), vesta.zeros(4, 3, 8)).shape
        vesta.Size([4, 3, 8])
    """

    encoder: Module
    decoder: Module

    @checked
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        where = {"bias": bias, "device": device, "dtype": dtype}
        layer = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
        )

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, **where)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*layer, **where), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*layer, **where), num_decoder_layers, norm())
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Device | None = None, dtype: DType | None = None) -> Tensor:
        """Returns the causal mask [sz, sz]: minus infinity above the diagonal, 0 elsewhere.

        Example::

            >>> import vesta
            >>> vesta.nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        sz = python_number(sz)
        expect("generate_square_subsequent_mask", "sz", sz, int, "int")
        return _generate_square_subsequent_mask(sz, device, dtype)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Returns the decoder's result for ``tgt``, given the encoded ``src``."""
        for name, value in (("src", src), ("tgt", tgt)):
            expect("Transformer", name, value, Tensor, "Tensor")
        batched = src.dim() == 3
        if batched and src.size(0 if self.batch_first else 1) != tgt.size(0 if self.batch_first else 1):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
