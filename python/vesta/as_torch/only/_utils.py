"""``torch._utils``: what programs import from inside of PyTorch, and what its pickles name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import vesta
from vesta import Tensor
from vesta.serialization import rebuilding
from vesta.serialization.rebuilding import *  # noqa: F403

__all__ = [
    "_accumulate",
    "_flatten_dense_tensors",
    "_get_available_device_type",
    "_get_device_index",
    "_get_device_module",
    "_take_tensors",
    "_unflatten_dense_tensors",
    *(name for name in rebuilding.__all__ if name.startswith("_rebuild_")),
]


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Returns one tensor of one dimension with the elements of all."""
    return vesta.cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Returns the parts of ``flat`` as views in the shapes of ``tensors``."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view(tensor.shape) for part, tensor in zip(parts, tensors))


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Yields lists of tensors of one type, each of about ``size_limit`` bytes."""
    groups: dict[str, tuple[list[Tensor], int]] = {}
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        group, total = groups.get(tensor.type(), ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[tensor.type()] = ([*group, tensor], total + size)
    for group, _ in groups.values():
        yield group


def _accumulate(iterable: Iterable[Any], fn: Any = lambda x, y: x + y) -> Iterator[Any]:
    """Yields the running results of ``fn``, sums by default."""
    import itertools

    return itertools.accumulate(iterable, fn)


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """Returns the number of a CUDA device; of the current one if ``optional`` and none is given; -1 for the CPU."""
    if isinstance(device, int):
        return device
    if device is None:
        if not optional:
            raise ValueError(f"Expected a vesta.device with a specified index or an integer, but got: {device}")
        return vesta.cuda.current_device()
    device = vesta.device(device)
    if device.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return -1
    return vesta.cuda.current_device() if device.index is None else device.index


def _get_available_device_type() -> str | None:
    """Returns the type of the devices beside the CPU; None without one."""
    return "cuda" if vesta.cuda.is_available() else None


def _get_device_module(device_type: str) -> Any:
    """Returns the module of a type of devices, ``torch.cuda`` for ``"cuda"``."""
    module = getattr(vesta, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as 'vesta'.")
    return module


def _element_size(dtype: Any) -> int:
    """Returns the bytes of an element."""
    return dtype.itemsize


def annotate(ret: Any, **kwargs: Any) -> Any:
    """Returns a decorator that writes the annotations of a function."""

    def decorate(fn: Any) -> Any:
        fn.__annotations__ = {**kwargs, "return": ret}
        return fn

    return decorate


class ExceptionWrapper:
    """An exception with its traceback as a text, for another process or thread."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import sys
        import traceback

        kind, value, trace = exc_info or sys.exc_info()
        self.exc_type, self.exc_msg = kind, "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> None:
        """Raises an exception of the same class, with the first traceback as its message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            error = self.exc_type(message)
        except Exception:  # it wants other arguments
            raise RuntimeError(message) from None
        raise error
