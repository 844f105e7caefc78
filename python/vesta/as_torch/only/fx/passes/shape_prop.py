"""Shapes of the steps of a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import vesta
from vesta import Tensor
from vesta.as_torch.only.fx.interpreter import Interpreter
from vesta.as_torch.only.fx.node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What a step's result is like, in ``node.meta["tensor_meta"]``."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _described(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    formats = (vesta.contiguous_format, vesta.channels_last, vesta.channels_last_3d)
    found = next((f for f in formats if _is_laid_out(value, f)), None)
    return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(), found, False, {})


def _is_laid_out(value: Tensor, memory_format: Any) -> bool:
    dims = {vesta.channels_last: 4, vesta.channels_last_3d: 5}.get(memory_format, value.dim())
    return value.dim() == dims and value.is_contiguous(memory_format=memory_format)


class ShapeProp(Interpreter):
    """Runs a graph, and notes what the results of its steps are like: ``tensor_meta`` and ``type`` in ``meta``."""

    def run_node(self, n: Node) -> Any:
        """Runs a step, and notes what its result is like."""
        result = super().run_node(n)
        found = map_aggregate(result, _described)
        if any(isinstance(part, TensorMetadata) for part in _parts(found)):
            n.meta["tensor_meta"] = found
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Runs the graph with inputs, and returns its output."""
        return self.run(*args)


def _parts(a: Any) -> list[Any]:
    if isinstance(a, TensorMetadata):
        return [a]
    values = a.values() if isinstance(a, dict) else a if isinstance(a, (list, tuple)) else ()
    return [part for value in values for part in _parts(value)]
