"""Hooks of a module: forward, backward, and those that run on every module. A call without hooks does not use this
file."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import vesta
from vesta import Tensor
from vesta.autograd.function import Function
from vesta.utils.hooks import RemovableHandle

__all__ = [
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
]

_global_forward_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

# Whether a global hook was ever registered: a list, so that `Module.__call__` tests it without a function call.
any_global: list[bool] = []


# What runs around every call of a module while a profile runs: a function from the module to a token, and one of that.
_observer: list[Callable[..., Any]] = []


def any_hook() -> bool:
    """Returns whether there is a global hook."""
    return bool(
        _global_forward_pre_hooks or _global_forward_hooks or _global_backward_pre_hooks or _global_backward_hooks
    )


def observe_calls(begin: Callable[[Any], Any] | None, end: Callable[[Any], None] | None) -> None:
    """Makes every call of a module run between ``token = begin(module)`` and ``end(token)``; None ends that."""
    _observer[:] = [] if begin is None or end is None else [begin, end]
    any_global[:] = [True] if _observer or any_hook() else []


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(module, args)`` to run before the forward of every module."""
    any_global[:] = [True]
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Registers ``hook(module, args, output)`` to run after the forward of every module."""
    any_global[:] = [True]
    marks = [
        table
        for table, on in (
            (_global_forward_hooks_with_kwargs, with_kwargs),
            (_global_forward_hooks_always_called, always_call),
        )
        if on
    ]
    return _register(_global_forward_hooks, hook, marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(module, grad_output)`` to run before the backward of every module."""
    any_global[:] = [True]
    return _register(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Registers ``hook(module, grad_input, grad_output)`` to run after the backward of every module."""
    any_global[:] = [True]
    return _register(_global_backward_hooks, hook)


def _register(
    table: OrderedDict[int, Any], hook: Callable[..., Any], marks: Any = (), *, prepend: bool = False
) -> RemovableHandle:
    """Stores ``hook`` in ``table`` and its id in every table of ``marks``."""
    handle = RemovableHandle(table, extra_dict=list(marks))
    table[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


class _Gate(Function):
    """The identity on tensors, whose backward passes their gradients to a callback that may replace them."""

    @staticmethod
    def forward(ctx: Any, callback: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.callback = callback
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*(tensor for tensor in tensors if not tensor.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Any, ...]:
        return (None, *ctx.callback(grads))


class _BackwardHooks:
    """A module's backward hooks for one forward call: a gate on its inputs and one on its outputs."""

    def __init__(self, module: Any, pre_hooks: list[Any], hooks: list[Any]) -> None:
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.input_places: list[int] | None = None  # which positional arguments are tensors; None: no gate
        self.output_places: list[int] | None = None
        self.inputs = self.outputs = 0
        self.grad_output: tuple[Any, ...] | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Adds the gate to the inputs; its backward ends the module's."""
        self.inputs = len(args)
        args, self.input_places = self._gate(args, self._leave_backward)
        return args

    def leave(self, output: Any) -> Any:
        """Adds the gate to the outputs; its backward begins the module's."""
        if not isinstance(output, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(output)}",
                stacklevel=4,
            )
        outputs = output if isinstance(output, tuple) else (output,)
        self.outputs = len(outputs)
        outputs, self.output_places = self._gate(outputs, self._enter_backward)
        return outputs if isinstance(output, tuple) else outputs[0]

    @staticmethod
    def _gate(values: tuple[Any, ...], callback: Callable[..., Any]) -> tuple[tuple[Any, ...], list[int] | None]:
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        if not (vesta.is_grad_enabled() and any(values[i].requires_grad for i in places)):
            return values, None
        gated = list(values)
        for i, tensor in zip(places, _Gate.apply(callback, *(values[i] for i in places))):
            gated[i] = tensor
        return type(values)(gated) if type(values) is tuple else type(values)(*gated), places

    def _enter_backward(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        self.grad_output = self._spread(grads, self.output_places or [], self.outputs)
        for hook in self.pre_hooks:
            changed = hook(self.module, self.grad_output)
            if changed is not None:
                self.grad_output = self._checked(changed, self.outputs, "Backward pre hook", "grad_output")
        if self.input_places is None:  # no gate below will run: the module's backward ends here
            for hook in self.hooks:
                result = hook(self.module, (None,) * self.inputs, self.grad_output)
                if result is not None and not (isinstance(result, tuple) and all(grad is None for grad in result)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None "
                        "or None for all gradients."
                    )
        return tuple(self.grad_output[i] for i in self.output_places or [])

    def _leave_backward(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        if self.grad_output is None:  # the gradient came past the outputs: there is nothing to call the hooks with
            return grads
        grad_input = self._spread(grads, self.input_places or [], self.inputs)
        for hook in self.hooks:
            changed = hook(self.module, grad_input, self.grad_output)
            if changed is not None:
                grad_input = self._checked(changed, self.inputs, "Backward hook", "grad_input")
        self.grad_output = None
        return tuple(grad_input[i] for i in self.input_places or [])

    @staticmethod
    def _spread(grads: tuple[Any, ...], places: list[int], length: int) -> tuple[Any, ...]:
        full: list[Any] = [None] * length
        for i, grad in zip(places, grads):
            full[i] = grad
        return tuple(full)

    @staticmethod
    def _checked(changed: Any, length: int, who: str, what: str) -> tuple[Any, ...]:
        changed = changed if isinstance(changed, tuple) else (changed,)
        if len(changed) != length:
            raise RuntimeError(f"{who} returned an invalid number of {what}, got {len(changed)}, but expected {length}")
        return changed


class HooksMixin:
    """The ``register_*hook`` methods of ``Module``, and the call that runs them."""

    _has_hooks: bool
    forward: Callable[..., Any]
    _forward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _backward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _backward_hooks: OrderedDict[int, Callable[..., Any]]

    def register_forward_pre_hook(
        self,
        hook: Callable[[Any, Any], Any] | Callable[[Any, Any, Any], Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
    ) -> RemovableHandle:
        """Registers ``hook(module, args)`` to run before ``forward``; it may return new arguments.

        Args:
            prepend: run before the hooks already registered.
            with_kwargs: call ``hook(module, args, kwargs)``, which may return ``(args, kwargs)``.

        Example::

            >>> import vesta
            >>> layer = vesta.nn.Identity()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
            >>> layer(vesta.zeros(2))
            tensor([1., 1.])
        """
        self._has_hooks = True
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return _register(self._forward_pre_hooks, hook, marks, prepend=prepend)

    def register_forward_hook(
        self,
        hook: Callable[[Any, Any, Any], Any] | Callable[[Any, Any, Any, Any], Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Registers ``hook(module, args, output)`` to run after ``forward``; it may return another output.

        Args:
            prepend: run before the hooks already registered.
            with_kwargs: call ``hook(module, args, kwargs, output)``.
            always_call: run it (with output ``None``) even when the call raises.

        Example::

            >>> import vesta
            >>> layer = vesta.nn.Identity()
            >>> handle = layer.register_forward_hook(lambda module, args, output: output * 2)
            >>> layer(vesta.ones(2))
            tensor([2., 2.])
        """
        self._has_hooks = True
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return _register(self._forward_hooks, hook, marks, prepend=prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[[Any, Any], Any], prepend: bool = False
    ) -> RemovableHandle:
        """Registers ``hook(module, grad_output)`` to run before the module's backward; it may return new ones.

        Example::

            >>> import vesta
            >>> layer = vesta.nn.Linear(2, 1)
            >>> handle = layer.register_full_backward_pre_hook(lambda module, grad_output: print(len(grad_output)))
            >>> layer(vesta.ones(1, 2)).sum().backward()
            1
        """
        self._has_hooks = True
        return _register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[[Any, Any, Any], Any], prepend: bool = False
    ) -> RemovableHandle:
        """Registers ``hook(module, grad_input, grad_output)`` to run once the gradients of the inputs are known.

        The tuples have one entry for each positional argument and output, ``None`` for what is not a tensor. The hook
        must not change them but may return new ``grad_input``.

        Example::

            >>> import vesta
            >>> layer = vesta.nn.Linear(2, 1)
            >>> handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: print(grad_output))
            >>> layer(vesta.ones(1, 2, requires_grad=True)).sum().backward()
            (tensor([[1.]]),)
        """
        self._has_hooks = True
        return _register(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[[Any, Any, Any], Any]) -> RemovableHandle:
        """Registers a backward hook under its older name: ``register_full_backward_hook``.

        PyTorch's older hook sees the gradients of the module's last operation, which for a module of several is not
        those of its inputs; here they are.
        """
        return self.register_full_backward_hook(hook)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs ``forward`` between the hooks, global ones first."""
        observer = _observer[:]  # another thread may end the profile meanwhile
        if not observer:
            return self._call_hooked(args, kwargs)
        begin, end = observer
        token = begin(self)
        try:
            return self._call_hooked(args, kwargs)
        finally:
            end(token)

    def _call_hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not (self._has_hooks or any_hook()):  # a profile watches, and nobody else
            return self.forward(*args, **kwargs)
        always_called = self._forward_hooks_always_called or _global_forward_hooks_always_called
        if not always_called:
            return self._run_hooks(args, kwargs, set())
        called: set[int] = set()
        try:
            return self._run_hooks(args, kwargs, called)
        except Exception:
            self._run_always_called(args, kwargs, called)
            raise

    def _run_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> Any:
        pre_hooks = [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]
        hooks = [*_global_backward_hooks.values(), *self._backward_hooks.values()]
        if not (hooks or pre_hooks or self._forward_pre_hooks or self._forward_hooks):
            self._has_hooks = False  # all were removed: the next call takes the fast path again
        for key, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            args, kwargs = self._run_pre_hook(key, hook, args, kwargs)
        backward = _BackwardHooks(self, pre_hooks, hooks) if hooks or pre_hooks else None
        if backward is not None:
            args = backward.enter(args)
        output = self.forward(*args, **kwargs)
        for key, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            called.add(key)
            changed = self._run_forward_hook(key, hook, args, kwargs, output)
            output = output if changed is None else changed
        return output if backward is None else backward.leave(output)

    def _run_pre_hook(
        self, key: int, hook: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        if key not in self._forward_pre_hooks_with_kwargs:
            changed = hook(self, args)
            if changed is None:
                return args, kwargs
            return changed if isinstance(changed, tuple) else (changed,), kwargs
        changed = hook(self, args, kwargs)
        if changed is None:
            return args, kwargs
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
            )
        return changed

    def _run_forward_hook(
        self, key: int, hook: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], output: Any
    ) -> Any:
        if key in self._forward_hooks_with_kwargs or key in _global_forward_hooks_with_kwargs:
            return hook(self, args, kwargs, output)
        return hook(self, args, output)

    def _run_always_called(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[int]) -> None:
        """Runs the always-called hooks that an error kept from running; their errors become warnings."""
        for key, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            always = key in self._forward_hooks_always_called or key in _global_forward_hooks_always_called
            if not always or key in called:
                continue
            try:
                self._run_forward_hook(key, hook, args, kwargs, None)
            except Exception as error:
                warnings.warn(
                    f"module forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=2,
                )
