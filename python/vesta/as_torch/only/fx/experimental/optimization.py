"""Passes that make a module for inference simpler."""

from __future__ import annotations

import copy
from typing import Any

from vesta import nn
from vesta.as_torch.only.fx._symbolic_trace import symbolic_trace
from vesta.as_torch.only.fx.graph_module import GraphModule
from vesta.as_torch.only.fx.interpreter import Transformer
from vesta.as_torch.only.fx.node import Node
from vesta.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

#: What precedes a normalization that its weights can take in.
_FUSED = (
    (nn.Conv1d, nn.BatchNorm1d),
    (nn.Conv2d, nn.BatchNorm2d),
    (nn.Conv3d, nn.BatchNorm3d),
    (nn.Linear, nn.BatchNorm1d),
)


def matches_module_pattern(pattern: Any, node: Node, modules: dict[str, Any]) -> bool:
    """Returns whether a node, and the one it takes, are calls of modules of the two given classes."""
    before = node.args[0] if node.args else None
    steps = (before, node)
    if any(not isinstance(step, Node) or step.op != "call_module" or step.target not in modules for step in steps):
        return False
    return all(type(modules[step.target]) is kind for step, kind in zip(steps, pattern))  # type: ignore[union-attr]


def replace_node_module(node: Node, modules: dict[str, Any], new_module: nn.Module) -> None:
    """Puts a module in the place of the one that a node calls."""
    above, _, name = str(node.target).rpartition(".")
    modules[str(node.target)] = new_module
    setattr(modules[above], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Returns a module for inference, whose convolutions and linear layers take in the normalization after them.

    Args:
        model: the module, in ``eval()``.
        inplace: whether its own modules may be changed.
        no_trace: whether a ``GraphModule`` is taken as it is.
    """
    model = model if inplace else copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern in _FUSED:
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            first, norm = modules[node.args[0].target], modules[node.target]
            if norm.track_running_stats:
                join = fuse_linear_bn_eval if isinstance(first, nn.Linear) else fuse_conv_bn_eval
                replace_node_module(node.args[0], modules, join(first, norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], nn.Dropout):
            return args[0]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: nn.Module) -> GraphModule:
    """Returns the module without its ``Dropout`` layers."""
    return _WithoutDropout(symbolic_trace(model)).transform()
