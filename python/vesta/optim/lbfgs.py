"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import vesta
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.optim.optimizer import Optimizer, ParamsT, check, number

__all__ = ["LBFGS"]

_CURVATURE = 1e-10  # a pair of differences with a smaller product is not kept


class LBFGS(Optimizer):
    """The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno, for all parameters as one vector.

    Liu and Nocedal, "On the limited memory BFGS method for large scale optimization", 1989; the line search is that of
    Nocedal and Wright, "Numerical optimization", 2006, algorithms 3.5 and 3.6.

    Args:
        params: tensors, or one dict of them: there is only one group. All on one device.
        lr: step size, if there is no line search; the first step is at most lr / |g|_1 long.
        max_iter: iterations per step.
        max_eval: evaluations of the function per step; default: 1.25 * max_iter.
        tolerance_grad: ends the step when no element of the gradient is greater.
        tolerance_change: ends the step when function and parameters change less.
        history_size: the number of pairs that are kept.
        line_search_fn: ``"strong_wolfe"`` or None.
        maximize: ascend instead of descending.

    Example::

        >>> import vesta
        >>> x = vesta.nn.Parameter(vesta.tensor([3.0, -2.0]))
        >>> optimizer = vesta.optim.LBFGS([x], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((x - 1) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> bool(vesta.allclose(x, vesta.ones(2)))
        True
    """

    _numbers_known = True

    @checked
    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
        *,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check("lr", lr, number(lr) >= 0.0, "learning rate")
        if line_search_fn not in (None, "strong_wolfe"):
            raise ValueError(f"LBFGS: only 'strong_wolfe' is supported, got {line_search_fn!r} (line_search_fn).")
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
            "maximize": maximize,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    # ---- all parameters as one vector ----

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        """Returns the gradient of what is minimised."""
        parts = []
        for param in self._params:
            grad = vesta.zeros_like(param) if param.grad is None else param.grad
            parts.append((vesta.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        flat = vesta.cat(parts)
        return -flat if self.param_groups[0]["maximize"] else flat

    def _move(self, step: float, direction: Tensor) -> None:
        start = 0
        for param in self._params:
            real = vesta.view_as_real(param) if param.is_complex() else param
            real.add_(direction[start : start + real.numel()].view(real.shape), alpha=step)
            start += real.numel()

    def _evaluate(self, closure: Callable[[], Any]) -> tuple[Any, float]:
        """Returns what the closure returns, and the value that is minimised."""
        with vesta.enable_grad():
            result = closure()
        loss = float(result)
        return result, -loss if self.param_groups[0]["maximize"] else loss

    # ---- the step ----

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Minimises until one of the tolerances holds, at most ``max_iter`` iterations.

        Args:
            closure: clears the gradients, computes the loss and its gradients, and returns the loss.

        Returns:
            the loss before.
        """
        expect("LBFGS.step", "closure", closure, Callable, "a function")
        with vesta.no_grad():
            return self._minimize(closure)

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, change = number(group["lr"]), group["tolerance_change"]
        state = self.state[self._params[0]]
        for name in ("func_evals", "n_iter"):
            state.setdefault(name, 0)
        first, loss = self._evaluate(closure)
        evaluations = 1
        state["func_evals"] += 1
        gradient = self._gradient()
        if _largest(gradient) <= group["tolerance_grad"]:
            return first
        direction, step = state.get("d"), number(state.get("t"))
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                direction = -gradient
                state.update({"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1})
                step = min(1.0, 1.0 / gradient.abs().sum().item()) * lr
            else:
                self._remember(state, gradient - state["prev_flat_grad"], direction * step)
                direction = self._direction(state, gradient)
                step = lr
            before, state["prev_flat_grad"], state["prev_loss"] = loss, gradient.clone(), loss
            slope = gradient.dot(direction).item()
            if slope > -change:
                break
            count = 0
            if group["line_search_fn"] is not None:
                search = _WolfeSearch(self, closure, direction, group["max_eval"] - evaluations, change)
                found = search.run(_Point(0.0, loss, gradient, slope), step)
                loss, gradient, step, count = found.value, found.gradient, found.at, search.count
                self._move(step, direction)
            else:
                self._move(step, direction)
                if iteration != group["max_iter"]:  # the next step begins with this evaluation
                    loss, gradient, count = self._evaluate(closure)[1], self._gradient(), 1
            evaluations += count
            state["func_evals"] += count
            if (
                evaluations >= group["max_eval"]
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(direction) * abs(step) <= change
                or abs(loss - before) < change
            ):
                break
        state["d"], state["t"] = direction, step
        return first

    def _remember(self, state: dict[str, Any], y: Tensor, s: Tensor) -> None:
        """Keeps a difference of gradients and one of parameters, unless the function is not convex between them."""
        product = y.dot(s).item()
        if product <= _CURVATURE:
            return
        kept = {"old_dirs": y, "old_stps": s, "ro": 1.0 / product}
        for name, value in kept.items():
            if len(state[name]) == self.param_groups[0]["history_size"]:
                state[name].pop(0)
            state[name].append(value)
        state["H_diag"] = product / y.dot(y).item()

    def _direction(self, state: dict[str, Any], gradient: Tensor) -> Tensor:
        """Returns minus the inverse Hessian's estimate times the gradient, by two loops over the pairs."""
        pairs = list(zip(state["old_dirs"], state["old_stps"], map(number, state["ro"])))  # files hold 0-d tensors
        shares = state.setdefault("al", [None] * self.param_groups[0]["history_size"])
        q = -gradient
        for i in range(len(pairs) - 1, -1, -1):
            y, s, inverse = pairs[i]
            shares[i] = s.dot(q).item() * inverse
            q.add_(y, alpha=-shares[i])
        r = q.mul_(number(state["H_diag"]))
        for (y, s, inverse), share in zip(pairs, shares):
            r.add_(s, alpha=share - y.dot(r).item() * inverse)
        return r


def _largest(x: Tensor) -> float:
    return x.abs().max().item()


class _Point(NamedTuple):
    """A place on the line: how far, the value, the gradient, the slope along the line."""

    at: float
    value: float
    gradient: Tensor
    slope: float


def _cubic_minimum(a: _Point, b: _Point, low: float, high: float) -> float:
    """Returns where the cubic through two values and slopes is least, in [low, high]; the middle if it has no minimum.

    Nocedal and Wright, 2006, equation 3.59.
    """
    if a.at > b.at:
        a, b = b, a
    if a.at == b.at:
        return (low + high) / 2
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.at - b.at)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = square**0.5
    divisor = b.slope - a.slope + 2 * d2
    if divisor == 0:
        return (low + high) / 2
    return min(max(b.at - (b.at - a.at) * ((b.slope + d2 - d1) / divisor), low), high)


class _WolfeSearch:
    """A search along a line for a step that holds the strong Wolfe conditions."""

    _decrease, _curvature = 1e-4, 0.9  # c1 and c2

    def __init__(
        self, optimizer: LBFGS, closure: Callable[[], Any], direction: Tensor, evaluations: int, tolerance: float
    ) -> None:
        self.optimizer, self.closure, self.direction = optimizer, closure, direction
        self.evaluations, self.tolerance = evaluations, tolerance
        self.start = [param.clone() for param in optimizer._params]
        self.count = 0

    def point(self, at: float) -> _Point:
        """Evaluates the function at a place of the line, and goes back to its start."""
        self.optimizer._move(at, self.direction)
        value = self.optimizer._evaluate(self.closure)[1]
        gradient = self.optimizer._gradient()
        for param, start in zip(self.optimizer._params, self.start):
            param.copy_(start)
        self.count += 1
        return _Point(at, value, gradient, gradient.dot(self.direction).item())

    def falls_enough(self, point: _Point) -> bool:
        return point.value <= self.origin.value + self._decrease * point.at * self.origin.slope

    def is_flat(self, point: _Point) -> bool:
        return abs(point.slope) <= -self._curvature * self.origin.slope

    def run(self, origin: _Point, step: float) -> _Point:
        """Returns the step found; if evaluations run out, the best of the bracket."""
        self.origin = previous = origin
        point = self.point(step)
        tries = 0
        while tries < self.evaluations:
            if not self.falls_enough(point) or (tries > 1 and point.value >= previous.value):
                break
            if self.is_flat(point):
                return point
            if point.slope >= 0:
                break
            low, high = point.at + 0.01 * (point.at - previous.at), point.at * 10
            previous, point = point, self.point(_cubic_minimum(previous, point, low, high))
            tries += 1
        else:
            previous = origin
        return self.zoom(previous, point, tries)

    def zoom(self, a: _Point, b: _Point, tries: int) -> _Point:
        """Returns a step between two, the better of which holds the first condition."""
        best, other = (a, b) if a.value <= b.value else (b, a)
        stalled, length = False, _largest(self.direction)
        while tries < self.evaluations and abs(other.at - best.at) * length >= self.tolerance:
            low, high = min(best.at, other.at), max(best.at, other.at)
            at = _cubic_minimum(best, other, low, high)
            margin = 0.1 * (high - low)
            if min(high - at, at - low) >= margin:
                stalled = False
            elif stalled or at >= high or at <= low:  # twice near an end: move away from it
                at = high - margin if abs(at - high) < abs(at - low) else low + margin
                stalled = False
            else:
                stalled = True
            point = self.point(at)
            tries += 1
            if not self.falls_enough(point) or point.value >= best.value:
                best, other = (best, point) if best.value <= point.value else (point, best)
                continue
            if self.is_flat(point):
                return point
            best, other = point, best if point.slope * (other.at - best.at) >= 0 else other
        return best
