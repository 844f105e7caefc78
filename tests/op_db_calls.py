"""How rows call the library if the call is more than ``vesta.NAME(...)``: indexing, in-place ops, optimizers."""

from __future__ import annotations

from typing import Any, Callable

import vesta
from op_db_references import STEPS


def on_clone(name: str) -> Callable[..., Any]:
    """Returns a call of an in-place method on a clone, so that its operand may be a leaf that requires grad."""
    return lambda x, *args, **kwargs: getattr(x.clone(), name)(*args, **kwargs)


def attribute(name: str) -> Callable[..., Any]:
    """Returns a function that reads an attribute that makes a view (``x.mT``)."""
    return lambda x: getattr(x, name)


def getitem(x: Any, index: Any) -> Any:
    return x[index]


def clamp(x: Any, low: Any, high: Any) -> Any:
    return vesta.clamp(x, low, high)


def to(x: Any, name: str) -> Any:
    return x.to(getattr(vesta, name))


def filled(name: str, *rest: Any) -> Callable[..., Any]:
    """Returns a function that fills a new tensor with an in-place random method: ``empty(size).uniform_(...)``."""
    return lambda size, **kwargs: getattr(vesta.empty(size, **kwargs), name)(*rest)


def new(name: str) -> Callable[..., Any]:
    """Returns a call of ``x.new_NAME(size, ...)``; dtype and device come from x, which has those of the options."""
    return lambda x, *args, dtype, device: getattr(x.to(device, dtype), name)(*args)


def new_empty(size: Any, **kwargs: Any) -> Any:
    return vesta.zeros(1, **kwargs).new_empty(size)


def bernoulli(size: Any, **kwargs: Any) -> Any:
    return vesta.bernoulli(vesta.full(size, 0.3, **kwargs))


def dropout(size: Any, **kwargs: Any) -> Any:
    return vesta.nn.functional.dropout(vesta.ones(size, **kwargs), 0.3)


def optimize(name: str) -> Callable[..., Any]:
    """Returns a function that runs STEPS steps of ``vesta.optim.NAME`` from given parameters with given gradients."""

    def run(params: list, grads: list, **options: Any) -> list:
        from vesta import optim

        leaves = [vesta.nn.Parameter(p.detach().clone()) for p in params]
        for leaf, gradient in zip(leaves, grads):
            leaf.grad = gradient.clone()
        decoupled = options.pop("decoupled", False)
        stepper = getattr(optim, "AdamW" if decoupled else name)(leaves, **options)
        for _ in range(STEPS):
            stepper.step()
        return [leaf.detach() for leaf in leaves]

    return run


def unscale(grads: list) -> list:
    """Multiplies gradients by 1/4, the value of a scale of 1/2 after a backoff by half."""
    grads = [g.detach().clone() for g in grads]
    device = grads[0].device
    scale, found = (vesta.full((), value, dtype=vesta.float32, device=device) for value in (0.5, 1.0))
    vesta._C._amp_update_scale_(scale, vesta.zeros((), dtype=vesta.int32, device=device), found, 2.0, 0.5, 3)
    vesta._C._amp_unscale_(grads, found, scale)
    return grads
