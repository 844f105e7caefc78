"""Schedules that go up and down: triangles, and one cycle; momentum goes the other way."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from numbers import Real
from typing import Any

from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.optim.optimizer import Optimizer
from vesta.optim.schedule import LRScheduler, _for_each_group, _set, _set_momentum

__all__ = ["CyclicLR", "OneCycleLR"]


class CyclicLR(LRScheduler):
    """Up from base_lr to max_lr and down again, in triangles; momentum goes the other way.

    Smith, "Cyclical learning rates for training neural networks", 2017. Call ``step`` once per batch.

    Args:
        base_lr, max_lr: the lowest and the highest rate; one for all groups, or one for each.
        step_size_up, step_size_down: how many steps a side takes; default: both the same.
        mode: ``"triangular"`` (all the same height), ``"triangular2"`` (half the height each time) or ``"exp_range"``
            (height * gamma ** step).
        gamma: see above.
        scale_fn: a function that gives the height's factor instead of ``mode``.
        scale_mode: what it is a function of: ``"cycle"`` or ``"iterations"``.
        cycle_momentum, base_momentum, max_momentum: whether the momentum (or beta1) moves, and between which values.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0, momentum=0.9)
        >>> schedule = vesta.optim.lr_scheduler.CyclicLR(optimizer, 0.0, 1.0, step_size_up=2)
        >>> rates = []
        >>> for batch in range(4):
        ...     rates += schedule.get_last_lr()
        ...     optimizer.step(); schedule.step()
        >>> rates
        [0.0, 0.5, 1.0, 0.5]
    """

    @checked
    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        down = step_size_up if step_size_down is None else step_size_down
        if step_size_up < 1 or down < 1:
            raise ValueError(f"CyclicLR: expected sides of at least 1 step, got {step_size_up} and {down}.")
        self.optimizer = optimizer
        base_lrs = _for_each_group("base_lr", optimizer, base_lr)
        self.max_lrs = _for_each_group("max_lr", optimizer, max_lr)
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for rate, group in zip(base_lrs, optimizer.param_groups):
                _set(group, "lr", rate)
        if cycle_momentum:
            self._prepare_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _prepare_momentum(self, low: Any, high: Any, last_epoch: int) -> None:
        if not {"momentum", "betas"} & set(self.optimizer.defaults):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in self.optimizer.defaults
        self.base_momentums = _for_each_group("base_momentum", self.optimizer, low)
        self.max_momentums = _for_each_group("max_momentum", self.optimizer, high)
        if last_epoch == -1:
            for base, most, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups):
                _set_momentum(group, most)
                group["max_momentum"], group["base_momentum"] = most, base

    def scale_fn(self, x: float) -> float:
        """Returns the factor of the height in a cycle, or at a step."""
        if self._scale_fn_custom is not None:
            factor = self._scale_fn_custom(x)
            expect("CyclicLR", "scale_fn", factor, (Real, Tensor), "a function that returns a number")
            return factor
        return {"triangular": 1.0, "triangular2": 0.5 ** (x - 1), "exp_range": self.gamma**x}[self.mode]

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group, and sets its momentum."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        share = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        share *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for base, most, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups):
                _set_momentum(group, most - (most - base) * share)
        return [base + (most - base) * share for base, most in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Returns everything but the optimizer and ``scale_fn``; for a callable object, its attributes."""
        state = super().state_dict()
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned; functions do not change."""
        state_dict = dict(state_dict)
        attributes = state_dict.pop("_scale_fn_custom")
        super().load_state_dict(state_dict)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, then down to initial / final_div_factor; momentum goes the other way.

    Smith and Topin, "Super-convergence: very fast training of neural networks using large learning rates", 2018. Call
    ``step`` once per batch.

    Args:
        max_lr: the peak, or one for each group.
        total_steps: length of the cycle, or give ``epochs`` and ``steps_per_epoch``.
        pct_start: fraction of the steps that go up.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        cycle_momentum, base_momentum, max_momentum: whether the momentum (or beta1) moves, and between which values.
        three_phase: go down as slowly as up, then further to the final rate.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.8117]
    """

    @checked
    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.optimizer = optimizer
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if not isinstance(total_steps, int) or total_steps <= 0:
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if div_factor <= 0 or final_div_factor <= 0:
            raise ValueError(
                f"OneCycleLR: expected div_factor and final_div_factor > 0, got {div_factor} and {final_div_factor}."
            )
        if not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self.total_steps = total_steps
        up = float(pct_start * total_steps) - 1
        ends = [up, 2 * up, total_steps - 1] if three_phase else [up, total_steps - 1]
        names = ["initial_lr", "max_lr", "initial_lr", "min_lr"] if three_phase else ["initial_lr", "max_lr", "min_lr"]
        low, high = "base_momentum", "max_momentum"
        momenta = [high, low, high, high] if three_phase else [high, low, high]
        self._schedule_phases = [
            (ends[i], names[i], names[i + 1], momenta[i], momenta[i + 1]) for i in range(len(ends))
        ]
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = "betas" in self.optimizer.defaults
        if last_epoch == -1:
            self._prepare_groups(max_lr, div_factor, final_div_factor, base_momentum, max_momentum)
        super().__init__(optimizer, last_epoch)

    def _prepare_groups(self, max_lr: Any, div_factor: float, final_div_factor: float, low: Any, high: Any) -> None:
        groups = self.optimizer.param_groups
        if self.cycle_momentum and not {"momentum", "betas"} & set(self.optimizer.defaults):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        peaks = _for_each_group("max_lr", self.optimizer, max_lr)
        lows, highs = (
            _for_each_group(n, self.optimizer, v) for n, v in (("base_momentum", low), ("max_momentum", high))
        )
        for group, peak, base_momentum, max_momentum in zip(groups, peaks, lows, highs):
            group["initial_lr"] = peak / div_factor
            group["max_lr"] = peak
            group["min_lr"] = group["initial_lr"] / final_div_factor
            if self.cycle_momentum:
                group["max_momentum"], group["base_momentum"] = max_momentum, base_momentum
                _set_momentum(group, max_momentum)

    def _anneal(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group, and sets its momentum."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        rates = []
        for group in self.optimizer.param_groups:
            start: float = 0
            for i, (end, lr_from, lr_to, momentum_from, momentum_to) in enumerate(self._schedule_phases):
                if step <= end or i == len(self._schedule_phases) - 1:
                    share = (step - start) / (end - start)
                    rates.append(self._anneal(group[lr_from], group[lr_to], share))
                    if self.cycle_momentum:
                        _set_momentum(group, self._anneal(group[momentum_from], group[momentum_to], share))
                    break
                start = end
        return rates
