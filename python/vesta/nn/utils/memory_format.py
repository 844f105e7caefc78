"""Memory layouts of convolutions' weights."""

from __future__ import annotations

from typing import Any, TypeVar

from vesta._arguments import expect
from vesta.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from vesta.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

M = TypeVar("M", bound=Module)


def _convert(op: str, module: M, classes: tuple[type, ...], memory_format: Any) -> M:
    expect(op, "module", module, Module, "Module")
    for layer in module.modules():
        if isinstance(layer, classes):
            weight: Any = layer.weight
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Gives the weights of all ``Conv2d`` and ``ConvTranspose2d`` a memory layout; other weights keep theirs.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.Conv2d(8, 4, 3)
        >>> _ = vesta.nn.utils.convert_conv2d_weight_memory_format(layer, vesta.channels_last)
        >>> layer.weight.is_contiguous(memory_format=vesta.channels_last)
        True
    """
    return _convert("convert_conv2d_weight_memory_format", module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: M, memory_format: Any) -> M:
    """Gives the weights of all ``Conv3d`` and ``ConvTranspose3d`` a memory layout; other weights keep theirs.

    Example::

        >>> import vesta
        >>> net = vesta.nn.Conv3d(2, 2, 3)
        >>> net = vesta.nn.utils.convert_conv3d_weight_memory_format(net, vesta.channels_last_3d)
        >>> net.weight.is_contiguous(memory_format=vesta.channels_last_3d)
        True
    """
    return _convert("convert_conv3d_weight_memory_format", module, (Conv3d, ConvTranspose3d), memory_format)
