"""The layers that exist in both languages, one row per configuration. ``test_layer_parity.py`` builds each row in both.

To compare a new layer with its C++ twin, add its constructor to ``python/bindings/cpp_modules.cpp`` and a row here.
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

LAYERS = [
    row("Linear", 5, 3, inputs=normal(7, 5)),
    row("Linear", 5, 3, False, inputs=normal(2, 3, 5)),
    row("Linear", 0, 2, inputs=normal(3, 0)),
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
    row("BatchNorm2d", 3, inputs=normal(4, 3, 5, 6)),
    row("BatchNorm2d", 3, eps=1e-3, momentum=None, affine=False, inputs=normal(4, 3, 2, 2)),
    row("BatchNorm2d", 3, momentum=0.5, track_running_stats=False, inputs=normal(4, 3, 2, 2)),
    row("BatchNorm2d", 3, bias=False, inputs=normal(4, 3, 2, 2)),
    row("ReLU", inputs=normal(33)),
    row("Tanh", inputs=normal(33)),
    row("Sigmoid", inputs=normal(33)),
    row("LogSigmoid", inputs=normal(33)),
    row("Softplus", inputs=normal(33)),
    row("Softplus", 2.0, 3.5, inputs=normal(33)),
    row("LayerNorm", 5, inputs=normal(3, 5)),
    row("LayerNorm", (4, 5), eps=1e-3, bias=False, inputs=normal(3, 4, 5)),
    row("LayerNorm", 5, elementwise_affine=False, inputs=normal(2, 3, 5)),
    row("Identity", inputs=normal(3)),
    row("MaxPool2d", 2, inputs=normal(2, 3, 8, 9)),
    row("MaxPool2d", 3, stride=2, padding=1, ceil_mode=True, inputs=normal(2, 3, 8, 9)),
    row("Flatten", inputs=normal(2, 3, 4)),
    row("Flatten", 0, 1, inputs=normal(2, 3, 4)),
    row("Dropout", inputs=normal(100)),
    row("Dropout", 0.1, inputs=normal(5, 7)),
    row("Embedding", 10, 4, inputs=numbers(10, 3, 5)),
    row("Embedding", 10, 4, padding_idx=-1, inputs=numbers(10, 3, 5)),
    row("CrossEntropyLoss", inputs=(normal(6, 5), numbers(5, 6))),
    row("CrossEntropyLoss", reduction="sum", label_smoothing=0.1, inputs=(normal(6, 5), numbers(5, 6))),
    row("CrossEntropyLoss", weight=weights, ignore_index=2, inputs=(normal(2, 5, 3), numbers(5, 2, 3))),
    row("BCEWithLogitsLoss", inputs=(normal(6, 5), normal(6, 5))),
    row("BCEWithLogitsLoss", weight=weights, pos_weight=weights, reduction="sum", inputs=(normal(6, 5), normal(6, 5))),
    row("Sequential", parts=LENET, inputs=normal(3, 1, 8, 8)),
]

#: Classes of the Python package that do not have a C++ twin yet.
PYTHON_ONLY = {"Module", *(name for name in vesta.nn.modules.__all__ if not hasattr(vesta._C.cpp_nn, name))}
