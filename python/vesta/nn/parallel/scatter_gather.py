"""``scatter`` splits nested inputs along the batch for several devices; ``gather`` joins their outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import vesta
from vesta import Tensor

__all__ = ["gather", "scatter", "scatter_kwargs"]


def as_device(target: Any) -> Any:
    """Returns a device; a number means a GPU, -1 the CPU."""
    if isinstance(target, int):
        return vesta.device("cpu") if target < 0 else vesta.device("cuda", target)
    return vesta.device(target)


def is_namedtuple(value: Any) -> bool:
    """Returns whether a value is a named tuple."""
    return isinstance(value, tuple) and hasattr(value, "_asdict") and hasattr(value, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Splits tensors in nested ``inputs`` into parts along ``dim``, one per device; other objects are repeated.

    Returns a list with the inputs of each device. Gradients pass through.

    Example::

        >>> import vesta
        >>> [part.tolist() for part in vesta.nn.parallel.scatter(vesta.arange(4), ["cpu", "cpu"])]
        [[0, 1], [2, 3]]
    """
    devices = [as_device(target) for target in target_gpus]

    def cut(value: Any) -> list[Any]:
        if isinstance(value, Tensor):
            parts = value.chunk(len(devices), dim)
            return [part.to(device) for part, device in zip(parts, devices)]
        if is_namedtuple(value):
            return [type(value)(*parts) for parts in zip(*map(cut, value))]
        if isinstance(value, tuple) and value:
            return list(zip(*map(cut, value)))
        if isinstance(value, list) and value:
            return [list(parts) for parts in zip(*map(cut, value))]
        if isinstance(value, dict) and value:
            return [type(value)(parts) for parts in zip(*map(cut, value.items()))]
        return [value for _ in devices]

    return cut(inputs)


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Splits positional and keyword arguments; the shorter list is filled up with empty ones."""
    cut = scatter(inputs, target_gpus, dim) if inputs else []
    cut_kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(cut), len(cut_kwargs))
    cut.extend(() for _ in range(count - len(cut)))
    cut_kwargs.extend({} for _ in range(count - len(cut_kwargs)))
    return tuple(cut), tuple(cut_kwargs)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Joins the outputs of several devices along ``dim`` on ``target_device`` (0-d tensors: into a vector)."""
    device = as_device(target_device)

    def together(parts: Sequence[Any]) -> Any:
        first = parts[0]
        if isinstance(first, Tensor):
            moved = [part.to(device) for part in parts]
            return vesta.stack(moved) if first.dim() == 0 else vesta.cat(moved, dim)
        if first is None:
            return None
        if isinstance(first, dict):
            if any(len(part) != len(first) for part in parts):
                raise ValueError("All dicts must have the same number of keys")
            return type(first)((key, together([part[key] for part in parts])) for key in first)
        if is_namedtuple(first):
            return type(first)(*map(together, zip(*parts)))
        return type(first)(map(together, zip(*parts)))

    return together(list(outputs))
