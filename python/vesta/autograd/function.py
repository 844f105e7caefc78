"""Operations with their own gradient: ``Function`` and its context.

Note [What ``_C._function_apply(cls, args)`` does with a Function]
1. ``ctx = cls._context()``; sets ``ctx.needs_input_grad`` (a bool for each of ``args``, False for anything but a
   tensor).
2. ``output = cls._forward(ctx, args)`` with the grad mode off; a tensor or a tuple in which tensors are the results.
3. Reads ``ctx._to_save`` (tensors or None), ``ctx._dirty``, ``ctx._non_differentiable`` (tensors, by identity) and
   ``ctx._materialize_grads``. If an argument requires grad (and the mode was on), it makes a node, saves the tensors in
   it, resets ``ctx._to_save`` to () (an output left there would keep its own node alive), sets ``ctx._unpack`` to a
   callable that returns the tensors as a tuple (or raises when they are freed or were written to), and records the
   outputs: a dirty argument is rebased on the node, an argument returned unchanged becomes a view. Without a node the
   context does not change.
4. In the backward pass: ``cls._backward(ctx, *grads)``, one gradient for each output, zeros for a missing one if
   ``_materialize_grads``, else None; the grad mode is ``create_graph``. The result is a tuple with one entry for each
   of ``args``, or a single gradient.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import vesta
from vesta import _C, Tensor

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class FunctionCtx:
    """What forward passes to backward: tensors by ``save_for_backward``, anything else as an attribute."""

    needs_input_grad: tuple[bool, ...] = ()
    _to_save: tuple[Tensor | None, ...] = ()
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize_grads: bool = True

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keeps tensors (or None) for ``saved_tensors``; call it at most once, in forward or ``setup_context``.

        A saved tensor that is written to afterwards makes backward raise instead of using wrong values.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(tensor).__name__}. "
                    "Keep anything else as an attribute of ctx."
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keeps nothing: derivatives in forward mode are made of ``backward``, and ``jvp`` is not called."""

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors given to ``save_for_backward``, in their order."""
        return self._unpack()

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of ``saved_tensors``."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _unpack(self) -> tuple[Tensor | None, ...]:
        return self._to_save  # replaced on the instance once a node holds the tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Declares the arguments that forward has changed in place; each must be among its outputs."""
        self._dirty = args

    def mark_shared_storage(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """Does nothing: tensors that share memory are known without it."""
        warnings.warn(
            "mark_shared_storage is deprecated: tensors that share memory are known without it.",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Declares the outputs without a gradient, such as indices; backward gets zeros for them."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Sets whether backward gets zeros (the default) or None for an output on which nothing depended."""
        self._materialize_grads = value


class Function:
    """An operation with its own gradient: subclass it, give static ``forward`` and ``backward``, call ``apply``.

    Two styles: ``forward(ctx, *args)``, or ``forward(*args)`` with ``setup_context(ctx, inputs, output)``.
    ``backward(ctx, *grad_outputs)`` returns one gradient for each argument of forward, ``None`` for an argument without
    one.

    Example::

        >>> import vesta
        >>> class Cube(vesta.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x * x
        ...     @staticmethod
        ...     def backward(ctx, grad):
        ...         (x,) = ctx.saved_tensors
        ...         return grad * 3 * x * x
        >>> x = vesta.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)
    """

    _context: type[FunctionCtx] = FunctionCtx

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = type(self).__name__
        warnings.warn(
            f"{name}: an instance of a Function has no use (its methods are static). Call {name}.apply(...).",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = type(self).__name__
        raise RuntimeError(f"{name}: an instance of a Function is not called. Call {name}.apply(...).")

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the result; every subclass implements it."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Saves what backward needs, for a ``forward`` without ``ctx``."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(*args: Any, **kwargs: Any) -> Any:  # a subclass's has (ctx, *grad_outputs), each with a name
        """Computes the gradients of the arguments from those of the outputs; every subclass implements it."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs forward and records it on the tape."""
        if cls._separate_context():
            import inspect

            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        elif kwargs:
            raise TypeError(
                f"{cls.__name__}.apply() takes no keyword arguments. Pass {next(iter(kwargs))!r} by position."
            )
        return _C._function_apply(cls, args)

    @classmethod
    def _separate_context(cls) -> bool:
        return cls.setup_context is not Function.setup_context

    @classmethod
    def _forward(cls, ctx: FunctionCtx, args: tuple[Any, ...]) -> Any:
        """Runs forward in the style the class is written in."""
        if not cls._separate_context():
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def _backward(cls, ctx: FunctionCtx, *grads: Tensor | None) -> Any:
        """Runs backward under whichever of its two names the class defines."""
        has_backward, has_vjp = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if has_backward and has_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return (cls.vjp if has_vjp else cls.backward)(ctx, *grads)


class _Refusal(Function):
    """The identity, which raises when it is differentiated."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(tensor.detach() for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a ``backward`` whose own operations must not be differentiated; a second derivative then raises.

    Example::

        >>> import vesta
        >>> class Twice(vesta.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     @vesta.autograd.function.once_differentiable
        ...     def backward(ctx, grad):
        ...         return grad * 2
    """

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with vesta.no_grad():
            outputs = fn(ctx, *args)
        tracked = any(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        if not (vesta.is_grad_enabled() and tracked):
            return outputs
        listed = list(outputs) if isinstance(outputs, tuple) else [outputs]
        places = [i for i, output in enumerate(listed) if isinstance(output, Tensor)]
        refused = _Refusal.apply(*(listed[i].detach().requires_grad_() for i in places)) if places else ()
        for i, tensor in zip(places, refused):
            listed[i] = tensor
        return tuple(listed) if isinstance(outputs, tuple) else listed[0]

    return wrapper
