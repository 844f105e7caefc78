"""The base of schedules, and how they set options of groups."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

from vesta import Tensor
from vesta._arguments import checked, expect
from vesta.optim.optimizer import Optimizer

__all__ = ["LRScheduler"]


def _set(group: dict[str, Any], name: str, value: float) -> None:
    """Sets an option of a group; a tensor stays the same tensor."""
    if isinstance(group[name], Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = value


def _set_momentum(group: dict[str, Any], value: float) -> None:
    """Sets a group's momentum, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


class LRScheduler:
    """Base of all schedules.

    Args:
        optimizer: the optimizer whose groups get new rates.
        last_epoch: the number of steps made before, minus one; -1 starts anew.

    Raises:
        TypeError: ``optimizer`` is not an optimizer.
        KeyError: ``last_epoch`` is given, but a group has no ``initial_lr``.
    """

    _get_lr_called_within_step: bool = False  # whether ``get_lr`` runs in a step, which schedules of users ask
    _is_initial: bool = False  # whether that is the constructor's

    @checked
    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _plain(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0. Load the optimizer's state first, or set it to the rate training began with."
                )
        self.base_lrs: list[float] = [_plain(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._initial_step()

    def _initial_step(self) -> None:
        self._is_initial = True
        try:
            self._advance(None)
        finally:
            self._is_initial = False

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group."""
        raise NotImplementedError

    def get_last_lr(self) -> list[float]:
        """Returns the rates set last, one for each group."""
        return self._last_lr

    def _rates(self) -> list[float]:
        return [_plain(group["lr"]) for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Sets the rates of the next epoch, or of a given one."""
        if self._step_count == 1 and not self.optimizer._opt_called:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in the opposite order: "
                "`optimizer.step()` before `lr_scheduler.step()`. Otherwise the schedule's first value is skipped.",
                UserWarning,
                stacklevel=2,
            )
        self._advance(epoch)

    def _advance(self, epoch: int | None) -> None:
        self._step_count += 1
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                rates = closed_form() if closed_form is not None else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates):
            _set(group, "lr", rate)
        self._last_lr: list[float] = self._rates()

    def state_dict(self) -> dict[str, Any]:
        """Returns everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores a state that ``state_dict`` returned."""
        self.__dict__.update(state_dict)


def _for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Returns one value for each group."""
    groups = len(optimizer.param_groups)
    values = list(value) if isinstance(value, (list, tuple)) else [value] * groups
    for number in values:
        expect(
            type(optimizer).__name__ + "'s schedule", name, number, (Real, Tensor), "a number, or one for each group"
        )
    if len(values) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(values)} values, "
            f"param_groups has {groups}."
        )
    return values
