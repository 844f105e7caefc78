"""Averages of weights over training, and the schedule that goes with them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta._arguments import checked, expect
from vesta._names import listing
from vesta._types import Device
from vesta.nn.modules.batchnorm import _BatchNorm
from vesta.nn.modules.module import Module
from vesta.optim.optimizer import Optimizer
from vesta.optim.schedule import LRScheduler, _for_each_group, _plain

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


@checked
def get_ema_avg_fn(decay: float = 0.999) -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Returns the rule of an exponential moving average: decay * average + (1 - decay) * value.

    Example::

        >>> import vesta
        >>> vesta.optim.swa_utils.get_ema_avg_fn(0.5)(vesta.zeros(1), vesta.ones(1), 1)
        tensor([0.5000])
    """
    _check_decay(decay)

    def ema_update(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with vesta.no_grad():
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[[Tensor, Tensor, Any], Tensor]:
    """Returns the rule of a plain average: average + (value - average) / (number + 1)."""

    def swa_update(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        with vesta.no_grad():
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def _is_inexact(average: Tensor, value: Tensor) -> bool:
    return average.dtype == value.dtype and (average.is_floating_point() or average.is_complex())


@checked
def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[[Any, Any, Any], None]:
    """Returns the rule of ``get_ema_avg_fn`` for lists of tensors, in place."""
    rule = get_ema_avg_fn(decay)

    def ema_update(averages: Iterable[Tensor], values: Iterable[Tensor], num_averaged: Any) -> None:
        with vesta.no_grad():
            for average, value in zip(averages, values, strict=True):
                if _is_inexact(average, value):
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(rule(average, value, num_averaged))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[[Any, Any, Any], None]:
    """Returns the rule of ``get_swa_avg_fn`` for lists of tensors, in place."""
    rule = get_swa_avg_fn()

    def swa_update(averages: Iterable[Tensor], values: Iterable[Tensor], num_averaged: Any) -> None:
        with vesta.no_grad():
            weight = 1 / (num_averaged + 1)
            weights: dict[Any, Any] = {}  # by dtype and device
            for average, value in zip(averages, values, strict=True):
                if _is_inexact(average, value):
                    key = (str(average.device), average.dtype)
                    if key not in weights:
                        weights[key] = weight.to(average) if isinstance(weight, Tensor) else weight
                    average.lerp_(value, weights[key])
                else:
                    average.copy_(rule(average, value, num_averaged))

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of the model's over training.

    Izmailov et al., "Averaging weights leads to wider optima and better generalization", 2018; Polyak and Juditsky,
    1992.

    Args:
        model: the model; its copy is ``module``.
        device: where the averages are.
        avg_fn: a function of average, value and number of averaged values; default: the plain average.
        multi_avg_fn: the same for lists of tensors, in place.
        use_buffers: average the buffers too; else they are copied.

    Example::

        >>> import vesta
        >>> model = vesta.nn.Linear(1, 1, bias=False)
        >>> average = vesta.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 3.0):
        ...     _ = vesta.nn.init.constant_(model.weight, value)
        ...     average.update_parameters(model)
        >>> average.module.weight.item()
        2.0
    """

    n_averaged: Tensor

    @checked
    def __init__(
        self,
        model: Module,
        device: Device | None = None,
        avg_fn: Callable[[Tensor, Tensor, Any], Tensor] | None = None,
        multi_avg_fn: Callable[[Any, Any, Any], None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", vesta.tensor(0, dtype=vesta.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the averaged copy."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Averages the parameters of ``model`` in."""
        expect("AveragedModel.update_parameters", "model", model, Module, "Module")

        def values(of: Module) -> list[Tensor]:
            buffers = of.buffers() if self.use_buffers else ()
            return [value.detach() for value in itertools.chain(of.parameters(), buffers)]

        averages = values(self.module)
        current = [value.to(average.device) for average, value in zip(averages, values(model))]
        if len(averages) != len(current):
            raise ValueError(
                f"AveragedModel.update_parameters: expected a model of {len(averages)} parameters, got one with "
                f"{len(values(model))} (model)."
            )
        if int(self.n_averaged) == 0:
            for average, value in zip(averages, current):
                average.copy_(value)
        elif self.multi_avg_fn is not None or self.avg_fn is None:
            update = get_swa_multi_avg_fn() if self.multi_avg_fn is None else self.multi_avg_fn
            kinds: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
            for average, value in zip(averages, current):
                pair = kinds.setdefault((str(average.device), average.dtype), ([], []))
                pair[0].append(average)
                pair[1].append(value)
            for pair in kinds.values():
                update(*pair, self.n_averaged.to(pair[0][0].device))
        else:
            for average, value in zip(averages, current):
                average.copy_(self.avg_fn(average, value, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers()):
                own.detach().copy_(other.detach().to(own.device))
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Device | None = None) -> None:
    """Computes the running statistics of all batch normalizations of ``model`` anew, by one pass over ``loader``.

    Args:
        loader: batches; of a tuple or a list the first entry.
        device: where the batches go first.

    Example::

        >>> import vesta
        >>> model = vesta.nn.BatchNorm1d(1)
        >>> vesta.optim.swa_utils.update_bn([vesta.tensor([[1.0], [3.0]])], model)
        >>> model.running_mean
        tensor([2.])
    """
    expect("update_bn", "model", model, Module, "Module")
    expect("update_bn", "loader", loader, Iterable, "batches")
    momenta = {module: module.momentum for module in model.modules() if isinstance(module, _BatchNorm)}
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None  # a plain average over all batches
    try:
        with vesta.no_grad():
            for batch in loader:
                batch = batch[0] if isinstance(batch, (list, tuple)) and batch else batch
                if device is not None:
                    if not hasattr(batch, "to"):
                        raise TypeError(f"update_bn: expected batches of tensors, got {type(batch).__name__} (loader).")
                    batch = batch.to(device)
                model(batch)
    finally:
        for module, momentum in momenta.items():
            module.momentum = momentum
        model.train(was_training)


class SWALR(LRScheduler):
    """lr from its value at the start to ``swa_lr`` in ``anneal_epochs``, then constant: for averaging weights.

    Args:
        swa_lr: the last rate; one for all groups, or one for each.
        anneal_epochs: how many epochs it takes.
        anneal_strategy: ``"cos"`` or ``"linear"``.

    Example::

        >>> import vesta
        >>> optimizer = vesta.optim.SGD(vesta.nn.Linear(1, 1).parameters(), lr=1.0)
        >>> schedule = vesta.optim.swa_utils.SWALR(optimizer, 0.5, anneal_epochs=2, anneal_strategy="linear")
        >>> optimizer.step(); schedule.step()
        >>> schedule.get_last_lr()
        [0.75]
    """

    @checked
    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float | list[float],
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(_for_each_group("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """Returns how much of the way is done after a number of steps."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[float]:
        """Returns the next rate of each group, from the present one."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            end, rate = group["swa_lr"], _plain(group["lr"])
            start = end if before == 1 else (rate - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates


__dir__ = listing(globals())
