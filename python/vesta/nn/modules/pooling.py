"""Pooling: maxima, averages and powers of windows, windows for a given output size, and the way back."""

from __future__ import annotations

from vesta import Tensor
from vesta._arguments import expect
from vesta._types import Floats, Ints, Sizes
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored
from vesta.nn.modules.utils import _ntuple, _pair, _single, _triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(FunctionLayer):
    """The common part of max pooling."""

    _text = "kernel_size={kernel_size}, stride={stride}, padding={padding}, dilation={dilation}, ceil_mode={ceil_mode}"
    kernel_size: Ints
    padding: Ints
    dilation: Ints
    return_indices: bool
    ceil_mode: bool

    @stored
    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        dilation: Ints = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        self.stride = stride if stride is not None else kernel_size


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of a sequence.

    Args:
        kernel_size, padding, dilation: an integer.
        stride: the step between windows; default: ``kernel_size``.
        return_indices: also return where each maximum was, as an index into L.
        ceil_mode: allow the last window to reach over the edge.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.MaxPool1d(3, stride=2)(vesta.zeros(20, 16, 50)).shape
        vesta.Size([20, 16, 24])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of an image.

    Args:
        kernel_size, padding, dilation: an integer, or one for rows and one for columns.
        stride: the step between windows; default: ``kernel_size``.
        return_indices: also return where each maximum was, as an index into H * W.
        ceil_mode: allow the last window to reach over the edge.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.MaxPool2d(3, stride=2)(vesta.zeros(20, 16, 50, 32)).shape
        vesta.Size([20, 16, 24, 15])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of a volume.

    Args:
        kernel_size, padding, dilation: an integer, or one for each of depth, rows and columns.
        stride: the step between windows; default: ``kernel_size``.
        return_indices: also return where each maximum was, as an index into D * H * W.
        ceil_mode: allow the last window to reach over the edge.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.MaxPool3d(3, stride=2)(vesta.zeros(2, 4, 16, 15, 12)).shape
        vesta.Size([2, 4, 7, 7, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class _MaxUnpoolNd(FunctionLayer):
    """The common part of the inverses of max pooling."""

    _text = "kernel_size={kernel_size}, stride={stride}, padding={padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """What ``MaxPool1d`` found, put back at its places in zeros.

    Args:
        kernel_size, stride, padding: those of the pooling.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L']. ``indices`` have the input's shape.

    Example::

        >>> import vesta
        >>> pooled, places = vesta.nn.MaxPool1d(2, return_indices=True)(vesta.ones(1, 1, 4))
        >>> vesta.nn.MaxUnpool1d(2)(pooled, places).shape
        vesta.Size([1, 1, 4])
    """

    @stored
    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Ints | None = None) -> Tensor:
        """Returns zeros of ``output_size`` (default: the smallest that fits) with ``input`` at ``indices``."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """What ``MaxPool2d`` found, put back at its places in zeros.

    Args:
        kernel_size, stride, padding: those of the pooling.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W']. ``indices`` have the input's shape.

    Example::

        >>> import vesta
        >>> pooled, places = vesta.nn.MaxPool2d(2, return_indices=True)(vesta.ones(1, 1, 4, 4))
        >>> vesta.nn.MaxUnpool2d(2)(pooled, places).shape
        vesta.Size([1, 1, 4, 4])
    """

    @stored
    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        self.kernel_size = _pair(kernel_size)
        self.stride = _pair(stride if stride is not None else kernel_size)
        self.padding = _pair(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Ints | None = None) -> Tensor:
        """Returns zeros of ``output_size`` (default: the smallest that fits) with ``input`` at ``indices``."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """What ``MaxPool3d`` found, put back at its places in zeros.

    Args:
        kernel_size, stride, padding: those of the pooling.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W']. ``indices`` have the
    input's shape.

    Example::

        >>> import vesta
        >>> pooled, places = vesta.nn.MaxPool3d(2, return_indices=True)(vesta.ones(1, 1, 4, 4, 4))
        >>> vesta.nn.MaxUnpool3d(2)(pooled, places).shape
        vesta.Size([1, 1, 4, 4, 4])
    """

    @stored
    def __init__(self, kernel_size: Ints, stride: Ints | None = None, padding: Ints = 0) -> None:
        self.kernel_size = _triple(kernel_size)
        self.stride = _triple(stride if stride is not None else kernel_size)
        self.padding = _triple(padding)

    def forward(self, input: Tensor, indices: Tensor, output_size: Ints | None = None) -> Tensor:
        """Returns zeros of ``output_size`` (default: the smallest that fits) with ``input`` at ``indices``."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(FunctionLayer):
    """The common part of average pooling."""

    _text = "kernel_size={kernel_size}, stride={stride}, padding={padding}"


class AvgPool1d(_AvgPoolNd):
    """The average of each window of a sequence.

    Args:
        kernel_size, padding: an integer.
        stride: the step between windows; default: ``kernel_size``.
        ceil_mode: allow the last window to reach over the edge.
        count_include_pad: whether padded zeros count as values.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.AvgPool1d(3, stride=2)(vesta.zeros(20, 16, 50)).shape
        vesta.Size([20, 16, 24])
    """

    ceil_mode: bool
    count_include_pad: bool

    @stored
    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class AvgPool2d(_AvgPoolNd):
    """The average of each window of an image.

    Args:
        kernel_size, padding: an integer, or one for rows and one for columns.
        stride: the step between windows; default: ``kernel_size``.
        ceil_mode: allow the last window to reach over the edge.
        count_include_pad: whether padded zeros count as values.
        divisor_override: what to divide the sums by, in place of the size of the window.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.AvgPool2d(3, stride=2)(vesta.zeros(20, 16, 50, 32)).shape
        vesta.Size([20, 16, 24, 15])
    """

    kernel_size: Ints
    padding: Ints
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None

    @stored
    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.stride = stride if stride is not None else kernel_size

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolNd):
    """The average of each window of a volume.

    Args:
        kernel_size, padding: an integer, or one for each of depth, rows and columns.
        stride: the step between windows; default: ``kernel_size``.
        ceil_mode: allow the last window to reach over the edge.
        count_include_pad: whether padded zeros count as values.
        divisor_override: what to divide the sums by, in place of the size of the window.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.AvgPool3d(3, stride=2)(vesta.zeros(2, 4, 16, 15, 12)).shape
        vesta.Size([2, 4, 7, 7, 5])
    """

    kernel_size: Ints
    padding: Ints
    ceil_mode: bool
    count_include_pad: bool
    divisor_override: int | None

    @stored
    def __init__(
        self,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        self.stride = stride if stride is not None else kernel_size

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class FractionalMaxPool2d(FunctionLayer):
    """The maximum of each window of an image, with windows whose steps are drawn at random in each call.

    Graham, "Fractional max-pooling", 2014.

    Args:
        kernel_size: an integer, or one for rows and one for columns.
        output_size: the size of the output; or give ``output_ratio``, in (0, 1), its fractions of the input's size.
        return_indices: also return where each maximum was, as an index into H * W.
        _random_samples: [N, C, 2], the numbers of [0, 1) to use.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.FractionalMaxPool2d(3, output_size=(13, 12))(vesta.zeros(20, 16, 50, 32)).shape
        vesta.Size([20, 16, 13, 12])
    """

    return_indices: bool
    _random_samples: Tensor | None

    @stored
    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Floats | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        self.kernel_size = _ntuple(2)(kernel_size)
        self.output_size = _ntuple(2)(output_size) if output_size is not None else None
        self.output_ratio = _ntuple(2)(output_ratio) if output_ratio is not None else None
        self.register_buffer("_random_samples", _random_samples)
        if output_size is None and output_ratio is None:
            raise ValueError("FractionalMaxPool2d requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        for ratio in self.output_ratio or ():
            expect("FractionalMaxPool2d", "output_ratio", ratio, (int, float), "numbers")
            if not 0 < ratio < 1:
                raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.fractional_max_pool2d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool3d(FunctionLayer):
    """The maximum of each window of a volume, with windows whose steps are drawn at random in each call.

    Graham, "Fractional max-pooling", 2014.

    Args:
        kernel_size: an integer, or one for each of depth, rows and columns.
        output_size: the size of the output; or give ``output_ratio``, in (0, 1), its fractions of the input's size.
        return_indices: also return where each maximum was, as an index into D * H * W.
        _random_samples: [N, C, 3], the numbers of [0, 1) to use.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.FractionalMaxPool3d(3, output_size=(13, 12, 9))(vesta.zeros(2, 4, 16, 15, 12)).shape
        vesta.Size([2, 4, 13, 12, 9])
    """

    return_indices: bool
    _random_samples: Tensor | None

    @stored
    def __init__(
        self,
        kernel_size: Ints,
        output_size: Ints | None = None,
        output_ratio: Floats | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        self.kernel_size = _ntuple(3)(kernel_size)
        self.output_size = _ntuple(3)(output_size) if output_size is not None else None
        self.output_ratio = _ntuple(3)(output_ratio) if output_ratio is not None else None
        self.register_buffer("_random_samples", _random_samples)
        if output_size is None and output_ratio is None:
            raise ValueError("FractionalMaxPool3d requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        for ratio in self.output_ratio or ():
            expect("FractionalMaxPool3d", "output_ratio", ratio, (int, float), "numbers")
            if not 0 < ratio < 1:
                raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.fractional_max_pool3d(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class _LPPoolNd(FunctionLayer):
    """The common part of power-average pooling."""

    _text = "norm_type={norm_type}, kernel_size={kernel_size}, stride={stride}, ceil_mode={ceil_mode}"
    norm_type: float
    kernel_size: Ints
    stride: Ints | None
    ceil_mode: bool

    @stored
    def __init__(
        self, norm_type: float, kernel_size: Ints, stride: Ints | None = None, ceil_mode: bool = False
    ) -> None: ...


class LPPool1d(_LPPoolNd):
    """(sum of x ** p) ** (1 / p) of each window of a sequence.

    Args:
        norm_type: p.
        kernel_size: an integer.
        stride: the step between windows; default: ``kernel_size``.
        ceil_mode: allow the last window to reach over the edge.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.LPPool1d(2, 3, stride=2)(vesta.zeros(20, 16, 50)).shape
        vesta.Size([20, 16, 24])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the power averages."""
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """(sum of x ** p) ** (1 / p) of each window of an image.

    Args:
        norm_type: p.
        kernel_size: an integer, or one for rows and one for columns.
        stride: the step between windows; default: ``kernel_size``.
        ceil_mode: allow the last window to reach over the edge.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.LPPool2d(2, 3, stride=2)(vesta.zeros(20, 16, 50, 32)).shape
        vesta.Size([20, 16, 24, 15])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the power averages."""
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """(sum of x ** p) ** (1 / p) of each window of a volume.

    Args:
        norm_type: p.
        kernel_size: an integer, or one for each of depth, rows and columns.
        stride: the step between windows; default: ``kernel_size``.
        ceil_mode: allow the last window to reach over the edge.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.LPPool3d(2, 3, stride=2)(vesta.zeros(2, 4, 16, 15, 12)).shape
        vesta.Size([2, 4, 7, 7, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the power averages."""
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveAvgPoolNd(FunctionLayer):
    """The common part of average pooling to a given size."""

    _text = "output_size={output_size}"
    output_size: Sizes

    @stored
    def __init__(self, output_size: Sizes) -> None: ...


class _AdaptiveMaxPoolNd(FunctionLayer):
    """The common part of max pooling to a given size."""

    _text = "output_size={output_size}"
    output_size: Sizes
    return_indices: bool

    @stored
    def __init__(self, output_size: Sizes, return_indices: bool = False) -> None: ...


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """The maximum of each of as many windows of a sequence as the output is to have places.

    Args:
        output_size: an integer.
        return_indices: also return where each maximum was, as an index into L.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.AdaptiveMaxPool1d(5)(vesta.zeros(20, 16, 50)).shape
        vesta.Size([20, 16, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """The maximum of each of as many windows of an image as the output is to have places.

    Args:
        output_size: an integer, or one for rows and one for columns; None keeps the input's.
        return_indices: also return where each maximum was, as an index into H * W.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.AdaptiveMaxPool2d((5, None))(vesta.zeros(20, 16, 50, 32)).shape
        vesta.Size([20, 16, 5, 32])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """The maximum of each of as many windows of a volume as the output is to have places.

    Args:
        output_size: an integer, or one for each of depth, rows and columns; None keeps the input's.
        return_indices: also return where each maximum was, as an index into D * H * W.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.AdaptiveMaxPool3d((5, None, 3))(vesta.zeros(2, 4, 16, 15, 12)).shape
        vesta.Size([2, 4, 5, 15, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the maxima, with their places if requested."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """The average of each of as many windows of a sequence as the output is to have places.

    Args:
        output_size: an integer.

    Shapes: input [N, C, L] or [C, L], output [N, C, L'] or [C, L'].

    Example::

        >>> import vesta
        >>> vesta.nn.AdaptiveAvgPool1d(5)(vesta.zeros(20, 16, 50)).shape
        vesta.Size([20, 16, 5])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """The average of each of as many windows of an image as the output is to have places.

    Args:
        output_size: an integer, or one for rows and one for columns; None keeps the input's.

    Shapes: input [N, C, H, W] or [C, H, W], output [N, C, H', W'] or [C, H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.AdaptiveAvgPool2d((5, None))(vesta.zeros(20, 16, 50, 32)).shape
        vesta.Size([20, 16, 5, 32])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """The average of each of as many windows of a volume as the output is to have places.

    Args:
        output_size: an integer, or one for each of depth, rows and columns; None keeps the input's.

    Shapes: input [N, C, D, H, W] or [C, D, H, W], output [N, C, D', H', W'] or [C, D', H', W'].

    Example::

        >>> import vesta
        >>> vesta.nn.AdaptiveAvgPool3d((5, None, 3))(vesta.zeros(2, 4, 16, 15, 12)).shape
        vesta.Size([2, 4, 5, 15, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Returns the averages."""
        return F.adaptive_avg_pool3d(input, self.output_size)
