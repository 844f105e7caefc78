"""A random program: leaves, steps, and the loss; the reference runs it, and writes it as Python source.

A step knows its line of source and what the reference does for it. Every name is defined once, but tensors behind names
are written in place.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable

import numpy as np

from .hyper_dual import Array, Ref, Reference, Rejected

#: How many directions there are besides those of the leaves: for tensors whose gradient is kept.
PROBES = 16


@dataclass
class Step:
    """One line of a program, the names it needs and defines, and what the reference does."""

    line: str
    needs: tuple[str, ...]
    defines: tuple[str, ...]
    apply: Callable[[Reference], None]


@dataclass
class Leaf:
    name: str
    value: Array
    requires_grad: bool


@dataclass
class Program:
    """Leaves, steps, the weights of the tensors in the loss, and how the gradient is asked for."""

    seed: int
    leaves: list[Leaf]
    steps: list[Step]
    loss: list[tuple[str, float]] = field(default_factory=list)
    mode: str = "backward"

    def run(self) -> Run:
        """Runs the reference."""
        tracked = [leaf for leaf in self.leaves if leaf.requires_grad]
        count = sum(leaf.value.size for leaf in tracked)
        reference = Reference(count + PROBES)
        places = {}
        for leaf in self.leaves:
            t = reference.names[leaf.name] = reference.fresh(leaf.value, None, leaf.requires_grad, leaf.requires_grad)
            if leaf.requires_grad:
                places[leaf.name] = reference.probe(t, direction(leaf))
        for step in self.steps:
            if any(name not in reference.names for name in step.needs):
                raise Rejected("a name that is not there")
            step.apply(reference)
        loss = reference.number(0.0)
        for name, weight in self.loss:
            t = reference.names[name]
            w = weights(t.shape, weight)
            total = reference.linear(lambda x, lead, w=w: (x * w).sum(axis=tuple(range(lead, x.ndim))), t)
            loss = reference.add(loss, total)
        return Run(reference, places, loss)

    def source(self) -> str:
        """Returns the function of the module and the leaves that the library runs."""
        lines = [f"def program(m, {', '.join(leaf.name for leaf in self.leaves)}):"]
        lines += [f"    {line}" for step in self.steps for line in step.line.split("\n")]
        terms = [f"({name} * weights(m, {name}, {weight!r})).sum()" for name, weight in self.loss]
        lines.append(f"    loss = {' + '.join(terms) or 'm.zeros((), dtype=m.float64)'}")
        lines.append("    return loss, dict(locals())")
        return "\n".join(lines) + "\n"


@dataclass
class Run:
    """What the reference says: tensors by name, where a leaf's directions begin, and the loss."""

    reference: Reference
    places: dict[str, int]
    loss: Ref

    def gradient(self, name: str, size: int) -> Array:
        """Returns the derivative of the loss by a leaf, or by a tensor with directions of its own."""
        first = 1 + (self.places | self.reference.kept)[name]
        return self.loss.dual[first : first + size]

    def second(self, name: str, size: int) -> Array:
        """Returns the product of the second derivative by a leaf with the direction v."""
        first = 1 + self.reference.count + self.places[name]
        return self.loss.dual[first : first + size]


def weights(shape: tuple[int, ...], weight: float) -> Array:
    """Returns the weights of a tensor's elements in the loss: all different."""
    return weight + 0.25 * np.cos(np.arange(int(np.prod(shape)), dtype=np.float64)).reshape(shape)


def direction(leaf: Leaf) -> Array:
    """Returns the direction v of a leaf, along which second derivatives are taken."""
    return np.sin(1.0 + np.arange(leaf.value.size, dtype=np.float64)).reshape(leaf.value.shape)
