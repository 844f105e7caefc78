"""Modules of one library that run a module of the other: what ``from_torch`` and ``to_torch`` make of a module.

Both libraries have the same names, so each class is written once, for ``outer``, the library of the network, and
``inner``, that of the module inside. Parameters and buffers are tensors of both over one memory: ``inner`` computes
with its own; tape, optimizers and state dicts of ``outer`` have those that share them.

A call is a ``Function`` of ``outer``. Its backward pass runs the tape of ``inner``. Where one library writes to memory
that the other one's tape has saved, the version of the other's tensor is raised, so that its own check finds it.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from .torch import Exchange, from_torch, share, to_torch

__all__: list[str] = []


def module_of(module: Any, exchange: Exchange, place: str) -> Any:
    """Returns a module of the exchange's target that runs ``module``, of its source."""
    if isinstance(module, _runner_class(exchange.target, exchange.source)):
        return module._runs  # there and back
    return _runner_class(exchange.source, exchange.target)(module, exchange, place)


class _Tie:
    """A parameter or buffer of both modules: its name in the dicts that hold it there."""

    def __init__(self, path: str, name: str, mine: dict[str, Any], theirs: dict[str, Any], fixed: bool) -> None:
        self.path, self.name, self.mine, self.theirs, self.fixed = path, name, mine, theirs, fixed
        self.known = theirs[name]

    def check(self, inner: Any, outer: Any) -> None:
        """Checks that both share their memory. A buffer that the inner module has replaced is shared anew."""
        mine, theirs = self.mine.get(self.name), self.theirs.get(self.name)
        if theirs is not self.known and not self.fixed:
            self.known = theirs
            mine = self.mine[self.name] = None if theirs is None else share(theirs, outer)
        if mine is None and theirs is None:
            return
        if mine is None or theirs is not self.known or mine.data_ptr() != theirs.data_ptr():
            raise RuntimeError(
                f"{self.path}: expected the same memory in both libraries, but the tensor of one has been moved, "
                f"converted or replaced. Do that to {inner.__name__}'s module, and convert it then."
            )
        if mine.requires_grad != theirs.requires_grad:
            theirs.requires_grad_(mine.requires_grad)


class _Call:
    """One call of the inner module: what entered it and what it returned, as tensors of both libraries."""

    def __init__(self, inner: Any, outer: Any, runs: Any, arguments: Any, ties: Sequence[_Tie]) -> None:
        self.inner, self.outer, self.runs = inner, outer, runs
        self.recording = outer.is_grad_enabled()
        self.leaves, self.shape = _tree(outer).tree_flatten(arguments)
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, outer.Tensor)]
        trained = {id(tie.known): tie for tie in ties if self.recording and tie.known is not None}
        trained = {key: tie for key, tie in trained.items() if tie.known.requires_grad}
        self.mine = [self.leaves[i] for i in self.places] + [tie.mine[tie.name] for tie in trained.values()]
        self.theirs: list[Any] = [tie.known for tie in trained.values()]  # run() puts the inputs before them
        self.results: list[Any] = []
        self.watched: list[tuple[Any, Any]] = []  # each tensor of the outer library, and the inner one of its memory
        self.versions: list[int] = []  # of the first ones, after the call

    def autocast(self) -> Any:
        """Returns the inner library's autocast in the state of the outer one's."""
        device = self.mine[0].device.type if self.mine else "cpu"
        if device == "meta" or not self.outer.is_autocast_enabled(device):
            return contextlib.nullcontext()
        dtype = str(self.outer.get_autocast_dtype(device)).rpartition(".")[2]
        return self.inner.autocast(device, dtype=getattr(self.inner, dtype))

    def run(self) -> tuple[Any, ...]:
        """Runs the inner module on its tape; returns the tensors among its results, as the outer library's."""
        inputs = []
        for place in self.places:
            given = self.leaves[place]
            self.leaves[place] = shared = share(given, self.inner)
            inputs.append(shared.requires_grad_() if self.recording and given.requires_grad else shared)
        self.theirs[:0] = inputs
        before = [shared._version for shared in inputs]
        args, kwargs = _tree(self.outer).tree_unflatten(self.leaves, self.shape)
        with self.inner.set_grad_enabled(self.recording), self.autocast():
            returned = self.runs(*args, **kwargs)
        for mine, shared, version in zip(self.mine, inputs, before):
            if shared._version != version:
                _written_to(mine, self.outer)
        self.leaves, self.shape = _tree(self.inner).tree_flatten(returned)
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, self.inner.Tensor)]
        self.results = [self.leaves[i] for i in self.places]
        results = tuple(_own(self.results, self.theirs, self.outer))
        watched = [*zip(self.mine, self.theirs), *zip(results, self.results)]
        self.watched = [(mine.detach(), theirs) for mine, theirs in watched]  # the result itself holds this call
        self.mine = []
        self.versions = [mine._version for mine, _ in self.watched]
        return results

    def returned(self, results: Sequence[Any]) -> Any:
        """Returns what the inner module returned, with the outer library's tensors in it."""
        for place, result in zip(self.places, results):
            self.leaves[place] = result
        returned = _tree(self.inner).tree_unflatten(self.leaves, self.shape)
        self.leaves = []
        return returned

    def backward(self, wanted: Sequence[bool], grads: Sequence[Any]) -> list[Any]:
        """Runs the inner tape; returns a gradient, or None, for each tensor that entered."""
        for (mine, theirs), version in zip(self.watched, self.versions):
            if mine._version != version:
                _written_to(theirs, self.inner)
        given = [(r, share(g, self.inner)) for r, g in zip(self.results, grads) if r.requires_grad and g is not None]
        sources = [theirs for theirs, need in zip(self.theirs, wanted) if need]
        found: list[Any] = [None] * len(sources)
        if given and sources:
            results, theirs = zip(*given)
            found = list(self.inner.autograd.grad(results, sources, theirs, retain_graph=True, allow_unused=True))
            there = [i for i, grad in enumerate(found) if grad is not None]
            for i, grad in zip(there, _own([found[i] for i in there], theirs, self.outer)):
                found[i] = grad
        remaining = iter(found)
        return [next(remaining) if need else None for need in wanted]


def _tree(library: ModuleType) -> Any:
    return importlib.import_module(f"{library.__name__}.utils._pytree")


def _written_to(tensor: Any, library: Any) -> None:
    """Tells the tape of a library that the other one has written to the tensor's memory."""
    library.autograd.graph.increment_version(tensor)


def _own(tensors: Sequence[Any], others: Sequence[Any], target: ModuleType) -> list[Any]:
    """Shares tensors with the library ``target``; a copy of what has its memory in common with one of ``others`` or an
    earlier one, because ``target`` could not know that it is a view."""
    taken = {_memory(other) for other in others}
    shared = []
    for tensor in tensors:
        memory = _memory(tensor)
        shared.append(share(tensor.clone() if memory and memory in taken else tensor, target))
        taken.add(memory)
    return shared


def _memory(tensor: Any) -> int:
    return 0 if tensor.device.type == "meta" else tensor.untyped_storage().data_ptr()


@functools.cache
def _part_class(inner: Any, outer: Any) -> Any:
    class Part(outer.nn.Module):  # type: ignore[misc]
        """A module's counterpart in the other library: its parameters, buffers and submodules, by their names."""

        def __init__(self, runs: Any, exchange: Exchange, place: str) -> None:
            super().__init__()
            self._runs = runs
            self.training = runs.training
            for name, parameter in runs._parameters.items():
                self.register_parameter(name, exchange.converted(parameter, f"{place}.{name}"))
            for name, buffer in runs._buffers.items():
                persistent = name not in runs._non_persistent_buffers_set
                self.register_buffer(name, exchange.converted(buffer, f"{place}.{name}"), persistent=persistent)
            for name, child in runs._modules.items():
                part = exchange.once(child, lambda child=child, name=name: Part(child, exchange, f"{place}.{name}"))
                self.add_module(name, part)

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(
                f"{self._get_name()}: expected a call of the whole module that was converted; this part of it runs in "
                f"{inner.__name__} only. Convert the part by itself to call it."
            )

        def _get_name(self) -> str:
            return type(self._runs).__name__

        def extra_repr(self) -> str:
            return self._runs.extra_repr()

    return Part


@functools.cache
def _call_class(outer: Any) -> Any:
    class Call(outer.autograd.Function):  # type: ignore[misc]
        """The inner module as one operation of the outer tape."""

        @staticmethod
        def forward(ctx: Any, call: _Call, *tensors: Any) -> tuple[Any, ...]:
            ctx.call = call
            results = call.run()
            without = (mine for mine, theirs in zip(results, call.results) if not theirs.requires_grad)
            ctx.mark_non_differentiable(*without)
            ctx.set_materialize_grads(False)
            return results

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            if outer.is_grad_enabled():
                raise RuntimeError(
                    f"backward: expected create_graph=False: a module that runs in {ctx.call.inner.__name__} is "
                    "differentiated once."
                )
            return None, *ctx.call.backward(ctx.needs_input_grad[1:], grads)

    return Call


@functools.cache
def _runner_class(inner: Any, outer: Any) -> Any:
    convert = from_torch if outer.__name__ == "vesta" else to_torch

    class Runner(_part_class(inner, outer)):  # type: ignore[misc]
        def __init__(self, runs: Any, exchange: Exchange, place: str) -> None:
            super().__init__(runs, exchange, place)
            self._parts = [part for part in self.modules() if isinstance(part, _part_class(inner, outer))]
            self._ties = []
            for path, part in self.named_modules():
                for kind in ("_parameters", "_buffers"):
                    mine, theirs = getattr(part, kind), getattr(part._runs, kind)
                    at = f"{type(self).__name__}: {path}." if path else f"{type(self).__name__}: "
                    self._ties += [_Tie(at + k, k, mine, theirs, kind == "_parameters") for k in theirs]

        def _tie(self) -> None:
            """Gives the inner module the modes of this one, after a check that they still share their memory."""
            for tie in self._ties:
                tie.check(inner, outer)
            for part in self._parts:
                if part._runs.training != part.training:
                    part._runs.training = part.training

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            self._tie()
            call = _Call(inner, outer, self._runs, (args, kwargs), self._ties)
            return call.returned(_call_class(outer).apply(call, *call.mine))

        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            self._tie()
            made = convert(copy.deepcopy(self._runs, memo))
            memo[id(self)] = made
            memo.update((id(a), b) for a, b in zip(self.parameters(), made.parameters()))
            return made

        def __reduce__(self) -> Any:
            self._tie()
            return convert, (self._runs,)

        def _get_name(self) -> str:
            return f"{inner.__name__}:{super()._get_name()}"

    Runner.__doc__ = f"A module of {outer.__name__} that runs one of {inner.__name__}."
    Runner.__name__ = Runner.__qualname__ = f"{inner.__name__.capitalize()}Module"
    return Runner
