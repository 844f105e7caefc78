"""``replicate`` makes copies of a module on several devices, through which gradients reach the original."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vesta import Tensor
from vesta.nn.modules.module import Module

from .scatter_gather import as_device

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Returns a copy of ``network`` for each device, for one forward pass.

    The parameters of a copy are tensors of a graph (not leaves): gradients add up in the parameters of ``network``,
    unless ``detach``. Parameters and modules that are shared in the network are shared in a copy.
    """
    return [_copy_to(network, as_device(device), detach) for device in devices]


def _copy_to(network: Module, device: Any, detach: bool) -> Module:
    moved: dict[int, Tensor] = {}

    def carried(tensor: Tensor, keeps_graph: bool) -> Tensor:
        if id(tensor) not in moved:
            there = tensor.to(device)
            there = there.view(there.shape) if there is tensor else there
            moved[id(tensor)] = there if keeps_graph and not detach else there.detach()
        return moved[id(tensor)]

    copies = {id(module): module._replicate_for_data_parallel() for module in network.modules()}
    for module in network.modules():
        twin = copies[id(module)]
        for name, child in module._modules.items():
            twin._modules[name] = None if child is None else copies[id(child)]
        for name, parameter in module._parameters.items():
            # a plain attribute: a copy has no parameters of its own, as in PyTorch
            twin.__dict__[name] = None if parameter is None else carried(parameter, True)
        for name, buffer in module._buffers.items():
            twin._buffers[name] = None if buffer is None else carried(buffer, False)
    return copies[id(network)]
