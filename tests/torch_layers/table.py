"""Layers and calls of them that are compared with PyTorch's, a row each; the same row is built by both libraries.

An argument that is a ``Data`` stands for a tensor: ``run.py`` makes it, from a formula and not from random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Data:
    """A tensor: its shape, and what its values are.

    ``kind``: ``"wave"`` has values of about [-2, 2], ``"part"`` of (0, 1), ``"positive"`` of (0.1, 2), ``"sign"`` -1
    or 1,
    ``"number"`` integers of [0, high), ``"mask"`` booleans, ``"given"`` the integers of ``values``, ``"causal"`` minus
    infinity above the diagonal, ``"logs"`` logarithms of probabilities, ``"packed"`` a packed sequence of the lengths
    ``values``, ``"pooled"`` a pair: maxima
    of
    a wave and their places.
    """

    shape: tuple[int, ...]
    kind: str = "wave"
    high: int = 0
    values: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}{list(self.shape)}"


def wave(*shape: int) -> Data:
    return Data(shape)


def part(*shape: int) -> Data:
    return Data(shape, "part")


def positive(*shape: int) -> Data:
    return Data(shape, "positive")


def sign(*shape: int) -> Data:
    return Data(shape, "sign")


def number(high: int, *shape: int) -> Data:
    return Data(shape, "number", high)


def mask(*shape: int) -> Data:
    return Data(shape, "mask")


def given(*values: int) -> Data:
    return Data((len(values),), "given", values=values)


def causal(size: int) -> Data:
    return Data((size, size), "causal")


@dataclass(frozen=True)
class Part:
    """A layer that is an argument of another one."""

    name: str
    args: tuple = ()


@dataclass(frozen=True)
class Row:
    """A layer: its class, its arguments, and the arguments of one call.

    ``random``: the outputs in training are drawn, only those in evaluation are compared. ``text_only``: PyTorch
    computes
    something else on purpose or by mistake, see ``docs/differences.md``.
    """

    name: str
    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    inputs: tuple = ()
    named: dict[str, Any] = field(default_factory=dict)
    random: bool = False
    text_only: bool = False

    def __str__(self) -> str:
        shown = [f"{value}" for value in self.args] + [f"{key}={value}" for key, value in self.kwargs.items()]
        called = [str(value) for value in self.inputs] + [f"{key}={value}" for key, value in self.named.items()]
        return f"{self.name}({', '.join(shown)})({', '.join(called)})"


def row(
    name: str,
    *args: Any,
    of: Any = (),
    named: Any = None,
    random: bool = False,
    text_only: bool = False,
    **kwargs: Any,
) -> Row:
    """Makes a row, with arguments as in the layer's constructor; ``of`` and ``named`` are those of the call."""
    return Row(name, args, kwargs, of if isinstance(of, tuple) else (of,), named or {}, random, text_only)


LINE, IMAGE, VOLUME = wave(2, 4, 9), wave(2, 4, 9, 8), wave(2, 4, 5, 6, 7)
BY_DIMS = {1: LINE, 2: IMAGE, 3: VOLUME}

ACTIVATIONS = [
    *(
        row(name, of=wave(33))
        for name in ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish", "Hardsigmoid", "Sigmoid")
    ),
    *(row(name, of=wave(33)) for name in ("Tanh", "LogSigmoid", "Softsign", "Tanhshrink", "GELU", "Identity")),
    *(row(name, inplace=True, of=wave(33)) for name in ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardswish")),
    row("Hardsigmoid", inplace=True, of=wave(33)),
    row("ELU", of=wave(33)),
    row("ELU", 0.5, True, of=wave(33)),
    row("CELU", of=wave(33)),
    row("CELU", 2.0, True, of=wave(33)),
    row("LeakyReLU", of=wave(33)),
    row("LeakyReLU", 0.3, True, of=wave(33)),
    row("RReLU", of=wave(33), random=True),
    row("RReLU", 0.2, 0.4, True, of=wave(33), random=True),
    row("Threshold", 0.5, 3.0, of=wave(33)),
    row("Threshold", 0.5, 3.0, True, of=wave(33)),
    row("Hardtanh", of=wave(33)),
    row("Hardtanh", -0.5, 1.5, True, of=wave(33)),
    row("GELU", "tanh", of=wave(33)),
    row("Softplus", 2.0, 1.5, of=wave(33)),
    row("Hardshrink", of=wave(33)),
    row("Hardshrink", 1.0, of=wave(33)),
    row("Softshrink", of=wave(33)),
    row("Softshrink", 1.0, of=wave(33)),
    row("GLU", of=wave(3, 8)),
    row("GLU", 0, of=wave(4, 5)),
    row("PReLU", of=wave(33)),
    row("PReLU", 4, 0.1, of=IMAGE),
    row("Softmax", 1, of=wave(3, 5)),
    row("Softmin", dim=-1, of=wave(3, 5)),
    row("LogSoftmax", 0, of=wave(3, 5)),
    row("Softmax2d", of=IMAGE),
    row("Softmax2d", of=wave(4, 5, 3)),
]

DROPOUTS = [
    row("Dropout", 0.25, of=IMAGE, random=True),
    row("Dropout1d", of=LINE, random=True),
    row("Dropout2d", inplace=True, of=IMAGE, random=True),
    row("Dropout3d", 0.1, of=VOLUME, random=True),
    row("AlphaDropout", of=IMAGE, random=True),
    row("FeatureAlphaDropout", of=IMAGE, random=True),
    *(row(name, 0.0, of=IMAGE) for name in ("Dropout", "Dropout2d", "AlphaDropout", "FeatureAlphaDropout")),
    *(row(name, 1.0, of=IMAGE) for name in ("Dropout", "Dropout2d", "AlphaDropout")),
]

SHAPES = [
    row("Flatten", of=IMAGE),
    row("Flatten", 0, 2, of=IMAGE),
    row("Unflatten", 1, (2, 2), of=IMAGE),
    row("Fold", (4, 5), (2, 3), of=wave(2, 12, 9)),
    row("Fold", (4, 5), 2, dilation=1, padding=1, stride=2, of=wave(2, 12, 9)),
    row("Unfold", (2, 3), of=IMAGE),
    row("Unfold", 3, 2, 1, 2, of=IMAGE),
    row("PixelShuffle", 2, of=wave(2, 8, 3, 4)),
    row("PixelUnshuffle", 2, of=wave(2, 3, 4, 6)),
    row("ChannelShuffle", 2, of=IMAGE),
    row("Upsample", scale_factor=2, of=LINE),
    row("Upsample", size=5, mode="linear", of=LINE),
    row("Upsample", scale_factor=(2, 1.5), mode="bilinear", of=IMAGE),
    row("Upsample", (5, 12), mode="bilinear", align_corners=True, of=IMAGE),
    row("Upsample", scale_factor=1.5, mode="bicubic", of=IMAGE),
    row("Upsample", (5, 12), mode="bicubic", align_corners=True, of=IMAGE),
    row("Upsample", scale_factor=2.0, mode="nearest-exact", of=IMAGE),
    row("Upsample", scale_factor=1.7, mode="bilinear", recompute_scale_factor=True, of=IMAGE),
    row("Upsample", size=(3, 8, 9), of=VOLUME),
    row("Upsample", scale_factor=2, mode="trilinear", of=VOLUME),
    row("UpsamplingNearest2d", scale_factor=2, of=IMAGE),
    row("UpsamplingBilinear2d", (5, 12), of=IMAGE),
]

PADDINGS = [
    *(
        row(f"{kind}Pad{d}d", 1, of=BY_DIMS[d])
        for kind in ("Circular", "Reflection", "Replication", "Zero")
        for d in BY_DIMS
    ),
    *(row(f"ConstantPad{d}d", 2, 3.5, of=BY_DIMS[d]) for d in BY_DIMS),
    row("ZeroPad1d", (1, -2), of=LINE),
    row("ConstantPad2d", (1, 2, 0, -1), 0.5, of=IMAGE),
    row("ReflectionPad2d", (3, 1, 2, 0), of=IMAGE),
    row("ReplicationPad3d", (3, 1, 2, 0, 1, 1), of=VOLUME),
    row("CircularPad2d", (3, 1, 2, 0), of=IMAGE),
    row("ReflectionPad1d", (3, 1), of=wave(4, 9)),
]

POOLINGS = [
    *(row(f"MaxPool{d}d", 2, of=BY_DIMS[d]) for d in BY_DIMS),
    *(row(f"MaxPool{d}d", 3, stride=2, padding=1, ceil_mode=True, of=BY_DIMS[d]) for d in BY_DIMS),
    *(row(f"MaxPool{d}d", 2, return_indices=True, of=BY_DIMS[d]) for d in BY_DIMS),
    row("MaxPool1d", 3, 1, dilation=2, of=wave(4, 9)),
    row("MaxPool2d", (3, 2), (2, 1), (1, 0), dilation=(1, 2), of=IMAGE),
    *(row(f"AvgPool{d}d", 2, of=BY_DIMS[d]) for d in BY_DIMS),
    *(row(f"AvgPool{d}d", 3, 2, 1, True, False, of=BY_DIMS[d]) for d in BY_DIMS),
    row("AvgPool2d", (3, 2), divisor_override=5, of=IMAGE),
    row("AvgPool3d", (3, 2, 2), divisor_override=5, of=VOLUME),
    *(row(f"LPPool{d}d", 2, 2, of=BY_DIMS[d]) for d in BY_DIMS),
    row("LPPool2d", 3.0, (2, 3), stride=1, ceil_mode=True, of=positive(2, 4, 9, 8)),
    *(row(f"Adaptive{kind}Pool{d}d", 4, of=BY_DIMS[d]) for kind in ("Avg", "Max") for d in BY_DIMS),
    row("AdaptiveAvgPool2d", (None, 3), of=IMAGE),
    row("AdaptiveAvgPool3d", (2, None, 10), of=wave(4, 5, 6, 7)),
    row("AdaptiveMaxPool2d", (3, None), return_indices=True, of=IMAGE),
    row("AdaptiveMaxPool1d", 5, return_indices=True, of=LINE),
    row("FractionalMaxPool2d", 2, output_size=(5, 4), _random_samples=part(2, 4, 2), return_indices=True, of=IMAGE),
    row("FractionalMaxPool2d", (3, 2), output_ratio=0.6, _random_samples=part(2, 4, 2), of=IMAGE),
    row("FractionalMaxPool3d", 2, output_size=3, _random_samples=part(2, 4, 3), return_indices=True, of=VOLUME),
    *(row(f"MaxUnpool{d}d", 2, of=Data((2, 3, *[6] * d), "pooled", d)) for d in BY_DIMS),
    row("MaxUnpool2d", 2, of=Data((2, 3, 7, 7), "pooled", 2), named={"output_size": (7, 7)}),
]

CONVOLUTIONS = [
    *(row(f"Conv{d}d", 4, 6, 3, of=BY_DIMS[d]) for d in BY_DIMS),
    *(row(f"Conv{d}d", 4, 6, 2, 2, 1, dilation=2, groups=2, bias=False, of=BY_DIMS[d]) for d in BY_DIMS),
    *(row(f"Conv{d}d", 4, 2, 3, padding="same", of=BY_DIMS[d]) for d in BY_DIMS),
    row("Conv1d", 4, 2, 3, padding="valid", of=wave(4, 9)),
    row("Conv2d", 4, 6, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 3), of=IMAGE),
    row("Conv2d", 4, 4, 3, groups=4, of=wave(4, 9, 8)),
    *(row(f"Conv{d}d", 4, 2, 3, padding=1, padding_mode="circular", of=BY_DIMS[d]) for d in BY_DIMS),
    row("Conv2d", 4, 2, 3, padding=(2, 1), padding_mode="reflect", of=IMAGE),
    row("Conv2d", 4, 2, (2, 3), padding="same", padding_mode="replicate", of=IMAGE),
    *(row(f"ConvTranspose{d}d", 4, 6, 3, of=BY_DIMS[d]) for d in BY_DIMS),
    *(row(f"ConvTranspose{d}d", 4, 6, 3, 2, 1, 1, 2, False, of=BY_DIMS[d]) for d in BY_DIMS),
    row("ConvTranspose2d", 4, 3, (3, 2), dilation=(2, 1), of=IMAGE),
    row("ConvTranspose1d", 4, 3, 4, stride=3, of=LINE, named={"output_size": (29,)}),
    row("ConvTranspose2d", 4, 3, 4, stride=3, of=IMAGE, named={"output_size": (2, 3, 29, 26)}),
]

LINEAR = [
    row("Linear", 5, 3, of=wave(7, 5)),
    row("Linear", 5, 3, False, of=wave(2, 3, 5)),
    row("Bilinear", 4, 5, 3, of=(wave(7, 4), wave(7, 5))),
    row("Bilinear", 4, 5, 3, False, of=(wave(2, 7, 4), wave(2, 7, 5))),
    row("CosineSimilarity", of=(wave(4, 5), positive(4, 5))),
    row("CosineSimilarity", 0, 1e-3, of=(wave(4, 5), positive(4, 5))),
    row("PairwiseDistance", of=(wave(4, 5), positive(4, 5))),
    row("PairwiseDistance", 1.0, 1e-3, True, of=(wave(4, 5), positive(4, 5))),
    row("Embedding", 10, 4, of=number(10, 3, 5)),
    row("Embedding", 10, 4, padding_idx=-1, of=number(10, 3, 5)),
    row("Embedding", 10, 4, max_norm=0.7, norm_type=1.0, of=number(10, 3, 5)),
    row("Embedding", 10, 4, scale_grad_by_freq=True, of=number(10, 3, 5)),
    row("EmbeddingBag", 10, 4, of=number(10, 3, 5)),
    row("EmbeddingBag", 10, 4, mode="sum", of=(number(10, 7), given(0, 2, 2, 5))),
    row("EmbeddingBag", 10, 4, mode="max", of=(number(10, 7), given(0, 2, 5))),
    row("EmbeddingBag", 10, 4, mode="sum", of=(number(10, 7), given(0, 2, 5), wave(7))),
    row("EmbeddingBag", 10, 4, include_last_offset=True, padding_idx=2, of=(number(10, 7), given(0, 2, 7))),
    row("EmbeddingBag", 10, 4, max_norm=1.0, scale_grad_by_freq=True, mode="sum", of=number(10, 3, 5)),
]

NORMS = [
    row("BatchNorm1d", 4, of=LINE),
    row("BatchNorm1d", 5, of=wave(7, 5)),
    row("BatchNorm2d", 4, of=IMAGE),
    row("BatchNorm3d", 4, of=VOLUME),
    row("BatchNorm2d", 4, 1e-3, None, False, of=IMAGE),
    row("BatchNorm2d", 4, momentum=0.5, track_running_stats=False, of=IMAGE),
    row("BatchNorm2d", 4, bias=False, of=IMAGE),
    row("InstanceNorm1d", 4, of=LINE),
    row("InstanceNorm1d", 4, of=wave(4, 9)),
    row("InstanceNorm2d", 4, affine=True, of=IMAGE),
    row("InstanceNorm2d", 4, 1e-3, 0.3, True, True, of=IMAGE),
    row("InstanceNorm2d", 4, affine=True, bias=False, track_running_stats=True, of=IMAGE),
    row("InstanceNorm3d", 4, of=VOLUME),
    row("LayerNorm", 8, of=IMAGE),
    row("LayerNorm", (9, 8), eps=1e-3, bias=False, of=IMAGE),
    row("LayerNorm", [8], elementwise_affine=False, of=IMAGE),
    row("RMSNorm", 8, of=IMAGE),
    row("RMSNorm", (9, 8), eps=1e-3, of=IMAGE),
    row("RMSNorm", (8,), elementwise_affine=False, of=IMAGE),
    row("GroupNorm", 2, 4, of=IMAGE),
    row("GroupNorm", 4, 4, 1e-3, False, of=LINE),
    row("GroupNorm", 1, 4, bias=False, of=wave(3, 4)),
    row("LocalResponseNorm", 3, of=IMAGE),
    row("LocalResponseNorm", 2, 0.1, 0.5, 2.0, of=LINE),
    row("CrossMapLRN2d", 3, 0.1, 0.5, 2.0, of=wave(2, 4, 5, 6), text_only=True),
]

_EACH = ("none", "mean", "sum")
PAIR = (wave(6, 5), positive(6, 5))
TRIPLE = (wave(6, 5), positive(6, 5), part(6, 5))
LOSSES = [
    *(
        row(name, reduction=how, of=PAIR)
        for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss")
        for how in _EACH
    ),
    row("SmoothL1Loss", beta=0.3, of=PAIR),
    row("SmoothL1Loss", beta=0.0, of=PAIR),
    row("HuberLoss", "sum", 0.3, of=PAIR),
    row("NLLLoss", of=(wave(6, 5), number(5, 6))),
    row("NLLLoss", positive(5), ignore_index=2, reduction="sum", of=(wave(2, 5, 3), number(5, 2, 3))),
    row("CrossEntropyLoss", of=(wave(6, 5), number(5, 6))),
    row("CrossEntropyLoss", label_smoothing=0.1, of=(wave(6, 5), number(5, 6))),
    row("CrossEntropyLoss", positive(5), ignore_index=2, reduction="none", of=(wave(2, 5, 3), number(5, 2, 3))),
    row("CrossEntropyLoss", of=(wave(6, 5), part(6, 5))),
    *(row("PoissonNLLLoss", reduction=how, of=PAIR) for how in _EACH),
    row("PoissonNLLLoss", False, True, of=(positive(6, 5), positive(6, 5))),
    *(row("GaussianNLLLoss", reduction=how, of=(*PAIR, positive(6, 5))) for how in _EACH),
    row("GaussianNLLLoss", full=True, eps=0.5, of=(*PAIR, positive(6))),
    *(row("KLDivLoss", reduction=how, of=(wave(6, 5), part(6, 5))) for how in (*_EACH, "batchmean")),
    row("KLDivLoss", reduction="batchmean", log_target=True, of=(wave(6, 5), wave(6, 5))),
    *(row("BCELoss", reduction=how, of=(part(6, 5), part(6, 5))) for how in _EACH),
    row("BCELoss", positive(5), of=(part(6, 5), part(6, 5))),
    row("BCEWithLogitsLoss", of=(wave(6, 5), part(6, 5))),
    row("BCEWithLogitsLoss", positive(5), reduction="sum", pos_weight=positive(5), of=(wave(6, 5), part(6, 5))),
    *(row("HingeEmbeddingLoss", reduction=how, of=(wave(6, 5), sign(6, 5))) for how in _EACH),
    row("HingeEmbeddingLoss", 0.5, of=(wave(6, 5), sign(6, 5))),
    *(
        row(
            "MultiLabelMarginLoss",
            reduction=how,
            of=(wave(2, 4), Data((2, 4), "given", values=(3, 0, -1, 1, 2, -1, 0, 0))),
        )
        for how in _EACH
    ),
    *(row("SoftMarginLoss", reduction=how, of=(wave(6, 5), sign(6, 5))) for how in _EACH),
    *(row("MultiLabelSoftMarginLoss", reduction=how, of=(wave(6, 5), part(6, 5))) for how in _EACH),
    row("MultiLabelSoftMarginLoss", positive(5), of=(wave(6, 5), part(6, 5))),
    *(row("CosineEmbeddingLoss", reduction=how, of=(*PAIR, sign(6))) for how in _EACH),
    row("CosineEmbeddingLoss", 0.3, of=(*PAIR, sign(6))),
    *(row("MarginRankingLoss", reduction=how, of=(*PAIR, sign(6, 5))) for how in _EACH),
    row("MarginRankingLoss", 0.3, of=(*PAIR, sign(6, 5))),
    *(row("MultiMarginLoss", reduction=how, of=(wave(6, 5), number(5, 6))) for how in _EACH),
    row("MultiMarginLoss", 2, 0.5, positive(5), of=(wave(6, 5), number(5, 6))),
    *(row("TripletMarginLoss", reduction=how, of=TRIPLE) for how in _EACH),
    row("TripletMarginLoss", 0.5, 1.0, 1e-3, True, of=TRIPLE),
    *(row("TripletMarginWithDistanceLoss", reduction=how, of=TRIPLE) for how in _EACH),
    row("TripletMarginWithDistanceLoss", distance_function=Part("CosineSimilarity"), margin=0.7, swap=True, of=TRIPLE),
    *(
        row(
            "CTCLoss",
            reduction=how,
            of=(Data((7, 2, 5), "logs"), Data((2, 3), "given", values=(1, 2, 2, 3, 4, 1)), given(7, 6), given(3, 2)),
        )
        for how in _EACH
    ),
    row("CTCLoss", 4, zero_infinity=True, of=(Data((3, 2, 5), "logs"), given(1, 1, 1, 2), given(3, 3), given(3, 1))),
]

LOSSES += [
    row("LinearCrossEntropyLoss", 5, 4, of=(wave(6, 5), number(4, 6))),
    row(
        "LinearCrossEntropyLoss",
        5,
        4,
        out_features=(2,),
        bias=True,
        weight=positive(4),
        ignore_index=1,
        of=(wave(6, 5), number(4, 6, 2)),
    ),
    row("AdaptiveLogSoftmaxWithLoss", 8, 20, [4, 10], 2.0, of=(wave(7, 8), number(20, 7))),
    row("AdaptiveLogSoftmaxWithLoss", 8, 6, [2], head_bias=True, of=(wave(8), Data((), "number", 6))),
]

STATES = wave(4, 2, 5)
RECURRENT = [
    *(row(name, 3, 5, of=wave(6, 2, 3)) for name in ("RNN", "LSTM", "GRU")),
    *(row(name, 3, 5, 2, batch_first=True, bidirectional=True, of=wave(2, 6, 3)) for name in ("RNN", "LSTM", "GRU")),
    *(row(name, 3, 5, 2, bias=False, of=wave(6, 3)) for name in ("RNN", "LSTM", "GRU")),
    *(row(name, 3, 5, 2, bidirectional=True, of=(wave(6, 2, 3), STATES)) for name in ("RNN", "GRU")),
    row("LSTM", 3, 5, 2, bidirectional=True, of=(wave(6, 2, 3), (STATES, STATES))),
    row("RNN", 3, 5, 1, "relu", of=wave(6, 2, 3)),
    row("RNN", 3, 5, nonlinearity="relu", num_layers=2, dropout=0.5, of=wave(6, 2, 3), random=True),
    row("LSTM", 3, 5, 2, proj_size=2, bidirectional=True, of=wave(6, 2, 3)),
    row("LSTM", 3, 5, proj_size=2, bias=False, of=(wave(6, 3), (wave(1, 2), wave(1, 5)))),
    row("LSTM", 3, 5, 2, dropout=0.5, of=wave(6, 2, 3), random=True),
    *(
        row(name, 3, 5, 2, bidirectional=True, of=Data((6, 4, 3), "packed", values=(3, 6, 2, 3)))
        for name in ("RNN", "LSTM", "GRU")
    ),
    row("LSTM", 3, 5, proj_size=2, of=(Data((6, 2, 3), "packed", values=(3, 6)), (wave(1, 2, 2), wave(1, 2, 5)))),
    *(row(name, 3, 5, of=wave(2, 3)) for name in ("RNNCell", "LSTMCell", "GRUCell")),
    *(row(name, 3, 5, False, of=wave(3)) for name in ("RNNCell", "LSTMCell", "GRUCell")),
    *(row(name, 3, 5, of=(wave(2, 3), wave(2, 5))) for name in ("RNNCell", "GRUCell")),
    row("LSTMCell", 3, 5, of=(wave(2, 3), (wave(2, 5), wave(2, 5)))),
    row("RNNCell", 3, 5, nonlinearity="relu", of=(wave(2, 3), wave(2, 5))),
]

Q, K, V = wave(5, 2, 8), wave(7, 2, 8), positive(7, 2, 8)
ATTENTION = [
    row("MultiheadAttention", 8, 2, of=(Q, K, V)),
    row("MultiheadAttention", 8, 2, of=(Q, K, V), named={"need_weights": False}),
    row("MultiheadAttention", 8, 2, of=(Q, K, V), named={"average_attn_weights": False}),
    row("MultiheadAttention", 8, 4, bias=False, batch_first=True, of=(wave(2, 5, 8), wave(2, 7, 8), wave(2, 7, 8))),
    row("MultiheadAttention", 8, 2, kdim=6, vdim=3, of=(Q, wave(7, 2, 6), wave(7, 2, 3))),
    row("MultiheadAttention", 8, 2, add_bias_kv=True, add_zero_attn=True, of=(Q, K, V, mask(2, 7))),
    row("MultiheadAttention", 8, 2, of=(Q, K, V, mask(2, 7)), named={"attn_mask": mask(5, 7)}),
    row("MultiheadAttention", 8, 2, of=(Q, K, V, mask(2, 7), False), named={"attn_mask": mask(4, 5, 7)}),
    row("MultiheadAttention", 8, 2, of=(wave(5, 8), wave(7, 8), wave(7, 8)), named={"attn_mask": wave(2, 5, 7)}),
    row(
        "MultiheadAttention",
        8,
        2,
        of=(Q, Q, Q),
        named={"attn_mask": causal(5), "is_causal": True, "need_weights": False},
    ),
    row("MultiheadAttention", 8, 2, 0.5, of=(Q, K, V), random=True),
]

LAYER = Part("TransformerEncoderLayer", (8, 2, 16, 0.0))
DECODER = Part("TransformerDecoderLayer", (8, 2, 16, 0.0))
TRANSFORMERS = [
    row("TransformerEncoderLayer", 8, 2, 16, 0.0, of=Q),
    row("TransformerEncoderLayer", 8, 2, 16, of=Q, random=True),
    row(
        "TransformerEncoderLayer",
        8,
        2,
        16,
        0.0,
        "gelu",
        norm_first=True,
        batch_first=True,
        bias=False,
        of=wave(2, 5, 8),
    ),
    row("TransformerEncoderLayer", 8, 2, 16, 0.0, layer_norm_eps=1e-2, of=(Q, causal(5), mask(2, 5))),
    row("TransformerEncoderLayer", 8, 2, 16, 0.0, of=(Q, causal(5)), named={"is_causal": True}),
    row("TransformerDecoderLayer", 8, 2, 16, 0.0, of=(Q, K)),
    row(
        "TransformerDecoderLayer",
        8,
        2,
        16,
        0.0,
        "gelu",
        norm_first=True,
        batch_first=True,
        of=(wave(2, 5, 8), wave(2, 7, 8)),
    ),
    row("TransformerDecoderLayer", 8, 2, 16, 0.0, of=(Q, K, causal(5), mask(5, 7), mask(2, 5), mask(2, 7))),
    row("TransformerEncoder", LAYER, 2, of=Q),
    row("TransformerEncoder", LAYER, 2, Part("LayerNorm", (8,)), False, of=(Q, causal(5))),
    row("TransformerDecoder", DECODER, 2, Part("LayerNorm", (8,)), of=(Q, K)),
    row("TransformerDecoder", DECODER, 1, of=(Q, K), named={"tgt_mask": causal(5)}),
    row("Transformer", 8, 2, 1, 2, 16, 0.0, of=(K, Q)),
    row(
        "Transformer", 8, 2, 1, 1, 16, 0.0, "gelu", batch_first=True, norm_first=True, of=(wave(2, 7, 8), wave(2, 5, 8))
    ),
]

ROWS = [
    *ACTIVATIONS,
    *DROPOUTS,
    *SHAPES,
    *PADDINGS,
    *POOLINGS,
    *CONVOLUTIONS,
    *LINEAR,
    *NORMS,
    *LOSSES,
    *RECURRENT,
    *ATTENTION,
    *TRANSFORMERS,
]
