"""Dropout of elements, and of whole channels."""

from __future__ import annotations

import math
import warnings
from typing import Any

import vesta
from vesta import Tensor
from vesta._arguments import called, expect, python_number

from .ops import ops

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]

_DEPTH = 1.7580993408473766  # scale * alpha of selu: its limit at minus infinity is -_DEPTH


def _check(op: str, input: Tensor, p: Any) -> float:
    """Checks the arguments; returns the probability."""
    p = python_number(p)
    expect(op, "input", input, Tensor, "Tensor")
    expect(op, "p", p, (float, int), "float")
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return float(p)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability ``p`` and scales the rest by 1 / (1 - p); does nothing unless ``training``.

    Raises:
        ValueError: ``p`` is not in [0, 1].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.dropout(vesta.ones(2), p=0.5, training=False)
        tensor([1., 1.])
    """
    p = _check("dropout", input, p)
    if inplace and (not training or p == 0):
        return input
    result = ops._dropout(input, p, training)
    return called("dropout_", input.copy_, result) if inplace else result


def _channels(input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    """Zeroes whole channels of [N, C, ...]: dropout of ones [N, C, 1, ...], times the input."""
    if not training or p == 0 or input.numel() == 0:
        return input
    if input.dim() < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, got {input.dim()}.")
    mask = vesta.ones((*input.shape[:2], *[1] * (input.dim() - 2)), dtype=input.dtype, device=input.device)
    kept = ops._dropout(mask, p, True)
    return called("feature_dropout_", input.mul_, kept) if inplace else input * kept


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each channel of ``input`` [N, C, L] or [C, L] with probability ``p``; scales the rest by 1 / (1 - p).

    Tompson et al., "Efficient object localization using convolutional networks", 2015.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.dropout1d(vesta.ones(2, 3), 1.0)
        tensor([[0., 0., 0.],
                [0., 0., 0.]])
    """
    p = _check("dropout1d", input, p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 3:
        return _channels(input, p, training, inplace)
    return _channels(input.unsqueeze(0), p, training, inplace).squeeze(0)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each channel of ``input`` [N, C, H, W] with probability ``p``; scales the rest by 1 / (1 - p).

    As in PyTorch, an input [N, C, L] is taken as such, with a warning, and not as [C, H, W].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.dropout2d(vesta.ones(1, 2, 1, 2), 0.5, training=False)
        tensor([[[[1., 1.]],
        <BLANKLINE>
                 [[1., 1.]]]])
    """
    p = _check("dropout2d", input, p)
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. If you want to apply channel-wise "
            "dropout to inputs with 1 spatial dimension and a batch dimension, use dropout1d instead.",
            stacklevel=2,
        )
    elif input.dim() != 4:
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead.",
            stacklevel=2,
        )
    return _channels(input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each channel of ``input`` [N, C, D, H, W] or [C, D, H, W] with probability ``p``; scales the rest.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.dropout3d(vesta.ones(1, 2, 1, 1, 1), 1.0).flatten()
        tensor([0., 0.])
    """
    p = _check("dropout3d", input, p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout instead.",
            stacklevel=2,
        )
    if input.dim() == 5:
        return _channels(input, p, training, inplace)
    return _channels(input.unsqueeze(0), p, training, inplace).squeeze(0)


def _alpha(op: str, input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    """Sets what a mask of ``shape`` drops to selu's lower limit, then restores mean 0 and variance 1."""
    if not training or p == 0 or input.numel() == 0:
        return input
    if p == 1:
        return called(op, input.mul_, 0) if inplace else input * 0
    a = 1 / math.sqrt((_DEPTH**2 * p + 1) * (1 - p))
    kept = vesta.empty(shape, dtype=input.real.dtype, device=input.device).bernoulli_(1 - p)
    shift = (kept - (1 - p)) * (_DEPTH * a)
    scale = kept * a
    return called(op, lambda: input.mul_(scale).add_(shift)) if inplace else input * scale + shift


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Sets each element with probability ``p`` to selu's lower limit, then restores mean and variance. Any shape.

    Klambauer et al., "Self-normalizing neural networks", 2017: for networks of ``selu``.

    Example::

        >>> import vesta
        >>> vesta.nn.functional.alpha_dropout(vesta.ones(2), 0.5)
        tensor([1., 1.])
    """
    p = _check("alpha_dropout", input, p)
    return _alpha("alpha_dropout_", input, p, training, inplace, tuple(input.shape))


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """``alpha_dropout`` of whole channels of ``input`` [N, C, ...].

    Example::

        >>> import vesta
        >>> vesta.nn.functional.feature_alpha_dropout(vesta.ones(1, 2, 2), 0.5).shape
        vesta.Size([1, 2, 2])
    """
    p = _check("feature_alpha_dropout", input, p)
    if training and input.dim() < 2:
        raise RuntimeError(f"Feature dropout requires at least 2 dimensions in the input, got {input.dim()}.")
    return _alpha("feature_alpha_dropout_", input, p, training, inplace, (*input.shape[:2], *[1] * (input.dim() - 2)))
