"""``functorch``: what became ``torch.func``, and functions of modules that PyTorch keeps under this name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import vesta
from vesta.func import (
    functional_call,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "stack_module_state",
    "vjp",
    "vmap",
]


def _split(model: vesta.nn.Module, detach: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the parameters and the buffers of a copy of a module."""
    whole = copy.deepcopy(model)
    params = {name: p.detach().requires_grad_(p.requires_grad and not detach) for name, p in whole.named_parameters()}
    return params, dict(whole.named_buffers())


class FunctionalModuleWithBuffers(vesta.nn.Module):
    """A module as a function ``f(params, buffers, *args)`` of its state; ``stateless_model`` has none of its own."""

    def __init__(
        self, stateless_model: vesta.nn.Module, param_names: Sequence[str], buffer_names: Sequence[str]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    @classmethod
    def _create_from(cls, model: vesta.nn.Module, disable_autograd_tracking: bool = False) -> tuple[Any, ...]:
        params, buffers = _split(model, disable_autograd_tracking)
        made = cls(copy.deepcopy(model).to("meta"), list(params), list(buffers))
        return made, tuple(params.values()), tuple(buffers.values())

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Runs the module with a state."""
        state = {**dict(zip(self.param_names, params)), **dict(zip(self.buffer_names, buffers))}
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function ``f(params, *args)`` of its parameters."""

    @classmethod
    def _create_from(cls, model: vesta.nn.Module, disable_autograd_tracking: bool = False) -> tuple[Any, ...]:
        return super()._create_from(model, disable_autograd_tracking)[:2]

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Runs the module with parameters."""
        return super().forward(params, (), *args, **kwargs)


def make_functional_with_buffers(
    model: vesta.nn.Module, disable_autograd_tracking: bool = False
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """Returns ``f(params, buffers, *args)``, which runs a copy of the module, and copies of both."""
    made, params, buffers = FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)
    return made, params, buffers


def make_functional(
    model: vesta.nn.Module, disable_autograd_tracking: bool = False
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Returns ``f(params, *args)`` that runs a copy of the module, and copies of its parameters.

    Raises:
        RuntimeError: the module has buffers.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional: expected a module without buffers, got one with some. Use make_functional_with_buffers()."
        )
    made, params = FunctionalModule._create_from(model, disable_autograd_tracking)
    return made, params


def combine_state_for_ensemble(
    models: Sequence[vesta.nn.Module],
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """Returns ``f(params, buffers, *args)`` for the state of one of several equal modules, and all states stacked.

    Raises:
        RuntimeError: no modules, modules of different classes, or some in training and others not.
    """
    if len(models) == 0:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({(type(model), model.training) for model in models}) > 1:
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class and mode.")
    params, buffers = stack_module_state(list(models))
    run, _, _ = make_functional_with_buffers(models[0])
    return run, tuple(params.values()), tuple(buffers.values())
