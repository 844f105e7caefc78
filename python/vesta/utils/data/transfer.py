"""The transfer of a batch to the caller: page-locked memory, and the copy to a device."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import vesta
from vesta import Tensor

__all__ = ["Transfer", "mapped", "pin_memory"]


def mapped(batch: Any, function: Callable[[Tensor], Any], method: str | None = None) -> Any:
    """Applies a function to every tensor of a batch, and a method of that name to other objects that have it."""
    if isinstance(batch, Tensor):
        return function(batch)
    if method is not None and hasattr(batch, method):
        return getattr(batch, method)()
    if isinstance(batch, (str, bytes)):
        return batch
    if isinstance(batch, Mapping):
        values = {key: mapped(value, function, method) for key, value in batch.items()}
        return values if type(batch) is dict else _like(batch, values, MutableMapping)
    if isinstance(batch, tuple):
        parts = [mapped(value, function, method) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    if isinstance(batch, Sequence):
        parts = [mapped(value, function, method) for value in batch]
        return parts if type(batch) is list else _like(batch, parts, MutableSequence)
    return batch


def _like(model: Any, values: Any, mutable: type) -> Any:
    """Makes a container of the class of ``model``, with its further attributes if it can be copied."""
    try:
        if not isinstance(model, mutable):
            return type(model)(values)
        clone = copy.copy(model)
        for key in values if isinstance(values, dict) else range(len(values)):
            clone[key] = values[key]
        return clone
    except TypeError:
        return values


def pin_memory(batch: Any) -> Any:
    """Copies the tensors of a batch into page-locked memory, and calls ``pin_memory()`` of objects that have it."""
    return mapped(batch, lambda tensor: tensor.pin_memory(), "pin_memory")


class Transfer:
    """The transfer of batches to the caller.

    Args:
        pin: copy into page-locked memory if there is an accelerator.
        pin_device: deprecated in PyTorch; ignored with a warning.
        device: the device for the tensors of a batch; None: they stay where they are.
    """

    def __init__(self, pin: bool, pin_device: str = "", device: Any = None) -> None:
        self._device = None if device is None else vesta.device(device)
        if pin and pin_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{pin_device}'.",
                stacklevel=6,
            )
        available = (pin or self.on_cuda) and vesta.cuda.is_available()
        if pin and not available:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                stacklevel=6,
            )
        self._pin = (pin or self.on_cuda) and available  # only copies from page-locked memory are asynchronous
        if self.on_cuda and available and self._device is not None and self._device.index is None:
            self._device = vesta.device("cuda", vesta.cuda.current_device())
        self._stream: Any = None  # the stream of the copies made ahead

    @property
    def on_cuda(self) -> bool:
        """Whether batches go to a GPU."""
        return self._device is not None and self._device.type == "cuda"

    @property
    def has_work(self) -> bool:
        """Whether there is work that a thread could do ahead."""
        return self._pin or self.on_cuda

    def __call__(self, batch: Any) -> Any:
        """Returns the batch in the requested place."""
        if self._pin:
            batch = pin_memory(batch)
        if self._device is not None:
            batch = mapped(batch, lambda tensor: tensor.to(self._device, non_blocking=self._pin))
        return batch

    def ahead(self, batch: Any) -> tuple[Any, Any]:
        """Starts the transfer of a batch on its own stream; returns it with the event of its arrival, or None."""
        if not self.on_cuda:
            return self(batch), None
        if self._stream is None:
            self._stream = vesta.cuda.Stream(self._device)
        with vesta.cuda.stream(self._stream):
            return self(batch), self._stream.record_event()

    def arrived(self, batch: Any, event: Any) -> Any:
        """Makes the caller's stream wait for a batch; the host does not."""
        if event is not None:
            stream = vesta.cuda.current_stream(self._device)
            stream.wait_event(event)
            mapped(batch, lambda tensor: tensor.record_stream(stream))
        return batch
