"""Checkpointing: a part of a model keeps its inputs only, and is computed again when backward comes to it.

Two kinds. Without reentry (``use_reentrant=False``) every tensor that the part saves for backward is replaced by a
place, by ``saved_tensors_hooks``; the first of them that backward asks for runs the part again, and fills them all.
With reentry (``use_reentrant=True``, the older kind) the part is one ``Function`` whose backward runs it again with
recording on and calls backward inside; it needs an input that requires grad.

Random numbers of the second run are those of the first, unless ``preserve_rng_state=False``; autocast is as it was.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import vesta
from vesta import _C, Tensor
from vesta._arguments import expect, pytorch
from vesta._names import listing

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "checkpoint",
    "checkpoint_sequential",
    "check_backward_validity",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

R = TypeVar("R")


class CheckpointError(RuntimeError):
    """The second run of a part saved other tensors than the first."""


class _Done(Exception):
    """Ends the second run when everything that backward needs is computed."""


_early_stop = True


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A context that sets whether a second run ends with the last tensor that is needed; it does by default."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A context that changes nothing: a mismatch names the tensors in any case."""
    yield


def noop_context_fn() -> tuple[Any, Any]:
    """Returns two contexts that do nothing: the default of ``context_fn``."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Returns the CUDA devices of the tensors among the arguments, and the states of their generators."""
    devices = sorted({arg.get_device() for arg in args if isinstance(arg, Tensor) and arg.is_cuda})
    return devices, [vesta.cuda.get_rng_state(device) for device in devices]


def set_device_states(devices: list[int], states: list[Tensor], *, device_type: str | None = None) -> None:
    """Makes the generators of CUDA devices continue from states of ``get_device_states``."""
    for name, value in (("devices", devices), ("states", states)):
        expect("set_device_states", name, value, (list, tuple), "a list")
    for device, state in zip(devices, states):
        vesta.cuda.set_rng_state(state, device)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the inputs as leaves that require grad where they did. RuntimeError: not a tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Any) -> None:
    """Warns if no input requires grad: the reentrant kind then gives no gradients."""
    expect("check_backward_validity", "inputs", inputs, Iterable, "inputs")
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class _Surroundings:
    """The modes and random states at the first run, for the second."""

    def __init__(self, preserve_rng_state: bool, args: Any) -> None:
        kinds = ("cpu", "cuda")
        self.autocast = [(kind, _C.is_autocast_enabled(kind), _C.get_autocast_dtype(kind)) for kind in kinds]
        self.cache = _C.is_autocast_cache_enabled()
        self.preserve = preserve_rng_state
        if preserve_rng_state:
            self.state = vesta.get_rng_state()
            self.devices, self.states = get_device_states(*args)
            self.pytorch = pytorch()
            self.pytorchs = self.pytorch.get_rng_state() if self.pytorch else None  # of modules that run in it

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A context in which they are as they were."""
        with contextlib.ExitStack() as stack:
            if self.preserve:
                stack.enter_context(vesta.random.fork_rng(self.devices))
                vesta.set_rng_state(self.state)
                set_device_states(self.devices, self.states)
                if self.pytorch:
                    stack.enter_context(self.pytorch.random.fork_rng())
                    self.pytorch.set_rng_state(self.pytorchs)
            for kind, enabled, dtype in self.autocast:
                if enabled != _C.is_autocast_enabled(kind) or enabled:
                    stack.enter_context(vesta.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=self.cache))
            yield


class CheckpointFunction(vesta.autograd.Function):
    """The reentrant kind: one operation whose backward runs the part again."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state, args)
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with vesta.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        inputs = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors):
            inputs[place] = tensor
        leaves = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), vesta.enable_grad():
            outputs = ctx.run_function(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        used = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not used:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        vesta.autograd.backward([o for o, _ in used], [g for _, g in used])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in leaves))


class _Part:
    """One call without reentry: the places of what it saved, and how to run it again."""

    def __init__(
        self, run: Callable[[], Any], around: Any, surroundings: _Surroundings, check: bool, early_stop: bool
    ) -> None:
        self.run, self.around, self.surroundings, self.check = run, around, surroundings, check
        self.early_stop = early_stop
        self.facts: list[tuple[Any, ...]] = []  # of each saved tensor, from the first run
        self.values: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> int:
        """Keeps a place instead of a tensor of the first run."""
        self.facts.append(_facts(tensor))
        return len(self.facts) - 1

    def unpack(self, place: int) -> Tensor:
        """Returns the tensor of a place, computed again if it is not there."""
        if place not in self.values:
            self._run_again()
        return self.values.pop(place)

    def _run_again(self) -> None:
        count = 0
        stop, found = self.early_stop, []

        def pack(tensor: Tensor) -> Tensor:
            nonlocal count
            found.append(tensor.detach())
            count += 1
            if stop and count == len(self.facts):
                raise _Done
            return tensor

        hooks = vesta.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
        with contextlib.suppress(_Done), self.surroundings.again(), vesta.enable_grad(), self.around, hooks:
            self.run()
        if self.check:
            self._compare(found, count)
        self.values = dict(enumerate(found))

    def _compare(self, found: list[Tensor], count: int) -> None:
        if count != len(self.facts):
            raise CheckpointError(
                "A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.facts)}\n"
                f"Number of tensors saved during recomputation: {count}."
            )
        wrong = [(i, a, _facts(t)) for i, (a, t) in enumerate(zip(self.facts, found)) if a != _facts(t)]
        if wrong:
            lines = "\n".join(
                f"tensor at position {i}:\nsaved metadata: {_shown(a)}\nrecomputed metadata: {_shown(b)}"
                for i, a, b in wrong
            )
            raise CheckpointError(
                "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                + lines
            )


def _facts(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.dtype, tensor.device


def _shown(facts: tuple[Any, ...]) -> str:
    return f"{{'shape': {facts[0]}, 'dtype': {facts[1]}, 'device': {facts[2]!r}}}"


def checkpoint(
    function: Any = None,
    *args: Any,
    use_reentrant: bool | None = None,
    preserve_rng_state: bool = True,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    respect_saved_tensors_hooks: bool | None = None,
    **kwargs: Any,
) -> Any:
    """Returns ``function(*args, **kwargs)``, which is computed again in backward instead of keeping what it needs.

    Args:
        function: a part of a model; it must compute the same each time. Without it, a decorator is returned.
        use_reentrant: which kind (see the module); False is recommended. Without it, a warning, and True.
        preserve_rng_state: whether the second run has the random numbers of the first; True by default.
        context_fn: returns two contexts, for the first run and the second; without reentry only.
        determinism_check: "default": shapes, dtypes and devices of what is saved are compared; "none": nothing is.
        debug: accepted; errors name the tensors in any case.
        early_stop: whether the second run ends with the last tensor that is needed.
        respect_saved_tensors_hooks: accepted, without reentry only; it has no effect.

    Raises:
        ValueError: unknown keywords with reentry, or options that only the other kind has.
        CheckpointError: in backward, the second run saved other tensors.

    Example::

        >>> import vesta
        >>> layer = vesta.nn.Linear(2, 2)
        >>> y = vesta.utils.checkpoint.checkpoint(layer, vesta.ones(1, 2), use_reentrant=False)
        >>> y.sum().backward()
        >>> layer.bias.grad
        tensor([1., 1.])
    """
    if function is None and not args:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        options = {
            "use_reentrant": use_reentrant,
            "preserve_rng_state": preserve_rng_state,
            "context_fn": context_fn,
            "determinism_check": determinism_check,
            "debug": debug,
            "early_stop": early_stop,
            "respect_saved_tensors_hooks": respect_saved_tensors_hooks,
        }

        def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def call(*args: Any, **kwargs: Any) -> Any:  # a function, which is a method where the class has it
                return checkpoint(function, *args, **options, **kwargs)

            return call

        return decorated
    expect("checkpoint", "function", function, Callable, "a function")
    expect("checkpoint", "context_fn", context_fn, Callable, "a function")
    if use_reentrant is None:
        warnings.warn(
            "vesta.utils.checkpoint: the use_reentrant parameter should be passed explicitly. The default is "
            "use_reentrant=True; use_reentrant=False is recommended.",
            stacklevel=2,
        )
        use_reentrant = True
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False or respect_saved_tensors_hooks is not None:
            raise ValueError(
                "Passing `context_fn`, `debug`, or `respect_saved_tensors_hooks` is only supported when "
                "use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"checkpoint: expected 'default' or 'none', got {determinism_check!r} (determinism_check).")
    contexts = context_fn()
    if not isinstance(contexts, (tuple, list)) or len(contexts) != 2:
        raise TypeError(f"checkpoint: expected a function that returns two contexts, got {contexts!r} (context_fn).")
    forward_context, again_context = contexts
    surroundings = _Surroundings(preserve_rng_state, [*args, *kwargs.values()])

    def run() -> Any:
        return function(*args, **kwargs)

    if not _C.is_grad_enabled():
        with forward_context:
            return run()
    part = _Part(run, again_context, surroundings, determinism_check == "default", early_stop and _early_stop)
    with vesta.autograd.graph.saved_tensors_hooks(part.pack, part.unpack), forward_context:
        return run()


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs layers one after the other in ``segments`` parts, of which all but the last are checkpointed.

    Args:
        functions: an ``nn.Sequential``, or a list of functions of one argument.
        segments: the number of parts.
        input: the first one's argument.
        use_reentrant, preserve_rng_state: as in ``checkpoint``.

    Example::

        >>> import vesta
        >>> model = vesta.nn.Sequential(vesta.nn.Linear(2, 2), vesta.nn.ReLU(), vesta.nn.Linear(2, 1))
        >>> x = vesta.ones(1, 2, requires_grad=True)
        >>> vesta.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False).shape
        vesta.Size([1, 1])
    """
    expect("checkpoint_sequential", "functions", functions, Iterable, "layers")
    expect("checkpoint_sequential", "segments", segments, int, "int")
    if segments < 1:
        raise ValueError(f"checkpoint_sequential: expected at least one part, got {segments} (segments).")
    if use_reentrant is None:
        warnings.warn(
            "vesta.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    layers = list(functions.children()) if isinstance(functions, vesta.nn.Sequential) else list(functions)
    for layer in layers:
        expect("checkpoint_sequential", "functions", layer, Callable, "functions of one argument")

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for layer in layers[start:end]:
                x = layer(x)
            return x

        return forward

    size = len(layers) // segments
    end = 0
    for start in range(0, size * (segments - 1), size) if size else ():
        end = start + size
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end, len(layers))(input)


__dir__ = listing(globals())
