"""The layers that exist in both languages, one row per configuration. ``test_layer_parity.py`` builds each row in both.

A layer of ``nn/layers/list.h`` needs a row here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import vesta
from vesta import Tensor

Make = Callable[[], Tensor]


def normal(*shape: int) -> Make:
    """Returns a function that makes an input of normal values."""
    return lambda: vesta.randn(*shape)


def copied(*shape: int) -> Make:
    """Returns a function that makes an input that may be written: the result of an op, not a leaf."""
    return lambda: vesta.randn(*shape).requires_grad_() * 1


def numbers(high: int, *shape: int) -> Make:
    """Returns a function that makes an input of int64 numbers of [0, high)."""
    return lambda: vesta.randint(0, high, shape)


@dataclass(frozen=True)
class Row:
    """A layer: its class, its arguments (the same in both languages), and the inputs of one call.

    ``parts`` are the rows of a container. Arguments that are functions are called first: they make tensors.
    """

    name: str
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    inputs: tuple[Make, ...] = ()
    parts: tuple[Row, ...] = ()

    def build(self, namespace: Any) -> Any:
        """Builds the layer of ``vesta.nn`` or of ``vesta._C.cpp_nn``."""
        parts = [part.build(namespace) for part in self.parts]
        kwargs = {key: value() if callable(value) else value for key, value in self.kwargs.items()}
        return getattr(namespace, self.name)(*parts, *self.args, **kwargs)

    def __str__(self) -> str:
        named = {key: value.__name__ if callable(value) else value for key, value in self.kwargs.items()}
        shown = [str(value) for value in self.args] + [f"{key}={value}" for key, value in named.items()]
        return f"{self.name}({', '.join(shown)})" if not self.parts else f"{self.name} of {len(self.parts)}"


def row(name: str, *args: Any, inputs: Any = (), parts: tuple[Row, ...] = (), **kwargs: Any) -> Row:
    """Makes a row, with arguments as in the layer's constructor; a single input need not be in a tuple."""
    return Row(name, args, kwargs, inputs if isinstance(inputs, tuple) else (inputs,), parts)


def weights() -> Tensor:
    """Returns the weights of five classes."""
    return vesta.tensor([0.5, 1.0, 1.5, 2.0, 0.25])


LENET = (
    row("Conv2d", 1, 4, 3, padding=1),
    row("BatchNorm2d", 4),
    row("ReLU"),
    row("MaxPool2d", 2),
    row("Flatten"),
    row("Sequential", parts=(row("Dropout", 0.25), row("Linear", 64, 10))),
)


def chances(*shape: int) -> Make:
    """Returns a function that makes an input of values in (0, 1)."""
    return lambda: vesta.rand(*shape) * 0.8 + 0.1


def signs(*shape: int) -> Make:
    """Returns a function that makes a target of -1 and 1."""
    return lambda: (vesta.rand(*shape) > 0.5).float() * 2 - 1


def causal(size: int) -> Make:
    """Returns a function that makes the causal mask, True for what is ignored."""
    return lambda: vesta.triu(vesta.ones(size, size, dtype=vesta.bool), diagonal=1)


def last_padded(batch: int, length: int) -> Make:
    """Returns a function that makes a padding mask with the last place of the last sequence ignored."""
    return lambda: vesta.zeros(batch, length, dtype=vesta.bool).index_put(
        (vesta.tensor([batch - 1]), vesta.tensor([length - 1])), vesta.tensor(True)
    )


# fmt: off
ELEMENTWISE = [
    *(row(name, inputs=normal(33)) for name in (
        "CELU", "ELU", "GELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid", "Mish",
        "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Softshrink", "Softsign", "Tanh",
        "Tanhshrink",
    )),
    *(row(name, inplace=True, inputs=copied(33)) for name in (
        "CELU", "ELU", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "Mish", "RReLU", "ReLU", "ReLU6", "SELU",
        "SiLU",
    )),
    row("CELU", 0.5, inputs=normal(33)),
    row("ELU", 0.5, inputs=normal(33)),
    row("GELU", "tanh", inputs=normal(33)),
    row("GLU", inputs=normal(3, 4)),
    row("GLU", 0, inputs=normal(4, 3)),
    row("Hardshrink", 0.25, inputs=normal(33)),
    row("Hardtanh", -0.5, 2.0, inputs=normal(33)),
    row("LeakyReLU", 0.3, inputs=normal(33)),
    row("PReLU", inputs=normal(3, 4)),
    row("PReLU", 4, 0.5, inputs=normal(3, 4, 2)),
    row("RReLU", 0.2, 0.7, inputs=normal(33)),
    row("Softplus", 2.0, 3.5, inputs=normal(33)),
    row("Softshrink", 0.25, inputs=normal(33)),
    row("Threshold", 0.1, -3.0, inputs=normal(33)),
    *(row(name, dim, inputs=normal(3, 4)) for name in ("Softmax", "Softmin", "LogSoftmax") for dim in (0, -1)),
    row("Softmax", inputs=normal(2, 3, 4)),
    row("Softmax2d", inputs=normal(2, 3, 4, 2)),
]

NORMS = [
    row("BatchNorm1d", 3, inputs=normal(4, 3)),
    row("BatchNorm1d", 3, 1e-3, 0.2, inputs=normal(4, 3, 5)),
    row("BatchNorm2d", 3, inputs=normal(4, 3, 5, 6)),
    row("BatchNorm2d", 3, eps=1e-3, momentum=None, affine=False, inputs=normal(4, 3, 2, 2)),
    row("BatchNorm2d", 3, momentum=0.5, track_running_stats=False, inputs=normal(4, 3, 2, 2)),
    row("BatchNorm2d", 3, bias=False, inputs=normal(4, 3, 2, 2)),
    row("BatchNorm3d", 3, inputs=normal(2, 3, 2, 2, 2)),
    row("InstanceNorm1d", 3, inputs=normal(4, 3, 5)),
    row("InstanceNorm1d", 3, affine=True, inputs=normal(3, 5)),
    row("InstanceNorm2d", 3, affine=True, track_running_stats=True, inputs=normal(2, 3, 4, 4)),
    row("InstanceNorm3d", 3, inputs=normal(2, 3, 2, 2, 2)),
    row("LayerNorm", 5, inputs=normal(3, 5)),
    row("LayerNorm", (4, 5), eps=1e-3, bias=False, inputs=normal(3, 4, 5)),
    row("LayerNorm", 5, elementwise_affine=False, inputs=normal(2, 3, 5)),
    row("RMSNorm", 5, inputs=normal(3, 5)),
    row("RMSNorm", (4, 5), 1e-3, elementwise_affine=False, inputs=normal(3, 4, 5)),
    row("GroupNorm", 2, 6, inputs=normal(3, 6, 4)),
    row("GroupNorm", 3, 6, affine=False, inputs=normal(3, 6, 4, 2)),
    row("GroupNorm", 1, 4, 1e-3, bias=False, inputs=normal(2, 4, 2)),
    row("LocalResponseNorm", 2, inputs=normal(2, 5, 3)),
    row("LocalResponseNorm", 3, 1e-2, 0.5, 2.0, inputs=normal(2, 5, 3, 2)),
]

GRIDS = {1: normal(2, 3, 9), 2: normal(2, 3, 8, 9), 3: normal(1, 2, 6, 5, 7)}
POOLS = [
    *(row(f"{name}{n}d", 2, inputs=GRIDS[n]) for name in ("MaxPool", "AvgPool") for n in GRIDS),
    *(row(f"LPPool{n}d", 2.0, 2, inputs=chances(*GRIDS[n]().shape)) for n in GRIDS),
    *(row(f"Adaptive{name}Pool{n}d", 3, inputs=GRIDS[n]) for name in ("Max", "Avg") for n in GRIDS),
    row("MaxPool2d", 3, stride=2, padding=1, ceil_mode=True, inputs=GRIDS[2]),
    row("MaxPool2d", (3, 2), (2, 1), dilation=2, inputs=GRIDS[2]),
    row("AvgPool2d", 3, stride=2, padding=1, count_include_pad=False, inputs=GRIDS[2]),
    row("AvgPool3d", (2, 1, 3), divisor_override=4, inputs=GRIDS[3]),
    row("AdaptiveAvgPool2d", (None, 3), inputs=GRIDS[2]),
]

PADS = [
    *(row(f"{name}Pad{n}d", 1, inputs=GRIDS[n]) for name in ("Circular", "Reflection", "Replication", "Zero")
      for n in GRIDS),
    *(row(f"ConstantPad{n}d", 2, 1.5, inputs=GRIDS[n]) for n in GRIDS),
    row("ZeroPad2d", (1, 0, 2, 3), inputs=GRIDS[2]),
]

DROPOUTS = [
    row("Dropout", inputs=normal(100)),
    row("Dropout", 0.1, inputs=normal(5, 7)),
    row("Dropout", 0.3, True, inputs=copied(5, 7)),
    row("Dropout1d", inputs=normal(5, 7)),
    row("Dropout1d", 0.3, inputs=normal(2, 5, 7)),
    row("Dropout2d", inputs=normal(2, 5, 3, 3)),
    row("Dropout3d", inputs=normal(2, 5, 3, 3, 2)),
    row("AlphaDropout", inputs=normal(100)),
    row("FeatureAlphaDropout", 0.2, inputs=normal(3, 5, 4)),
]

PAIR = (normal(6, 5), normal(6, 5))
LOSSES = [
    *(row(name, inputs=PAIR) for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss")),
    *(row(name, reduction="sum", inputs=PAIR) for name in ("L1Loss", "MSELoss")),
    row("MSELoss", reduction="none", inputs=PAIR),
    row("SmoothL1Loss", beta=0.5, inputs=PAIR),
    row("HuberLoss", "sum", 0.5, inputs=PAIR),
    row("PoissonNLLLoss", False, full=True, inputs=(chances(4, 3), chances(4, 3))),
    row("NLLLoss", inputs=(normal(6, 5), numbers(5, 6))),
    row("NLLLoss", weight=weights, ignore_index=2, reduction="sum", inputs=(normal(2, 5, 3), numbers(5, 2, 3))),
    row("CrossEntropyLoss", inputs=(normal(6, 5), numbers(5, 6))),
    row("CrossEntropyLoss", reduction="sum", label_smoothing=0.1, inputs=(normal(6, 5), numbers(5, 6))),
    row("CrossEntropyLoss", weight=weights, ignore_index=2, inputs=(normal(2, 5, 3), numbers(5, 2, 3))),
    row("BCELoss", inputs=(chances(6, 5), chances(6, 5))),
    row("BCELoss", weight=weights, reduction="none", inputs=(chances(6, 5), chances(6, 5))),
    row("BCEWithLogitsLoss", inputs=PAIR),
    row("BCEWithLogitsLoss", weight=weights, pos_weight=weights, reduction="sum", inputs=PAIR),
    row("KLDivLoss", inputs=(normal(6, 5), chances(6, 5))),
    row("KLDivLoss", reduction="batchmean", log_target=True, inputs=PAIR),
    row("HingeEmbeddingLoss", 0.5, inputs=(normal(6, 5), signs(6, 5))),
    row("SoftMarginLoss", inputs=(normal(6, 5), signs(6, 5))),
    row("MultiMarginLoss", inputs=(normal(6, 5), numbers(5, 6))),
    row("MultiMarginLoss", 2, 0.5, weight=weights, inputs=(normal(6, 5), numbers(5, 6))),
    row("MultiLabelMarginLoss", inputs=(normal(2, 3), lambda: vesta.tensor([[0, 2, -1], [1, -1, 0]]))),
    row("MultiLabelSoftMarginLoss", weight=weights, inputs=(normal(6, 5), chances(6, 5))),
    row("GaussianNLLLoss", inputs=(*PAIR, chances(6, 5))),
    row("GaussianNLLLoss", full=True, eps=0.3, reduction="sum", inputs=(*PAIR, chances(6))),
    row("MarginRankingLoss", 0.2, inputs=(normal(6), normal(6), signs(6))),
    row("CosineEmbeddingLoss", 0.2, inputs=(*PAIR, signs(6))),
    row("TripletMarginLoss", inputs=(*PAIR, normal(6, 5))),
    row("TripletMarginLoss", 0.5, 1.0, swap=True, reduction="sum", inputs=(*PAIR, normal(6, 5))),
    row("TripletMarginWithDistanceLoss", margin=0.5, swap=True, inputs=(*PAIR, normal(6, 5))),
    row("CTCLoss", inputs=(lambda: vesta.randn(8, 2, 5).log_softmax(2), lambda: vesta.tensor([[1, 2, 3], [4, 1, 1]]),
                           [8, 7], [3, 2])),
]

SEQUENCE = normal(5, 3, 4)
RECURRENT = [
    *(row(name, 4, 6, inputs=SEQUENCE) for name in ("LSTM", "GRU", "RNN")),
    *(row(name, 4, 6, 2, bias=False, batch_first=True, dropout=0.3, bidirectional=True, inputs=SEQUENCE)
      for name in ("LSTM", "GRU", "RNN")),
    row("LSTM", 4, 6, proj_size=2, num_layers=2, inputs=SEQUENCE),
    row("LSTM", 4, 6, inputs=(SEQUENCE, (normal(1, 3, 6), normal(1, 3, 6)))),
    row("GRU", 4, 6, inputs=(normal(5, 4), normal(1, 6))),
    row("RNN", 4, 6, 1, "relu", inputs=SEQUENCE),
    row("LSTMCell", 4, 6, inputs=normal(3, 4)),
    row("LSTMCell", 4, 6, False, inputs=(normal(4), (normal(6), normal(6)))),
    row("GRUCell", 4, 6, inputs=(normal(3, 4), normal(3, 6))),
    row("RNNCell", 4, 6, inputs=normal(3, 4)),
    row("RNNCell", 4, 6, nonlinearity="relu", inputs=normal(4)),
]

QUERY, MEMORY = normal(3, 2, 8), normal(5, 2, 8)
ENCODER = row("TransformerEncoderLayer", 8, 2, 16)
DECODER = row("TransformerDecoderLayer", 8, 2, 16)
ATTENTION = [
    row("MultiheadAttention", 8, 2, inputs=(QUERY, MEMORY, MEMORY)),
    row("MultiheadAttention", 8, 2, 0.3, inputs=(QUERY, MEMORY, MEMORY, last_padded(2, 5), False)),
    row("MultiheadAttention", 8, 4, bias=False, add_bias_kv=True, add_zero_attn=True, batch_first=True,
        inputs=(normal(2, 3, 8), normal(2, 5, 8), normal(2, 5, 8), None, True, None, False)),
    row("MultiheadAttention", 8, 2, kdim=4, vdim=6, inputs=(QUERY, normal(5, 2, 4), normal(5, 2, 6))),
    row("MultiheadAttention", 8, 2, inputs=(normal(3, 8), normal(3, 8), normal(3, 8), None, True, causal(3))),
    row("TransformerEncoderLayer", 8, 2, 16, inputs=QUERY),
    row("TransformerEncoderLayer", 8, 2, 16, 0.2, "gelu", 1e-3, True, True, False,
        inputs=(normal(2, 3, 8), causal(3), last_padded(2, 3))),
    row("TransformerDecoderLayer", 8, 2, 16, inputs=(QUERY, MEMORY)),
    row("TransformerDecoderLayer", 8, 2, 16, norm_first=True, inputs=(QUERY, MEMORY, causal(3), None, None,
                                                                    last_padded(2, 5))),
    row("TransformerEncoder", 2, parts=(ENCODER,), inputs=(QUERY, causal(3))),
    row("TransformerDecoder", 2, parts=(DECODER,), inputs=(QUERY, MEMORY)),
    row("Transformer", 8, 2, 2, 1, 16, inputs=(MEMORY, QUERY, None, causal(3))),
]
# fmt: on

LAYERS = [
    *ELEMENTWISE,
    row("Linear", 5, 3, inputs=normal(7, 5)),
    row("Linear", 5, 3, False, inputs=normal(2, 3, 5)),
    row("Linear", 0, 2, inputs=normal(3, 0)),
    row("Bilinear", 3, 4, 2, inputs=(normal(5, 3), normal(5, 4))),
    row("Bilinear", 3, 4, 2, bias=False, inputs=(normal(2, 5, 3), normal(2, 5, 4))),
    row("Conv1d", 3, 8, 3, inputs=normal(2, 3, 9)),
    row("Conv1d", 4, 6, 3, padding="same", dilation=2, groups=2, inputs=normal(2, 4, 9)),
    row("Conv2d", 3, 8, 3, inputs=normal(2, 3, 9, 8)),
    row(
        "Conv2d",
        4,
        6,
        (3, 2),
        stride=(2, 1),
        padding=(1, 2),
        dilation=2,
        groups=2,
        bias=False,
        inputs=normal(2, 4, 9, 8),
    ),
    row("Conv2d", 3, 2, 3, padding=(1, 2), padding_mode="reflect", inputs=normal(2, 3, 5, 6)),
    row("Conv2d", 3, 2, (3, 4), padding="same", padding_mode="circular", inputs=normal(2, 3, 5, 6)),
    row("Conv2d", 3, 2, 2, padding="valid", inputs=normal(3, 5, 6)),
    row("Conv3d", 2, 3, 2, stride=(1, 2, 1), inputs=normal(2, 2, 4, 5, 3)),
    row("ConvTranspose1d", 3, 4, 3, stride=2, inputs=normal(2, 3, 5)),
    row(
        "ConvTranspose2d",
        4,
        6,
        (3, 2),
        stride=2,
        padding=1,
        output_padding=1,
        groups=2,
        bias=False,
        dilation=2,
        inputs=normal(2, 4, 5, 4),
    ),
    row("ConvTranspose2d", 3, 2, 3, stride=2, inputs=(normal(2, 3, 4, 5), [10, 12])),
    row("ConvTranspose3d", 2, 3, 2, inputs=normal(1, 2, 3, 2, 2)),
    *NORMS,
    *POOLS,
    *PADS,
    *DROPOUTS,
    row("Identity", inputs=normal(3)),
    row("Flatten", inputs=normal(2, 3, 4)),
    row("Flatten", 0, 1, inputs=normal(2, 3, 4)),
    row("Unflatten", 1, (2, -1), inputs=normal(2, 6, 3)),
    row("Unflatten", -1, (3,), inputs=normal(2, 3)),
    row("PairwiseDistance", inputs=(normal(4, 3), normal(4, 3))),
    row("PairwiseDistance", 1.0, keepdim=True, inputs=(normal(4, 3), normal(4, 3))),
    row("CosineSimilarity", inputs=(normal(4, 3), normal(4, 3))),
    row("CosineSimilarity", 0, eps=1e-3, inputs=(normal(4, 3), normal(4, 3))),
    row("Embedding", 10, 4, inputs=numbers(10, 3, 5)),
    row("Embedding", 10, 4, padding_idx=-1, inputs=numbers(10, 3, 5)),
    row("EmbeddingBag", 10, 4, inputs=numbers(10, 3, 5)),
    row("EmbeddingBag", 10, 4, mode="sum", padding_idx=-1, inputs=numbers(10, 3, 5)),
    row("EmbeddingBag", 10, 4, mode="max", inputs=numbers(10, 3, 5)),
    row("EmbeddingBag", 10, 4, mode="max", padding_idx=2, inputs=(numbers(10, 6), lambda: vesta.tensor([0, 2, 2, 5]))),
    row("EmbeddingBag", 10, 4, inputs=(numbers(10, 6), lambda: vesta.tensor([0, 2, 2, 5]))),
    row(
        "EmbeddingBag",
        10,
        4,
        mode="sum",
        include_last_offset=True,
        inputs=(numbers(10, 6), lambda: vesta.tensor([0, 2, 6]), normal(6)),
    ),
    row("Unfold", (2, 3), 1, 1, (2, 1), inputs=normal(2, 3, 5, 6)),
    row("Fold", (5, 6), 2, stride=(3, 2), inputs=normal(2, 8, 6)),
    row("CrossMapLRN2d", 3, 0.5, k=1.5, inputs=normal(2, 5, 3, 2)),
    row("CrossMapLRN2d", 4, 1e-2, 0.5, 2.0, inputs=normal(2, 2, 3, 2)),
    row("MaxUnpool1d", 2, inputs=(normal(2, 3, 2), lambda: vesta.tensor([[[0, 3], [1, 2], [0, 2]]] * 2))),
    row("MaxUnpool2d", (2, 1), (2, 2), inputs=(normal(1, 2, 2), lambda: vesta.tensor([[[0, 4], [9, 11]]]))),
    row("MaxUnpool3d", 2, inputs=(normal(1, 1, 1, 1), lambda: vesta.tensor([[[[5]]]]))),
    row("FractionalMaxPool2d", 2, output_size=(3, 4), inputs=normal(2, 3, 7, 8)),
    row("FractionalMaxPool2d", (3, 2), output_ratio=(0.5, 0.6), inputs=normal(3, 7, 8)),
    row("FractionalMaxPool2d", 2, 3, _random_samples=lambda: vesta.rand(1, 2, 2), inputs=normal(1, 2, 6, 7)),
    row("FractionalMaxPool3d", 2, output_ratio=0.5, inputs=normal(2, 3, 5, 6, 7)),
    row("AdaptiveLogSoftmaxWithLoss", 8, 20, [4, 10], div_value=2.0, inputs=(normal(5, 8), numbers(20, 5))),
    row("AdaptiveLogSoftmaxWithLoss", 8, 12, [3], head_bias=True, inputs=(normal(8), numbers(12))),
    row("PixelShuffle", 2, inputs=normal(1, 8, 2, 3)),
    row("PixelUnshuffle", 2, inputs=normal(1, 2, 4, 6)),
    row("ChannelShuffle", 3, inputs=normal(2, 6, 2, 2)),
    row("Upsample", 5, inputs=normal(1, 2, 3)),
    row("Upsample", (5, 4), mode="bilinear", inputs=normal(1, 2, 3, 3)),
    row("Upsample", scale_factor=1.7, mode="bicubic", align_corners=True, inputs=normal(1, 2, 3, 4)),
    row("Upsample", scale_factor=(2.0, 1.5), mode="bilinear", recompute_scale_factor=True, inputs=normal(1, 2, 3, 4)),
    row("Upsample", scale_factor=0.5, mode="area", inputs=normal(1, 2, 4, 4, 6)),
    row("UpsamplingNearest2d", scale_factor=2.0, inputs=normal(1, 2, 3, 4)),
    row("UpsamplingBilinear2d", (4, 6), inputs=normal(1, 2, 3, 4)),
    *LOSSES,
    *RECURRENT,
    *ATTENTION,
    row("Sequential", parts=LENET, inputs=normal(3, 1, 8, 8)),
]

#: Classes of the Python package that do not have a C++ twin yet.
PYTHON_ONLY = {"Module", *(name for name in vesta.nn.modules.__all__ if not hasattr(vesta._C.cpp_nn, name))}
