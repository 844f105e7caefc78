"""The base of optimizers whose step is one fused operation over lists of tensors.

Such an optimizer is its constructor's signature, the names of its states, and ``_numbers``, which gives the operation
its numbers. The formula is a struct in ``core/ops/optim_step.h``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import vesta
from vesta import Tensor
from vesta.optim.optimizer import Optimizer, _Bucket
from vesta.optim.state_dict import number_tensor

__all__ = ["FusedOptimizer"]


class FusedOptimizer(Optimizer):
    """An optimizer that updates all parameters of a group by one operation.

    The operation takes parameters, gradients, the states named ``_shaped_like_param`` and ``_scalars``, and the numbers
    of steps, all as lists.
    """

    _operation: ClassVar[Callable[..., None]]

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """Returns the state of a parameter before its first step, without ``step``."""
        return {name: vesta.zeros_like(param).detach() for name in self._shaped_like_param}

    def _numbers(self, group: dict[str, Any]) -> dict[str, Any]:
        """Returns the numbers of a step, by the names that the operation has for them."""
        raise NotImplementedError

    def _states(self, group: dict[str, Any], params: list[Tensor]) -> tuple[list[Tensor], ...]:
        for param in params:
            state = self.state[param]
            if "step" not in state:
                state["step"] = vesta.zeros((), dtype=vesta.float32, device="cpu")
            if any(name not in state for name in (*self._shaped_like_param, *self._scalars)):
                for name, value in self._begin(group, param).items():
                    state.setdefault(name, value)
            for name in ("step", *self._scalars):
                state[name] = number_tensor(state[name])
        names = (*self._shaped_like_param, *self._scalars, "step")
        return tuple([self.state[param][name] for param in params] for name in names)

    def _fused(self, group: dict[str, Any], bucket: _Bucket, grads: list[Tensor]) -> None:
        numbers = self._numbers(group)  # the operation counts the steps itself
        type(self)._operation(bucket.params, grads, *bucket.states, **numbers, maximize=bool(group["maximize"]))
