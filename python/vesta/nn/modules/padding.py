"""Padding: values around a sequence, an image or a volume."""

from __future__ import annotations

from typing import Any

from vesta import Tensor
from vesta._arguments import expect
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored
from vesta.nn.modules.utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _ConstantPadNd(FunctionLayer):
    """The common part of padding with a value."""

    _text = "padding={padding}, value={value}"
    _sides: int
    padding: tuple[int, ...]
    value: float

    @stored
    def __init__(self, padding: Any, value: float) -> None:
        self.padding = _ntuple(self._sides)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` with the value around it."""
        return F.pad(input, self.padding, "constant", self.value)


class _PadNd(FunctionLayer):
    """The common part of padding with values of the input."""

    _text = "{padding}"
    _sides: int
    _mode: str
    padding: tuple[int, ...]

    @stored
    def __init__(self, padding: Any) -> None:
        self.padding = _ntuple(self._sides)(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` with values of its own around it."""
        return F.pad(input, self.padding, self._mode)


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Returns ``input`` with values of its own around it; of wrong dimensions it raises ValueError."""
        expect(type(self).__name__, "input", input, Tensor, "Tensor")
        dims = len(self.padding) // 2
        if input.dim() not in (dims + 1, dims + 2):
            raise ValueError(f"expected {dims + 1}D or {dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class _ReflectionPadNd(_PadNd):
    _mode = "reflect"


class _ReplicationPadNd(_PadNd):
    _mode = "replicate"


class CircularPad1d(_CircularPadNd):
    """A sequence with values from its other end around it.

    Args:
        padding: an integer for all sides, or (left, right); negative ones cut off. Each padding is at most the input's
            size.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.CircularPad1d((1, 1))(vesta.tensor([[0.0, 1.0, 2.0]]))
        tensor([[2., 0., 1., 2., 0.]])
    """

    _sides = 2


class CircularPad2d(_CircularPadNd):
    """An image with values from its other end around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom); negative ones cut off. Each padding is at
            most the input's size.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.CircularPad2d(1)(vesta.ones(1, 2, 3, 3)).shape
        vesta.Size([1, 2, 5, 5])
    """

    _sides = 4


class CircularPad3d(_CircularPadNd):
    """A volume with values from its other end around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom, front, back); negative ones cut off. Each
            padding is at most the input's size.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.CircularPad3d(1)(vesta.ones(1, 2, 3, 3, 3)).shape
        vesta.Size([1, 2, 5, 5, 5])
    """

    _sides = 6


class ConstantPad1d(_ConstantPadNd):
    """A sequence with a value around it.

    Args:
        padding: an integer for all sides, or (left, right); negative ones cut off.
        value: the value.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.ConstantPad1d((1, 1), 7.0)(vesta.tensor([[0.0, 1.0, 2.0]]))
        tensor([[7., 0., 1., 2., 7.]])
    """

    _sides = 2


class ConstantPad2d(_ConstantPadNd):
    """An image with a value around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom); negative ones cut off.
        value: the value.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ConstantPad2d(1, 7.0)(vesta.ones(1, 2, 3, 3)).shape
        vesta.Size([1, 2, 5, 5])
    """

    _sides = 4


class ConstantPad3d(_ConstantPadNd):
    """A volume with a value around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom, front, back); negative ones cut off.
        value: the value.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ConstantPad3d(1, 7.0)(vesta.ones(1, 2, 3, 3, 3)).shape
        vesta.Size([1, 2, 5, 5, 5])
    """

    _sides = 6


class ReflectionPad1d(_ReflectionPadNd):
    """A sequence with its mirror image, without the edge itself around it.

    Args:
        padding: an integer for all sides, or (left, right); negative ones cut off. Each padding is less than the
            input's size.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.ReflectionPad1d((1, 1))(vesta.tensor([[0.0, 1.0, 2.0]]))
        tensor([[1., 0., 1., 2., 1.]])
    """

    _sides = 2


class ReflectionPad2d(_ReflectionPadNd):
    """An image with its mirror image, without the edge itself around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom); negative ones cut off. Each padding is less
            than the input's size.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ReflectionPad2d(1)(vesta.ones(1, 2, 3, 3)).shape
        vesta.Size([1, 2, 5, 5])
    """

    _sides = 4


class ReflectionPad3d(_ReflectionPadNd):
    """A volume with its mirror image, without the edge itself around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom, front, back); negative ones cut off. Each
            padding is less than the input's size.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ReflectionPad3d(1)(vesta.ones(1, 2, 3, 3, 3)).shape
        vesta.Size([1, 2, 5, 5, 5])
    """

    _sides = 6


class ReplicationPad1d(_ReplicationPadNd):
    """A sequence with its edge around it.

    Args:
        padding: an integer for all sides, or (left, right); negative ones cut off.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.ReplicationPad1d((1, 1))(vesta.tensor([[0.0, 1.0, 2.0]]))
        tensor([[0., 0., 1., 2., 2.]])
    """

    _sides = 2


class ReplicationPad2d(_ReplicationPadNd):
    """An image with its edge around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom); negative ones cut off.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ReplicationPad2d(1)(vesta.ones(1, 2, 3, 3)).shape
        vesta.Size([1, 2, 5, 5])
    """

    _sides = 4


class ReplicationPad3d(_ReplicationPadNd):
    """A volume with its edge around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom, front, back); negative ones cut off.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ReplicationPad3d(1)(vesta.ones(1, 2, 3, 3, 3)).shape
        vesta.Size([1, 2, 5, 5, 5])
    """

    _sides = 6


class ZeroPad1d(ConstantPad1d):
    """A sequence with zeros around it.

    Args:
        padding: an integer for all sides, or (left, right); negative ones cut off.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.ZeroPad1d((1, 1))(vesta.tensor([[0.0, 1.0, 2.0]]))
        tensor([[0., 0., 1., 2., 0.]])
    """

    _text = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ZeroPad2d(ConstantPad2d):
    """An image with zeros around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom); negative ones cut off.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ZeroPad2d(1)(vesta.ones(1, 2, 3, 3)).shape
        vesta.Size([1, 2, 5, 5])
    """

    _text = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)


class ZeroPad3d(ConstantPad3d):
    """A volume with zeros around it.

    Args:
        padding: an integer for all sides, or (left, right, top, bottom, front, back); negative ones cut off.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.ZeroPad3d(1)(vesta.ones(1, 2, 3, 3, 3)).shape
        vesta.Size([1, 2, 5, 5, 5])
    """

    _text = "{padding}"

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)
