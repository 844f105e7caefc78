"""Calls of modules with other parameters; ensembles: the parameters of several modules as one tensor each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import Tensor
from vesta._arguments import expect
from vesta.nn.modules.module import Module
from vesta.nn.utils.stateless import call_with

R = TypeVar("R")


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stacks parameters and buffers of modules, for ``vmap`` over ``functional_call``.

    Args:
        models: modules of one class, all in training mode or none, with parameters of the same shapes.

    Returns:
        ``(parameters, buffers)``: dicts of tensors ``[len(models), ...]`` by name. The parameters are leaves of their
        own that require gradients where the modules' do.

    Raises:
        RuntimeError: no models, of several classes, or in several modes.

    Example::

        >>> import vesta
        >>> from vesta.func import functional_call, stack_module_state, vmap
        >>> nets = [vesta.nn.Linear(3, 2) for _ in range(4)]
        >>> parameters, buffers = stack_module_state(nets)
        >>> call = lambda p, b, x: functional_call(nets[0], (p, b), (x,))
        >>> vmap(call, in_dims=(0, 0, None))(parameters, buffers, vesta.ones(5, 3)).shape
        vesta.Size([4, 5, 2])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    for i, model in enumerate(models):
        expect("stack_module_state", f"models[{i}]", model, Module, "Module")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")

    def stacked(name: str, tensors: list[Tensor]) -> Tensor:
        if len({tensor.requires_grad for tensor in tensors}) > 1:
            raise RuntimeError(f"stack_module_state: Expected {name} to require gradients in all models or in none.")
        return vesta.stack([tensor.detach() for tensor in tensors]).requires_grad_(tensors[0].requires_grad)

    tables = [dict(model.named_parameters()) for model in models]
    parameters = {name: stacked(name, [table[name] for table in tables]) for name in tables[0]}
    tables = [dict(model.named_buffers()) for model in models]
    buffers = {name: stacked(name, [table[name] for table in tables]) for name in tables[0]}
    return parameters, buffers


def functional_call(
    module: Callable[..., R],
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> R:
    """Calls ``module`` with the given tensors in place of its parameters and buffers; gradients flow to them.

    Args:
        parameter_and_buffer_dicts: tensors by qualified name, or a tuple of such dicts.
        args, kwargs: the arguments of the call; a single one need not be in a tuple.
        tie_weights: a tensor that the module has under several names is replaced under all of them.
        strict: every parameter and buffer must be given, and nothing else.

    Raises:
        ValueError: different tensors are given for tied names, or a name twice.
        AttributeError: the module has no submodule of that name. A name that only its last part makes unknown is an
            attribute during the call.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.Linear(2, 1, bias=False)
        >>> vesta.func.functional_call(layer, {"weight": vesta.ones(1, 2)}, vesta.tensor([[1.0, 2.0]]))
        tensor([[3.]])
    """
    return call_with(
        "parameter_and_buffer_dicts", module, parameter_and_buffer_dicts, args, kwargs, tie_weights, strict
    )
