"""Modules of one library that run a module of the other: what ``from_torch`` and ``to_torch`` make of a module.

Both libraries have the same names, so each class is written once, for ``outer``, the library of the network, and
``inner``, that of the module inside. Parameters and buffers are tensors of both over one memory: ``inner`` computes
with its own; tape, optimizers and state dicts of ``outer`` have those that share them.

A call is a ``Function`` of ``outer``. Its backward pass runs the tape of ``inner``. Where one library writes to memory
that the other one's tape has saved, the version of the other's tensor is raised, so that its own check finds it.

Note [What a call keeps]
A call keeps the inner tape for as long as the outer tape keeps what it has saved for that call: a token, which holds
the call's number. When its memory is freed, after a backward pass without ``retain_graph`` or with the graph, the call
lets go. The backward pass asks the token for the call: where a checkpoint has run the part again, it is the new one.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .torch import Exchange, from_torch, share, to_torch, twins

__all__: list[str] = []


def module_of(module: Any, exchange: Exchange, place: str) -> Any:
    """Returns a module of the exchange's target that runs ``module``, of its source."""
    if isinstance(module, _classes(exchange.target, exchange.source).runners):
        module._sync_all()
        return module._inner_module  # there and back
    return _classes(exchange.source, exchange.target).runner_of(module)(module, exchange, place)


def _version(tensor: Any) -> int:
    return 0 if tensor.is_inference() else tensor._version


def _written_to(tensor: Any, library: Any) -> None:
    """Tells the tape of a library that the other one has written to the tensor's memory."""
    if not tensor.is_inference():
        library.autograd.graph.increment_version(tensor)


def _memory(tensor: Any) -> int:
    """Returns where the memory of a tensor is; 0 where there is none."""
    if tensor.device.type == "meta" or str(tensor.layout).rpartition(".")[2] != "strided":
        return 0
    return tensor.untyped_storage().data_ptr()


def _own(tensors: Sequence[Any], others: Sequence[Any], target: Any) -> list[Any]:
    """Shares tensors with the library ``target``; a copy of what has its memory in common with one of ``others`` or an
    earlier one, because ``target`` could not know that it is a view."""
    taken = {_memory(other) for other in others}
    shared = []
    for tensor in tensors:
        memory = _memory(tensor)
        shared.append(share(tensor.clone() if memory and memory in taken else tensor, target))
        taken.add(memory)
    return shared


class _Tie:
    """A parameter or buffer of both modules: its name in the dicts that hold it there."""

    def __init__(self, path: str, name: str, mine: dict[str, Any], theirs: dict[str, Any], is_parameter: bool) -> None:
        self.path, self.name, self.mine, self.theirs, self.is_parameter = path, name, mine, theirs, is_parameter
        self.known = theirs[name]
        self.trained = self.known is not None and self.known.requires_grad

    def refresh(self, outer: Any) -> None:
        """Shares a buffer anew that the inner module has replaced."""
        theirs = self.theirs.get(self.name)
        if theirs is not self.known and not self.is_parameter:
            self.known = theirs
            self.mine[self.name] = None if theirs is None else share(theirs, outer)

    def check(self, inner: Any, outer: Any) -> None:
        """Checks that both share their memory, and gives both the ``requires_grad`` that was set last."""
        self.refresh(outer)
        mine, theirs = self.mine.get(self.name), self.theirs.get(self.name)
        if mine is None and theirs is None:
            return
        if mine is None or theirs is not self.known or mine.data_ptr() != theirs.data_ptr():
            raise RuntimeError(
                f"{self.path}: expected the same memory in both libraries, but the tensor of one has been moved, "
                f"converted or replaced. Do that to {inner.__name__}'s module, and convert it then."
            )
        if self.is_parameter and theirs.requires_grad != self.trained:
            mine.requires_grad_(theirs.requires_grad)
        elif self.is_parameter and mine.requires_grad != self.trained:
            theirs.requires_grad_(mine.requires_grad)
        self.trained = self.is_parameter and mine.requires_grad

    def adopt(self, parameter: Any, inner: Any) -> None:
        """Makes another parameter of the outer library, of the same values, the one that both share."""
        if parameter is not None and parameter is not self.mine[self.name]:
            self.known.data = share(parameter, inner)
            self.mine[self.name] = parameter
            twins.tie(self.known, parameter)


class _OfCall(Exchange):
    """A walk through the arguments or results of a call, in which a module is a value like any other."""

    def module(self, module: Any, place: str) -> Any:
        return module


class _Seen(_OfCall):
    """Collects the tensors of a structure, each once."""

    def __init__(self, source: Any, target: Any, name: str) -> None:
        super().__init__(source, target, name)
        self.tensors: list[Any] = []

    def tensor(self, tensor: Any, place: str) -> Any:
        self.tensors.append(tensor)
        return tensor

    def rebuilt(self, obj: Any, members: Any, place: str) -> Any:
        return obj


class _Replaced(_OfCall):
    """Puts tensors of the other library in place of those of a structure."""

    def __init__(self, source: Any, target: Any, name: str, by: dict[int, Any]) -> None:
        super().__init__(source, target, name)
        self.by = by

    def tensor(self, tensor: Any, place: str) -> Any:
        return self.by[id(tensor)]


class _Token(bytearray):
    """The memory of a token (Note [What a call keeps])."""


_calls: dict[int, _Call] = {}  # by number, while their tokens live
_numbers = itertools.count()


def _forget(number: int) -> None:
    call = _calls.pop(number, None)
    if call is not None:
        call.release()


class _Call:
    """One call of the inner module: what entered it and what it returned, as tensors of both libraries."""

    def __init__(self, inner: Any, outer: Any, runner: Any, arguments: tuple[Any, Any]) -> None:
        self.inner, self.outer, self.runner = inner, outer, runner
        self.recording = outer.is_grad_enabled()
        self.arguments = arguments
        seen = _Seen(outer, inner, runner._get_name())
        seen.converted(arguments, "arguments")
        self.inputs = seen.tensors
        self.ties = [tie for tie in runner._inner_ties if tie.known is not None]
        trained = {id(tie.known): tie for tie in self.ties if tie.trained and self.recording}
        self.mine = self.inputs + [tie.mine[tie.name] for tie in trained.values()]
        self.theirs: list[Any] = [tie.known for tie in trained.values()]  # run() puts the inputs before them
        self.results: list[Any] = []
        self.watched: list[tuple[Any, Any]] = []  # each tensor of the outer library, and the inner one of its memory
        self.versions: list[int] = []  # of the first ones, after the call
        self.returned: Any = None
        self.tensors: list[Any] = []  # of what was returned

    def release(self) -> None:
        """Lets the inner tape go."""
        self.theirs, self.results, self.watched = [], [], []

    def token(self) -> Any:
        """Returns a tensor with whose memory this call is released."""
        number = next(_numbers)
        owner = _Token(number.to_bytes(8, sys.byteorder))
        _calls[number] = self
        weakref.finalize(owner, _forget, number).atexit = False
        return self.outer.frombuffer(owner, dtype=self.outer.int64)

    def autocast(self) -> Any:
        """Returns the inner library's autocast in the state of the outer one's."""
        device = self.mine[0].device.type if self.mine else "cpu"
        if device == "meta" or not self.outer.is_autocast_enabled(device):
            return contextlib.nullcontext()
        dtype = str(self.outer.get_autocast_dtype(device)).rpartition(".")[2]
        return self.inner.autocast(device, dtype=getattr(self.inner, dtype))

    def enter(self) -> tuple[dict[int, Any], list[tuple[Any, Any, int]]]:
        """Makes the inner inputs: by the id of the outer ones, and those that share their memory with their version.

        An input that requires grad enters as a copy: a module may write to its input, and the outer tape could not
        know the values that came of it.
        """
        entered, shared = {}, []
        for i, given in enumerate(self.inputs):
            try:
                tensor = share(given, self.inner)
            except Exception as error:
                kind = BufferError if isinstance(error, BufferError) else TypeError
                raise kind(f"{self.runner._get_name()}: {error} (tensor {i} of the arguments)") from error
            entered[id(given)] = tensor
            if self.recording and given.requires_grad:
                with self.inner.enable_grad():
                    entered[id(given)] = tensor.requires_grad_().clone()
            else:
                shared.append((given, tensor, _version(tensor)))
            self.theirs.insert(i, tensor)
        return entered, shared

    def run(self) -> tuple[Any, ...]:
        """Runs the inner module on its tape; returns the tensors among its results, as the outer library's."""
        inner, outer, name = self.inner, self.outer, self.runner._get_name()
        entered, shared = self.enter()
        args, kwargs = _Replaced(outer, inner, name, entered).converted(self.arguments, "arguments")
        tied = [(tie.mine[tie.name], tie.known, _version(tie.known)) for tie in self.ties]
        with inner.set_grad_enabled(self.recording), self.autocast():
            self.returned = self.runner._inner_module(*args, **kwargs)
        for mine, theirs, version in (*shared, *tied):
            if _version(theirs) != version:
                _written_to(mine, outer)
        for i, (_, theirs, _) in enumerate(shared):
            if theirs.requires_grad:
                raise RuntimeError(
                    f"{name}: expected arguments that are not written to with values that require grad; argument "
                    f"tensor {i} was. Give it .clone() or a tensor that requires grad."
                )
        for tie in self.ties:
            tie.refresh(outer)
        seen = _Seen(inner, outer, name)
        seen.converted(self.returned, "result")
        self.results = self.tensors = seen.tensors
        results = tuple(_own(self.results, [*self.theirs, *(theirs for _, theirs, _ in tied)], outer))
        self.arguments, self.inputs, self.mine, self.ties = ((), {}), [], [], []
        if any(result.requires_grad for result in self.results):
            self.watch([(mine, theirs) for mine, theirs, _ in (*shared, *tied)], results)
        return results

    def watch(self, pairs: list[tuple[Any, Any]], results: Sequence[Any]) -> None:
        """Remembers the versions of tensors that the outer library may write to; refuses leaves that it cannot see."""
        pairs = [*pairs, *zip(results, self.results)]
        self.watched = [(mine.detach(), theirs) for mine, theirs in pairs]  # the result itself holds this call
        self.versions = [_version(mine) for mine, _ in self.watched]
        if not self.runner._inner_leaves_checked:
            known = {_memory(theirs) for theirs in self.theirs}
            for leaf in _leaves_of(self.results):
                if _memory(leaf) not in known:
                    raise RuntimeError(
                        f"{self.runner._get_name()}: a tensor of shape {tuple(leaf.shape)} requires grad, but is no "
                        "parameter of the module and no argument, so its gradient would be lost. Register it (as a "
                        "Parameter, in a ParameterList or ModuleList) and convert the module again, or detach it."
                    )
            self.runner._inner_leaves_checked = True

    def result(self, results: Sequence[Any]) -> Any:
        """Returns what the inner module returned, with the outer library's tensors in it."""
        by = {id(theirs): mine for theirs, mine in zip(self.tensors, results)}
        made = _Replaced(self.inner, self.outer, self.runner._get_name(), by).converted(self.returned, "result")
        self.returned, self.tensors = None, []
        return made

    def backward(self, wanted: Sequence[bool], grads: Sequence[Any]) -> list[Any]:
        """Runs the inner tape; returns a gradient, or None, for each tensor that entered."""
        for (mine, theirs), version in zip(self.watched, self.versions):
            if _version(mine) != version:
                _written_to(theirs, self.inner)
        given = [(r, share(g, self.inner)) for r, g in zip(self.results, grads) if r.requires_grad and g is not None]
        places = [i for i, (theirs, need) in enumerate(zip(self.theirs, wanted)) if need and theirs.requires_grad]
        found: list[Any] = [None] * len(wanted)
        if given and places:
            results, theirs = zip(*given)
            sources = [self.theirs[i] for i in places]
            made = self.inner.autograd.grad(results, sources, theirs, retain_graph=True, allow_unused=True)
            for i, grad in zip(places, made):  # a copy: the outer library adds to it, and others may hold the original
                found[i] = None if grad is None else share(grad.clone(), self.outer)
        return found


def _leaves_of(results: Sequence[Any]) -> Iterator[Any]:
    """Yields the leaves that the tape would give gradients."""
    nodes, seen = [result.grad_fn for result in results if result.grad_fn is not None], set()
    while nodes:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        if type(node).__name__ == "AccumulateGrad":
            yield node.variable
        nodes.extend(next_node for next_node, _ in node.next_functions if next_node is not None)


#: What a module of a wrapper has by being one; all else that it holds is the user's.
_OWN = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training", "_version"}


def _users(part: Any) -> dict[str, Any]:
    """Returns what the user has put into a module of a wrapper: hooks and attributes."""
    members = {*_OWN, *part._parameters, *part._buffers, *part._modules}
    return {k: v for k, v in part.__dict__.items() if k not in members and not k.startswith("_inner_")}


class _Classes:
    """The classes for modules of ``outer`` that run modules of ``inner``."""

    def __init__(self, inner: Any, outer: Any) -> None:
        self.inner = inner
        part = _part_class(inner, outer, self.part_of)
        runner = _runner_mixin(inner, outer, _call_class(outer))
        name = f"{inner.__name__.capitalize()}Module"
        document = {"__doc__": f"A module of {outer.__name__} that runs one of {inner.__name__}."}
        self.parts = part, type("Part", (_extra_mixin(inner, outer), part), {})
        self.runners = tuple(type(name, (runner, each), dict(document)) for each in self.parts)

    def _has_extra(self, module: Any) -> bool:
        return type(module).get_extra_state is not self.inner.nn.Module.get_extra_state

    def part_of(self, module: Any) -> Any:
        """Returns the class for a module inside."""
        return self.parts[self._has_extra(module)]

    def runner_of(self, module: Any) -> Any:
        """Returns the class for a module that is converted by itself."""
        return self.runners[self._has_extra(module)]


@functools.cache
def _classes(inner: Any, outer: Any) -> _Classes:
    return _Classes(inner, outer)


def _part_class(inner: Any, outer: Any, part_of: Callable[[Any], Any]) -> Any:
    class Part(outer.nn.Module):  # type: ignore[misc]
        """A module's counterpart in the other library: its parameters, buffers and submodules, by their names."""

        def __init__(self, module: Any, exchange: Exchange, place: str) -> None:
            super().__init__()
            self.__dict__.update(_inner_module=module, _inner_mode=module.training)
            self.__dict__["_version"] = getattr(module, "_version", 1)
            self.training = module.training
            for name, parameter in module._parameters.items():
                self.register_parameter(name, exchange.converted(parameter, f"{place}.{name}"))
            for name, buffer in module._buffers.items():
                persistent = name not in module._non_persistent_buffers_set
                self.register_buffer(name, exchange.converted(buffer, f"{place}.{name}"), persistent=persistent)
            for name, child in module._modules.items():
                self.add_module(name, None if child is None else self._part(child, exchange, f"{place}.{name}"))

        @staticmethod
        def _part(child: Any, exchange: Exchange, place: str) -> Any:
            return exchange.once(exchange.parts, child, lambda: part_of(child)(child, exchange, place))

        def forward(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError(
                f"{self._get_name()}: expected a call of the whole module that was converted; this part of it runs in "
                f"{inner.__name__} only. Convert the part by itself to call it."
            )

        def train(self, mode: bool = True) -> Any:
            self._inner_module.train(mode)
            for part in self.modules():
                if isinstance(part, Part):
                    part.training = part.__dict__["_inner_mode"] = part._inner_module.training
            return self

        def _sync(self) -> None:
            """Checks that both modules have the same members, and gives both the mode that was set last."""
            module = self._inner_module
            children = self._modules
            same = children.keys() == module._modules.keys() and all(
                child is None if mine is None else getattr(mine, "_inner_module", None) is child
                for mine, child in ((children[name], child) for name, child in module._modules.items())
            )
            tables = ((self._parameters, module._parameters), (self._buffers, module._buffers))
            if not same or any(mine.keys() != theirs.keys() for mine, theirs in tables):
                raise RuntimeError(
                    f"{self._get_name()}: expected the members that the module had when it was converted; a submodule, "
                    f"parameter or buffer has been added, replaced or removed. Do that to {inner.__name__}'s module, "
                    "and convert it then."
                )
            if module.training != self._inner_mode:
                self.training = module.training
            elif self.training != self._inner_mode:
                module.training = self.training
            self.__dict__["_inner_mode"] = self.training

        def _get_name(self) -> str:
            return type(self._inner_module).__name__

        def extra_repr(self) -> str:
            return self._inner_module.extra_repr()

    return Part


def _extra_mixin(inner: Any, outer: Any) -> Any:
    there, back = (from_torch, to_torch) if outer.__name__ == "vesta" else (to_torch, from_torch)

    class Extra:
        """For a module whose class has a state besides its tensors."""

        _inner_module: Any

        def get_extra_state(self) -> Any:
            return there(self._inner_module.get_extra_state())

        def set_extra_state(self, state: Any) -> None:
            self._inner_module.set_extra_state(back(state))

    return Extra


def _call_class(outer: Any) -> Any:
    class Call(outer.autograd.Function):  # type: ignore[misc]
        """The inner module as one operation of the outer tape."""

        @staticmethod
        def forward(ctx: Any, call: _Call, *tensors: Any) -> tuple[Any, ...]:
            results = call.run()
            without = (mine for mine, theirs in zip(results, call.results) if not theirs.requires_grad)
            ctx.mark_non_differentiable(*without)
            ctx.set_materialize_grads(False)
            if call.watched:
                ctx.save_for_backward(call.token())
            return results

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            if outer.is_grad_enabled():
                raise RuntimeError(
                    "backward: expected create_graph=False: a module that runs in another library is differentiated "
                    "once."
                )
            (token,) = ctx.saved_tensors  # raises where it is freed
            call = _calls.get(int(token.item()))
            if call is None:
                raise RuntimeError(
                    "backward: expected hooks of saved tensors that keep them, for a module that runs in another "
                    "library: its tape went with the token that they replaced."
                )
            return None, *call.backward(ctx.needs_input_grad[1:], grads)

    return Call


def _runner_mixin(inner: Any, outer: Any, call_class: Any) -> Any:
    convert = from_torch if outer.__name__ == "vesta" else to_torch

    class Runner:
        """What the outermost module has over its parts: it can be called and copied."""

        def __init__(self: Any, module: Any, exchange: Exchange, place: str) -> None:
            super().__init__(module, exchange, place)
            ties = []
            for path, part in self.named_modules():
                at = f"{type(self).__name__}: {path}." if path else f"{type(self).__name__}: "
                for kind in ("_parameters", "_buffers"):
                    mine, theirs = getattr(part, kind), getattr(part._inner_module, kind)
                    ties += [_Tie(at + name, name, mine, theirs, kind == "_parameters") for name in theirs]
            parts = [part for part in self.modules() if part is not self]
            self.__dict__.update(_inner_ties=ties, _inner_parts=parts, _inner_leaves_checked=False)

        def _sync_all(self: Any) -> None:
            self._sync()
            for part in self._inner_parts:
                part._sync()
            for tie in self._inner_ties:
                tie.check(inner, outer)

        def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
            self._sync_all()
            call = _Call(inner, outer, self, (args, kwargs))
            results = call_class.apply(call, *call.mine)
            made = call.result(results)
            if not call.watched:
                call.release()
            return made

        def _twin_parameters(self: Any) -> list[Any]:
            return [tie.mine[tie.name] if tie.is_parameter else None for tie in self._inner_ties]

        def _take(self: Any, parameters: Sequence[Any], users: Sequence[dict[str, Any]]) -> None:
            """Takes over parameters, one for each tie, and what the user had put into each part."""
            for tie, parameter in zip(self._inner_ties, parameters):
                tie.adopt(parameter, inner)
            for part, own in zip([self, *self._inner_parts], users):
                part.__dict__.update(own)

        def __deepcopy__(self: Any, memo: dict[int, Any]) -> Any:
            self._sync_all()
            mine = self._twin_parameters()
            copied = [None if parameter is None else memo.get(id(parameter)) for parameter in mine]
            made = convert(copy.deepcopy(self._inner_module, memo))
            memo[id(self)] = made
            made._take(copied, [])
            for parameter, twin in zip(mine, made._twin_parameters()):
                if parameter is not None:
                    memo[id(parameter)] = twin
            parts = [self, *self._inner_parts]
            made._take([], [copy.deepcopy(_users(part), memo) for part in parts])
            return made

        def __reduce__(self: Any) -> Any:
            self._sync_all()
            parts = [self, *self._inner_parts]
            state = self._twin_parameters(), [_users(part) for part in parts]
            return convert, (self._inner_module,), state

        def __setstate__(self: Any, state: Any) -> None:
            self._take(*state)

        def _get_name(self: Any) -> str:
            return f"{inner.__name__}:{super()._get_name()}"

    return Runner
