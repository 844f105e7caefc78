"""``torch.distributed.checkpoint.state_dict``: states of models and optimizers by the names of parameters.

Names are those of the plain model: without the ``module.`` of data parallelism and the ``_orig_mod.`` of a compiled
one. Nothing is sharded here, so a full state is the state itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import vesta
from vesta import Tensor, nn
from vesta import distributed as dist
from vesta.optim import Optimizer
from vesta.utils._pytree import tree_map_only

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """What the functions below give and take.

    Attributes:
        full_state_dict: nothing is left sharded; with ``cpu_offload``, only rank 0 gets the state.
        cpu_offload: tensors are copied to the CPU.
        ignore_frozen_params: parameters without ``requires_grad`` are left out.
        keep_submodule_prefixes: names say the submodule, too.
        strict: names that are missing or unknown raise an error.
        broadcast_from_rank0: the other ranks get the state that rank 0 is given.
        flatten_optimizer_state_dict: an optimizer's state has one level, ``state.NAME.exp_avg``.
        dsd_fqn_modifiers: accepted; only sharded models have it.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _plain_name(model: nn.Module, name: str) -> str:
    """Returns a name of ``model.state_dict()`` without the parts that wrappers add."""
    from vesta.as_torch.compiled import OptimizedModule

    parts, owner = [], model
    for part in name.split("."):
        wraps = (isinstance(owner, (nn.DataParallel, nn.parallel.DistributedDataParallel)) and part == "module") or (
            isinstance(owner, OptimizedModule) and part == "_orig_mod"
        )
        if not wraps:
            parts.append(part)
        owner = getattr(owner, part, None)  # type: ignore[assignment]
    return ".".join(parts)


def _given(state: Any, options: StateDictOptions) -> Any:
    """Returns a state as the options want it."""
    if options.full_state_dict and options.cpu_offload and dist.is_initialized() and dist.get_rank() != 0:
        return {}
    return tree_map_only(Tensor, lambda t: t.cpu(), state) if options.cpu_offload else state


def _received(state: Any, options: StateDictOptions) -> Any:
    """Returns the state that is to be loaded: rank 0's if the options say so."""
    if not options.broadcast_from_rank0 or not dist.is_initialized():
        return state
    box = [state if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0]


def get_model_state_dict(
    model: nn.Module, *, submodules: Iterable[nn.Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Returns the state of a model by the plain names."""
    options = _checked(options)
    state = {_plain_name(model, name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                state.pop(_plain_name(model, name), None)
    if submodules:
        chosen = set(submodules)
        starts = [_plain_name(model, name) + "." for name, module in model.named_modules() if module in chosen]
        state = {
            name if options.keep_submodule_prefixes else name[len(start) :]: value
            for name, value in state.items()
            for start in starts
            if name.startswith(start)
        }
    return _given(state, options)


def set_model_state_dict(
    model: nn.Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Loads a state with plain names; returns the names that were missing and unexpected."""
    options = _checked(options)
    state = _received(model_state_dict, options)
    if not state:
        return nn.modules.module._IncompatibleKeys([], [])
    full = {_plain_name(model, name): name for name in model.state_dict()}
    on_meta = any(tensor.is_meta for tensor in (*model.parameters(), *model.buffers()))
    state = {full.get(name, name): value for name, value in state.items()}
    return model.load_state_dict(state, strict=options.strict, assign=on_meta and options.full_state_dict)


def _start(optimizer: Optimizer) -> None:
    """Makes the state of an optimizer that has not taken a step: one with gradients of zero and a rate of zero."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    for p in parameters:
        if p.requires_grad:
            p.grad = vesta.zeros_like(p)
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = vesta.tensor(0.0) if isinstance(rate, Tensor) else 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _all_of(optimizers: Any) -> tuple[Optimizer, ...]:
    return (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)


def _names(model: nn.Module, optimizer: Optimizer) -> list[str]:
    """Returns the plain names of an optimizer's parameters in its order."""
    found = {id(p): _plain_name(model, name) for name, p in model.named_parameters()}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    missing = [i for i, p in enumerate(parameters) if id(p) not in found]
    if missing:
        raise KeyError(f"expected an optimizer of the model's parameters, got others at {missing}.")
    return [found[id(p)] for p in parameters]


def get_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Iterable[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:
    """Returns the states of optimizers in one, in which names stand for parameters."""
    options = _checked(options)
    whole: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _all_of(optimizers):
        _start(optimizer)
        names, state = _names(model, optimizer), optimizer.state_dict()
        whole["state"].update({names[place]: entry for place, entry in state["state"].items()})
        for group in state["param_groups"]:
            whole["param_groups"].append({**group, "params": [names[place] for place in group["params"]]})
    return _given(_flat(whole) if options.flatten_optimizer_state_dict else whole, options)


def _flat(whole: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}

    def add(start: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, inner in value.items():
                add(f"{start}.{key}", inner)
        elif not isinstance(value, (Tensor, int, float)):
            raise NotImplementedError(f"expected tensors and numbers in a flat state, got {type(value)} ({start}).")
        else:
            flat[start] = value

    for name, entry in whole["state"].items():
        add(f"state.{name}", entry)
    for group in whole["param_groups"]:
        for name in group["params"]:
            flat.update({f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"})
    return flat


def _nested(optimizer: Optimizer, names: list[str], flat: dict[str, Any]) -> dict[str, Any]:
    """Returns the state with levels of a flat one, for the parameters of an optimizer."""
    whole: dict[str, Any] = {"state": {}, "param_groups": []}
    for name in names:
        start = f"state.{name}."
        entry = {key[len(start) :]: value for key, value in flat.items() if key.startswith(start)}
        if entry:
            whole["state"][name] = entry
    left = iter(names)
    for group in optimizer.param_groups:
        own = [next(left) for _ in group["params"]]
        made = {k: flat[f"param_groups.{own[0]}.{k}"] for k in group if k != "params"} if own else dict(group)
        whole["param_groups"].append({**made, "params": own})
    return whole


def set_optimizer_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    optim_state_dict: dict[str, Any],
    *,
    options: StateDictOptions | None = None,
) -> None:
    """Loads what ``get_optimizer_state_dict`` has given."""
    options = _checked(options)
    whole = _received(optim_state_dict, options)
    for optimizer in _all_of(optimizers):
        _start(optimizer)
        names = _names(model, optimizer)
        if not whole:
            continue
        state = whole if "state" in whole else _nested(optimizer, names, whole)
        optimizer.load_state_dict(_by_place(optimizer, names, state, options.strict))


def _by_place(optimizer: Optimizer, names: list[str], whole: dict[str, Any], strict: bool) -> dict[str, Any]:
    """Returns the part of a state that is an optimizer's, with places for names."""
    if whole["state"] and all(isinstance(key, int) for key in whole["state"]):
        return whole
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    entries = {place: whole["state"][name] for place, name in enumerate(names) if name in whole["state"]}
    absent = [name for i, name in enumerate(names) if i not in entries and optimizer.state.get(parameters[i])]
    if absent and strict:
        raise RuntimeError(f"Missing optimizer state for parameter '{absent[0]}' in checkpoint.")
    saved = {name: group for group in whole["param_groups"] for name in group["params"]}
    groups, place = [], 0
    for group in optimizer.param_groups:
        places = list(range(place, place + len(group["params"])))
        place += len(places)
        found: dict[str, Any] = next((saved[names[i]] for i in places if names[i] in saved), {})
        options = {k: v for k, v in (found or group).items() if k != "params"}
        groups.append({**options, "params": places})
    return {"state": entries, "param_groups": groups}


def get_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    submodules: Iterable[nn.Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the states of a model and of its optimizers."""
    chosen = _all_of(optimizers)
    own = get_model_state_dict(model, submodules=submodules, options=options)
    return own, get_optimizer_state_dict(model, chosen, options=options) if chosen else {}


def set_state_dict(
    model: nn.Module,
    optimizers: Optimizer | Iterable[Optimizer],
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Loads the states of a model and of its optimizers; returns the names that were missing and unexpected."""
    if optim_state_dict:
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)
