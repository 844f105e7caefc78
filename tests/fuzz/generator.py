"""Draws a program: a step is drawn, run on the reference at once, and dropped where that refuses.

So shapes always fit, and numbers stay small. What steps there are stands in ``steps.py``.
"""

from __future__ import annotations

import random
from typing import Any, Callable

import numpy as np

from .hyper_dual import Ref, Reference, Rejected
from .program import Leaf, Program, Step

#: Draws a step, or several that belong together.
Maker = Callable[["Generator"], "Step | list[Step]"]


class Generator:
    """Draws a program from a seed."""

    def __init__(self, seed: int, makers: list[tuple[Maker, int]]) -> None:
        self.dice = random.Random(seed)
        self.program = Program(seed, [], [])
        self.kept: set[str] = set()  # names with a hook or a kept gradient
        self.count = 0
        self.makers = [maker for maker, share in makers for _ in range(share)]

    def generate(self) -> Program:
        dice = self.dice
        for i in range(dice.randint(1, 3)):
            shape = dice.choice([(), (1,), (3,), (2, 2), (2, 3), (3, 1), (2, 1, 2), (0, 2)])
            value = np.array([dice.uniform(-2, 2) for _ in range(int(np.prod(shape)))]).reshape(shape)
            self.program.leaves.append(Leaf(f"x{i}", value, i == 0 or dice.random() < 0.75))
        self.reference = self.program.run().reference
        for _ in range(dice.randint(4, 18)):
            for _ in range(5):
                if self.attempt(dice.choice(self.makers)):
                    break
        self.finish()
        return self.program

    def attempt(self, maker: Maker) -> bool:
        """Draws a step and runs it; returns whether the program has it now."""
        try:
            made = maker(self)
        except Rejected:
            return False
        steps = [made] if isinstance(made, Step) else made
        for step in steps:
            try:
                with np.errstate(all="ignore"):
                    step.apply(self.reference)
            except (Rejected, ValueError, IndexError):  # NumPy's, where shapes do not fit
                return False
            self.program.steps.append(step)
        return bool(steps)

    def finish(self) -> None:
        """Chooses what the loss is made of, and how the gradient is asked for."""
        names = [name for name, t in self.reference.names.items() if t.history.tracked]
        chosen = self.dice.sample(names, min(len(names), self.dice.randint(1, 4)))
        if names and names[-1] not in chosen:
            chosen.append(names[-1])
        self.program.loss = [(name, round(self.dice.uniform(0.5, 1.5), 2)) for name in chosen]
        while self.program.loss:
            try:
                with np.errstate(all="ignore"):
                    self.program.run()
                break
            except Rejected:  # the sum is too large
                self.program.loss.pop()
        modes = ["backward", "grad", "second", "second", "twice", "threads", "one graph"]
        self.program.mode = self.dice.choice(modes) if names else "values"

    # ---- drawing ----

    def new(self) -> str:
        self.count += 1
        return f"t{self.count}"

    def pick(self, accept: Callable[[Ref], bool] = lambda t: True) -> str:
        """Draws a tensor, later ones more often."""
        names = [name for name, t in self.reference.names.items() if accept(t)]
        if not names:
            raise Rejected("no such tensor")
        return names[max(self.dice.randrange(len(names)), self.dice.randrange(len(names)))]

    def at(self, name: str) -> Ref:
        return self.reference.names[name]

    def defined(self, source: str, needs: tuple[str, ...], make: Callable[[Reference, list[Ref]], Ref]) -> Step:
        """Makes a step that defines a new name."""
        target = self.new()

        def apply(r: Reference) -> None:
            r.names[target] = make(r, [r.names[name] for name in needs])

        return Step(f"{target} = {source}", needs, (target,), apply)

    def written(
        self,
        source: str,
        needs: tuple[str, ...],
        make: Callable[[Reference, list[Ref]], Ref],
        part: Any = (...,),
    ) -> Step:
        """Makes a step that writes to the first of the names it needs."""
        without_grad = self.dice.random() < 0.12

        def apply(r: Reference) -> None:
            before, r.grad_enabled = r.grad_enabled, r.grad_enabled and not without_grad
            try:
                operands = [r.names[name] for name in needs]
                target = operands[0]
                read = target.memory.read
                new = make(r, operands)
                read_now = target.memory.read or new.memory.read
                if all(t.memory is not target.memory for t in operands[1:]):
                    target.memory.read = read  # what the write itself reads it keeps a copy of
                else:
                    r.overlapped = True
                r.write(target, new, part)
                target.memory.read = read_now
            finally:
                r.grad_enabled = before

        return Step(f"with m.no_grad(): {source}" if without_grad else source, needs, (), apply)
