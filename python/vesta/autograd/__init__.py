"""The tape from Python: gradients of functions, modes, operations with their own gradient, checks."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union, overload

from vesta import _C, Tensor
from vesta._arguments import expect
from vesta._names import listing

from . import anomaly_mode, function, grad_mode, graph, variable
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .function import Function, once_differentiable
from .grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable

__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "once_differentiable",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "variable",
]

#: Incoming gradients: one, or one for each root, where None stands for one.
_Gradients = Union[Tensor, Sequence[Union[Tensor, None]], None]


class Repeats(threading.local):
    """Whether this thread maps a function and will call it again, over the same graph (``vesta.vmap``)."""

    going = False


repeats = Repeats()


if TYPE_CHECKING:  # what follows imports on first use
    from . import forward_ad as forward_ad
    from . import functional as functional
    from . import profiler as profiler
else:

    def __getattr__(name: str) -> Any:
        """Imports what is rarely needed, on first use."""
        if name in ("forward_ad", "functional", "profiler"):
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module 'vesta.autograd' has no attribute {name!r}")


def _listed(name: str, value: Any) -> list[Any]:
    """Returns one tensor or a sequence of them as a list."""
    if isinstance(value, Tensor):
        return [value]
    expect("autograd", name, value, Iterable, "a Tensor or a sequence of them")
    tensors = list(value)
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"autograd: expected a Tensor, got {type(tensor).__name__} ({name}[{i}]).")
    return tensors


def _gradients(name: str, value: Any, roots: list[Tensor]) -> list[Tensor | None]:
    """Returns the incoming gradients, one for each root; None stands for one."""
    if value is None:
        return [None] * len(roots)
    expect("autograd", name, value, (Tensor, Iterable), "a Tensor, a sequence of them or None")
    grads = [value] if isinstance(value, Tensor) else list(value)
    if len(grads) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(grads)} gradients")
    for i, gradient in enumerate(grads):
        if gradient is not None and not isinstance(gradient, Tensor):
            raise TypeError(f"autograd: expected a Tensor or None, got {type(gradient).__name__} ({name}[{i}]).")
    return grads


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of ``tensors`` into ``grad`` of the leaves they depend on.

    Args:
        tensors: where to start.
        grad_tensors: the incoming gradient of each, of its shape; may be None for a tensor of one element.
        retain_graph: keep what is saved, for another run; default: ``create_graph``.
        create_graph: record the run itself, for gradients of gradients.
        inputs: only these get a gradient.

    Example::

        >>> import vesta
        >>> x = vesta.ones(2, requires_grad=True)
        >>> vesta.autograd.backward((x * 3).sum())
        >>> x.grad
        tensor([3., 3.])
    """
    if grad_variables is not None:
        raise TypeError("backward: expected grad_tensors, got grad_variables, its old name. Use grad_tensors.")
    roots = _listed("tensors", tensors)
    wanted = None if inputs is None else _listed("inputs", inputs)
    if wanted is not None and not wanted:
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    _C._backward(roots, _gradients("grad_tensors", grad_tensors, roots), keep, create_graph, wanted or [])


@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: Literal[False] | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]: ...
@overload
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    *,
    allow_unused: bool,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]: ...
def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: _Gradients = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """Returns the gradients of ``outputs`` with respect to ``inputs``, one for each, and changes no ``grad``.

    Args:
        grad_outputs, retain_graph, create_graph: as for ``backward``.
        allow_unused: return None for an input on which nothing depends, instead of an error.
        is_grads_batched: ``grad_outputs`` have a first dimension more, and so have the results: as many gradients in
            one call, of which each is computed by itself.
        materialize_grads: return zeros for such an input.

    Example::

        >>> import vesta
        >>> x = vesta.tensor(3.0, requires_grad=True)
        >>> vesta.autograd.grad(x * x, x)
        (tensor(6.),)
    """
    if not only_inputs:
        raise ValueError("grad: expected only_inputs=True, got False. Use backward to accumulate into leaves.")
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: False.")
    roots, wanted = _listed("outputs", outputs), _listed("inputs", inputs)
    incoming = _gradients("grad_outputs", grad_outputs, roots)
    keep = (create_graph if retain_graph is None else retain_graph) or repeats.going
    unused = bool(allow_unused) or materialize_grads

    def once(given: list[Tensor | None], keep: bool) -> tuple[Tensor | None, ...]:
        return tuple(_C._grad(roots, wanted, given, keep, create_graph, unused, materialize_grads))

    if not is_grads_batched:
        return once(incoming, keep)
    counts = {0 if one is None or one.dim() == 0 else one.size(0) for one in incoming}
    if len(counts) != 1 or 0 in counts:
        raise RuntimeError("grad: is_grads_batched wants grad_outputs with one first dimension for all, of at least 1.")
    count = counts.pop()
    rows = [once([one[k] for one in incoming if one is not None], keep or k + 1 < count) for k in range(count)]
    return tuple(None if parts[0] is None else _C._ops.stack(parts, 0) for parts in zip(*rows))


_PARTS_OF_PROFILER = "chrome_trace events profiler_util recording"
__dir__ = listing(globals(), "forward_ad", "functional", "profiler", hidden=_PARTS_OF_PROFILER)
