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


def make_functional_with_buffers(
    model: vesta.nn.Module, disable_autograd_tracking: bool = False
) -> tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]:
    """Returns ``f(params, buffers, *args)``, which runs a copy of the module, and copies of both."""
    params, buffers = _split(model, disable_autograd_tracking)
    inner = copy.deepcopy(model)

    def run(given: Sequence[Any], given_buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        state = {**dict(zip(params, given)), **dict(zip(buffers, given_buffers))}
        return functional_call(inner, state, args, kwargs)

    return run, tuple(params.values()), tuple(buffers.values())


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
    with_buffers, params, _ = make_functional_with_buffers(model, disable_autograd_tracking)

    def run(given: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        return with_buffers(given, (), *args, **kwargs)

    return run, params


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
