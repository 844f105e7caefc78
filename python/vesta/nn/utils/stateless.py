"""A module called with other tensors than its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Callable, TypeVar

from vesta import Tensor
from vesta._arguments import expect
from vesta._deprecated import deprecated
from vesta._names import listing
from vesta.nn.modules.module import Module

__all__ = ["functional_call"]

R = TypeVar("R")

_MISSING = object()


def _swap(module: Module, name: str, tensor: Any) -> Any:
    """Puts a tensor at a qualified name, past all checks; returns what was there, ``_MISSING`` if nothing.

    ``_MISSING`` as the tensor takes away what is there.
    """
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    for table in (owner._parameters, owner._buffers):
        if last in table:
            old = table[last]
            table[last] = tensor
            return old
    if tensor is _MISSING:
        object.__delattr__(owner, last)
        return None
    old = vars(owner).get(last, _MISSING)
    object.__setattr__(owner, last, tensor)
    return old


def _tied(module: Module, given: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the other names of the tensors that are given under one of their names."""
    names: dict[int, list[str]] = {}
    for members in (module.named_parameters, module.named_buffers):
        for name, tensor in members(remove_duplicate=False):
            names.setdefault(id(tensor), []).append(name)
    complete = dict(given)
    for group in names.values():
        known = [name for name in group if name in given]
        if not known:
            continue
        if any(given[name] is not given[known[0]] for name in known):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(known)}, which are tied. Consider using "
                "tie_weights=False"
            )
        complete.update(dict.fromkeys(group, given[known[0]]))
    return complete


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """Inside of this context, the module has the given tensors in place of its own."""
    given = _tied(module, parameters_and_buffers) if tie_weights else dict(parameters_and_buffers)
    if strict:
        own = {name for name, _ in (*module.named_parameters(remove_duplicate=False), *module.named_buffers())}
        missing, unexpected = sorted(own - set(given)), sorted(set(given) - own)
        if missing or unexpected:
            parts = [
                f"{what} key(s): {', '.join(keys)}."
                for what, keys in (("Unexpected", unexpected), ("Missing", missing))
                if keys
            ]
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(parts))
    swapped: list[tuple[str, Any]] = []
    try:
        for name, tensor in given.items():
            swapped.append((name, _swap(module, name, tensor)))
        yield
    finally:
        for name, old in reversed(swapped):
            _swap(module, name, old)


def call_with(
    name: str,
    module: Callable[..., R],
    tensors: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    tie_weights: bool,
    strict: bool,
) -> R:
    """Calls ``module`` with ``tensors``, which the caller's argument ``name`` gives, in place of its own."""
    expect("functional_call", "module", module, Module, "Module")
    if isinstance(tensors, Sequence) and not isinstance(tensors, str):
        joined: dict[str, Any] = {}
        for part in tensors:
            expect("functional_call", name, part, Mapping, "a dict, or a tuple of dicts")
            repeated = sorted(set(joined) & set(part))
            if repeated:
                raise ValueError(
                    f"{', '.join(repeated)} appeared in multiple dictionaries; behavior of functional call is ambiguous"
                )
            joined.update(part)
        tensors = joined
    expect("functional_call", name, tensors, Mapping, "a dict, or a tuple of dicts")
    for key, tensor in tensors.items():
        expect("functional_call", f"{name}[{key!r}]", tensor, Tensor, "Tensor")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, tensors, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@deprecated("vesta.nn.utils.stateless.functional_call", "vesta.func.functional_call")
def functional_call(
    module: Callable[..., R],
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> R:
    """Calls ``module`` with the given tensors in place of its parameters and buffers; gradients flow to them.

    Args:
        parameters_and_buffers: tensors by qualified name, or a tuple of such dicts.
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
    return call_with("parameters_and_buffers", module, parameters_and_buffers, args, kwargs, tie_weights, strict)


__dir__ = listing(globals())
