"""Channels in another order."""

from __future__ import annotations

from vesta import Tensor
from vesta.nn import functional as F
from vesta.nn.modules.function_layer import FunctionLayer, stored

__all__ = ["ChannelShuffle"]


class ChannelShuffle(FunctionLayer):
    """The channels of all groups by turns: [N, C, *] read as [N, groups, C / groups, *] and transposed.

    Zhang et al., "ShuffleNet: an extremely efficient convolutional neural network for mobile devices", 2018.

    Args:
        groups: a divisor of C.

    Example::

        >>> import vesta
        >>> vesta.nn.ChannelShuffle(2)(vesta.arange(4.0).view(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    _text = "groups={groups}"
    groups: int

    @stored
    def __init__(self, groups: int) -> None: ...

    def forward(self, input: Tensor) -> Tensor:
        """Returns the channels in their new order."""
        return F.channel_shuffle(input, self.groups)
