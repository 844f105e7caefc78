"""``torch.onnx.symbolic_helper``: decorators of functions that would write ONNX operators, and are never called."""

from __future__ import annotations

from typing import Any

__all__ = ["parse_args", "quantized_args"]


def parse_args(*arg_descriptors: str) -> Any:
    """Returns a decorator that returns what it decorates."""
    return lambda fn: fn


def quantized_args(*arg_q_descriptors: bool, **kwargs: Any) -> Any:
    """Returns a decorator that returns what it decorates."""
    return lambda fn: fn
