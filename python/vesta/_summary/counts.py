"""Multiply-adds of the layers, by class. The docstring of ``vesta.summary`` states these formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import vesta.nn  # noqa: F401  # whole, before parts of it: other threads may import it
from vesta import Tensor, nn
from vesta.nn.modules.batchnorm import _BatchNorm

#: The number of gates by the name of the class.
_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "RNNCell": 1, "GRUCell": 3, "LSTMCell": 4}


def _first(inputs: dict[str, Any]) -> Any:
    return next(iter(inputs.values()))


def _linear(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    return output.numel() * layer.in_features


def _bilinear(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    return output.numel() * layer.in1_features * (layer.in2_features + 1)


def _conv(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    return output.numel() * (layer.in_channels // layer.groups) * math.prod(layer.kernel_size)


def _conv_transpose(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    return _first(inputs).numel() * (layer.out_channels // layer.groups) * math.prod(layer.kernel_size)


def _batch_norm(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    return output.numel() * (1 if layer.running_mean is not None else 3)


def _recurrent(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    x = _first(inputs)
    data = x if isinstance(x, Tensor) else x.data  # of a packed sequence: its elements
    steps = data.numel() // layer.input_size
    directions = 2 if layer.bidirectional else 1
    outputs = layer.proj_size or layer.hidden_size
    total = 0
    for number in range(layer.num_layers):
        incoming = outputs * directions if number else layer.input_size
        one = _gates(layer) * layer.hidden_size * (incoming + outputs) + layer.hidden_size * layer.proj_size
        total += directions * one
    return steps * total


def _cell(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    batch = _first(inputs).numel() // layer.input_size
    return batch * _gates(layer) * layer.hidden_size * (layer.input_size + layer.hidden_size)


def _gates(layer: Any) -> int:
    return next(_GATES[kind.__name__] for kind in type(layer).__mro__ if kind.__name__ in _GATES)


def _attention(layer: Any, inputs: dict[str, Any], output: Any) -> int:
    query, key = inputs["query"], inputs["key"]
    if query.dim() == 2:
        batch, queries, keys = 1, query.shape[0], key.shape[0]
    else:
        batch, queries, keys = query.shape[1], query.shape[0], key.shape[0]
        if layer.batch_first:
            batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]
    size = layer.embed_dim
    attended = keys + (layer.bias_k is not None) + bool(layer.add_zero_attn)
    projections = 2 * queries * size * size + keys * size * (layer.kdim + layer.vdim)
    return batch * (projections + 2 * queries * attended * size)


def _each(number: int) -> Callable[..., int]:
    """Makes the formula of ``number`` multiply-adds for each element of the output."""
    return lambda layer, inputs, output: output.numel() * number


#: The formula of each class; None: it has parameters, and counts nothing.
FORMULAS: dict[type, Callable[..., int] | None] = {
    nn.Linear: _linear,
    nn.Bilinear: _bilinear,
    **dict.fromkeys((nn.Conv1d, nn.Conv2d, nn.Conv3d), _conv),
    **dict.fromkeys((nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d), _conv_transpose),
    _BatchNorm: _batch_norm,
    **dict.fromkeys((nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d, nn.GroupNorm, nn.LayerNorm), _each(3)),
    nn.RMSNorm: _each(2),
    **dict.fromkeys((nn.RNN, nn.GRU, nn.LSTM), _recurrent),
    **dict.fromkeys((nn.RNNCell, nn.GRUCell, nn.LSTMCell), _cell),
    nn.MultiheadAttention: _attention,
    nn.PReLU: _each(1),
    **dict.fromkeys((nn.Embedding, nn.EmbeddingBag), None),
}
