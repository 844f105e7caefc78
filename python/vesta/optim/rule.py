"""The base of optimizers whose rule is written with tensor operations, one parameter at a time.

Such an optimizer is its constructor's signature and two short methods: ``_begin`` makes the state of a parameter,
``_rule`` updates it. What trains many small tensors has a fused operation instead (``fused.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar, cast

import vesta
from vesta import _C, Tensor
from vesta._arguments import arguments_of, checked, expect, parameter_names
from vesta.optim.optimizer import Optimizer, check, number, refuse, with_tuples
from vesta.optim.state_dict import number_tensor

__all__ = ["RuleOptimizer", "hyperparameters"]

F = TypeVar("F", bound=Callable[..., None])
T = TypeVar("T")
Update = tuple[Tensor, Tensor, dict[str, Any], float]  # a parameter, its gradient, its state, the number of the step


def _check_tensors(op: str, given: dict[str, Any]) -> None:
    """Checks options that are tensors, so that they can be compared with numbers."""
    for name, value in given.items():
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if not isinstance(part, Tensor):
                continue
            if part.is_complex():
                raise TypeError(f"{op}: expected a real number, got a tensor of dtype {part.dtype} ({name}).")
            if part.numel() != 1:
                raise ValueError(f"{op}: Tensor {name} must be 1-element, got shape {list(part.shape)} ({name}).")


def expect_line(op: str, name: str, value: Any, wanted: str = "two numbers") -> None:
    """Raises for what does not have numbers in an order: a list, a tuple or a one-dimensional array does, a set not."""
    in_order = isinstance(value, Sequence) and not isinstance(value, str)
    if not in_order and getattr(value, "ndim", None) != 1:
        expect(op, name, value, (tuple, list), wanted)


def _check_common(op: str, given: dict[str, Any]) -> None:
    """Checks what several optimizers have, with PyTorch's messages."""
    lr = given.get("lr", 0.0)
    check("lr", lr, number(lr) >= 0.0, "learning rate")
    if "eps" in given and isinstance(given["eps"], (Real, Tensor)):
        check("eps", given["eps"], number(given["eps"]) >= 0.0, "epsilon value")
    if "betas" in given:
        expect_line(op, "betas", given["betas"])
        if len(given["betas"]) != 2:
            raise ValueError(f"{op}: expected two numbers, got {len(given['betas'])} (betas).")
        for i, beta in enumerate(given["betas"]):
            expect(op, "betas", beta, (Real, Tensor), "two numbers")
            check("beta", beta, 0.0 <= number(beta) < 1.0, f"beta parameter at index {i}")
    if "weight_decay" in given:
        check("weight_decay", given["weight_decay"], number(given["weight_decay"]) >= 0.0)
    if given.get("fused"):
        if given.get("differentiable"):
            raise RuntimeError("`fused` does not support `differentiable`")
        if given.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    refuse("capturable", given.get("capturable"))


def hyperparameters(init: F, order: str = "") -> F:
    """Makes a constructor whose arguments but ``params`` are the options of the groups; its body checks them.

    The same checks hold for the options of a group (``Optimizer._check_options``). ``order``: the options in the order
    that PyTorch's groups have them in, where that is not the arguments'.
    """
    arguments = arguments_of(init)
    names = parameter_names(init)[2:]
    ordered = order.split() or names
    assert set(ordered) == set(names), f"{init.__qualname__}: an option is missing from its order"
    run = checked(init)

    def check_options(self: Optimizer, options: Mapping[str, Any]) -> None:
        given = {name: options[name] for name in names if name in options}
        _check_tensors(type(self).__name__, given)
        run(self, (), **given)
        _check_common(type(self).__name__, given)

    @functools.wraps(init)
    def call(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        try:
            values = arguments(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(str(error).replace(init.__qualname__, f"{type(self).__name__}.__init__", 1)) from None
        given = with_tuples({name: values[name] for name in ordered})
        check_options(self, given)
        Optimizer.__init__(self, values["params"], given)
        self._prepare()

    call.check_options = check_options  # type: ignore[attr-defined]
    return cast(F, call)


class RuleOptimizer(Optimizer):
    """An optimizer that updates one parameter at a time by ``_rule``."""

    def _begin(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        """Returns the state of a parameter before its first step, without ``step``."""
        raise NotImplementedError

    def _rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        """Updates ``param`` and ``state`` in place; ``step`` counts from 1."""
        raise NotImplementedError

    def _sparse_rule(
        self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any], step: float, lr: float
    ) -> None:
        """Updates ``param`` and ``state`` in place by a coalesced sparse gradient."""
        name = type(self).__name__
        raise RuntimeError(f"{name} does not support sparse gradients, please consider SparseAdam instead")

    def _decayed(self, group: dict[str, Any], param: Tensor, grad: Tensor, lr: float) -> Tensor:
        """Applies the weight decay: to the gradient, or, if it is decoupled, to the parameter."""
        decay = group.get("weight_decay", 0)
        if decay == 0:
            return grad
        if group.get("decoupled_weight_decay", False):
            param.mul_(1 - lr * decay)
            return grad
        return grad.add(param, alpha=decay)

    def _rules(self, group: dict[str, Any], updates: list[Update], lr: float) -> None:
        """Updates parameters by ``_rule``, one after the other."""
        for param, grad, state, step in updates:
            self._rule(group, param, grad, state, step, lr)

    def _update(self, group: dict[str, Any]) -> None:
        lr = number(group.get("lr", 0.0))
        updates: list[Update] = []
        for param in group["params"]:
            grad = param.grad
            if grad is None:
                continue
            state = self.state[param]
            if "step" not in state:
                state["step"] = vesta.zeros((), dtype=vesta.float32, device="cpu")
                for name, value in self._begin(group, param).items():
                    state[name] = value
            state["step"] = number_tensor(state["step"]).add_(1)
            step = state["step"].item()
            if group["maximize"]:
                grad = -grad
            if grad.is_sparse:
                if group.get("weight_decay", 0) != 0:
                    raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                self._sparse_rule(group, param, grad.coalesce(), state, step, lr)
                continue
            grad = self._decayed(group, param, grad, lr)
            if param.is_complex():  # the rules are those of real and imaginary parts
                parts = {
                    name: vesta.view_as_real(value) if isinstance(value, Tensor) and value.is_complex() else value
                    for name, value in state.items()
                }
                updates.append((vesta.view_as_real(param), vesta.view_as_real(grad), parts, step))
            else:
                updates.append((param, grad, state, step))
        self._rules(group, updates, lr)


def alike(items: Iterable[T], key: Callable[[T], Any], numel: Callable[[T], int]) -> Iterator[list[T]]:
    """Yields the items whose keys are equal, as many together as have 2 ** 24 elements: larger ones keep a GPU busy."""
    found: dict[Any, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    for same in found.values():
        most = max(1, (1 << 24) // max(numel(same[0]), 1))
        yield from (same[begin : begin + most] for begin in range(0, len(same), most))


def move_averages(averages: list[Tensor], values: Tensor, beta: float, to: Tensor, scale: float) -> None:
    """Sets each average to beta * average + (1 - beta) * values[i], in place, and adds scale times it to to[i]."""
    start = beta == 0  # the operation has no average without a momentum, but one that begins
    lists = list(to.unbind()), list(values.unbind()), averages
    _C._fused_sgd_(*lists, 0.0, 1.0 if start else beta, -scale, beta, False, False, start)


def zeros(param: Tensor, *names: str) -> dict[str, Any]:
    """Returns state tensors of zeros of a parameter's shape."""
    return {name: vesta.zeros_like(param).detach() for name in names}
