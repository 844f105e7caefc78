"""Schedules of learning rates: ``step()`` once per epoch, or per batch, sets every group's ``lr``.

Most schedules are chainable: ``get_lr`` computes the next rate from the present one, so that several may act on one
optimizer. If a schedule also has a closed form, ``step(epoch)`` uses it.
"""

from __future__ import annotations

import bisect
import math
import types
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._names import listing
from vesta.optim.cyclic_schedules import CyclicLR, OneCycleLR
from vesta.optim.optimizer import Optimizer
from vesta.optim.rule import expect_line
from vesta.optim.schedule import LRScheduler, _for_each_group, _set

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class _FunctionLR(LRScheduler):
    """A schedule by functions, one for all groups or one for each; only the attributes of callable objects are
    saved."""

    @checked
    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        groups = len(optimizer.param_groups)
        functions = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(functions) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(functions)}")
        for function in functions:
            expect(type(self).__name__, "lr_lambda", function, Callable, "a function, or one for each group")
        self.lr_lambdas: list[Callable[[int], float]] = functions
        super().__init__(optimizer, last_epoch)

    def _factor(self, function: Callable[[int], float]) -> Any:
        """Calls one of the functions for the current epoch."""
        factor = function(self.last_epoch)
        expect(type(self).__name__, "lr_lambda", factor, (Real, Tensor), "a function that returns a float")
        return factor

    def state_dict(self) -> dict[str, Any]:
        """Returns everything but the optimizer and functions; for a callable object, its attributes."""
        state = {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else dict(fn.__dict__) for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned; functions do not change."""
        state_dict = dict(state_dict)
        attributes = state_dict.pop("lr_lambdas")
        self.__dict__.update(state_dict)
        for fn, saved in zip(self.lr_lambdas, attributes):
            if saved is not None:
                fn.__dict__.update(saved)


class LambdaLR(_FunctionLR):
    """lr = initial_lr * lr_lambda(epoch).

    Args:
        lr_lambda: a function of the epoch, or one for each group.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = vesta.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> optimizer.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        return [base * self._factor(fn) for fn, base in zip(self.lr_lambdas, self.base_lrs)]


class MultiplicativeLR(_FunctionLR):
    """lr *= lr_lambda(epoch) at every step but the first.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.5]
    """

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        if self.last_epoch <= 0:
            return self._rates()
        return [rate * self._factor(fn) for fn, rate in zip(self.lr_lambdas, self._rates())]


class StepLR(LRScheduler):
    """lr *= gamma every ``step_size`` epochs.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = vesta.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for epoch in range(4):
        ...     optimizer.step(); schedule.step()
        ...     rates += schedule.get_last_lr()
        >>> rates
        [1.0, 0.5, 0.5, 0.25]
    """

    @checked
    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise ValueError(f"StepLR: expected step_size >= 1, got {step_size} (step_size).")
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._rates()
        return [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """lr *= gamma at each of ``milestones``, numbers of epochs.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = lr_scheduler.MultiStepLR(optimizer, [1, 2], 0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.5]
    """

    @checked
    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        steps = list(milestones)
        for step in steps:
            expect(type(self).__name__, "milestones", step, Real, "an iterable of ints")
        self.milestones = Counter(steps)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        times = self.milestones[self.last_epoch]
        return [rate * self.gamma**times for rate in self._rates()] if times else self._rates()

    def _get_closed_form_lr(self) -> list[float]:
        passed = bisect.bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """lr = initial_lr * factor for ``total_iters`` epochs, initial_lr from then on.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = lr_scheduler.ConstantLR(optimizer, 0.5, 2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.5]
    """

    @checked
    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1.0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._rates()]
        if self.last_epoch != self.total_iters:
            return self._rates()
        if self.factor == 0:  # there is no way back from 0 but the rates it began with
            return list(self.base_lrs)
        return [rate * (1.0 / self.factor) for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        share = 1.0 if self.last_epoch >= self.total_iters else self.factor
        return [base * share for base in self.base_lrs]


class LinearLR(LRScheduler):
    """lr from initial_lr * start_factor to initial_lr * end_factor, linearly in ``total_iters`` epochs: a warm-up.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = vesta.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
        >>> schedule.get_last_lr()
        [0.5]
    """

    @checked
    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1.0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1.0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._rates()]
        if self.last_epoch > self.total_iters:
            return self._rates()
        slope = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * slope
        return [rate * (1.0 + slope / before) for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * share) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """lr *= gamma every epoch.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = lr_scheduler.ExponentialLR(optimizer, 0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.5]
    """

    @checked
    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        return self._rates() if self.last_epoch == 0 else [rate * self.gamma for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """lr = initial_lr * (1 - epoch / total_iters) ** power, then 0.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = lr_scheduler.PolynomialLR(optimizer, 4)
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.75]
    """

    @checked
    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        if self.last_epoch == 0 or self.last_epoch > self.total_iters:
            return self._rates()
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        factor = ((1.0 - self.last_epoch / self.total_iters) / before) ** self.power
        return [rate * factor for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (1.0 - share) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """lr = eta_min + (initial_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2.

    Loshchilov and Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017, without the restarts.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = vesta.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> optimizer.step(); schedule.step()
        >>> round(schedule.get_last_lr()[0], 6)
        0.5
    """

    @checked
    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_max < 1:
            raise ValueError(f"CosineAnnealingLR: expected T_max >= 1, got {T_max} (T_max).")
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        if self.last_epoch == 0:
            return self._rates()
        if self._step_count == 1:  # resumed: the rate of the previous epoch is unknown
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the minimum: nothing to multiply
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for base, rate in zip(self.base_lrs, self._rates())]
        now, before = (1 + math.cos(math.pi * epoch / self.T_max) for epoch in (self.last_epoch, self.last_epoch - 1))
        return [now / before * (rate - self.eta_min) + self.eta_min for rate in self._rates()]

    def _get_closed_form_lr(self) -> list[float]:
        share = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from initial_lr to eta_min in T_0 epochs, again and again, each time ``T_mult`` times as long.

    Loshchilov and Hutter, 2017. ``step`` takes fractions of an epoch: ``step(epoch + batch / batches)``.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> schedule = lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.5]
    """

    @checked
    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        share = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]

    def _advance(self, epoch: float | None) -> None:
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        self._step_count += 1
        position = self.last_epoch + 1 if epoch is None else epoch
        self._locate(position)
        self.last_epoch = math.floor(position)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set(group, "lr", rate)
        self._last_lr = self._rates()

    def _locate(self, position: float) -> None:
        """Finds the period in which ``position`` epochs lie, and how far into it."""
        self.T_i, self.T_cur = self.T_0, position
        if self.T_mult == 1:
            self.T_cur = position % self.T_0
            return
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult


class SequentialLR(LRScheduler):
    """Schedules one after the other; each begins at one of ``milestones``.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> warm_up = vesta.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
        >>> decay = vesta.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        >>> vesta.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, decay], milestones=[2]).get_last_lr()
        [0.5]
    """

    @checked
    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        expect(type(self).__name__, "schedulers", schedulers, Sequence, "a list of schedulers")
        for scheduler in schedulers:
            expect(type(self).__name__, "schedulers", scheduler, LRScheduler, "a list of schedulers")
        expect_line(type(self).__name__, "milestones", milestones, "a list of ints")
        for milestone in milestones:
            expect(type(self).__name__, "milestones", milestone, Real, "a list of ints")
        if not schedulers:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        if any(scheduler.optimizer is not optimizer for scheduler in schedulers):
            raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer.")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number "
                f"of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.optimizer = optimizer
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:  # undo what the schedules did at construction
            _set(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            scheduler.last_epoch -= 1
            scheduler._step_count -= 1
        schedulers[0]._initial_step()
        self._last_lr = schedulers[0].get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch."""
        self.last_epoch += 1
        i = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler.last_epoch = -1
            for group in self.optimizer.param_groups:
                _set(group, "lr", group["initial_lr"])
            scheduler._advance(0)
        else:
            scheduler._advance(None)
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self) -> dict[str, Any]:
        """Returns everything but the optimizer."""
        state = {key: value for key, value in self.__dict__.items() if key not in ("optimizer", "_schedulers")}
        return {**state, "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned."""
        state_dict = dict(state_dict)
        saved = state_dict.pop("_schedulers")
        self.__dict__.update(state_dict)
        for scheduler, state in zip(self._schedulers, saved):
            scheduler.load_state_dict(state)


class ChainedScheduler(LRScheduler):
    """Several schedules of one optimizer that step together.

    Example::

        >>> import vesta
        >>> from vesta.optim import SGD, lr_scheduler
        >>> optimizer = SGD([vesta.zeros(1, requires_grad=True)], lr=1.0)
        >>> first = lr_scheduler.ConstantLR(optimizer, 0.5, 2)
        >>> schedule = lr_scheduler.ChainedScheduler([first, lr_scheduler.ExponentialLR(optimizer, 0.5)])
        >>> optimizer.step()
        >>> schedule.step()
        >>> [round(rate, 4) for rate in schedule.get_last_lr()]
        [0.25]
    """

    @checked
    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        expect(type(self).__name__, "schedulers", schedulers, Sequence, "a list of schedulers")
        for scheduler in schedulers:
            expect(type(self).__name__, "schedulers", scheduler, LRScheduler, "a list of schedulers")
        if not schedulers:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        self.optimizer = optimizer or schedulers[0].optimizer
        if any(scheduler.optimizer is not self.optimizer for scheduler in schedulers):
            raise ValueError(f"{type(self).__name__} expects all schedulers to belong to the same optimizer.")
        self._schedulers = schedulers
        self._last_lr = self._rates()

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self._rates()

    state_dict = SequentialLR.state_dict
    load_state_dict = SequentialLR.load_state_dict


class ReduceLROnPlateau(LRScheduler):
    """lr *= factor when a metric has not improved for ``patience`` epochs.

    Args:
        mode: ``"min"`` if a falling metric is better, ``"max"`` otherwise.
        threshold, threshold_mode: how much counts as better, relative (``"rel"``) or absolute (``"abs"``).
        cooldown: epochs after a reduction in which nothing is counted.
        min_lr: the lowest rate; one for all groups, or one for each.
        eps: a smaller change is not made.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = vesta.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
        >>> schedule.step(1.0); schedule.step(1.0)
        >>> schedule.get_last_lr()
        [0.1]
    """

    @checked
    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.factor = factor
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.min_lrs = _for_each_group("min_lr", optimizer, min_lr)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = self._rates()
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def is_better(self, a: float, best: float) -> bool:
        """Returns whether ``a`` is better than ``best`` by more than the threshold."""
        sign = 1 if self.mode == "max" else -1
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        else:
            bound = best + sign * self.threshold
        return a > bound if self.mode == "max" else a < bound

    @property
    def in_cooldown(self) -> bool:
        """Whether the last reduction was so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Checks the epoch's metric and reduces the rates if it is time."""
        current = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = self._rates()

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(self.min_lrs) < len(groups):  # a group was added meanwhile
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}). Give one min_lr "
                    f"for all groups, or a new schedule."
                )
            self.min_lrs += [self.default_min_lr] * (len(groups) - len(self.min_lrs))
        for group, low in zip(groups, self.min_lrs):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                _set(group, "lr", new)


class _LRScheduler(LRScheduler):
    """``LRScheduler`` under its old name, from which programs derive."""


__dir__ = listing(globals())
