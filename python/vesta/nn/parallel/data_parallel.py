"""``DataParallel``: PyTorch's older way to use several devices from one process; here it supports one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vesta
from vesta._arguments import expect
from vesta.nn.modules.module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """A wrapper that calls ``module``; with one device or none, which is all that is supported, nothing is divided.

    For several devices use ``DistributedDataParallel``, one process for each.

    Example::

        >>> import vesta
        >>> model = vesta.nn.DataParallel(vesta.nn.Linear(4, 2), device_ids=[])
        >>> list(model.state_dict())
        ['module.weight', 'module.bias']
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        expect("DataParallel", "module", module, Module, "Module")
        expect("DataParallel", "device_ids", device_ids, (list, tuple, range, type(None)), "a list of devices or None")
        if device_ids is None:
            device_ids = range(vesta.cuda.device_count()) if vesta.cuda.is_available() else ()
        if len(device_ids) > 1:
            raise NotImplementedError(
                f"DataParallel: expected at most one device, got {len(device_ids)} (device_ids). Use "
                "DistributedDataParallel with a process for each, or pass device_ids=[0]."
            )
        self.dim = dim
        self.module = module
        self.device_ids = list(device_ids)
        self.output_device = output_device if output_device is not None else next(iter(device_ids), None)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Returns the module's result."""
        return self.module(*inputs, **kwargs)
