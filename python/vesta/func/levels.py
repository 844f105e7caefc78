"""What the transformations share: the points that they differentiate at, and what an outer one still needs.

A level is a call of a transformation. Its points are tensors of its own, so nothing is recorded in the arguments. An
argument that records already belongs to an outer level (or to the program): its point is a step of that graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import vesta
from vesta import Tensor
from vesta.utils._pytree import TreeSpec, tree_flatten


def points(name: str, value: Any, argument: str) -> tuple[list[Tensor], TreeSpec]:
    """Returns the tensors of a tree of tensors and its structure. ValueError: a leaf is no tensor."""
    leaves, spec = tree_flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{name}: Expected {argument} to contain only tensors, got {type(leaf).__name__}.")
    return leaves, spec


def enter(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Returns the points of a level for these arguments. RuntimeError: one has no derivatives (integers)."""
    made = []
    for tensor in tensors:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            raise RuntimeError(
                f"only Tensors of floating point and complex dtype can require gradients, got {tensor.dtype}. "
                "Convert it with .to()."
            )
        made.append(tensor.view_as(tensor) if tensor.requires_grad else tensor.detach().requires_grad_())
    return made


def is_outer(outputs: Iterable[Tensor], given: Iterable[Tensor], own: Iterable[Tensor], recording: bool) -> bool:
    """Returns whether something outside of the level may differentiate the results.

    Args:
        outputs: the level's results.
        given: its arguments, as the caller gave them.
        own: its points.
        recording: whether the caller records.
    """
    if not recording:
        return False
    if any(tensor.requires_grad for tensor in given):
        return True
    mine = {id(tensor) for tensor in own}
    waiting = [out.grad_fn for out in outputs if out.grad_fn is not None]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None and id(variable) not in mine:
            return True  # a tensor that the function uses besides its arguments
        waiting.extend(following for following, _ in node.next_functions)
    return False


def leave(tensors: Iterable[Any], outer: bool) -> list[Any]:
    """Returns results as the caller gets them: with their graph only if something outside may use it."""
    return [t if outer or not isinstance(t, Tensor) else t.detach() for t in tensors]


def gradients(
    outputs: Iterable[Tensor],
    inputs: list[Tensor],
    vectors: Iterable[Tensor],
    create_graph: bool,
    retain_graph: bool = True,
) -> list[Tensor]:
    """Returns v^T J for each input; zeros where nothing leads to it."""
    used = [(out, v) for out, v in zip(outputs, vectors) if out.requires_grad]
    found: Any = [None] * len(inputs)
    if used:
        found = vesta.autograd.grad(
            [out for out, _ in used],
            inputs,
            [v for _, v in used],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    return [vesta.zeros_like(x) if g is None else g for g, x in zip(found, inputs)]
