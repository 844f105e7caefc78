"""The reference of random programs: tensors of NumPy arrays that carry exact first and second derivatives.

A value is a hyper-dual number: besides x it has its derivative along one direction v, along each of the directions
e_i, and the mixed second derivatives. Rules of products and functions of one variable are all there is: nothing is
recorded, nothing runs backward, so it shares no idea with the tape that it checks. Views and writes are NumPy's, for
the values and, apart from them, for the derivatives: a detached tensor shares the former only.

Source: J. Fike, J. Alonso, The development of hyper-dual numbers for exact second-derivative calculations, 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

Array = np.ndarray
#: A function of an array whose leading dimensions, as many as its second argument says, it leaves alone.
Linear = Callable[[Array, int], Array]


class Rejected(Exception):
    """A step that a program must not have: no such memory, a number too large, a write that raises."""


@dataclass
class Memory:
    """What an allocation went through: how often it was written, and whether a recorded op has read it."""

    writes: int = 0
    read: bool = False


@dataclass
class History:
    """The autograd state that a tensor shares with its views: whether it requires grad, and whether it is a leaf."""

    tracked: bool = False
    leaf: bool = False


@dataclass
class Ref:
    """A tensor of the reference; ``dual`` has the same shape behind one dimension of derivatives."""

    value: Array
    dual: Array
    history: History
    memory: Memory
    view: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape


class Reference:
    """Runs steps of a program; ``count`` is the number of directions e_i."""

    def __init__(self, count: int) -> None:
        self.count, self.grad_enabled = count, True
        self.names: dict[str, Ref] = {}
        self.corner = False  # a derivative does not exist here
        self.may_refuse = False  # something a recorded op has read was written: backward may raise
        self.overlapped = False  # a write read, by another operand, the memory that it wrote
        self.next_direction = 0
        self.kept: dict[str, int] = {}  # tensors that keep their gradient, with their first direction
        self.scale = 1.0  # the largest derivative met

    # ---- making tensors ----

    def fresh(self, value: Array, dual: Array | None = None, tracked: bool = False, leaf: bool = False) -> Ref:
        value = np.array(value, dtype=np.float64)
        if dual is None:
            dual = np.zeros((1 + 2 * self.count, *value.shape))
        return Ref(value, np.array(dual), History(tracked, leaf), Memory())

    def probe(self, t: Ref, v: Array | None = None) -> int:
        """Gives each element of ``t`` a direction of its own; returns the first one's number."""
        first = self.next_direction
        if first + t.value.size > self.count:
            raise Rejected("no direction left")
        self.next_direction += t.value.size
        flat = np.zeros((self.count, t.value.size))
        flat[first : self.next_direction] = np.eye(t.value.size)
        t.dual[1 : 1 + self.count] += flat.reshape(self.count, *t.shape)
        if v is not None:
            t.dual[0] += v
        return first

    def result(self, value: Array, dual: Array, *operands: Ref, saved: bool = False) -> Ref:
        """Makes the result of an op: it is tracked if an operand is and gradients are on, and may be saved itself."""
        tracked = self.grad_enabled and any(t.history.tracked for t in operands)
        for t in operands:
            t.memory.read |= tracked
        if not np.all(np.isfinite(value)) or (value.size and np.abs(value).max() > 1e4):
            raise Rejected("too large")
        if tracked:
            largest = float(np.abs(dual).max()) if dual.size else 0.0
            if not largest < 1e6:
                raise Rejected("too steep")
            self.scale = max(self.scale, largest)
        made = self.fresh(value, dual if tracked else None, tracked)
        made.memory.read = saved and tracked
        return made

    # ---- ops ----

    def linear(self, f: Linear, a: Ref) -> Ref:
        """Applies a linear function, which does not depend on values, or depends on them as the caller has seen."""
        return self.result(f(a.value, 0), f(a.dual, 1), a)

    def view(self, f: Linear, a: Ref) -> Ref:
        """Applies a function that returns a view."""
        value, dual = f(a.value, 0), f(a.dual, 1)
        if not self.grad_enabled or (value.size and not np.shares_memory(value, a.value)):
            raise Rejected("no view")
        return Ref(value, dual, a.history, a.memory, True)

    def views(self, f: Callable[[Array, int], Sequence[Array]], a: Ref) -> list[Ref]:
        """Applies a function that returns several views."""
        return [Ref(v, d, a.history, a.memory, True) for v, d in zip(f(a.value, 0), f(a.dual, 1))]

    def detach(self, a: Ref) -> Ref:
        return Ref(a.value, np.zeros_like(a.dual), History(), a.memory, view=True)

    def unary(self, functions: tuple, a: Ref) -> Ref:
        """Applies a function of one variable, given with its first and second derivative."""
        f, f1, f2 = functions
        with np.errstate(all="ignore"):
            x, n = a.value, self.count
            y, s = f(x), f1(x)
            dual = s * a.dual
            if a.history.tracked:
                dual[1 + n :] += f2(x) * a.dual[0] * a.dual[1 : 1 + n]
        return self.result(y, dual, a, saved=True)

    def bilinear(self, op: Callable[[Array, Array], Array], a: Ref, b: Ref) -> Ref:
        """Applies a product of two: elementwise, of matrices, ..."""
        n, x, y = self.count, a.value, b.value
        p, q = a.dual, b.dual
        first = op(x, q) + op(p, y)
        mixed = op(p[0], q[1 : 1 + n]) + op(p[1 : 1 + n], q[0])
        first[1 + n :] += mixed
        return self.result(op(x, y), first, a, b)

    def expand(self, a: Ref, shape: tuple[int, ...]) -> Ref:
        """Returns ``a`` as if it had a larger shape; not a step of a program."""
        dual = a.dual.reshape(len(a.dual), *(1,) * (len(shape) - a.value.ndim), *a.shape)
        dual = np.broadcast_to(dual, (len(dual), *shape))
        return Ref(np.broadcast_to(a.value, shape), dual, a.history, a.memory)

    def together(self, *operands: Ref) -> list[Ref]:
        try:
            shape = np.broadcast_shapes(*(t.shape for t in operands))
        except ValueError as error:
            raise Rejected("shapes") from error
        return [self.expand(t, shape) for t in operands]

    def add(self, a: Ref, b: Ref, alpha: float = 1.0) -> Ref:
        a, b = self.together(a, b)
        return self.result(a.value + alpha * b.value, a.dual + alpha * b.dual, a, b)

    def mul(self, a: Ref, b: Ref) -> Ref:
        return self.bilinear(np.multiply, *self.together(a, b))

    def number(self, value: float) -> Ref:
        return self.fresh(np.array(value))

    def choose(self, mask: Array, a: Ref, b: Ref) -> Ref:
        a, b = self.together(a, b)
        return self.result(np.where(mask, a.value, b.value), np.where(mask, a.dual, b.dual), a, b)

    def near_corner(self, distance: Array) -> None:
        """Notes a comparison whose outcome a small step could change."""
        if distance.size and float(np.abs(distance).min()) < 1e-4:
            self.corner = True

    def stack_of(self, f: Callable[[list[Array], int], Array], operands: list[Ref]) -> Ref:
        """Applies a linear function of a list of tensors (cat, stack)."""
        value = f([t.value for t in operands], 0)
        return self.result(value, f([t.dual for t in operands], 1), *operands)

    # ---- writes ----

    def write(self, target: Ref, new: Ref, part: Any = (...,)) -> None:
        """Writes ``new`` into a part of ``target``, as an in-place op would."""
        strides = [s for s, n in zip(target.value.strides, target.shape) if n > 1]
        if 0 in strides:
            raise Rejected("elements share memory")
        if np.broadcast_shapes(new.shape, target.value[part].shape) != target.value[part].shape:
            raise Rejected("shapes")
        recorded = self.grad_enabled and (target.history.tracked or new.history.tracked)
        if self.grad_enabled and target.history.tracked and target.history.leaf:
            raise Rejected("raises: a leaf")
        if target.memory.read:
            self.may_refuse = True
        new = self.expand(new, target.value[part].shape)
        target.value[part] = new.value
        if self.grad_enabled:
            target.dual[(slice(None), *part)] = new.dual
        if recorded:
            target.history.tracked, target.history.leaf = True, False
        target.memory.writes += 1
