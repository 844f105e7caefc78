"""What the tests of the meta device compare: arguments without memory, and results apart from their values."""

from __future__ import annotations

from typing import Any

import vesta


def on_meta(value: Any) -> Any:
    """Replaces every tensor of nested arguments by one of the same geometry on the meta device."""
    if isinstance(value, vesta.Tensor):
        made = vesta.empty_strided(value.size(), value.stride(), dtype=value.dtype, device="meta")
        return made.requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {key: on_meta(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(on_meta(item) for item in value)
    return value


def facts(value: Any) -> Any:
    """What a result is, apart from its values."""
    if isinstance(value, vesta.Tensor):
        strides = value.stride() if value.numel() else ()
        return tuple(value.shape), value.dtype, strides, value.requires_grad
    if isinstance(value, (tuple, list)):
        return [facts(item) for item in value]
    return type(value)


def devices(value: Any) -> set[str]:
    if isinstance(value, vesta.Tensor):
        return {value.device.type}
    return set().union(*(devices(item) for item in value)) if isinstance(value, (tuple, list)) else set()
