"""The run of a model, watched by hooks on all modules that are registered for that time only."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from typing import Any

import vesta
import vesta.nn  # whole, before parts of it: other threads may import it
from vesta import _C, Tensor, nn
from vesta.nn.modules import hooks
from vesta.nn.parameter import is_lazy
from vesta.utils import _pytree as pytree

from .counts import FORMULAS
from .state import left_as_it_was
from .table import Row, Summary


def run(model: Any, input: Any, named: dict[str, Any], counts: Mapping[type, Callable[..., int]]) -> Summary:
    """Returns the table of one call of ``model`` with ``input``, as ``vesta.summary`` describes it."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"summary: expected a vesta.nn.Module, got {type(model).__name__} (model).")
    if not isinstance(counts, Mapping) or not all(isinstance(k, type) and callable(f) for k, f in counts.items()):
        raise TypeError("summary: expected a mapping of classes to functions (counts).")
    lazy = [name for name, p in model.named_parameters() if is_lazy(p)]
    if lazy:
        raise ValueError(
            f"summary: expected initialized parameters, {lazy[0]!r} has no shape yet. Call the model once."
        )
    args, kwargs = _arguments(input)
    if twice := set(kwargs) & set(named):
        raise TypeError(f"summary: got multiple values for argument {min(twice)!r} of the model.")
    kwargs = {**kwargs, **named}
    given = _tensors((args, kwargs))
    args, kwargs = pytree.tree_map(lambda v: v.detach().clone() if isinstance(v, Tensor) else v, (args, kwargs))
    watch = _Watch(model, counts)
    known = [*model.parameters(), *model.buffers()]
    with left_as_it_was(list(watch.names_of), [*known, *given]), vesta.no_grad(), watch:
        model(*args, **kwargs)
    called = {row.name for row in watch.rows}
    parameters = list(model.parameters())
    return Summary(
        rows=watch.rows,
        parameters=sum(p.numel() for p in parameters),
        trainable_parameters=sum(p.numel() for p in parameters if p.requires_grad),
        parameter_bytes=sum(p.numel() * p.element_size() for p in parameters),
        buffer_bytes=sum(b.numel() * b.element_size() for b in model.buffers()),
        multiply_adds=watch.rows[0].multiply_adds,
        activation_bytes=watch.rows[0].activation_bytes,
        input_bytes=sum(_nbytes(t) for t in given),
        not_called=[
            name
            for module, name in watch.names_of.items()
            if name not in called and name not in watch.inside and type(module).forward is not nn.Module.forward
        ],
        uncounted=sorted(watch.uncounted),
    )


def _arguments(input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(input, dict):
        return (), input
    if isinstance(input, list) or type(input) is tuple:
        return tuple(input), {}
    return (input,), {}


def _tensors(value: Any) -> list[Tensor]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, Tensor)]


def _place(t: Tensor) -> Any:
    """Returns where a tensor begins: the storage and the offset in bytes."""
    return _C._storage_key(t), t.storage_offset() * t.element_size()


def _nbytes(t: Tensor) -> int:
    return t.numel() * t.element_size()


def _shapes(value: Any) -> Any:
    """Returns the sizes of the tensors in a value, as lists in the same structure; None for anything else."""
    if isinstance(value, Tensor):
        return list(value.shape)
    if isinstance(value, dict):
        return {key: _shapes(item) for key, item in value.items()}
    if isinstance(value, nn.utils.rnn.PackedSequence):
        return list(value.data.shape)
    return tuple(_shapes(item) for item in value) if isinstance(value, (list, tuple)) else None


class _Watch:
    """The hooks, and the calls that they have seen."""

    def __init__(self, model: Any, counts: Mapping[type, Callable[..., int]]) -> None:
        self.names_of = {module: name for name, module in model.named_modules()}
        self.formulas = {**FORMULAS, **counts}
        self.rows: list[Row] = []
        self.calls: dict[Any, int] = {}
        self.inside: set[str] = set()  # layers of a layer that has a formula: they are counted with it
        self.uncounted: set[str] = set()
        self.stack: list[tuple[Any, Row]] = []
        self.thread = threading.get_ident()

    def __enter__(self) -> _Watch:
        self.had_any = list(hooks.any_global)
        self.handles = [
            hooks.register_module_forward_pre_hook(self.before),
            hooks.register_module_forward_hook(self.after, with_kwargs=True),
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self.handles:
            handle.remove()
        hooks.any_global[:] = self.had_any  # calls are as fast as before

    def watched(self, module: Any) -> bool:
        """Returns whether it is one of the model's, in the thread that runs the model."""
        return module in self.names_of and threading.get_ident() == self.thread

    def formula(self, module: Any) -> Callable[..., int] | None:
        """Returns the formula of the module's class or of the nearest base that has one."""
        return next((self.formulas[kind] for kind in type(module).__mro__ if kind in self.formulas), None)

    def before(self, module: Any, args: Any) -> None:
        """Opens the row of a call."""
        if not self.watched(module):
            return
        name, parameters = self.names_of[module], list(module.parameters())
        self.calls[module] = self.calls.get(module, 0) + 1
        row = Row(
            name=name,
            kind=type(module).__name__,
            depth=len(self.stack),
            call=self.calls[module],
            parameters=sum(p.numel() for p in parameters),
            trainable_parameters=sum(p.numel() for p in parameters if p.requires_grad),
        )
        if self.formula(module):
            self.inside.update(self.names_of[part] for part in module.modules() if part is not module)
        self.rows.append(row)
        self.stack.append((module, row))

    def after(self, module: Any, args: Any, kwargs: Any, output: Any) -> None:
        """Fills the row of a call that is over, and adds it to the one around it."""
        if not self.watched(module):
            return
        while self.stack[-1][0] is not module:  # calls that raised, and were caught
            self.stack.pop()
        row = self.stack.pop()[1]
        inputs = _bound(module, args, kwargs)
        row.inputs, row.outputs = _shapes(list(inputs.values())), _shapes(output)
        formula = self.formula(module)
        if formula:
            row.multiply_adds = formula(module, inputs, output)
        elif any(p is not None for p in module._parameters.values()) and not self.known(module):
            self.uncounted.add(row.kind)
        if formula or not row.has_parts:
            taken = {_place(t) for t in [*_tensors(list(inputs.values())), *module._parameters.values()] if _dense(t)}
            found = {_place(t): _nbytes(t) for t in _tensors(output) if _dense(t)}
            row.activation_bytes = sum(size for place, size in found.items() if place not in taken)
        if self.stack:
            around, outer = self.stack[-1]
            outer.has_parts = True
            if not self.formula(around):
                outer.multiply_adds += row.multiply_adds
                outer.activation_bytes += row.activation_bytes

    def known(self, module: Any) -> bool:
        """Returns whether the class is listed, be it without a formula."""
        return any(kind in self.formulas for kind in type(module).__mro__)


def _dense(t: Any) -> bool:
    return isinstance(t, Tensor) and not t.is_sparse


def _bound(module: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Returns the arguments of a call by name; ``*args`` are numbered."""
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {**{str(i): value for i, value in enumerate(args)}, **kwargs}
    return dict(bound)
